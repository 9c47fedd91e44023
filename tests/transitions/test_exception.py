"""Exceptions, and faults met while one is delivered (Intel SDM vol. 3, Interrupt 8 - Double Fault Exception;
Error Code; Interrupt 14 - Page-Fault Exception)."""

from __future__ import annotations

import pytest

from kit.changes import Change, changes, describes, register
from kit.descriptors import CALL_GATE, DATA, INTERRUPT_GATE, segment
from kit.expect import assert_enters
from kit.scene import (
    CODE0,
    CODE1,
    CODE3,
    CODE_AT,
    DATA0,
    DATA1,
    DATA3,
    FREE,
    HANDLERS,
    IDT,
    KINDS,
    LDT_AT,
    STACK,
    TSS,
    TSS_SELECTOR,
    VECTORS,
    Scene,
    Step,
)

EXT = 1
ABSENT = 0x9000  # a page that is not there
OTHER = 0x78  # the second half of the scene's LDT descriptor in long mode: a free slot in protected mode
IST7_END = 36 + 7 * 8 - 1
RF = 1 << 16

CLASS = {"#UD": "benign", "#BR": "benign", "#AC": "benign", "#PF": "page fault"}
CLASS |= dict.fromkeys(("#DE", "#TS", "#NP", "#SS", "#GP"), "contributory")


def becomes(first: str, second: str) -> str:
    """The table "Conditions for Generating a Double Fault"."""
    before, now = CLASS[first], CLASS[second]
    if before == "contributory" and now == "contributory":
        return "#DF"
    if before == "page fault" and now in ("contributory", "page fault"):
        return "#DF"
    return second


# How a ring-3 program runs into each fault: a preparation and an instruction.
FIRST: dict[str, tuple[Change, str]] = {
    "#UD": (register("rcx", 0), "ud2"),
    "#DE": (register("rcx", 0), "div ecx"),
    "#GP": (register("rcx", 0), "hlt"),
    "#NP": (changes(describes(segment(DATA, dpl=3, present=False)), register("rax", FREE)), "mov es, ax"),
    "#SS": (changes(describes(segment(DATA, dpl=3, present=False)), register("rax", FREE | 3)), "mov ss, ax"),
    "#PF": (register("rax", ABSENT), "mov [eax], eax"),
}


def spoil(scene: Scene, vector: int, with_: str) -> int:
    """Makes the delivery of `vector` fault, and returns the error code of that fault."""
    if with_ == "#GP":
        scene.gate(vector, CALL_GATE, CODE0, HANDLERS)
        return vector * 8 + 2 + EXT
    if with_ == "#NP":
        scene.gate(vector, INTERRUPT_GATE, CODE0, HANDLERS, present=False)
        return vector * 8 + 2 + EXT
    if with_ == "#PF":  # the handler's descriptor lies in a page that is not there
        scene.gate(vector, INTERRUPT_GATE, 0x0C, HANDLERS)
        scene.page(LDT_AT, 0)
        return 0
    if scene.long:
        scene.gate(vector, INTERRUPT_GATE, CODE0, HANDLERS, count=7 if with_ == "#TS" else 6)
        if with_ == "#TS":
            scene.machine.set_segment("tr", TSS_SELECTOR, TSS, IST7_END - 1, 0x8B)
            return TSS_SELECTOR + EXT
        scene.write(TSS + 36 + 5 * 8, ((1 << 47) + 16).to_bytes(8, "little"))
        return EXT  # the new stack selector is null
    scene.gate(vector, INTERRUPT_GATE, CODE1, HANDLERS)
    if with_ == "#TS":
        scene.write(TSS + 16, (DATA1 & ~3).to_bytes(4, "little"))
        return (DATA1 & ~3) + EXT
    scene.descriptor(OTHER, segment(DATA, dpl=1, present=False))
    scene.write(TSS + 16, (OTHER | 1).to_bytes(4, "little"))
    return OTHER + EXT


def meet(mode: str, first: str, *spoiled: tuple[int, str]) -> tuple[Scene, Step, list[int]]:
    scene = Scene(mode, cpl=3, paging=True)
    change, source = FIRST[first]
    change(scene)
    scene.page(ABSENT, 0)
    errors = [spoil(scene, vector, with_) for vector, with_ in spoiled]
    return scene, scene.step(source), errors


