"""Multiboot 1 kernels: the header, the state at their entry, and what they are told.

Multiboot Specification version 0.6.96: "OS image format", "Machine state", "Boot information format".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import elf
from .entry import protected_mode
from .layout import CONVENTIONAL_END, GIB, MIB, Layout, Piece
from .plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .source import Source

HEADER_MAGIC = 0x1BADB002
LOADER_MAGIC = 0x2BADB002
SEARCHED = 8192
"""The header lies within so many bytes from the start of the file, on a multiple of 4."""
HEADER_SIZE, HEADER_SIZE_WITH_ADDRESSES = 12, 32

VIDEO_MODE = 1 << 2
REQUIREMENTS = 0xFFFF
KNOWN_REQUIREMENTS = 1 << 0 | 1 << 1 | VIDEO_MODE
"""Modules on page boundaries, memory information, video mode. The last one is a wish: there is no screen."""
HAS_ADDRESSES = 1 << 16

MULTIBOOT2_MAGIC, MULTIBOOT2_SEARCHED, MULTIBOOT2_ALIGNMENT = 0xE85250D6, 32768, 8

# The information structure, by bit of its flags.
INFO_SIZE = 120
INFO_MEMORY, INFO_COMMAND_LINE, INFO_MODULES, INFO_MEMORY_MAP, INFO_LOADER_NAME = 1, 1 << 2, 1 << 3, 1 << 6, 1 << 9
AVAILABLE, RESERVED = 1, 2
LOADER_NAME = b"emu\0"
PAGE = 4096


@dataclass(frozen=True)
class Header:
    """The header at `offset` of the file. `addresses`: header, load, load end, bss end, entry; () without bit 16."""

    offset: int
    flags: int
    addresses: tuple[int, ...]


def find(source: Source, strict: bool) -> Header | None:
    """The first header with a good checksum. If all are bad, None, or ImageError if `strict`."""
    start = source.read(0, min(source.size, SEARCHED))
    problem = None
    for offset in range(0, len(start) - 3, 4):
        if int.from_bytes(start[offset : offset + 4], "little") != HEADER_MAGIC:
            continue
        if len(start) < offset + HEADER_SIZE:
            problem = problem or f"its Multiboot header at offset {offset:#x} goes on past the first {len(start)} bytes"
            continue
        _, flags, checksum = struct.unpack_from("<3I", start, offset)
        good = -(HEADER_MAGIC + flags) & 0xFFFFFFFF
        if checksum != good:
            problem = problem or (
                f"its Multiboot header at offset {offset:#x} has checksum {checksum:#x}, but with flags {flags:#x} "
                f"it must be {good:#x}"
            )
            continue
        return Header(offset, flags, _addresses(start, offset, flags, source))
    if problem and strict:
        raise source.error(f"{problem}; correct the header")
    return None


def _addresses(start: bytes, offset: int, flags: int, source: Source) -> tuple[int, ...]:
    if not flags & HAS_ADDRESSES:
        return ()
    if len(start) < offset + HEADER_SIZE_WITH_ADDRESSES:
        raise source.error(
            f"its Multiboot header at offset {offset:#x} has addresses (flag 16), which go on past the first "
            f"{len(start)} bytes; put the header nearer to the start of the file"
        )
    return struct.unpack_from("<5I", start, offset + HEADER_SIZE)


def is_multiboot2(source: Source) -> bool:
    """A header of the newer specification, with a good checksum."""
    start = source.read(0, min(source.size, MULTIBOOT2_SEARCHED))
    for offset in range(0, len(start) - 15, MULTIBOOT2_ALIGNMENT):
        words = struct.unpack_from("<4I", start, offset)
        if words[0] == MULTIBOOT2_MAGIC and sum(words) & 0xFFFFFFFF == 0:
            return True
    return False


def plan(source: Source, header: Header, modules: Sequence[Source], command_line: str, layout: Layout) -> Plan:
    """Everything in its place. ImageError if the kernel asks for what there is not, or something does not fit."""
    unknown = header.flags & REQUIREMENTS & ~KNOWN_REQUIREMENTS
    if unknown:
        raise source.error(
            f"its Multiboot header demands what version 1 does not define (flags {header.flags:#x}, of which "
            f"{unknown:#x} are unknown); clear bits 3 to 15"
        )
    if header.addresses:
        kernel, entry = _place_by_addresses(source, header, layout)
    elif elf.is_elf(source):
        executable = elf.read(source)
        kernel, entry = executable.place(source, layout), executable.entry
    else:
        raise source.error(
            "its Multiboot header has no addresses (flag 16 is clear) and it is no ELF file, so nothing says where it "
            "goes; link it as ELF, or add the addresses"
        )
    loaded = _place_modules(modules, layout)
    info = _information(source, modules, [piece.address for piece in loaded], command_line, layout)
    state = protected_mode(entry, rax=LOADER_MAGIC, rbx=info.address)
    return Plan("multiboot", entry, state, (*kernel, *loaded, info), info.address)


def _place_by_addresses(source: Source, header: Header, layout: Layout) -> tuple[list[Piece], int]:
    """The address fields of the header: the file, or a part of it, is one block of memory."""
    header_at, load, load_end, bss_end, entry = header.addresses

    def wrong(text: str) -> Exception:
        return source.error(f"in its Multiboot header {text}; correct the header")

    if load > header_at:
        raise wrong(f"load_addr {load:#x} is above header_addr {header_at:#x}")
    offset = header.offset - (header_at - load)
    if offset < 0:
        raise wrong(
            f"load_addr {load:#x} is {header_at - load:#x} bytes before header_addr {header_at:#x}, but the header is "
            f"at offset {header.offset:#x} of the file"
        )
    length = load_end - load if load_end else source.size - offset
    if length <= 0:
        raise wrong(f"load_end_addr {load_end:#x} is not above load_addr {load:#x}")
    if offset + length > source.size:
        raise wrong(
            f"load_end_addr {load_end:#x} asks for {length:#x} bytes from offset {offset:#x}, but the file has "
            f"{source.size:#x} bytes"
        )
    size = bss_end - load if bss_end else length
    if size < length:
        raise wrong(f"bss_end_addr {bss_end:#x} is below the end of what is loaded, {load + length:#x}")
    if not load <= entry < load + length:
        raise wrong(f"entry_addr {entry:#x} is outside what is loaded, {load:#x}-{load + length - 1:#x}")
    layout.claim(load, size, "the kernel", source)
    return [Piece(load, size, source, offset, length)], entry


def _place_modules(modules: Sequence[Source], layout: Layout) -> list[Piece]:
    """On page boundaries after the kernel; before it if there is no room."""
    pieces = []
    for module in modules:
        end = layout.end_of_taken(below=4 * GIB)
        what = f"module {module.name}"
        fits = max(end, MIB) + PAGE + module.size <= layout.ram[0].end
        at = layout.lowest(module.size, what, module, (max(end, MIB) if fits else MIB, 4 * GIB), PAGE)
        pieces.append(Piece(at, module.size, module, 0, module.size))
    return pieces


def _information(
    source: Source, modules: Sequence[Source], module_addresses: list[int], command_line: str, layout: Layout
) -> Piece:
    """The information structure with everything it points to, in one block below 1 MiB."""
    if "\0" in command_line:
        raise source.error("the command line has a zero character, which would end it there; remove it")
    memory_map = _memory_map(layout)
    strings = [_text(command_line), LOADER_NAME, *(_text(module.name) for module in modules)]
    map_offset = INFO_SIZE
    modules_offset = map_offset + len(memory_map)
    strings_offset = modules_offset + 16 * len(modules)
    size = strings_offset + sum(map(len, strings))
    at = layout.highest(size, "the Multiboot information", source, (PAGE, CONVENTIONAL_END))

    string_at = [at + strings_offset + sum(map(len, strings[:i])) for i in range(len(strings))]
    described = b"".join(
        struct.pack("<4I", start, start + module.size, text, 0)
        for module, start, text in zip(modules, module_addresses, string_at[2:], strict=True)
    )
    flags = INFO_MEMORY | INFO_COMMAND_LINE | INFO_MODULES | INFO_MEMORY_MAP | INFO_LOADER_NAME
    low = layout.ram[0].end
    info = struct.pack("<4I", flags, min(low, CONVENTIONAL_END) >> 10, max(low - MIB, 0) >> 10, 0)
    info += struct.pack("<3I", string_at[0], len(modules), at + modules_offset)
    info += bytes(16)  # symbols: none
    info += struct.pack("<2I", len(memory_map), at + map_offset)
    info += bytes(12)  # drives, configuration table: none
    info += struct.pack("<I", string_at[1])
    return Piece.of_bytes(
        at, "Multiboot information", info.ljust(INFO_SIZE, b"\0") + memory_map + described + b"".join(strings)
    )


def _memory_map(layout: Layout) -> bytes:
    """RAM as a PC shows it: what lies from 640 KiB to 1 MiB is not for programs."""
    low = layout.ram[0].end
    ranges = [(0, min(low, CONVENTIONAL_END), AVAILABLE), (CONVENTIONAL_END, min(low, MIB), RESERVED)]
    ranges += [(MIB, low, AVAILABLE)]
    ranges += [(ram.start, ram.end, AVAILABLE) for ram in layout.ram[1:]]
    return b"".join(struct.pack("<I2QI", 20, start, end - start, kind) for start, end, kind in ranges if end > start)


def _text(text: str) -> bytes:
    return text.encode("utf-8", "replace") + b"\0"
