"""CALL and JMP through call gates (Intel SDM vol. 2, CALL and JMP, Operation, CALL-GATE to SAME-PRIVILEGE).

The far pointer's offset is not used: it is 0 throughout.
"""

from __future__ import annotations

import pytest

from kit.changes import Change, changes, describes, no_ldt, register, segment_register
from kit.descriptors import (
    CALL_GATE,
    CALL_GATE16,
    CODE,
    CODE_CONFORMING,
    DATA,
    DATA_READ_ONLY,
    gate,
    segment,
)
from kit.expect import assert_enters, assert_faults, assert_interrupts
from kit.scene import (
    CODE0,
    CODE1,
    CODE2,
    CODE3,
    CODE32_0,
    CONFORMING0,
    DATA0,
    DATA1,
    DATA2,
    DATA3,
    FREE,
    STACK,
    TARGET,
    TSS,
    TSS_SELECTOR,
    Scene,
)
from kit.transfers import far

GATE = FREE
OTHER = FREE + 0x10  # a free slot after a 16-byte gate
SHORT = segment(CODE, limit=TARGET - 1, granular=False)


def good(mode: str, cpl: int, *, type_: int = CALL_GATE, selector: int = CODE0, **options: int) -> Scene:
    scene = Scene(mode, cpl=cpl)
    place_gate(scene, type_=type_, selector=selector, **options)
    return scene


def place_gate(
    scene: Scene,
    *,
    type_: int = CALL_GATE,
    selector: int = CODE0,
    offset: int = TARGET,
    dpl: int = 3,
    present: int = 1,
    count: int = 0,
    upper_type: int = 0,
) -> None:
    data = gate(
        type_, selector, offset, dpl=dpl, present=bool(present), count=count, wide=scene.long, upper_type=upper_type
    )
    scene.descriptor(GATE, data)


def gated(**options: int) -> Change:
    return lambda scene: place_gate(scene, **options)


def leads_to(data: bytes) -> Change:
    """The gate names this segment."""
    return changes(describes(data, OTHER), gated(selector=OTHER))


LONG = {"long": True, "db": False}

FAULTS: list[tuple[str, int, Change, int, str, int, str]] = [
    # mode, CPL, change, selector of the far pointer, vector, error code, check
    ("protected", 3, gated(dpl=2), GATE | 3, "#GP", GATE, "call_gate.dpl_not_below_cpl"),
    ("long", 1, gated(dpl=0), GATE | 1, "#GP", GATE, "call_gate.dpl_not_below_cpl"),
    ("protected", 0, gated(dpl=2), GATE | 3, "#GP", GATE, "call_gate.rpl_not_above_dpl"),
    ("compatibility", 0, gated(dpl=0), GATE | 1, "#GP", GATE, "call_gate.rpl_not_above_dpl"),
    ("protected", 0, gated(present=0), GATE, "#NP", GATE, "call_gate.present"),
    ("long", 3, gated(present=0), GATE | 3, "#NP", GATE, "call_gate.present"),
    ("long", 0, gated(upper_type=1), GATE, "#GP", GATE, "call_gate.upper_type_zero"),
    ("compatibility", 0, gated(upper_type=0x1C), GATE | 3, "#GP", GATE, "call_gate.upper_type_zero"),
    ("long", 0, register("gdtr_limit", GATE + 14), GATE, "#GP", GATE, "far_target.selector_in_table"),
    ("protected", 0, gated(selector=3), GATE, "#GP", 0, "gate_target.selector_not_null"),
    ("long", 0, gated(selector=0), GATE, "#GP", 0, "gate_target.selector_not_null"),
    ("protected", 0, changes(no_ldt, gated(selector=0x0F)), GATE, "#GP", 0x0C, "gate_target.ldt_loaded"),
    ("protected", 0, gated(selector=0x103), GATE, "#GP", 0x100, "gate_target.selector_in_table"),
    ("long", 0, gated(selector=0x47), GATE, "#GP", 0x44, "gate_target.selector_in_table"),
    ("protected", 0, gated(selector=DATA0), GATE, "#GP", DATA0, "gate_target.is_code"),
    ("protected", 0, gated(selector=TSS_SELECTOR), GATE, "#GP", TSS_SELECTOR, "gate_target.is_code"),
    ("long", 0, gated(selector=DATA0), GATE, "#GP", DATA0, "gate_target.is_code"),
    ("protected", 0, gated(selector=CODE3), GATE, "#GP", CODE3 & ~3, "gate_target.dpl_not_above_cpl"),
    ("protected", 1, leads_to(segment(CODE_CONFORMING, dpl=2)), GATE, "#GP", OTHER, "gate_target.dpl_not_above_cpl"),
    ("long", 0, gated(selector=CODE1), GATE, "#GP", CODE1 & ~3, "gate_target.dpl_not_above_cpl"),
    ("long", 0, gated(selector=CODE32_0), GATE, "#GP", CODE32_0, "gate_target.is_64_bit"),
    ("compatibility", 0, gated(selector=CODE32_0), GATE, "#GP", CODE32_0, "gate_target.is_64_bit"),
    ("long", 0, leads_to(segment(CODE, long=True, db=True)), GATE, "#GP", OTHER, "gate_target.is_64_bit"),
    ("protected", 0, leads_to(segment(CODE, present=False)), GATE, "#NP", OTHER, "gate_target.present"),
    ("long", 0, leads_to(segment(CODE, present=False, **LONG)), GATE, "#NP", OTHER, "gate_target.present"),
    ("protected", 0, leads_to(SHORT), GATE, "#GP", 0, "gate_target.pointer_within_limit"),
    ("long", 0, gated(offset=1 << 47), GATE, "#GP", 0, "gate_target.pointer_canonical"),
    ("compatibility", 0, gated(offset=1 << 63), GATE, "#GP", 0, "gate_target.pointer_canonical"),
    # Of two things wrong, the one that the manual names first.
    ("protected", 0, gated(selector=0, present=0), GATE, "#NP", GATE, "call_gate.present"),
    ("protected", 3, gated(dpl=2, present=0), GATE, "#GP", GATE, "call_gate.dpl_not_below_cpl"),
    (
        "protected",
        0,
        leads_to(segment(CODE, dpl=1, present=False)),
        GATE,
        "#GP",
        OTHER,
        "gate_target.dpl_not_above_cpl",
    ),
    ("long", 0, leads_to(segment(CODE, present=False)), GATE, "#GP", OTHER, "gate_target.is_64_bit"),
]


