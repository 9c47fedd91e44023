"""Page walks one by one: addresses, accesses of the processor itself, accesses across pages (Intel SDM vol. 3)."""

from __future__ import annotations

import pytest

from kit.changes import changes, register
from kit.expect import assert_runs
from kit.paging import CODE, FRAME, LEVELS, SUPERVISOR_CODE, VALUE, Space
from kit.paging_oracle import PDE, PDPTE, PS, PTE, RW, US, A, Access, Control, D, P
from kit.scene import DATA3, FREE, GDT, INTEL, KINDS, PAGE_TABLES, STACK, Scene

SMAP, AC = 1 << 21, 1 << 18
READ, WRITE = Access("read", 0), Access("write", 0)
FULL = P | RW | US


def mapped(
    paging: str, entries: dict[int, int] | None = None, control: Control | None = None, **features: int
) -> Space:
    space = Space(paging, **features)
    space.control(control or Control())
    for level in LEVELS[paging]:
        space.write(level, (entries or {}).get(level, space.points_to[level] | FULL))
    return space


def loaded(space: Space) -> int:
    space.machine.set("rax", 0)
    assert space.access(READ).error is None
    return space.machine.get("rax")


@pytest.mark.parametrize(
    ("paging", "level", "size"), [("32-bit", PDE, 22), ("PAE", PDE, 21), ("4-level", PDE, 21), ("4-level", PDPTE, 30)]
)
def test_large_pages(paging: str, level: int, size: int) -> None:
    """The rest of the linear address is the offset, and only the entry that maps the page gets a dirty flag."""
    space = mapped(paging, {level: FULL | PS}, Control(pse=True))
    assert loaded(space) == VALUE
    last = space.linear - FRAME + (1 << min(size, 23)) - 4
    space.scene.write((1 << min(size, 23)) - 4, b"\x78\x56\x34\x12")
    space.machine.set("rsi", last)
    assert loaded(space) == 0x12345678
    assert space.access(WRITE).entries[level] == FULL | PS | A | D


@pytest.mark.parametrize("width", [33, 36, 39, 40, 48])
def test_pages_of_4_mib_reach_beyond_4_gib(width: int) -> None:
    """Bits 20:13 of the entry are bits 39:32 of the address, as far as the processor has them (PSE-36)."""
    for bit in range(32, min(width, 40)):
        space = mapped("32-bit", {PDE: FULL | PS | 1 << bit - 19}, Control(pse=True), physical_address_bits=width)
        assert loaded(space) == 0xFFFFFFFF, "nothing answers there"
    if width < 40:
        space = mapped("32-bit", {PDE: FULL | PS | 1 << width - 19}, Control(pse=True), physical_address_bits=width)
        assert space.access(READ).error == 9


@pytest.mark.parametrize("paging", LEVELS)
def test_accessed_and_dirty(paging: str) -> None:
    space = mapped(paging)
    tables = {level: space.points_to[level] | FULL | A for level in LEVELS[paging]}
    assert space.access(READ).entries == tables
    assert space.access(WRITE).entries == tables | {PTE: tables[PTE] | D}


@pytest.mark.parametrize("paging", LEVELS)
def test_flags_that_are_set_are_not_written(paging: str) -> None:
    used = {level: Space(paging).points_to[level] | FULL | A | D for level in LEVELS[paging]}
    space = mapped(paging, used)
    space.machine.set("rip", SUPERVISOR_CODE + CODE["write"])
    end = space.machine.run(1, "checks")
    assert not [r for r in end.records if r["kind"] == KINDS["write"] and r["a"] in space.at.values()]
    assert {level: space.read(level) for level in used} == used


