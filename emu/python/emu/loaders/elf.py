"""ELF files: which parts go where, and where execution starts.

System V ABI, "Object Files" and "Program Loading". Sections and symbols are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elftools.common.exceptions import ELFParseError
from elftools.common.utils import struct_parse
from elftools.elf.structs import ELFStructs

from .layout import GIB, Piece

if TYPE_CHECKING:
    from .layout import Layout
    from .source import Source

MAGIC = b"\x7fELF"
LITTLE_ENDIAN = 1
LARGEST_SEGMENT_COUNT = 256
BITS = {1: 32, 2: 64}
HEADER_SIZE = {32: 52, 64: 64}
SEGMENT_HEADER_SIZE = {32: 32, 64: 56}
MACHINE = {32: "EM_386", 64: "EM_X86_64"}
NOT_EXECUTABLE = {
    "ET_REL": "an object file; link it first",
    "ET_DYN": "position-independent and would have to be relocated; link it with -static -no-pie",
    "ET_CORE": "a core dump; load the program itself",
}


@dataclass(frozen=True)
class Segment:
    """A PT_LOAD segment: `length` bytes of the file from `offset` on, then zeros up to `size` bytes."""

    index: int
    offset: int
    length: int
    size: int
    linear: int
    physical: int

    @property
    def what(self) -> str:
        return f"ELF segment {self.index}"


@dataclass(frozen=True)
class Executable:
    """What an ELF file for this processor says. `entry` is the physical address of the first instruction."""

    bits: int
    entry: int
    segments: tuple[Segment, ...]

    def place(self, source: Source, layout: Layout) -> list[Piece]:
        """ImageError if a segment lies outside RAM or over another one."""
        for segment in self.segments:
            layout.claim(segment.physical, segment.size, segment.what, source)
        return [Piece(part.physical, part.size, source, part.offset, part.length) for part in self.segments]


def is_elf(source: Source) -> bool:
    return source.size >= len(MAGIC) and source.read(0, len(MAGIC)) == MAGIC


def read(source: Source) -> Executable:
    """ImageError unless it is an executable file for x86 with fixed addresses, and consistent."""
    bits = _bits(source)
    structs = ELFStructs(little_endian=True, elfclass=bits)
    structs.create_basic_structs()
    structs.create_advanced_structs()
    header = _parse(structs.Elf_Ehdr, source, 0)
    _require_executable(header, bits, source)
    entries = _segment_headers(header, bits, structs.Elf_Phdr, source)
    segments = _segments(entries, source)
    return Executable(bits, _entry(header["e_entry"], segments, source), segments)


def _bits(source: Source) -> int:
    ident = source.read(0, min(source.size, 16)).ljust(16, b"\0")
    bits = BITS.get(ident[4])
    if bits is None:
        raise source.error(f"its ELF class is {ident[4]}, neither 1 (32-bit) nor 2 (64-bit); build it again")
    if ident[5] != LITTLE_ENDIAN:
        raise source.error(f"its ELF byte order is {ident[5]}, but x86 is little-endian (1); build it for x86")
    if source.size < HEADER_SIZE[bits]:
        raise source.error(
            f"it has {source.size} bytes, but the ELF header alone has {HEADER_SIZE[bits]}; "
            "the file is truncated, so build or copy it again"
        )
    return bits


def _parse(structure: Any, source: Source, offset: int) -> Any:
    """The structure at that offset, which lies in the file."""
    try:
        return struct_parse(structure, source.stream, offset)
    except (ELFParseError, OSError) as error:
        raise source.error(
            f"the ELF structure at offset {offset:#x} cannot be read ({error}); build it again"
        ) from error


def _require_executable(header: Any, bits: int, source: Source) -> None:
    machine = header["e_machine"]
    if machine != MACHINE[bits]:
        raise source.error(
            f"it is a {bits}-bit ELF file for machine {machine}, but {bits}-bit code must be for {MACHINE[bits]}; "
            "build it for x86"
        )
    kind = header["e_type"]
    if kind != "ET_EXEC":
        reason = NOT_EXECUTABLE.get(kind, "not an executable; link it as one")
        raise source.error(f"it is an ELF file of type {kind}, {reason}")


def _segment_headers(header: Any, bits: int, structure: Any, source: Source) -> list[Any]:
    start, count, size = header["e_phoff"], header["e_phnum"], header["e_phentsize"]
    if count == 0:
        raise source.error("it has no program headers, so nothing says what to load; link it as an executable")
    if count > LARGEST_SEGMENT_COUNT:
        raise source.error(f"it has {count} program headers, more than {LARGEST_SEGMENT_COUNT}; build it again")
    if size != SEGMENT_HEADER_SIZE[bits]:
        raise source.error(
            f"its program headers have {size} bytes, but must have {SEGMENT_HEADER_SIZE[bits]}; build it again"
        )
    if start + count * size > source.size:
        raise source.error(
            f"its {count} program headers lie at offset {start:#x}-{start + count * size - 1:#x}, but it has "
            f"{source.size:#x} bytes; the file is truncated, so build or copy it again"
        )
    return [_parse(structure, source, start + i * size) for i in range(count)]


def _segments(entries: list[Any], source: Source) -> tuple[Segment, ...]:
    if any(entry["p_type"] == "PT_INTERP" for entry in entries):
        raise source.error(
            "it needs a dynamic linker, which only an operating system has; link it with -static -no-pie"
        )
    loads = [(i, e) for i, e in enumerate(entries) if e["p_type"] == "PT_LOAD" and (e["p_memsz"] or e["p_filesz"])]
    if not loads:
        raise source.error("it has no PT_LOAD segment with anything in it, so there is nothing to load; link it again")
    physical = "p_paddr" if any(entry["p_paddr"] for _, entry in loads) else "p_vaddr"
    segments = tuple(
        Segment(i, e["p_offset"], e["p_filesz"], e["p_memsz"], e["p_vaddr"], e[physical]) for i, e in loads
    )
    for segment in segments:
        if segment.length > segment.size:
            raise source.error(
                f"{segment.what} has {segment.length:#x} bytes in the file, but only {segment.size:#x} in memory; "
                "build it again"
            )
        if segment.offset + segment.length > source.size:
            raise source.error(
                f"{segment.what} has {segment.length:#x} bytes from offset {segment.offset:#x} on, but the file has "
                f"only {source.size:#x} bytes; the file is truncated, so build or copy it again"
            )
    return segments


def _entry(entry: int, segments: tuple[Segment, ...], source: Source) -> int:
    """Linked addresses become physical ones by their segment; some linker scripts give a physical one at once."""
    for segment in segments:
        if 0 <= entry - segment.linear < segment.size:
            return _reachable(entry - segment.linear + segment.physical, source)
    if any(0 <= entry - segment.physical < segment.size for segment in segments):
        return _reachable(entry, source)
    places = ", ".join(f"{part.linear:#x}-{part.linear + part.size - 1:#x}" for part in segments[:4])
    places += ", ..." if len(segments) > 4 else ""
    raise source.error(
        f"its entry {entry:#x} is in none of its segments ({places}); correct ENTRY in the linker script"
    )


def _reachable(entry: int, source: Source) -> int:
    if entry >= 4 * GIB:
        raise source.error(f"its entry has physical address {entry:#x}, above 4 GiB; link it lower")
    return entry
