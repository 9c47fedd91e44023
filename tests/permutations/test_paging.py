"""Every combination of access rights and controls against the oracle (kit/paging_oracle.py)."""

from __future__ import annotations

from itertools import product

import pytest

from kit.paging import FRAME, LEVELS, Space
from kit.paging_oracle import PDE, PDPTE, PML4E, PS, PTE, RW, US, XD, Access, Control, P, reserved, translate

KINDS = ("read", "write", "fetch")
RIGHTS = [rw | us for rw in (0, RW) for us in (0, US)]
RIGHTS_WITH_XD = [rights | xd for rights in RIGHTS for xd in (0, XD)]
FULL = P | RW | US
CONTROLS = [Control(*options) for options in product((False, True), repeat=6)]


def compare(space: Space, entries: dict[int, int], control: Control, access: Access) -> None:
    """The entries are in memory; afterwards they are what the manual says."""
    expected = translate(space.paging, entries, control, access)
    got = space.access(access)
    told = {level: got.entries[level] for level in expected.entries}
    if got.error != expected.error or told != expected.entries or (got.error is not None and got.cr2 != space.linear):
        pytest.fail(
            f"{space.paging}, {access}, {control}\n"
            f"entries { ({level: hex(e) for level, e in entries.items()}) }\n"
            f"expected error {expected.error}, { ({level: hex(e) for level, e in expected.entries.items()}) }\n"
            f"got error {got.error}, CR2 {got.cr2}, { ({level: hex(e) for level, e in got.entries.items()}) }"
        )
    for level, entry in entries.items():
        if got.entries[level] != entry:
            space.write(level, entry)


def entries_of(space: Space, leaf: int, upper: int, upper_rights: int, leaf_rights: int) -> dict[int, int]:
    """All entries full but for the leaf and one entry above it."""
    entries = {level: space.points_to[level] | FULL for level in LEVELS[space.paging] if level > leaf}
    entries[leaf] = (0 | PS if leaf != PTE else FRAME) | P | leaf_rights
    if upper != leaf:
        entries[upper] = space.points_to[upper] | P | upper_rights
    return entries


# paging, the level that maps the page, the level above it whose rights vary too
SHAPES = [
    ("32-bit", PTE, PDE),
    ("32-bit", PDE, PDE),
    ("PAE", PTE, PDE),
    ("PAE", PDE, PDE),
    ("4-level", PTE, PDE),
    ("4-level", PTE, PDPTE),
    ("4-level", PTE, PML4E),
    ("4-level", PDE, PDPTE),
    ("4-level", PDPTE, PML4E),
]


@pytest.mark.parametrize(("paging", "leaf", "upper"), SHAPES)
def test_access_rights(paging: str, leaf: int, upper: int) -> None:
    space = Space(paging)
    rights = RIGHTS if paging == "32-bit" else RIGHTS_WITH_XD
    for control in CONTROLS:
        if (paging == "32-bit" and leaf == PDE and not control.pse) or (control.pse and paging != "32-bit"):
            continue
        space.control(control)
        for upper_rights, leaf_rights in product(rights if upper != leaf else [0], rights):
            entries = entries_of(space, leaf, upper, upper_rights, leaf_rights)
            for level, entry in entries.items():
                space.write(level, entry)
            for cpl, kind in product((0, 3), KINDS):
                compare(space, entries, control, Access(kind, cpl))


@pytest.mark.parametrize("paging", LEVELS)
def test_rings_1_and_2_are_supervisors(paging: str) -> None:
    space = Space(paging)
    for control in (Control(wp=True), Control(smep=True, smap=True), Control(smap=True, ac=True)):
        space.control(control)
        for leaf_rights in RIGHTS:
            entries = entries_of(space, PTE, PDE, RW | US, leaf_rights)
            for level, entry in entries.items():
                space.write(level, entry)
            for cpl, kind in product((1, 2), KINDS):
                compare(space, entries, control, Access(kind, cpl))


@pytest.mark.parametrize("paging", LEVELS)
def test_entries_that_are_not_present(paging: str) -> None:
    """With P = 0 nothing else in an entry matters: no reserved bits, no rights."""
    space = Space(paging)
    junk = (1 << 8 * space.size) - 2
    for control in (Control(), Control(smep=True), Control(nxe=True), Control(smep=True, nxe=True, smap=True, wp=True)):
        space.control(control)
        for absent, content in product(LEVELS[paging], (0, junk, RW | US)):
            entries = {level: space.points_to[level] | FULL for level in LEVELS[paging]} | {absent: content}
            for level, entry in entries.items():
                space.write(level, entry)
            for cpl, kind in product((0, 3), KINDS):
                compare(space, entries, control, Access(kind, cpl))


def leaves(paging: str) -> tuple[int, ...]:
    return {"32-bit": (PTE, PDE), "PAE": (PTE, PDE), "4-level": (PTE, PDE, PDPTE)}[paging]


@pytest.mark.parametrize("width", [36, 39, 48])
@pytest.mark.parametrize("paging", LEVELS)
def test_reserved_bits(paging: str, width: int) -> None:
    """Each bit of each entry that is neither address nor right."""
    space = Space(paging, physical_address_bits=width)
    controls = [Control(pse=True, nxe=nxe, smep=nxe, physical_address_bits=width) for nxe in (False, True)]
    seen = False
    for control, leaf in product(controls, leaves(paging)):
        space.control(control)
        good = entries_of(space, leaf, leaf, 0, RW | US)
        for level, entry in good.items():
            space.write(level, entry)
        for level, entry in good.items():
            address = 12 if level != leaf or leaf == PTE else 30 if leaf == PDPTE else 22 if paging == "32-bit" else 21
            top = 32 if paging == "32-bit" else width
            for bit in (*range(3, address), *range(top, 8 * space.size)):
                value = entry | 1 << bit
                large = paging == "32-bit" and level == leaf == PDE
                is_address = large and 13 <= bit < min(40, width) - 19
                if (bit == 7 and level not in (PTE, leaf) and level != PML4E) or is_address:
                    continue  # another translation, not another right
                entries = good | {level: value}
                space.write(level, value)
                seen |= bool(value & reserved(paging, level, value, control))
                for cpl, kind in ((0, "read"), (3, "write"), (3, "fetch")):
                    compare(space, entries, control, Access(kind, cpl))
                space.write(level, entry)
    assert seen


def test_pages_of_1_gib_may_not_exist() -> None:
    space = Space("4-level", pages_1gib=False)
    control = Control(pages_1gib=False)
    space.control(control)
    entries = entries_of(space, PDPTE, PDPTE, 0, RW | US)
    for level, entry in entries.items():
        space.write(level, entry)
    for cpl, kind in product((0, 3), KINDS):
        compare(space, entries, control, Access(kind, cpl))


def test_32_bit_paging_without_page_size_extensions() -> None:
    """CR4.PSE = 0: PS is ignored and the entry names a page table."""
    space = Space("32-bit")
    for control in (Control(), Control(smep=True, wp=True)):
        space.control(control)
        entries = {level: space.points_to[level] | FULL for level in LEVELS["32-bit"]}
        entries[PDE] |= PS
        for level, entry in entries.items():
            space.write(level, entry)
        for cpl, kind in product((0, 3), KINDS):
            compare(space, entries, control, Access(kind, cpl))
