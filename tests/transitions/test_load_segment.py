"""Loads of SS, DS, ES, FS and GS (Intel SDM vol. 2, MOV, POP, LDS...LSS, Operation): every check both ways."""

from __future__ import annotations

import pytest

from kit.changes import Change, changes, describes, no_ldt, nothing, register, segment_register
from kit.descriptors import (
    CALL_GATE,
    CODE,
    CODE_CONFORMING,
    CODE_EXECUTE_ONLY,
    DATA,
    DATA_EXPAND_DOWN,
    DATA_READ_ONLY,
    LDT,
    segment,
)
from kit.expect import assert_faults, assert_interrupts, assert_runs
from kit.scene import (
    CODE0,
    CODE3,
    CONFORMING0,
    DATA0,
    DATA1,
    DATA3,
    FREE,
    GDT,
    GDT_LIMIT,
    KINDS,
    LDT_AT,
    LDT_SELECTOR,
    Scene,
    Step,
)

ACCESSED = 1
MODES = ("protected", "long", "compatibility")
NULLS = (0, 1, 2, 3)


def good(mode: str, cpl: int = 0) -> Scene:
    return Scene(mode, cpl=cpl)


def move(scene: Scene, name: str, selector: int) -> Step:
    scene.machine.set("rax", selector)
    return scene.step(f"mov {name}, ax")


STACK_FAULTS: list[tuple[str, int, int, Change, str, int, str]] = [
    # mode, CPL, selector, change, vector, error code, check
    ("protected", 0, 0, nothing, "#GP", 0, "stack_load.null_only_in_64_bit"),
    ("protected", 3, 3, nothing, "#GP", 0, "stack_load.null_only_in_64_bit"),
    ("compatibility", 0, 0, nothing, "#GP", 0, "stack_load.null_only_in_64_bit"),
    ("long", 3, 3, nothing, "#GP", 0, "stack_load.null_only_in_64_bit"),
    ("long", 0, 1, nothing, "#GP", 0, "stack_load.null_rpl_equals_cpl"),
    ("long", 2, 0, nothing, "#GP", 0, "stack_load.null_rpl_equals_cpl"),
    ("protected", 0, 0x0C, no_ldt, "#GP", 0x0C, "stack_load.ldt_loaded"),
    ("protected", 0, GDT_LIMIT + 1, nothing, "#GP", GDT_LIMIT + 1, "stack_load.selector_in_table"),
    ("long", 0, 0xF8, register("gdtr_limit", 0xFE), "#GP", 0xF8, "stack_load.selector_in_table"),
    ("protected", 0, 0x44, nothing, "#GP", 0x44, "stack_load.selector_in_table"),  # the LDT has 8 entries
    ("protected", 0, DATA0 | 1, nothing, "#GP", DATA0, "stack_load.rpl_equals_cpl"),
    ("protected", 3, DATA3 & ~3, nothing, "#GP", DATA3 & ~3, "stack_load.rpl_equals_cpl"),
    ("long", 3, DATA3 & ~3 | 2, nothing, "#GP", DATA3 & ~3, "stack_load.rpl_equals_cpl"),
    ("protected", 0, FREE, describes(segment(DATA_READ_ONLY)), "#GP", FREE, "stack_load.writable_data"),
    ("protected", 0, CODE0, nothing, "#GP", CODE0, "stack_load.writable_data"),
    ("protected", 0, FREE, describes(segment(CALL_GATE)), "#GP", FREE, "stack_load.writable_data"),
    ("long", 0, LDT_SELECTOR, nothing, "#GP", LDT_SELECTOR, "stack_load.writable_data"),
    ("protected", 0, DATA3 & ~3, nothing, "#GP", DATA3 & ~3, "stack_load.dpl_equals_cpl"),
    ("protected", 3, DATA0 | 3, nothing, "#GP", DATA0, "stack_load.dpl_equals_cpl"),
    ("compatibility", 3, DATA1 | 3, nothing, "#GP", DATA1 & ~3, "stack_load.dpl_equals_cpl"),
    ("protected", 0, FREE, describes(segment(DATA, present=False)), "#SS", FREE, "stack_load.present"),
    ("long", 0, FREE, describes(segment(DATA, present=False)), "#SS", FREE, "stack_load.present"),
]


@pytest.mark.parametrize(("mode", "cpl", "selector", "change", "vector", "error", "check"), STACK_FAULTS)
def test_stack_fault(mode: str, cpl: int, selector: int, change: Change, vector: str, error: int, check: str) -> None:
    scene = good(mode, cpl)
    change(scene)
    step = move(scene, "ss", selector)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)


