"""Images without a header: ROMs, boot sectors and flat binaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .entry import flat_32, real_mode
from .layout import CONVENTIONAL_END, GIB, MIB, Layout, Piece
from .plan import Plan

if TYPE_CHECKING:
    from .source import Source

ROM_GRANULE, LARGEST_ROM = 4096, 16 * MIB
SECTOR = 512
BOOT_SIGNATURE = b"\x55\xaa"
BOOT_SECTOR_AT = 0x7C00
FIRST_HARD_DISK = 0x80
"""DL: the drive, as a BIOS numbers them."""
RESET_VECTOR_SIZE = 16
INTERRUPT_VECTORS_END = 0x500
"""Interrupt vectors of real mode, and the data area of a BIOS."""
STACK_SIZE = 4096


def is_rom(source: Source) -> bool:
    return source.size % ROM_GRANULE == 0 and source.size <= LARGEST_ROM


def has_reset_vector(source: Source) -> bool:
    """A ROM with code where the processor starts, rather than padding."""
    return is_rom(source) and len(set(source.read(source.size - RESET_VECTOR_SIZE, RESET_VECTOR_SIZE))) > 1


def is_boot_sector(source: Source) -> bool:
    return source.size % SECTOR == 0 and source.read(SECTOR - len(BOOT_SIGNATURE), 2) == BOOT_SIGNATURE


def boot_sector(source: Source, layout: Layout) -> Plan:
    """At 0000:7C00 with the drive in DL, as a BIOS leaves it; sectors that follow come along, for there is no disk."""
    largest = CONVENTIONAL_END - BOOT_SECTOR_AT
    if source.size > largest:
        raise source.error(
            f"it is a disk image of {source.size} bytes, but at most {largest} fit at {BOOT_SECTOR_AT:#x}, and there "
            "is no disk to read the rest from; load the kernel in it directly"
        )
    layout.claim(BOOT_SECTOR_AT, source.size, "the boot sector", source)
    state = real_mode(0, BOOT_SECTOR_AT, 0, BOOT_SECTOR_AT, rdx=FIRST_HARD_DISK)
    return Plan("boot sector", BOOT_SECTOR_AT, state, (Piece(BOOT_SECTOR_AT, source.size, source, 0, source.size),))


def flat(source: Source, at: int, layout: Layout) -> Plan:
    """From its first byte, which goes to physical address `at`.

    Below 1 MiB in real mode with CS = DS = ES = `at` / 16, else in flat 32-bit protected mode.
    """
    if not 0 <= at < 4 * GIB:
        raise source.error(f"it cannot go to address {at:#x}; a flat binary starts below 4 GiB, so give a lower one")
    layout.claim(at, source.size, "the image", source)
    image = Piece(at, source.size, source, 0, source.size)
    if at < MIB:
        within = (INTERRUPT_VECTORS_END, CONVENTIONAL_END)
        stack = layout.highest(STACK_SIZE, "the stack", source, within)
        return Plan("flat", at, real_mode(at >> 4, at & 15, stack >> 4, STACK_SIZE, rdx=0), (image,))
    state, tables = flat_32(at, layout, source)
    return Plan("flat", at, state, (image, *tables))
