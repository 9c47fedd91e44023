"""CALL and JMP to a code segment (Intel SDM vol. 2, CALL and JMP, Operation): what both check, and what CALL does.

What JMP alone does is in test_far_jump.py; call gates are in test_call_gate.py.
"""

from __future__ import annotations

import pytest

from kit.changes import Change, changes, describes, no_ldt, nothing, register, segment_register
from kit.descriptors import (
    CALL_GATE16,
    CODE,
    CODE_CONFORMING,
    CODE_EXECUTE_ONLY,
    INTERRUPT_GATE,
    TASK_GATE,
    TSS32,
    gate,
    segment,
    system,
)
from kit.expect import assert_enters, assert_faults, assert_interrupts, assert_runs
from kit.scene import (
    CODE0,
    CODE1,
    CODE2,
    CODE3,
    CODE32_0,
    CODE32_3,
    CONFORMING0,
    DATA0,
    FREE,
    LDT_SELECTOR,
    STACK,
    TARGET,
    TSS_SELECTOR,
    Scene,
)
from kit.transfers import far

HIGH = 1 << 32 | TARGET
SHORT = segment(CODE, limit=TARGET - 1, granular=False)
SHORT_CONFORMING = segment(CODE_CONFORMING, limit=TARGET - 1, granular=False)
BOTH = {"long": True, "db": True}

