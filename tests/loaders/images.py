"""Images made by hand: ELF files and Multiboot headers, with every field open to a test."""

from __future__ import annotations

import struct
from dataclasses import dataclass

EXIT_7 = b"\xb0\x07\xe6\xf4"  # mov al, 7; out 0xF4, al
MULTIBOOT_MAGIC = 0x1BADB002
LOAD = 0x100000


@dataclass
class Segment:
    data: bytes = EXIT_7
    physical: int = LOAD
    linear: int | None = None
    memory_size: int | None = None
    file_size: int | None = None
    offset: int | None = None
    kind: int = 1


def elf(bits: int, *segments: Segment, entry: int = LOAD, **fields: int) -> bytes:
    """`fields`: members of the ELF header to be overwritten."""
    wide = bits == 64
    header_size, entry_size = (64, 56) if wide else (52, 32)
    start = header_size + entry_size * len(segments)
    headers, contents = b"", b""
    for part in segments:
        offset = start + len(contents) if part.offset is None else part.offset
        file_size = len(part.data) if part.file_size is None else part.file_size
        memory_size = file_size if part.memory_size is None else part.memory_size
        linear = part.physical if part.linear is None else part.linear
        sizes = (offset, linear, part.physical, file_size, memory_size)
        if wide:
            headers += struct.pack("<2I6Q", part.kind, 7, *sizes, 1)
        else:
            headers += struct.pack("<8I", part.kind, *sizes, 7, 1)
        contents += part.data
    f = {"elfclass": 2 if wide else 1, "order": 1, "type": 2, "machine": 62 if wide else 3, "phoff": header_size}
    f |= {"phentsize": entry_size, "phnum": len(segments), **fields}
    ident = b"\x7fELF" + bytes([f["elfclass"], f["order"], 1]) + bytes(9)
    addresses = "QQQ" if wide else "III"
    header = ident + struct.pack(
        f"<HHI{addresses}IHHHHHH",
        f["type"], f["machine"], 1, entry, f["phoff"], 0, 0, header_size, f["phentsize"], f["phnum"], 0, 0, 0,
    )  # fmt: skip
    return header + headers + contents


def multiboot_header(flags: int = 0, *addresses: int, checksum: int | None = None) -> bytes:
    good = -(MULTIBOOT_MAGIC + flags) & 0xFFFFFFFF
    return struct.pack(
        f"<{3 + len(addresses)}I", MULTIBOOT_MAGIC, flags, good if checksum is None else checksum, *addresses
    )


def multiboot_elf(bits: int = 32, code: bytes = EXIT_7, flags: int = 3, entry: int = LOAD + 12) -> bytes:
    return elf(bits, Segment(multiboot_header(flags) + code), entry=entry)


def multiboot_flat(
    code: bytes = EXIT_7,
    *,
    header: int = LOAD,
    load: int = LOAD,
    load_end: int = 0,
    bss_end: int = 0,
    entry: int = LOAD + 32,
    before: bytes = b"",
) -> bytes:
    return before + multiboot_header(1 << 16, header, load, load_end, bss_end, entry) + code


def boot_sector(code: bytes = EXIT_7) -> bytes:
    return code.ljust(510, b"\0") + b"\x55\xaa"


def rom(size: int = 4096, code: bytes = EXIT_7) -> bytes:
    return bytes(size - 16) + code.ljust(16, b"\x90")