DATA_FAULTS: list[tuple[str, int, int, Change, str, int, str]] = [
    # mode, CPL, selector, change, vector, error code, check
    ("protected", 0, 0x0F, no_ldt, "#GP", 0x0C, "data_load.ldt_loaded"),
    ("protected", 0, GDT_LIMIT + 1 | 3, nothing, "#GP", GDT_LIMIT + 1, "data_load.selector_in_table"),
    ("long", 0, 0x44, nothing, "#GP", 0x44, "data_load.selector_in_table"),
    ("protected", 0, FREE, describes(segment(CODE_EXECUTE_ONLY)), "#GP", FREE, "data_load.readable"),
    ("protected", 0, LDT_SELECTOR, nothing, "#GP", LDT_SELECTOR, "data_load.readable"),
    ("long", 0, FREE, describes(segment(LDT)), "#GP", FREE, "data_load.readable"),
    ("protected", 0, DATA0 | 1, nothing, "#GP", DATA0, "data_load.rpl_not_above_dpl"),
    ("protected", 0, CODE0 | 3, nothing, "#GP", CODE0, "data_load.rpl_not_above_dpl"),
    ("protected", 3, DATA0, nothing, "#GP", DATA0, "data_load.cpl_not_above_dpl"),
    ("long", 2, DATA1, nothing, "#GP", DATA1 & ~3, "data_load.cpl_not_above_dpl"),
    ("protected", 3, CODE0, nothing, "#GP", CODE0, "data_load.cpl_not_above_dpl"),
    ("protected", 0, FREE, describes(segment(DATA, present=False)), "#NP", FREE, "data_load.present"),
    ("compatibility", 3, FREE, describes(segment(CODE_CONFORMING, present=False)), "#NP", FREE, "data_load.present"),
]


@pytest.mark.parametrize("name", ["ds", "gs"])
@pytest.mark.parametrize(("mode", "cpl", "selector", "change", "vector", "error", "check"), DATA_FAULTS)
def test_data_fault(
    mode: str, cpl: int, selector: int, change: Change, vector: str, error: int, check: str, name: str
) -> None:
    scene = good(mode, cpl)
    change(scene)
    step = move(scene, name, selector)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "cpl", "selector", "data"),
    [
        ("ss", 0, FREE, segment(DATA, base=0x12345678, limit=0x54321)),
        ("ss", 3, FREE | 3, segment(DATA, dpl=3, limit=0x1000, granular=False)),
        ("ss", 0, FREE, segment(DATA_EXPAND_DOWN, limit=7)),
        ("ds", 0, FREE, segment(DATA_READ_ONLY, base=0xFEDCBA98)),
        ("es", 0, FREE | 3, segment(DATA, dpl=3)),  # RPL <= DPL
        ("fs", 3, FREE, segment(DATA, dpl=3)),
        ("gs", 2, FREE | 1, segment(DATA, dpl=2)),
        ("ds", 0, FREE, segment(CODE)),  # readable code
        ("ds", 3, FREE | 3, segment(CODE_CONFORMING)),  # conforming code: DPL does not matter
    ],
)
def test_a_load_fills_the_hidden_part(mode: str, name: str, cpl: int, selector: int, data: bytes) -> None:
    scene = good(mode, cpl)
    scene.descriptor(FREE, data)
    assert_runs(move(scene, name, selector))
    raw = int.from_bytes(data, "little")
    limit = raw & 0xFFFF | raw >> 32 & 0xF0000
    assert scene.machine.segment(name) == {
        "selector": selector,
        "base": raw >> 16 & 0xFFFFFF | raw >> 32 & 0xFF000000,
        "limit": limit << 12 | 0xFFF if raw >> 55 & 1 else limit,
        "attributes": raw >> 40 & 0xF0FF | ACCESSED,
    }
    assert scene.read(GDT + FREE + 5, 1)[0] == data[5] | ACCESSED


def test_a_segment_of_the_ldt() -> None:
    scene = good("protected")
    scene.descriptor(0x18, segment(DATA, base=0x5000), ldt=True)
    assert_runs(move(scene, "es", 0x1C))
    assert scene.machine.segment("es")["base"] == 0x5000
    assert scene.read(LDT_AT + 0x18 + 5, 1)[0] & ACCESSED


def test_the_accessed_bit_is_written_only_if_it_is_clear() -> None:
    scene = good("protected")
    step = move(scene, "ds", DATA3)  # the scene's descriptors are not accessed yet
    assert [int(r["c"]) for r in step.records if r["kind"] == KINDS["write"]] == [1]
    scene.machine.set("rip", 0x8100)
    again = move(scene, "ds", DATA3)
    assert not [r for r in again.records if r["kind"] == KINDS["write"]]