FAULTS: list[tuple[str, int, Change, int, int, int, str, int, str]] = [
    # mode, CPL, change, selector, offset, width, vector, error code, check
    ("protected", 0, nothing, 0, TARGET, 32, "#GP", 0, "far_target.selector_not_null"),
    ("protected", 3, nothing, 3, TARGET, 16, "#GP", 0, "far_target.selector_not_null"),
    ("long", 3, nothing, 3, TARGET, 32, "#GP", 0, "far_target.selector_not_null"),
    ("compatibility", 3, nothing, 0, TARGET, 32, "#GP", 0, "far_target.selector_not_null"),
    ("protected", 0, no_ldt, 0x0C, TARGET, 32, "#GP", 0x0C, "far_target.ldt_loaded"),
    ("long", 3, no_ldt, 0x0F, TARGET, 32, "#GP", 0x0C, "far_target.ldt_loaded"),
    ("protected", 0, nothing, 0x100, TARGET, 32, "#GP", 0x100, "far_target.selector_in_table"),
    ("protected", 3, nothing, 0x47, TARGET, 32, "#GP", 0x44, "far_target.selector_in_table"),
    ("protected", 0, register("gdtr_limit", FREE + 6), FREE, TARGET, 32, "#GP", FREE, "far_target.selector_in_table"),
    ("long", 0, nothing, 0x103, TARGET, 64, "#GP", 0x100, "far_target.selector_in_table"),
    ("protected", 0, nothing, DATA0, TARGET, 32, "#GP", DATA0, "far_target.type_allowed"),
    ("protected", 0, nothing, LDT_SELECTOR, TARGET, 32, "#GP", LDT_SELECTOR, "far_target.type_allowed"),
    ("protected", 0, nothing, TSS_SELECTOR, TARGET, 32, "#GP", TSS_SELECTOR, "far_target.type_allowed"),  # busy
    (
        "protected",
        0,
        describes(gate(INTERRUPT_GATE, CODE0, TARGET)),
        FREE,
        0,
        32,
        "#GP",
        FREE,
        "far_target.type_allowed",
    ),
    ("long", 0, nothing, DATA0, TARGET, 32, "#GP", DATA0, "far_target.type_allowed"),
    ("long", 0, describes(system(TSS32, 0, 0x67)), FREE, 0, 32, "#GP", FREE, "far_target.type_allowed"),
    ("long", 0, describes(gate(TASK_GATE, TSS_SELECTOR, 0)), FREE, 0, 32, "#GP", FREE, "far_target.type_allowed"),
    ("compatibility", 0, describes(gate(CALL_GATE16, CODE0, 0)), FREE, 0, 32, "#GP", FREE, "far_target.type_allowed"),
    ("long", 0, describes(segment(CODE, **BOTH)), FREE, 0, 32, "#GP", FREE, "far_target.long_and_default_exclusive"),
    (
        "compatibility",
        0,
        describes(segment(CODE_CONFORMING, **BOTH)),
        FREE,
        0,
        32,
        "#GP",
        FREE,
        "far_target.long_and_default_exclusive",
    ),
    (
        "protected",
        0,
        describes(segment(CODE_CONFORMING, dpl=1)),
        FREE,
        TARGET,
        32,
        "#GP",
        FREE,
        "far_target.conforming_dpl_not_above_cpl",
    ),
    ("protected", 0, nothing, CODE0 | 1, TARGET, 32, "#GP", CODE0, "far_target.rpl_not_above_cpl"),
    ("long", 1, nothing, CODE1 | 3, TARGET, 32, "#GP", CODE1 & ~3, "far_target.rpl_not_above_cpl"),
    ("protected", 3, nothing, CODE0, TARGET, 32, "#GP", CODE0, "far_target.dpl_equals_cpl"),
    ("protected", 0, nothing, CODE3 & ~3, TARGET, 32, "#GP", CODE3 & ~3, "far_target.dpl_equals_cpl"),
    ("long", 2, nothing, CODE1, TARGET, 32, "#GP", CODE1 & ~3, "far_target.dpl_equals_cpl"),
    ("protected", 0, describes(segment(CODE, present=False)), FREE, TARGET, 32, "#NP", FREE, "far_target.present"),
    (
        "protected",
        3,
        describes(segment(CODE_CONFORMING, present=False)),
        FREE | 3,
        TARGET,
        32,
        "#NP",
        FREE,
        "far_target.present",
    ),
    ("protected", 0, describes(SHORT), FREE, TARGET, 32, "#GP", 0, "far_target.pointer_within_limit"),
    ("protected", 0, describes(SHORT), FREE, TARGET, 16, "#GP", 0, "far_target.pointer_within_limit"),
    ("protected", 3, describes(SHORT_CONFORMING), FREE, TARGET, 32, "#GP", 0, "far_target.pointer_within_limit"),
    ("long", 0, describes(SHORT), FREE, TARGET, 32, "#GP", 0, "far_target.pointer_within_limit"),
    ("compatibility", 0, describes(SHORT), FREE, TARGET, 32, "#GP", 0, "far_target.pointer_within_limit"),
    ("long", 0, nothing, CODE0, 1 << 47, 64, "#GP", 0, "far_target.pointer_canonical"),
    ("long", 3, nothing, CONFORMING0, 1 << 63, 64, "#GP", 0, "far_target.pointer_canonical"),
    # Of two things wrong, the one that the manual names first.
    (
        "protected",
        0,
        describes(segment(CODE, dpl=1, present=False)),
        FREE,
        0,
        32,
        "#GP",
        FREE,
        "far_target.dpl_equals_cpl",
    ),
    ("protected", 0, nothing, CODE3, TARGET, 32, "#GP", CODE3 & ~3, "far_target.rpl_not_above_cpl"),
    (
        "protected",
        0,
        describes(segment(CODE, limit=0, granular=False, present=False)),
        FREE,
        TARGET,
        32,
        "#NP",
        FREE,
        "far_target.present",
    ),
    (
        "long",
        0,
        describes(segment(CODE, dpl=3, present=False, **BOTH)),
        FREE,
        0,
        32,
        "#GP",
        FREE,
        "far_target.long_and_default_exclusive",
    ),
]


