"""What goes where in RAM: first everything is given a place, and only if all of it fits anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .source import ImageError, Source

if TYPE_CHECKING:
    from emu.machine import Machine

MIB = 1 << 20
GIB = 1 << 30
LOW_RAM_LIMIT = 3 * GIB
"""RAM beyond this continues at 4 GiB (emu/mmu/physical_memory.hpp)."""
CONVENTIONAL_END = 0xA0000
"""End of the memory that a PC leaves to programs below 1 MiB."""
_CHUNK = MIB
_ZEROS = bytes(_CHUNK)


class Range(NamedTuple):
    """Physical addresses from `start` up to, but not including, `end`, and what lies there."""

    start: int
    end: int
    what: str


@dataclass(frozen=True)
class Piece:
    """`size` bytes of RAM from `address` on: `length` bytes of the source from `offset` on, then zeros."""

    address: int
    size: int
    source: Source
    offset: int = 0
    length: int = 0

    @staticmethod
    def of_bytes(address: int, name: str, data: bytes) -> Piece:
        return Piece(address, len(data), Source.of_bytes(name, data), 0, len(data))

    def write(self, machine: Machine) -> None:
        """ImageError if the source cannot be read, EmuError if a ROM loaded before lies there."""
        for done in range(0, self.length, _CHUNK):
            part = min(_CHUNK, self.length - done)
            machine.memory.write(self.address + done, self.source.read(self.offset + done, part))
        for done in range(self.length, self.size, _CHUNK):
            at, part = self.address + done, min(_CHUNK, self.size - done)
            # RAM that nobody has touched takes no memory of the host and reads as zeros: it may stay untouched.
            if machine.memory.read(at, part) != _ZEROS[:part]:
                machine.memory.write(at, _ZEROS[:part])


class Layout:
    """The RAM of a machine while places in it are given away. Addresses are physical, sizes in bytes."""

    def __init__(self, ram_size: int) -> None:
        self.ram = [Range(0, min(ram_size, LOW_RAM_LIMIT), "RAM")]
        if ram_size > LOW_RAM_LIMIT:
            self.ram.append(Range(4 * GIB, 4 * GIB + ram_size - LOW_RAM_LIMIT, "RAM"))
        self.taken: list[Range] = []

    def claim(self, start: int, size: int, what: str, owner: Source) -> None:
        """Takes a place that the image itself demands. ImageError if it is not free RAM."""
        end = start + size
        wanted = f"{what} is to lie at {start:#x}-{end - 1:#x}"
        if not any(ram.start <= start and end <= ram.end for ram in self.ram):
            raise owner.error(
                f"{wanted}, but RAM is at {self._ram()}; give the machine more memory or link it elsewhere"
            )
        for other in self.taken:
            if start < other.end and other.start < end:
                raise owner.error(
                    f"{wanted}, but {other.what} lies at {other.start:#x}-{other.end - 1:#x}; they must not overlap, "
                    "so correct the linker script"
                )
        self.taken.append(Range(start, end, what))

    def lowest(self, size: int, what: str, owner: Source, within: tuple[int, int], alignment: int = 16) -> int:
        """Takes the first free place there. ImageError if there is none."""
        for ram in self.ram:
            at, end = _up(max(ram.start, within[0]), alignment), min(ram.end, within[1])
            for other in sorted(self.taken):
                if other.start < at + size and at < other.end:
                    at = _up(other.end, alignment)
            if at + size <= end:
                self.taken.append(Range(at, at + size, what))
                return at
        raise self._no_room(size, what, owner, within)

    def highest(self, size: int, what: str, owner: Source, within: tuple[int, int], alignment: int = 16) -> int:
        """Takes the last free place there. ImageError if there is none."""
        for ram in reversed(self.ram):
            start, at = max(ram.start, within[0]), _down(min(ram.end, within[1]) - size, alignment)
            for other in sorted(self.taken, reverse=True):
                if other.start < at + size and at < other.end:
                    at = _down(other.start - size, alignment)
            if at >= start:
                self.taken.append(Range(at, at + size, what))
                return at
        raise self._no_room(size, what, owner, within)

    def end_of_taken(self, below: int) -> int:
        """Where the last taken place below an address ends; 0 if there is none."""
        return max((taken.end for taken in self.taken if taken.start < below), default=0)

    def _no_room(self, size: int, what: str, owner: Source, within: tuple[int, int]) -> ImageError:
        return owner.error(
            f"no {size} bytes are free for {what} at {within[0]:#x}-{within[1] - 1:#x} (RAM is at {self._ram()}); "
            "give the machine more memory"
        )

    def _ram(self) -> str:
        return " and ".join(f"{ram.start:#x}-{ram.end - 1:#x}" for ram in self.ram)


def _up(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment


def _down(address: int, alignment: int) -> int:
    return address // alignment * alignment