def escalations(step: Step) -> list[tuple[int, int, int]]:
    """First vector, second vector, and what they became."""
    return [(int(r["a"]), int(r["b"]), int(r["c"])) for r in step.records if r["kind"] == KINDS["escalate"]]


@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize("second", ["#TS", "#NP", "#SS", "#GP", "#PF"])
@pytest.mark.parametrize("first", FIRST)
def test_two_faults(mode: str, first: str, second: str) -> None:
    scene, step, (error,) = meet(mode, first, (VECTORS[first], second))
    expected = becomes(first, second)
    assert escalations(step)[0] == (VECTORS[first], VECTORS[second], VECTORS[expected])
    assert [fault[0] for fault in step.faults] == [VECTORS[first], VECTORS[expected]]
    assert step.register("rip") == HANDLERS + 16 * VECTORS[expected]
    assert (step.register("cpl"), scene.machine.segment("cs")["selector"]) == (0, CODE0)
    # The exception that is delivered in the end names the program, and carries its own error code.
    pushes = dict(step.pushes)
    assert (pushes["cs"], pushes["instruction_pointer"]) == (CODE3, CODE_AT)
    assert pushes["error_code"] == (0 if expected == "#DF" else error)


@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize("third", ["#TS", "#NP", "#SS", "#GP", "#PF"])
@pytest.mark.parametrize(("first", "second"), [("#GP", "#NP"), ("#PF", "#GP"), ("#PF", "#PF")])
def test_a_fault_in_a_double_fault_shuts_down(mode: str, first: str, second: str, third: str) -> None:
    _, step, _ = meet(mode, first, (VECTORS[first], second), (VECTORS["#DF"], third))
    assert step.end.reason == "shutdown"
    assert escalations(step) == [(VECTORS[first], VECTORS[second], 8), (8, VECTORS[third], 255)]
    assert (step.register("rip"), step.register("cpl")) == (CODE_AT, 3)


@pytest.mark.parametrize("mode", ["protected", "long"])
def test_benign_faults_never_add_up(mode: str) -> None:
    """#UD, then #NP while it is delivered, then #GP while that is: only the last two are a double fault."""
    _, step, _ = meet(mode, "#UD", (VECTORS["#UD"], "#NP"), (VECTORS["#NP"], "#GP"))
    assert escalations(step) == [(6, 11, 11), (11, 13, 8)]
    assert step.register("rip") == HANDLERS + 16 * 8


@pytest.mark.parametrize("mode", ["protected", "long"])
def test_a_page_fault_follows_a_contributory_fault(mode: str) -> None:
    """#GP, #PF while it is delivered, #NP while that is: the #PF counts as the first of the double fault."""
    _, step, _ = meet(mode, "#GP", (VECTORS["#GP"], "#PF"), (VECTORS["#PF"], "#NP"))
    assert escalations(step) == [(13, 14, 14), (14, 11, 8)]
    assert step.register("rip") == HANDLERS + 16 * 8


# --- CR2 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize(
    ("spoiled", "cr2", "reason"),
    [
        ((), ABSENT, "budget"),
        (((14, "#GP"),), ABSENT, "budget"),  # #DF
        (((14, "#PF"),), LDT_AT + 8, "budget"),  # #DF: the second page fault overwrites CR2
        (((14, "#GP"), (8, "#PF")), LDT_AT + 8, "shutdown"),  # even while #DF is delivered
    ],
)
def test_cr2_follows_every_page_fault(mode: str, spoiled: tuple[tuple[int, str], ...], cr2: int, reason: str) -> None:
    _, step, _ = meet(mode, "#PF", *spoiled)
    assert (step.register("cr2"), step.end.reason) == (cr2, reason)


@pytest.mark.parametrize("mode", ["protected", "long"])
def test_cr2_stays_when_no_page_fault_occurs(mode: str) -> None:
    scene = Scene(mode, cpl=3, paging=True)
    scene.machine.set("cr2", 0x1234)
    assert scene.step("hlt").register("cr2") == 0x1234