def test_the_accessed_bit_of_a_read_only_table() -> None:
    """The write is a supervisor's, which CR0.WP subjects to R/W: #PF, and DS keeps what it had."""
    scene = Scene("protected", paging=True)
    scene.descriptor(CODE0, segment(CODE | ACCESSED))
    scene.page(GDT, 0x1)
    step = move(scene, "ds", DATA0)
    assert step.faults[0] == (14, 0x3, "paging.writable")
    assert scene.machine.get("cr2") & ~0xFFF == GDT
    assert scene.machine.segment("ds")["selector"] == DATA3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("selector", NULLS)
@pytest.mark.parametrize("name", ["ds", "es", "fs", "gs"])
def test_data_registers_take_any_null_selector(mode: str, name: str, selector: int) -> None:
    scene = good(mode, 3)
    assert_runs(move(scene, name, selector))
    assert scene.machine.segment(name)["selector"] == selector
    assert scene.machine.segment(name)["attributes"] & 0x80 == 0  # unusable outside 64-bit mode


@pytest.mark.parametrize("cpl", [0, 1, 2])
def test_a_null_stack_in_64_bit_mode(cpl: int) -> None:
    scene = good("long", cpl)
    assert_runs(move(scene, "ss", cpl))
    assert scene.machine.segment("ss")["selector"] == cpl


def test_the_stack_takes_the_width_of_its_segment() -> None:
    """B of the stack segment decides between SP and ESP from the next instruction on."""
    scene = good("protected")
    scene.descriptor(FREE, segment(DATA, db=False))
    scene.machine.set("rsp", 0x50000)
    scene.machine.set("rax", FREE)
    step = scene.step("mov ss, ax\n push eax", instructions=2)
    assert_runs(step)
    assert step.register("rsp") == 0x5FFFC


def test_real_mode_takes_sixteen_times_the_selector() -> None:
    scene = Scene("real")
    scene.machine.set_segment("ds", 0, 0, 0xFFFFFFFF, 0x4093)
    assert_runs(move(scene, "ds", 0x1234))
    assert scene.machine.segment("ds") == {
        "selector": 0x1234,
        "base": 0x12340,
        "limit": 0xFFFFFFFF,
        "attributes": 0x4093,
    }


def test_pop_moves_the_stack_pointer_only_if_the_load_succeeds() -> None:
    scene = good("protected", 3)
    scene.push(DATA0)
    top = scene.machine.get("rsp")
    step = scene.step("pop ds")
    assert_faults(step, "#GP", error=DATA0, check="data_load.cpl_not_above_dpl")
    assert ("stack_pointer", top) in step.pushes

    scene = good("protected", 3)
    scene.push(DATA3)
    assert_runs(scene.step("pop es"))
    assert scene.machine.get("rsp") == top + 4


@pytest.mark.parametrize(
    ("mnemonic", "name"), [("lds", "ds"), ("les", "es"), ("lfs", "fs"), ("lgs", "gs"), ("lss", "ss")]
)
def test_far_pointers_load_both_or_nothing(mnemonic: str, name: str) -> None:
    scene = good("protected", 3)
    scene.write(0x9000, (0x11223344).to_bytes(4, "little") + DATA3.to_bytes(2, "little"))
    step = scene.step(f"{mnemonic} ebx, [0x9000]")
    assert_runs(step)
    assert (step.register("rbx"), scene.machine.segment(name)["selector"]) == (0x11223344, DATA3)

    scene = good("protected", 3)
    scene.write(0x9000, (0x11223344).to_bytes(4, "little") + (CONFORMING0 & ~7 | 4).to_bytes(2, "little"))
    check = "stack_load" if name == "ss" else "data_load"
    assert_faults(
        scene.step(f"{mnemonic} ebx, [0x9000]"), "#GP", error=CONFORMING0 | 4, check=f"{check}.selector_in_table"
    )


def test_mov_to_cs_does_not_exist() -> None:
    scene = good("protected")
    assert_faults(move(scene, "cs", CODE3), "#UD", error=None, check="instruction.opcode_defined")


def test_a_segment_loaded_at_ring_0_stays_loaded() -> None:
    """The hidden part is the outcome of the checks: a descriptor changed later changes nothing."""
    scene = good("protected")
    scene.write(0x5010, b"\x78\x56\x34\x12")
    scene.descriptor(FREE, segment(DATA, base=0x5000))
    assert_runs(move(scene, "ds", FREE))
    changes(describes(segment(DATA, present=False)), register("rip", 0x8100))(scene)
    step = scene.step("mov ecx, [0x10]")
    assert_runs(step)
    assert step.register("rcx") == 0x12345678


def test_a_table_that_is_not_mapped() -> None:
    scene = Scene("long", cpl=3)
    changes(segment_register("ds", 0, 0, 0, 0), lambda s: s.page(GDT, 0))(scene)
    step = move(scene, "ds", DATA3)
    assert step.faults[0] == (14, 0, "paging.present")  # a supervisor's read, whatever the CPL