@pytest.mark.parametrize("mnemonic", ["call", "jmp"])
@pytest.mark.parametrize(("mode", "cpl", "change", "selector", "offset", "width", "vector", "error", "check"), FAULTS)
def test_fault(
    mnemonic: str,
    mode: str,
    cpl: int,
    change: Change,
    selector: int,
    offset: int,
    width: int,
    vector: str,
    error: int,
    check: str,
) -> None:
    scene = Scene(mode, cpl=cpl)
    change(scene)
    table = scene.read(0x1000, 0x100)
    step = far(scene, mnemonic, selector, offset, width)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)
    changed = [
        at & ~7 for at, (was, now) in enumerate(zip(table, scene.read(0x1000, 0x100), strict=True)) if was != now
    ]
    assert set(changed) <= {CODE0, DATA0}, "only the segments of the handler have become accessed"


@pytest.mark.parametrize("mnemonic", ["call", "jmp"])
@pytest.mark.parametrize(
    "descriptor", [gate(TASK_GATE, TSS_SELECTOR, 0), system(TSS32, 0, 0x67)], ids=["task gate", "available TSS"]
)
def test_task_switches_are_allowed_but_not_modelled(mnemonic: str, descriptor: bytes) -> None:
    scene = Scene("protected")
    scene.descriptor(FREE, descriptor)
    step = far(scene, mnemonic, FREE, 0)
    assert_runs(step)
    assert step.checks[-1] == ("far_target.type_allowed", True)
    assert step.end.reason == "unmodelled"


CALLS = [
    # mode, CPL, selector, width; selector of CS then, mode then
    ("protected", 0, CODE0, 32, CODE0, "protected"),
    ("protected", 0, CODE0, 16, CODE0, "protected"),
    ("protected", 1, CODE1, 32, CODE1, "protected"),
    ("protected", 2, CODE2, 32, CODE2, "protected"),
    ("protected", 3, CODE3, 32, CODE3, "protected"),
    ("protected", 3, CODE3 & ~3, 16, CODE3, "protected"),  # RPL of CS becomes CPL
    ("protected", 3, CONFORMING0, 32, CONFORMING0 | 3, "protected"),
    ("protected", 0, CONFORMING0 | 3, 32, CONFORMING0, "protected"),  # RPL is not looked at
    ("long", 0, CODE0, 16, CODE0, "64-bit"),
    ("long", 0, CODE0, 32, CODE0, "64-bit"),
    ("long", 0, CODE0, 64, CODE0, "64-bit"),
    ("long", 3, CODE3, 64, CODE3, "64-bit"),
    ("long", 3, CONFORMING0, 32, CONFORMING0 | 3, "64-bit"),
    ("long", 0, CODE32_0, 32, CODE32_0, "compatibility"),
    ("long", 3, CODE32_3, 64, CODE32_3, "compatibility"),
    ("compatibility", 0, CODE0, 32, CODE0, "64-bit"),
    ("compatibility", 3, CODE3, 16, CODE3, "64-bit"),
    ("compatibility", 3, CODE32_3, 32, CODE32_3, "compatibility"),
]


@pytest.mark.parametrize(("mode", "cpl", "selector", "width", "cs", "mode_then"), CALLS)
def test_call(mode: str, cpl: int, selector: int, width: int, cs: int, mode_then: str) -> None:
    scene = Scene(mode, cpl=cpl)
    step = far(scene, "call", selector, TARGET, width)
    size = width // 8
    assert_enters(step, cs=cs, rip=TARGET, cpl=cpl, ss=step.selectors_before["ss"], rsp=STACK[cpl] - 2 * size)
    assert step.pushes == [("cs", step.selectors_before["cs"]), ("instruction_pointer", step.next_rip)]
    frame = step.next_rip.to_bytes(size, "little") + step.selectors_before["cs"].to_bytes(size, "little")
    assert scene.read(STACK[cpl] - 2 * size, 2 * size) == frame
    assert scene.machine.mode == mode_then


def test_call_through_the_ldt_loads_base_limit_and_attributes() -> None:
    scene = Scene("protected")
    scene.descriptor(0x10, segment(CODE_EXECUTE_ONLY, base=0x4000, limit=0x8FFF, granular=False, db=False), ldt=True)
    step = far(scene, "call", 0x14, 0x8000)
    assert_enters(step, cs=0x14, rip=0x8000, cpl=0)
    cs = scene.machine.segment("cs")
    assert (cs["base"], cs["limit"], cs["attributes"]) == (0x4000, 0x8FFF, 0x0099)
    assert scene.read(0x2000 + 0x10 + 5, 1) == b"\x99", "accessed"