@pytest.mark.parametrize("mnemonic", ["call", "jmp"])
@pytest.mark.parametrize(("mode", "cpl", "change", "selector", "vector", "error", "check"), FAULTS)
def test_fault(
    mnemonic: str, mode: str, cpl: int, change: Change, selector: int, vector: str, error: int, check: str
) -> None:
    scene = good(mode, cpl)
    change(scene)
    step = far(scene, mnemonic, selector, 0)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)


@pytest.mark.parametrize(("mode", "cpl"), [("protected", 3), ("protected", 1), ("long", 3), ("compatibility", 3)])
def test_jmp_cannot_change_privilege(mode: str, cpl: int) -> None:
    step = far(good(mode, cpl), "jmp", GATE | 3, 0)
    assert_faults(step, "#GP", error=CODE0, check="gate_target.jump_keeps_privilege")
    assert_interrupts(step)


def test_jmp_sees_privilege_before_mode_and_presence() -> None:
    scene = good("long", 3)
    leads_to(segment(CODE, present=False))(scene)
    assert_faults(far(scene, "jmp", GATE | 3, 0), "#GP", error=OTHER, check="gate_target.jump_keeps_privilege")


# --- MORE-PRIVILEGE: the stack ---------------------------------------------------------------------------------------


def restack(selector: int, descriptor: bytes | None = None, pointer: int = STACK[1]) -> Change:
    """The gate leads to ring 1, whose stack is this one."""

    def change(scene: Scene) -> None:
        place_gate(scene, selector=CODE1)
        if descriptor is not None:
            scene.descriptor(OTHER, descriptor)
        scene.write(TSS + 12, pointer.to_bytes(4, "little") + selector.to_bytes(4, "little"))

    return change


def tss_limit(limit: int) -> Change:
    return changes(gated(selector=CODE1), segment_register("tr", TSS_SELECTOR, TSS, limit, 0x8B))


def short_16_bit_tss(scene: Scene) -> None:
    """Its fields for ring 1 begin at 6; the last byte of the stack selector is missing. Those for ring 0 are good."""
    place_gate(scene, selector=CODE1)
    scene.machine.set_segment("tr", TSS_SELECTOR, TSS, 6 + 2, 0x83)
    scene.write(TSS + 2, (0x7000).to_bytes(2, "little") + DATA0.to_bytes(2, "little"))


NARROW = segment(DATA, dpl=1, limit=STACK[1] - 1, granular=False)
UPWARD = segment(DATA, dpl=1, limit=0x3F, granular=False)

