"""The processor as an image finds it: a state for each way of being started.

Intel SDM vol. 3, "Protected-Mode Memory Management", Segment Descriptors; "Paging", 4-Level Paging.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emu.machine import Segment

from .layout import GIB, Piece

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emu.machine import Machine

    from .layout import Layout
    from .source import Source

CODE_SELECTOR, DATA_SELECTOR = 0x08, 0x10
DATA_SEGMENTS = ("ds", "es", "fs", "gs", "ss")

FLAT_CODE_32 = Segment(CODE_SELECTOR, 0, 0xFFFFFFFF, 0xC09B)
FLAT_CODE_64 = Segment(CODE_SELECTOR, 0, 0xFFFFFFFF, 0xA09B)
FLAT_DATA = Segment(DATA_SELECTOR, 0, 0xFFFFFFFF, 0xC093)

CR0_PE, CR0_ET, CR0_PG = 1 << 0, 1 << 4, 1 << 31
CR4_PAE = 1 << 5
EFER_LME, EFER_LMA = 1 << 8, 1 << 10
PRESENT_WRITABLE, LARGE_PAGE = 3, 1 << 7

STACK_SIZE = 16 << 10
PAGE = 4096
ENTRIES = 512
LARGE_PAGE_SIZE = 2 << 20


@dataclass(frozen=True)
class State:
    """What differs from the state after RESET; registers in the order in which they are set."""

    registers: Mapping[str, int]
    segments: Mapping[str, Segment]

    def enter(self, machine: Machine) -> None:
        for name, segment in self.segments.items():
            machine.set_segment(name, segment)
        for name, value in self.registers.items():
            setattr(machine.registers, name, value)


def real_mode(code: int, offset: int, stack: int, stack_pointer: int, **registers: int) -> State:
    """At `code`:`offset`, with the stack at `stack`:`stack_pointer`; DS and ES are as CS."""
    data = dict.fromkeys(("cs", "ds", "es"), _real_segment(code))
    return State(
        {"rip": offset, "rsp": stack_pointer, "cr0": CR0_ET, **registers}, {**data, "ss": _real_segment(stack)}
    )


def protected_mode(entry: int, **registers: int) -> State:
    """32-bit, flat, without paging, interrupts off. GDT and IDT have limit 0, unless `registers` say otherwise."""
    tables = {"gdtr_base": 0, "gdtr_limit": 0, "idtr_base": 0, "idtr_limit": 0}
    return State(
        {"cr0": CR0_PE | CR0_ET, "rip": entry, "rdx": 0, **tables, **registers},
        {"cs": FLAT_CODE_32, **dict.fromkeys(DATA_SEGMENTS, FLAT_DATA)},
    )


def flat_32(entry: int, layout: Layout, owner: Source) -> tuple[State, list[Piece]]:
    """32-bit protected mode with a stack and a GDT near the top of RAM below 4 GiB. ImageError if they do not fit."""
    gdt, registers = _descriptor_table(FLAT_CODE_32, layout, owner)
    registers["rsp"] = _stack(layout, owner)
    return protected_mode(entry, **registers), [gdt]


def flat_64(entry: int, layout: Layout, owner: Source) -> tuple[State, list[Piece]]:
    """64-bit mode, all RAM and at least 4 GiB mapped one to one in pages of 2 MiB, for ring 0.

    Stack, GDT and page tables are near the top of RAM below 4 GiB. ImageError if they do not fit.
    """
    gdt, registers = _descriptor_table(FLAT_CODE_64, layout, owner)
    tables = _page_tables(layout, owner)
    registers |= {"cr3": tables.address, "cr4": CR4_PAE, "efer": EFER_LME | EFER_LMA, "rsp": _stack(layout, owner)}
    registers |= {"cr0": CR0_PG | CR0_PE | CR0_ET}
    state = protected_mode(entry, **registers)
    return State(state.registers, {**state.segments, "cs": FLAT_CODE_64}), [gdt, tables]


def _real_segment(selector: int) -> Segment:
    return Segment(selector, selector << 4, 0xFFFF, 0x93)


def _stack(layout: Layout, owner: Source) -> int:
    return layout.highest(STACK_SIZE, "the stack", owner, (PAGE, 4 * GIB)) + STACK_SIZE


def _descriptor_table(code: Segment, layout: Layout, owner: Source) -> tuple[Piece, dict[str, int]]:
    table = struct.pack("<3Q", 0, _descriptor(code), _descriptor(FLAT_DATA))
    at = layout.highest(len(table), "the GDT", owner, (PAGE, 4 * GIB))
    return Piece.of_bytes(at, "GDT", table), {"gdtr_base": at, "gdtr_limit": len(table) - 1}


def _descriptor(segment: Segment) -> int:
    """Of a flat segment: base 0, limit 4 GiB in pages."""
    return segment.attributes << 40 | 0xF << 48 | 0xFFFF


def _page_tables(layout: Layout, owner: Source) -> Piece:
    """PML4, page-directory-pointer table and one page directory for each GiB, in this order."""
    gibs = max(4, -(-layout.ram[-1].end // GIB))
    at = layout.highest((2 + gibs) * PAGE, "the page tables", owner, (PAGE, 4 * GIB), PAGE)
    directories = [at + (2 + i) * PAGE | PRESENT_WRITABLE for i in range(gibs)]
    pages = [i * LARGE_PAGE_SIZE | LARGE_PAGE | PRESENT_WRITABLE for i in range(gibs * ENTRIES)]
    data = b"".join(
        struct.pack(f"<{len(entries)}Q", *entries).ljust(PAGE, b"\0")
        for entries in ([at + PAGE | PRESENT_WRITABLE], directories, pages)
    )
    return Piece.of_bytes(at, "page tables", data)