def test_a_walk_reads_one_entry_a_level() -> None:
    for paging, entries in (("32-bit", 2), ("PAE", 2), ("4-level", 4)):  # the PDPTEs of PAE paging are registers
        space = mapped(paging)
        assert loaded(space) == VALUE
        space = mapped(paging)
        space.machine.set("rip", SUPERVISOR_CODE + CODE["read"])
        end = space.machine.run(1, "checks")
        own = [r for r in end.records if r["kind"] == KINDS["read"] and r["a"] in space.at.values()]
        assert len(own) == entries


def test_a_store_walks_once() -> None:
    space = mapped("4-level")
    space.machine.set("rip", SUPERVISOR_CODE + CODE["write"])
    end = space.machine.run(1, "checks")
    leaf = [r for r in end.records if r["kind"] == KINDS["read"] and r["a"] == space.at[PTE]]
    assert len(leaf) == 1


# --- accesses of the processor itself --------------------------------------------------------------------------------


def at_ring_3(smap: bool, *, ac: bool = False) -> Scene:
    scene = Scene("long", cpl=3)
    changes(register("cr4", 0x20 | SMAP * smap), register("rflags", 2 | AC * ac), register("rax", DATA3))(scene)
    scene.page(GDT, GDT | 7)
    return scene


def test_descriptors_are_read_by_a_supervisor() -> None:
    scene = at_ring_3(smap=False)
    scene.page(GDT, GDT | 3)  # a supervisor's page
    assert_runs(scene.step("mov ds, ax"))


@pytest.mark.parametrize("ac", [False, True])
def test_smap_guards_system_structures_whatever_ac_says(ac: bool) -> None:
    """Implicit accesses are not excused by RFLAGS.AC; the error code has U/S = 0 although CPL is 3."""
    scene = at_ring_3(smap=True, ac=ac)
    scene.machine.set("idtr_limit", 0)
    step = scene.step("mov ds, ax")
    assert step.faults[0] == (14, 1, "paging.smap")
    assert scene.machine.get("cr2") == GDT + (DATA3 & ~7)


def test_smap_and_the_users_own_accesses() -> None:
    scene = at_ring_3(smap=True)
    assert_runs(scene.step("mov eax, [rsp - 4]"))


@pytest.mark.parametrize(("ac", "faults"), [(True, []), (False, [(14, 1, "paging.smap")])])
def test_ac_excuses_explicit_accesses(ac: bool, faults: list[tuple[int, int, str]]) -> None:
    space = mapped("4-level", control=Control(smap=True, ac=ac))
    result = space.access(READ)
    assert result.error == (1 if faults else None)


def test_stac_and_clac_take_effect_at_once() -> None:
    space = mapped("4-level", control=Control(smap=True))
    # STAC; MOV EAX, [RSI]; CLAC; MOV EAX, [RSI]
    space.scene.write(SUPERVISOR_CODE, b"\x0f\x01\xcb\x8b\x06\x0f\x01\xca\x8b\x06")
    space.machine.set("rip", SUPERVISOR_CODE)
    end = space.machine.run(4, "checks")
    assert [int(r["b"]) for r in end.records if r["kind"] == KINDS["fault"]][:1] == [1]
    assert space.machine.get("rip") == SUPERVISOR_CODE + 8


# --- accesses across pages -------------------------------------------------------------------------------------------

EDGE = 0x9FFE  # two bytes in one page, two in the next


@pytest.mark.parametrize("mode", ["protected", "long"])
def test_both_pages_of_an_access(mode: str) -> None:
    scene = Scene(mode, cpl=3, paging=True)
    scene.page(0xA000, 7, physical=0x30000)  # the next page lies elsewhere
    scene.write(EDGE, b"\x11\x22")
    scene.write(0x30000, b"\x33\x44")
    scene.machine.set("rsi", EDGE)
    step = scene.step(
        "mov eax, [rsi]\n mov [rsi], ebx" if mode == "long" else "mov eax, [esi]\n mov [esi], ebx", instructions=2
    )
    assert_runs(step)
    assert step.register("rax") == 0x44332211
    assert (scene.read(EDGE, 2), scene.read(0x30000, 2)) == (bytes(2), bytes(2))