STACKS: list[tuple[str, Change, str, int, str]] = [
    # mode, change, vector, error code, check
    ("protected", tss_limit(12 + 4), "#TS", TSS_SELECTOR, "stack_switch.tss_field_within_limit"),
    ("protected", short_16_bit_tss, "#TS", TSS_SELECTOR, "stack_switch.tss_field_within_limit"),
    ("long", tss_limit(12 + 6), "#TS", TSS_SELECTOR, "stack_switch.tss_field_within_limit"),
    ("compatibility", tss_limit(12 + 6), "#TS", TSS_SELECTOR, "stack_switch.tss_field_within_limit"),
    ("protected", restack(1), "#TS", 0, "stack_switch.selector_not_null"),
    ("protected", changes(no_ldt, restack(0x05)), "#TS", 0x04, "stack_switch.ldt_loaded"),
    ("protected", restack(0x101), "#TS", 0x100, "stack_switch.selector_in_table"),
    ("protected", restack(DATA1 & ~3), "#TS", DATA1 & ~3, "stack_switch.rpl_equals_cpl"),
    ("protected", restack(DATA2 & ~3 | 1), "#TS", DATA2 & ~3, "stack_switch.dpl_equals_cpl"),
    ("protected", restack(OTHER | 1, segment(DATA_READ_ONLY, dpl=1)), "#TS", OTHER, "stack_switch.writable_data"),
    ("protected", restack(CODE1), "#TS", CODE1 & ~3, "stack_switch.writable_data"),
    ("protected", restack(OTHER | 1, segment(DATA, dpl=1, present=False)), "#SS", OTHER, "stack_switch.present"),
    ("protected", restack(OTHER | 1, UPWARD), "#SS", OTHER, "stack_switch.room"),
    ("protected", restack(OTHER | 1, NARROW, pointer=STACK[1] + 1), "#SS", OTHER, "stack_switch.room"),
    (
        "protected",
        changes(restack(OTHER | 1, NARROW, pointer=8), gated(selector=CODE1, count=2)),
        "#SS",
        OTHER,
        "stack_switch.room",
    ),
    # The stack comes before the instruction pointer.
    (
        "protected",
        changes(
            restack(OTHER | 1, UPWARD),
            describes(segment(CODE, dpl=1, limit=0, granular=False), OTHER + 8),
            gated(selector=OTHER + 8),
        ),
        "#SS",
        OTHER,
        "stack_switch.room",
    ),
]


@pytest.mark.parametrize(("mode", "change", "vector", "error", "check"), STACKS)
def test_stack_fault(mode: str, change: Change, vector: str, error: int, check: str) -> None:
    scene = good(mode, 3)
    change(scene)
    step = far(scene, "call", GATE | 3, 0)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)


def test_a_new_stack_must_be_canonical() -> None:
    scene = good("long", 3, selector=CODE1)
    scene.write(TSS + 12, ((1 << 47) + 16).to_bytes(8, "little"))
    step = far(scene, "call", GATE | 3, 0)
    assert_faults(step, "#SS", error=0, check="stack_switch.canonical")
    assert_interrupts(step)


@pytest.mark.parametrize(("count", "room"), [(0, 16), (2, 24), (31, 140)])
def test_room_for_parameters_plus_16_bytes(count: int, room: int) -> None:
    """The new stack's segment ends where the frame does: one byte less and the frame does not fit."""
    for pointer, fits in ((room, True), (room - 1, False)):
        scene = good("protected", 3, selector=CODE1, count=count)
        scene.machine.set("rsp", STACK[3] - 0x100)
        scene.descriptor(OTHER, segment(DATA, base=STACK[1], dpl=1, limit=room - 1, granular=False))
        scene.write(TSS + 12, pointer.to_bytes(4, "little") + (OTHER | 1).to_bytes(4, "little"))
        step = far(scene, "call", GATE | 3, 0)
        if fits:
            assert_enters(step, cs=CODE1, rip=TARGET, cpl=1, ss=OTHER | 1, rsp=0)
        else:
            assert_faults(step, "#SS", error=OTHER, check="stack_switch.room")


def test_parameters_must_lie_on_the_old_stack() -> None:
    scene = good("protected", 3, count=2)
    scene.machine.set_segment("ss", DATA3, 0, STACK[3] + 6, 0x40F3)
    step = far(scene, "call", GATE | 3, 0)
    assert_faults(step, "#SS", error=0, check="stack.room")
    assert_interrupts(step)