# --- error codes and frames ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "vector", "error"),
    [("int 0x40", 11, 0x40 * 8 + 2), ("int3", 11, 3 * 8 + 2), ("int1", 11, 8 + 2 + EXT), ("ud2", 11, 6 * 8 + 2 + EXT)],
)
def test_ext_says_that_the_program_did_not_ask(source: str, vector: int, error: int) -> None:
    scene = Scene("protected", cpl=3)
    for number in (1, 3, 6, 0x40):
        scene.gate(number, INTERRUPT_GATE, CODE0, HANDLERS, dpl=3, present=False)
    step = scene.step(source)
    assert dict(step.pushes)["error_code"] == error
    assert step.register("rip") == HANDLERS + 16 * vector


def test_a_page_fault_has_no_ext() -> None:
    """Its error code is a format of its own."""
    _, step, _ = meet("long", "#UD", (VECTORS["#UD"], "#PF"))
    assert dict(step.pushes)["error_code"] == 0


@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize(
    ("source", "vector", "error", "at", "rf"),
    [
        ("ud2", 6, None, CODE_AT, RF),
        ("hlt", 13, 0, CODE_AT, RF),
        ("mov [rcx], eax", 14, 6, CODE_AT, RF),
        ("int3", 3, None, CODE_AT + 1, 0),  # a trap
        ("int 13", 13, None, CODE_AT + 2, 0),  # INT n pushes no error code, whatever n
    ],
)
def test_frames(mode: str, source: str, vector: int, error: int | None, at: int, rf: int) -> None:
    scene = Scene(mode, cpl=3, paging=True)
    scene.page(ABSENT, 0)
    changes(register("rcx", ABSENT), register("rflags", 0x202))(scene)
    for number in (3, 13):
        scene.gate(number, INTERRUPT_GATE, CODE0, HANDLERS + 16 * number, dpl=3)
    step = scene.step(source if mode == "long" else source.replace("rcx", "ecx"))
    assert step.register("rip") == HANDLERS + 16 * vector
    expected = [
        ("ss", DATA3),
        ("stack_pointer", STACK[3]),
        ("flags", 0x202 | rf),
        ("cs", CODE3),
        ("instruction_pointer", at),
    ]
    assert step.pushes == expected + ([("error_code", error)] if error is not None else [])


def test_a_fault_at_ring_0_stays_on_its_stack() -> None:
    scene = Scene("protected")
    step = scene.step("ud2")
    assert scene.machine.segment("ss")["selector"] == DATA0
    assert step.register("rsp") == STACK[0] - 12


def test_a_trap_is_no_first_fault() -> None:
    """INT 13 whose delivery faults: not #GP and #NP, but INT n and #NP."""
    scene = Scene("protected", cpl=3)
    scene.gate(13, INTERRUPT_GATE, CODE0, HANDLERS, dpl=3, present=False)
    step = scene.step("int 13")
    assert not escalations(step)
    assert step.register("rip") == HANDLERS + 16 * 11


# --- real-address mode -----------------------------------------------------------------------------------------------


def test_real_mode_pushes_no_error_code() -> None:
    scene = Scene("real")
    scene.write(13 * 4, b"\x34\x12\x00\x05")
    scene.machine.set("rsi", 0xFFFF)
    step = scene.step("mov ax, [si]")
    assert step.faults == [(13, 0, "data_access.within_limit")]
    assert (step.register("rip"), step.register("rsp")) == (0x1234, 0x7000 - 6)


def test_real_mode_without_a_table_shuts_down() -> None:
    scene = Scene("real")
    scene.machine.set("idtr_limit", 0)
    step = scene.step("ud2")
    assert step.end.reason == "shutdown"
    assert escalations(step) == [(6, 13, 13), (13, 13, 8), (8, 13, 255)]


def test_the_table_of_the_exceptions_is_found_through_pages() -> None:
    """Nothing can be delivered if the IDT is not mapped: page fault, double fault, shutdown."""
    scene = Scene("long", cpl=3)
    scene.page(IDT, 0)
    step = scene.step("ud2")
    assert escalations(step) == [(6, 14, 14), (14, 14, 8), (8, 14, 255)]
    assert (step.end.reason, step.register("cr2")) == ("shutdown", IDT + 8 * 16)


def test_a_handler_runs() -> None:
    scene = Scene("long", cpl=3)
    step = scene.step("hlt", instructions=3)
    assert step.end.reason == "halted"
    scene = Scene("long", cpl=3)
    assert_enters(scene.step("nop"), cs=CODE3, rip=CODE_AT + 1, cpl=3)