@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize(
    ("source", "flags", "error"), [("mov eax, [{}]", 0, 4), ("mov [{}], eax", 5, 7), ("add [{}], eax", 5, 7)]
)
def test_a_fault_in_the_second_page(mode: str, source: str, flags: int, error: int) -> None:
    """CR2 names the first byte that cannot be accessed, and nothing is stored in the first page."""
    scene = Scene(mode, cpl=3, paging=True)
    scene.page(0xA000, flags)
    scene.write(EDGE, b"\x11\x22")
    changes(register("rsi", EDGE), register("rax", 0xFFFFFFFF))(scene)
    step = scene.step(source.format("rsi" if mode == "long" else "esi"))
    assert step.faults[0][:2] == (14, error)
    assert step.register("cr2") == 0xA000
    assert scene.read(EDGE, 2) == b"\x11\x22"


def test_an_instruction_across_pages() -> None:
    scene = Scene("long", cpl=3)
    scene.page(0x9000, 0)
    scene.write(0x8FFE, b"\x05\x44")  # ADD EAX, imm32
    scene.machine.set("rip", 0x8FFE)
    end = scene.machine.run(1, "checks")
    fault = next(r for r in end.records if r["kind"] == KINDS["fault"])
    assert (int(fault["a"]), int(fault["b"]), int(fault["c"])) == (14, 0x14, 0x9000)


def test_an_absent_page_after_the_last_instruction_does_not_matter() -> None:
    scene = Scene("long", cpl=3)
    scene.page(0x9000, 0)
    scene.write(0x8FFF, b"\x90")
    scene.machine.set("rip", 0x8FFF)
    assert scene.machine.run(1, "checks").reason == "budget"
    assert scene.machine.get("rip") == 0x9000


# --- reserved to the processor ---------------------------------------------------------------------------------------


def test_read_modify_write_faults_as_a_write() -> None:
    scene = Scene("long", cpl=3)
    scene.page(0x9000, 5)
    step = scene.step("add dword [0x9000], 1")
    assert step.faults[0] == (14, 7, "paging.writable")


def test_a_push_is_a_users_write() -> None:
    scene = Scene("long", cpl=3)
    scene.page(STACK[3] - 0x1000, 0)
    step = scene.step("push rax")
    assert step.faults[0] == (14, 6, "paging.present")
    assert step.registers_before["rsp"] == STACK[3]


def test_the_first_level_that_says_no_is_named() -> None:
    scene = Scene("long", cpl=3)
    scene.write(PAGE_TABLES + 0x1000, (0).to_bytes(8, "little"))
    scene.machine.set("idtr_limit", 0)
    step = scene.step("nop")
    assert step.faults[0] == (14, 0x14, "paging.present")
    failed = next(r for r in step.records if r["kind"] == KINDS["check"] and not r["held"])
    assert int(failed["b"]) == 2  # the page directory


def test_execute_disable_needs_nxe() -> None:
    for nxe, error in ((True, 0x15), (False, 0xD)):  # protection violation; reserved bit
        scene = Scene("long", cpl=3, model=INTEL)
        changes(register("efer", 0x501 | nxe << 11), register("idtr_limit", 0))(scene)
        scene.page(0x8000, 7 | 1 << 63)
        assert scene.step("nop").faults[0][:2] == (14, error)


def test_a_selector_beyond_its_page() -> None:
    """FREE lies in the same page as the rest of the GDT; a table that is only partly mapped faults where it is not."""
    scene = Scene("long", cpl=0)
    changes(register("gdtr_limit", 0xFFFF), register("rax", 0x1000 | FREE))(scene)
    scene.page(GDT + 0x1000, 0)
    step = scene.step("mov ds, ax")
    assert step.faults[0] == (14, 0, "paging.present")
    assert step.register("cr2") == GDT + 0x1000 + FREE