# --- MORE-PRIVILEGE: what arrives ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("type_", "size"), [(CALL_GATE16, 2), (CALL_GATE, 4)])
@pytest.mark.parametrize("count", [0, 1, 2, 31])
def test_inner_with_parameters(type_: int, size: int, count: int) -> None:
    scene = good("protected", 3, type_=type_, count=count)
    parameters = [0x1111 * (at % 14 + 1) + at for at in range(count)]
    scene.push(*reversed(parameters), width=8 * size)  # the first one is on top
    top = scene.machine.get("rsp")
    step = far(scene, "call", GATE | 3, 0)
    rsp = STACK[0] - (4 + count) * size
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, ss=DATA0, rsp=rsp)
    mask = (1 << 8 * size) - 1
    assert step.pushes == [
        ("ss", DATA3),
        ("stack_pointer", top & mask),
        *(("parameter", value) for value in reversed(parameters)),
        ("cs", CODE3),
        ("instruction_pointer", step.next_rip),
    ]
    frame = [step.next_rip, CODE3, *parameters, top & mask, DATA3]
    assert scene.read(rsp, len(frame) * size) == b"".join(word.to_bytes(size, "little") for word in frame)


@pytest.mark.parametrize(
    ("cpl", "selector", "cs", "ss", "inner"),
    [
        (3, CODE1, CODE1, DATA1, 1),
        (3, CODE2, CODE2, DATA2, 2),
        (2, CODE1 & ~3, CODE1, DATA1, 1),  # RPL of CS becomes the new CPL
        (1, CODE0 | 3, CODE0, DATA0, 0),  # RPL of the gate's selector is not looked at
    ],
)
def test_inner_rings(cpl: int, selector: int, cs: int, ss: int, inner: int) -> None:
    step = far(good("protected", cpl, selector=selector), "call", GATE | cpl, 0)
    assert_enters(step, cs=cs, rip=TARGET, cpl=inner, ss=ss, rsp=STACK[inner] - 16)
    assert step.pushes[0] == ("ss", step.selectors_before["ss"])


def test_a_16_bit_tss_and_stack() -> None:
    scene = good("protected", 3)
    scene.machine.set_segment("tr", TSS_SELECTOR, TSS, 0x2B, 0x83)
    scene.write(TSS + 2, (0x2000).to_bytes(2, "little") + OTHER.to_bytes(2, "little"))
    scene.descriptor(OTHER, segment(DATA, base=0x50000, limit=0xFFFF, granular=False, db=False))
    step = far(scene, "call", GATE | 3, 0)
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, ss=OTHER, rsp=0x2000 - 16)
    assert scene.read(0x52000 - 4, 4) == DATA3.to_bytes(4, "little")


def test_gate_target_and_stack_in_the_ldt() -> None:
    scene = Scene("protected", cpl=3)
    scene.descriptor(0x08, gate(CALL_GATE, 0x14, TARGET - 0x4000, dpl=3), ldt=True)
    scene.descriptor(0x10, segment(CODE, base=0x4000, dpl=1), ldt=True)
    scene.descriptor(0x18, segment(DATA, dpl=1), ldt=True)
    scene.write(TSS + 16, (0x1D).to_bytes(4, "little"))
    step = far(scene, "call", 0x0F, 0)
    assert_enters(step, cs=0x15, rip=TARGET - 0x4000, cpl=1, ss=0x1D, rsp=STACK[1] - 16)


@pytest.mark.parametrize("mode", ["long", "compatibility"])
@pytest.mark.parametrize(("selector", "inner"), [(CODE0, 0), (CODE1 & ~3, 1), (CODE2, 2)])
def test_inner_64(mode: str, selector: int, inner: int) -> None:
    """SS becomes null with RPL = CPL; no parameters are copied, whatever stands where their count was."""
    scene = good(mode, 3, selector=selector, offset=(1 << 46) | TARGET, count=31)
    scene.write(TSS + 4 + 8 * inner, (STACK[inner] - 4).to_bytes(8, "little"))
    step = far(scene, "call", GATE | 3, 0)
    rsp = STACK[inner] - 4 - 32  # not aligned, unlike an interrupt's
    assert_enters(step, cs=selector & ~3 | inner, rip=(1 << 46) | TARGET, cpl=inner, ss=inner, rsp=rsp)
    frame = [step.next_rip, step.selectors_before["cs"], STACK[3], DATA3]
    names = ["instruction_pointer", "cs", "stack_pointer", "ss"]
    assert step.pushes == list(reversed(list(zip(names, frame, strict=True))))
    assert scene.read(rsp, 32) == b"".join(word.to_bytes(8, "little") for word in frame)
    assert scene.machine.mode == "64-bit"