def test_the_offset_is_cut_to_32_bits_for_compatibility_mode() -> None:
    scene = Scene("long")
    assert_enters(far(scene, "call", CODE32_0, HIGH, 64), cs=CODE32_0, rip=TARGET, cpl=0, rsp=STACK[0] - 16)


STACKS: list[tuple[str, int, Change, str]] = [
    ("protected", 32, segment_register("ss", DATA0, 0, STACK[0] - 2, 0x4093), "stack.room"),
    ("protected", 16, segment_register("ss", DATA0, 0, STACK[0] - 2, 0x4093), "stack.room"),
    ("protected", 32, changes(segment_register("ss", DATA0, 0, 0xFFF, 0x0093), register("rsp", 0x70001)), "stack.room"),
    ("protected", 32, segment_register("ss", DATA0, 0, STACK[0] - 8, 0x4097), "stack.room"),  # expand-down
    ("compatibility", 32, segment_register("ss", DATA0, 0, STACK[0] - 2, 0x4093), "stack.room"),
    ("long", 64, register("rsp", (1 << 47) + 8), "stack.canonical"),
    ("long", 32, register("rsp", (1 << 47) + 16), "stack.canonical"),
]


@pytest.mark.parametrize(("mode", "width", "change", "check"), STACKS)
def test_call_needs_room_on_the_stack(mode: str, width: int, change: Change, check: str) -> None:
    scene = Scene(mode)
    # The stack comes before the instruction pointer, which is wrong too.
    scene.descriptor(FREE, SHORT if mode == "protected" else segment(CODE, limit=0, granular=False))
    change(scene)
    assert_faults(far(scene, "call", FREE, TARGET, width), "#SS", error=0, check=check)


def test_a_stack_that_just_suffices() -> None:
    scene = Scene("protected")
    scene.machine.set_segment("ss", DATA0, 0, STACK[0] - 9, 0x4097)  # expand-down: valid from STACK - 8 on
    assert_enters(far(scene, "call", CODE0, TARGET), cs=CODE0, rip=TARGET, cpl=0, rsp=STACK[0] - 8)


def test_a_16_bit_stack_pointer_wraps_and_leaves_the_rest_of_esp_alone() -> None:
    scene = Scene("protected")
    scene.machine.set_segment("ss", DATA0, 0x50000, 0xFFFF, 0x0093)
    scene.machine.set("rsp", 0x12340004)
    step = far(scene, "call", CODE0, TARGET)
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, rsp=0x1234FFFC)
    assert scene.read(0x50000, 4) == CODE0.to_bytes(4, "little")
    assert scene.read(0x5FFFC, 4) == step.next_rip.to_bytes(4, "little")


@pytest.mark.parametrize(("width", "size"), [(16, 2), (32, 4)])
def test_real_mode(width: int, size: int) -> None:
    scene = Scene("real")
    step = far(scene, "call", 0x0500, 0x1234, width)
    assert_enters(step, cs=0x0500, rip=0x1234, cpl=0, rsp=0x7000 - 2 * size)
    assert step.pushes == [("cs", 0), ("instruction_pointer", step.next_rip)]
    assert scene.machine.segment("cs")["base"] == 0x5000


@pytest.mark.parametrize("mnemonic", ["call", "jmp"])
def test_real_mode_offset_beyond_the_limit(mnemonic: str) -> None:
    step = far(Scene("real"), mnemonic, 0x0500, 0x10000, 32)
    assert_faults(step, "#GP", error=0, check="far_target.pointer_within_limit")


def test_real_mode_stack() -> None:
    scene = Scene("real")
    scene.machine.set("rsp", 1)
    assert far(scene, "call", 0x0500, 0x1234, 16).faults[0] == (12, 0, "stack.room")
