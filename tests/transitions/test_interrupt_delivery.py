"""INT n, INT3, INTO through the IDT (Intel SDM vol. 2, INT n/INTO/INT3/INT1, Operation): every check both ways."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kit.descriptors import (
    CODE,
    DATA,
    DATA_READ_ONLY,
    INTERRUPT_GATE,
    INTERRUPT_GATE16,
    TRAP_GATE,
    segment,
)
from kit.expect import assert_enters, assert_faults
from kit.scene import (
    CODE0,
    CODE1,
    CODE3,
    CODE32_0,
    CODE_AT,
    CONFORMING0,
    DATA0,
    DATA1,
    DATA3,
    FREE,
    IST1,
    STACK,
    TARGET,
    TSS,
    TSS_SELECTOR,
    Scene,
)

Change = Callable[[Scene], None]
VECTOR = 0x80
NAMED = VECTOR * 8 + 2  # error code of the gate


def good(mode: str, cpl: int = 3) -> Scene:
    scene = Scene(mode, cpl=cpl)
    scene.gate(VECTOR, INTERRUPT_GATE, CODE0, TARGET, dpl=3)
    return scene


def to_ring_1(scene: Scene) -> None:
    scene.gate(VECTOR, INTERRUPT_GATE, CODE1, TARGET, dpl=3)


def regate(**options: object) -> Change:
    def change(scene: Scene) -> None:
        chosen: dict[str, object] = {"type_": INTERRUPT_GATE, "selector": CODE0, "offset": TARGET, "dpl": 3} | options
        scene.gate(VECTOR, **chosen)  # type: ignore[arg-type]

    return change


def retarget(descriptor: bytes, selector: int = FREE) -> Change:
    def change(scene: Scene) -> None:
        scene.descriptor(FREE, descriptor)
        scene.gate(VECTOR, INTERRUPT_GATE, selector, TARGET, dpl=3)

    return change


def restack(selector: int, descriptor: bytes | None = None, pointer: int = STACK[1]) -> Change:
    def change(scene: Scene) -> None:
        to_ring_1(scene)
        if descriptor is not None:
            scene.descriptor(FREE, descriptor)
        scene.write(TSS + 12, pointer.to_bytes(4, "little") + selector.to_bytes(4, "little"))

    return change


def limits(name: str, value: int) -> Change:
    return lambda scene: scene.machine.set(name, value)


def tss_limit(value: int) -> Change:
    def change(scene: Scene) -> None:
        to_ring_1(scene)
        scene.machine.set_segment("tr", TSS_SELECTOR, TSS, value, 0x8B)

    return change


def no_ldt(scene: Scene) -> None:
    scene.machine.set_segment("ldtr", 0, 0, 0, 0)
    scene.gate(VECTOR, INTERRUPT_GATE, 0x0C, TARGET, dpl=3)


FAULTS: list[tuple[str, Change, str, int, str]] = [
    # mode, change, vector, error code, check
    ("protected", limits("idtr_limit", VECTOR * 8 + 6), "#GP", NAMED, "idt.entry_within_limit"),
    ("long", limits("idtr_limit", VECTOR * 16 + 14), "#GP", NAMED, "idt.entry_within_limit"),
    ("protected", regate(type_=0x0C), "#GP", NAMED, "idt.gate_type_allowed"),
    ("long", regate(type_=INTERRUPT_GATE16), "#GP", NAMED, "idt.gate_type_allowed"),
    ("protected", regate(dpl=2), "#GP", NAMED, "idt.gate_dpl_permits"),
    ("long", regate(dpl=0), "#GP", NAMED, "idt.gate_dpl_permits"),
    ("protected", regate(present=False), "#NP", NAMED, "idt.gate_present"),
    ("protected", regate(selector=3), "#GP", 0, "handler.selector_not_null"),
    ("protected", no_ldt, "#GP", 0x0C, "handler.ldt_loaded"),
    ("protected", regate(selector=0x100), "#GP", 0x100, "handler.selector_in_table"),
    ("protected", regate(selector=0x44), "#GP", 0x44, "handler.selector_in_table"),  # beyond the LDT
    ("protected", regate(selector=DATA0), "#GP", DATA0, "handler.is_code"),
    ("long", regate(selector=CODE32_0), "#GP", CODE32_0, "handler.is_64_bit"),
    ("long", retarget(segment(CODE, long=True, db=True)), "#GP", FREE, "handler.is_64_bit"),
    ("protected", retarget(segment(CODE, present=False)), "#NP", FREE, "handler.present"),
    ("protected", retarget(segment(CODE, limit=TARGET - 1, granular=False)), "#GP", 0, "handler.pointer_within_limit"),
    ("long", regate(offset=1 << 47), "#GP", 0, "handler.pointer_canonical"),
    ("protected", tss_limit(12 + 4), "#TS", TSS_SELECTOR, "stack_switch.tss_field_within_limit"),
    ("long", tss_limit(12 + 6), "#TS", TSS_SELECTOR, "stack_switch.tss_field_within_limit"),
    ("protected", restack(1), "#TS", 0, "stack_switch.selector_not_null"),
    ("protected", restack(0x101), "#TS", 0x100, "stack_switch.selector_in_table"),
    ("protected", restack(DATA1 & ~3), "#TS", DATA1 & ~3, "stack_switch.rpl_equals_cpl"),
    ("protected", restack(DATA3 & ~3 | 1), "#TS", DATA3 & ~3, "stack_switch.dpl_equals_cpl"),
    ("protected", restack(FREE | 1, segment(DATA_READ_ONLY, dpl=1)), "#TS", FREE, "stack_switch.writable_data"),
    ("protected", restack(FREE | 1, segment(DATA, dpl=1, present=False)), "#SS", FREE, "stack_switch.present"),
    (
        "protected",
        restack(FREE | 1, segment(DATA, dpl=1, limit=0x60, granular=False)),
        "#SS",
        FREE,
        "stack_switch.room",
    ),
]


@pytest.mark.parametrize(("mode", "change", "vector", "error", "check"), FAULTS)
def test_fault(mode: str, change: Change, vector: str, error: int, check: str) -> None:
    scene = good(mode)
    change(scene)
    step = scene.step(f"int {VECTOR:#x}")
    assert_faults(step, vector, error=error, check=check)
    # The exception names the instruction itself, and the interrupted ring.
    assert ("instruction_pointer", CODE_AT) in step.pushes
    assert ("cs", CODE3) in step.pushes


def test_a_ring_3_program_cannot_enter_ring_2_code_from_ring_1() -> None:
    scene = good("protected", cpl=1)
    scene.gate(VECTOR, INTERRUPT_GATE, CODE3, TARGET, dpl=3)
    assert_faults(scene.step(f"int {VECTOR:#x}"), "#GP", error=CODE3 & ~3, check="handler.dpl_not_above_cpl")


def test_stack_in_a_missing_ldt() -> None:
    scene = good("protected")
    scene.machine.set_segment("ldtr", 0, 0, 0, 0)
    restack(0x05)(scene)
    assert_faults(scene.step(f"int {VECTOR:#x}"), "#TS", error=0x04, check="stack_switch.ldt_loaded")


def test_new_stack_must_be_canonical() -> None:
    scene = good("long")
    to_ring_1(scene)
    # The frame reaches from the last canonical address down; its top is beyond it.
    scene.write(TSS + 12, ((1 << 47) + 16).to_bytes(8, "little"))
    assert_faults(scene.step(f"int {VECTOR:#x}"), "#SS", error=0, check="stack_switch.canonical")


def test_current_stack_must_have_room() -> None:
    scene = good("protected", cpl=0)
    scene.machine.set_segment("ss", DATA0, 0, STACK[0] - 8, 0x4093)
    step = scene.step(f"int {VECTOR:#x}")
    assert step.faults[0] == (12, 0, "stack.room")


def test_current_stack_must_be_canonical() -> None:
    scene = good("long", cpl=0)
    scene.machine.set("rsp", (1 << 47) + 16)
    step = scene.step(f"int {VECTOR:#x}")
    assert step.faults[0] == (12, 0, "stack.canonical")


@pytest.mark.parametrize(("type_", "interrupts"), [(INTERRUPT_GATE, 0), (TRAP_GATE, 0x200)])
def test_inner_32(type_: int, interrupts: int) -> None:
    scene = good("protected")
    scene.gate(VECTOR, type_, CODE0, TARGET, dpl=3)
    scene.machine.set("rflags", 0x4202)  # IF and NT
    step = scene.step(f"int {VECTOR:#x}")
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, ss=DATA0, rsp=STACK[0] - 20)
    assert step.pushes == [
        ("ss", DATA3),
        ("stack_pointer", STACK[3]),
        ("flags", 0x4202),
        ("cs", CODE3),
        ("instruction_pointer", CODE_AT + 2),
    ]
    assert step.register("rflags") == 0x2 | interrupts


def test_inner_64_aligns_the_frame() -> None:
    scene = good("long")
    scene.write(TSS + 4, (STACK[0] - 4).to_bytes(8, "little"))
    step = scene.step(f"int {VECTOR:#x}")
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, ss=0, rsp=STACK[0] - 16 - 40)
    assert step.pushes[0] == ("ss", DATA3)


def test_same_privilege_64_pushes_the_stack_pointer_too() -> None:
    step = good("long", cpl=0).step(f"int {VECTOR:#x}")
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, ss=DATA0, rsp=STACK[0] - 40)


def test_ist_switches_stacks_at_the_same_privilege() -> None:
    scene = good("long", cpl=0)
    scene.gate(VECTOR, INTERRUPT_GATE, CODE0, TARGET, count=1)
    assert_enters(scene.step(f"int {VECTOR:#x}"), cs=CODE0, rip=TARGET, cpl=0, ss=DATA0, rsp=IST1 - 40)


def test_same_privilege_32() -> None:
    step = good("protected", cpl=0).step(f"int {VECTOR:#x}")
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, ss=DATA0, rsp=STACK[0] - 12)


def test_conforming_handler_keeps_the_ring() -> None:
    scene = good("protected")
    scene.gate(VECTOR, INTERRUPT_GATE, CONFORMING0, TARGET, dpl=3)
    assert_enters(scene.step(f"int {VECTOR:#x}"), cs=CONFORMING0 | 3, rip=TARGET, cpl=3, ss=DATA3, rsp=STACK[3] - 12)


def test_handler_and_stack_in_the_ldt() -> None:
    scene = good("protected")
    scene.descriptor(0x08, segment(CODE, dpl=1), ldt=True)
    scene.descriptor(0x10, segment(DATA, dpl=1), ldt=True)
    scene.gate(VECTOR, INTERRUPT_GATE, 0x0D, TARGET, dpl=3)
    scene.write(TSS + 16, (0x15).to_bytes(4, "little"))
    assert_enters(scene.step(f"int {VECTOR:#x}"), cs=0x0D, rip=TARGET, cpl=1, ss=0x15, rsp=STACK[1] - 20)


def test_16_bit_gate_pushes_words() -> None:
    scene = good("protected", cpl=0)
    scene.gate(VECTOR, INTERRUPT_GATE16, CODE0, TARGET)
    assert_enters(scene.step(f"int {VECTOR:#x}"), cs=CODE0, rip=TARGET, cpl=0, rsp=STACK[0] - 6)


def test_real_mode() -> None:
    scene = Scene("real")
    scene.write(VECTOR * 4, (0x1234).to_bytes(2, "little") + (0x0500).to_bytes(2, "little"))
    step = scene.step(f"int {VECTOR:#x}")
    assert_enters(step, cs=0x0500, rip=0x1234, cpl=0, rsp=0x7000 - 6)


def test_real_mode_table_limit() -> None:
    scene = Scene("real")
    scene.machine.set("idtr_limit", VECTOR * 4 + 2)
    assert_faults(scene.step(f"int {VECTOR:#x}"), "#GP", error=0, check="idt.vector_within_ivt")