# --- SAME-PRIVILEGE --------------------------------------------------------------------------------------------------

SAME = [
    # mode, CPL, gate type, target; selector of CS then, bytes a word
    ("protected", 0, CALL_GATE, CODE0, CODE0, 4),
    ("protected", 0, CALL_GATE16, CODE0 | 3, CODE0, 2),
    ("protected", 3, CALL_GATE, CODE3 & ~3, CODE3, 4),
    ("protected", 3, CALL_GATE, CONFORMING0, CONFORMING0 | 3, 4),
    ("long", 0, CALL_GATE, CODE0, CODE0, 8),
    ("long", 3, CALL_GATE, CODE3, CODE3, 8),
    ("long", 3, CALL_GATE, CONFORMING0, CONFORMING0 | 3, 8),
    ("compatibility", 0, CALL_GATE, CODE0, CODE0, 8),
    ("compatibility", 3, CALL_GATE, CONFORMING0, CONFORMING0 | 3, 8),
]


@pytest.mark.parametrize(("mode", "cpl", "type_", "selector", "cs", "size"), SAME)
def test_call_same(mode: str, cpl: int, type_: int, selector: int, cs: int, size: int) -> None:
    scene = good(mode, cpl, type_=type_, selector=selector, count=2)
    step = far(scene, "call", GATE | 3, 0)
    ss = step.selectors_before["ss"]
    assert_enters(step, cs=cs, rip=TARGET, cpl=cpl, ss=ss, rsp=STACK[cpl] - 2 * size)
    assert step.pushes == [("cs", step.selectors_before["cs"]), ("instruction_pointer", step.next_rip)]
    frame = step.next_rip.to_bytes(size, "little") + step.selectors_before["cs"].to_bytes(size, "little")
    assert scene.read(STACK[cpl] - 2 * size, 2 * size) == frame


@pytest.mark.parametrize(("mode", "cpl", "type_", "selector", "cs", "size"), SAME)
def test_jmp_same(mode: str, cpl: int, type_: int, selector: int, cs: int, size: int) -> None:
    step = far(good(mode, cpl, type_=type_, selector=selector, count=2), "jmp", GATE | 3, 0)
    assert_enters(step, cs=cs, rip=TARGET, cpl=cpl, ss=step.selectors_before["ss"], rsp=STACK[cpl])
    assert step.pushes == []


def test_a_64_bit_gate_pushes_on_the_flat_64_bit_stack() -> None:
    scene = good("compatibility", 0)
    scene.machine.set_segment("ss", DATA0, 0x1000, 0xFFFFFFFF, 0xC093)  # a base that 64-bit mode does not know
    step = far(scene, "call", GATE, 0)
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, rsp=STACK[0] - 16)
    assert scene.read(STACK[0] - 16, 8) == step.next_rip.to_bytes(8, "little")


@pytest.mark.parametrize("mnemonic", ["call", "jmp"])
def test_the_high_word_of_a_286_gate_is_not_used(mnemonic: str) -> None:
    scene = good("protected", 0, type_=CALL_GATE16, offset=0x5678_0000 | TARGET)
    assert_enters(far(scene, mnemonic, GATE, 0), cs=CODE0, rip=TARGET, cpl=0)


SAME_STACKS: list[tuple[str, int, Change, str]] = [
    ("protected", CALL_GATE, segment_register("ss", DATA0, 0, STACK[0] - 2, 0x4093), "stack.room"),
    ("protected", CALL_GATE16, segment_register("ss", DATA0, 0, STACK[0] - 2, 0x4093), "stack.room"),
    ("long", CALL_GATE, register("rsp", (1 << 47) + 8), "stack.canonical"),
]


@pytest.mark.parametrize(("mode", "type_", "change", "check"), SAME_STACKS)
def test_same_privilege_needs_room(mode: str, type_: int, change: Change, check: str) -> None:
    scene = good(mode, 0, type_=type_)
    change(scene)
    assert_faults(far(scene, "call", GATE, 0), "#SS", error=0, check=check)


def test_a_gate_needs_nothing_of_the_pointers_offset() -> None:
    assert_enters(far(good("long", 3), "call", GATE | 3, 1 << 63, 64), cs=CODE0, rip=TARGET, cpl=0)
