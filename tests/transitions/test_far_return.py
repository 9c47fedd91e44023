"""RET (far) (Intel SDM vol. 2, RET, Operation), and what IRET checks in the same way.

What IRET does beyond that is in test_interrupt_return.py.
"""

from __future__ import annotations

import pytest

from kit.changes import Change, changes, describes, no_ldt, nothing
from kit.descriptors import (
    CODE,
    CODE_CONFORMING,
    CODE_EXECUTE_ONLY,
    DATA,
    DATA_READ_ONLY,
    INTERRUPT_GATE,
    segment,
)
from kit.expect import assert_enters, assert_faults, assert_interrupts
from kit.scene import (
    CODE0,
    CODE1,
    CODE2,
    CODE3,
    CODE32_0,
    CODE32_3,
    CONFORMING0,
    DATA0,
    DATA1,
    DATA2,
    DATA3,
    FREE,
    HANDLERS,
    STACK,
    TARGET,
    TSS_SELECTOR,
    Scene,
)
from kit.transfers import back, push_frame

OTHER = FREE + 8
USER = STACK[3] - 0x40
NATIVE = {"protected": 32, "long": 64, "compatibility": 32}

CODE_FAULTS: list[tuple[str, int, Change, int, int, str, int, str]] = [
    # mode, CPL, change, selector and offset returned to, vector, error code, check
    ("protected", 0, nothing, 3, TARGET, "#GP", 0, "return_target.selector_not_null"),
    ("long", 3, nothing, 0, TARGET, "#GP", 0, "return_target.selector_not_null"),
    ("protected", 0, no_ldt, 0x0F, TARGET, "#GP", 0x0C, "return_target.ldt_loaded"),
    ("protected", 0, nothing, 0x103, TARGET, "#GP", 0x100, "return_target.selector_in_table"),
    ("long", 0, nothing, 0x47, TARGET, "#GP", 0x44, "return_target.selector_in_table"),
    ("protected", 0, nothing, DATA3, TARGET, "#GP", DATA3 & ~3, "return_target.is_code"),
    ("protected", 0, nothing, TSS_SELECTOR, TARGET, "#GP", TSS_SELECTOR, "return_target.is_code"),
    ("compatibility", 3, nothing, DATA3, TARGET, "#GP", DATA3 & ~3, "return_target.is_code"),
    (
        "long",
        0,
        describes(segment(CODE, dpl=3, long=True, db=True)),
        FREE | 3,
        TARGET,
        "#GP",
        FREE,
        "return_target.long_and_default_exclusive",
    ),
    ("protected", 3, nothing, CODE0, TARGET, "#GP", CODE0, "return_target.rpl_not_below_cpl"),
    ("protected", 2, nothing, CODE1, TARGET, "#GP", CODE1 & ~3, "return_target.rpl_not_below_cpl"),
    ("long", 3, nothing, CODE3 & ~3 | 2, TARGET, "#GP", CODE3 & ~3, "return_target.rpl_not_below_cpl"),
    (
        "protected",
        0,
        describes(segment(CODE_CONFORMING, dpl=2)),
        FREE | 1,
        TARGET,
        "#GP",
        FREE,
        "return_target.conforming_dpl_not_above_rpl",
    ),
    ("protected", 0, nothing, CODE0 | 3, TARGET, "#GP", CODE0, "return_target.dpl_equals_rpl"),
    ("protected", 0, nothing, CODE3 & ~3, TARGET, "#GP", CODE3 & ~3, "return_target.dpl_equals_rpl"),
    ("long", 0, nothing, CODE1 & ~3 | 2, TARGET, "#GP", CODE1 & ~3, "return_target.dpl_equals_rpl"),
    ("protected", 0, describes(segment(CODE, dpl=3, present=False)), FREE | 3, 0, "#NP", FREE, "return_target.present"),
    ("protected", 0, describes(segment(CODE, present=False)), FREE, 0, "#NP", FREE, "return_target.present"),
    (
        "protected",
        0,
        describes(segment(CODE, limit=TARGET - 1, granular=False)),
        FREE,
        TARGET,
        "#GP",
        0,
        "return_target.pointer_within_limit",
    ),
    (
        "protected",
        0,
        describes(segment(CODE, dpl=3, limit=TARGET - 1, granular=False)),
        FREE | 3,
        TARGET,
        "#GP",
        0,
        "return_target.pointer_within_limit",
    ),
    (
        "long",
        0,
        describes(segment(CODE, dpl=3, limit=TARGET - 1, granular=False)),
        FREE | 3,
        TARGET,
        "#GP",
        0,
        "return_target.pointer_within_limit",
    ),
    ("long", 0, nothing, CODE32_0, 1 << 32 | TARGET, "#GP", 0, "return_target.pointer_within_limit"),
    ("long", 0, nothing, CODE0, 1 << 47, "#GP", 0, "return_target.pointer_canonical"),
    ("long", 0, nothing, CODE3, 1 << 47, "#GP", 0, "return_target.pointer_canonical"),
    # Of two things wrong, the one that the manual names first.
    ("protected", 3, describes(segment(CODE, dpl=3)), FREE, TARGET, "#GP", FREE, "return_target.rpl_not_below_cpl"),
    (
        "protected",
        0,
        describes(segment(CODE, present=False, limit=0, granular=False)),
        FREE | 3,
        TARGET,
        "#GP",
        FREE,
        "return_target.dpl_equals_rpl",
    ),
    ("protected", 0, describes(segment(CODE, present=False, limit=0)), FREE, 1, "#NP", FREE, "return_target.present"),
]


@pytest.mark.parametrize("mnemonic", ["retf", "iret"])
@pytest.mark.parametrize(("mode", "cpl", "change", "cs", "rip", "vector", "error", "check"), CODE_FAULTS)
def test_code_fault(
    mnemonic: str, mode: str, cpl: int, change: Change, cs: int, rip: int, vector: str, error: int, check: str
) -> None:
    scene = Scene(mode, cpl=cpl)
    change(scene)
    width = NATIVE[mode]
    # A stack is popped on the way to an outer level; in 64-bit mode IRET always pops one.
    level = cs & 3
    selector = [DATA0, DATA1, DATA2, DATA3][level]
    push_frame(scene, mnemonic, width, cs=cs, rip=rip, stack=(selector, USER))
    step = back(scene, mnemonic, width)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)


STACK_FAULTS: list[tuple[str, Change, int, int, str, int, str]] = [
    # mode, change, selectors returned to: code and stack, vector, error code, check
    ("protected", nothing, CODE3, 3, "#GP", 0, "stack_return.null_only_in_64_bit"),
    ("protected", nothing, CODE1, 1, "#GP", 0, "stack_return.null_only_in_64_bit"),
    ("long", nothing, CODE3, 3, "#GP", 0, "stack_return.null_only_in_64_bit"),
    ("long", nothing, CODE32_3, 3, "#GP", 0, "stack_return.null_only_in_64_bit"),
    ("long", describes(segment(CODE, dpl=1)), FREE | 1, 1, "#GP", 0, "stack_return.null_only_in_64_bit"),
    ("compatibility", nothing, CODE3, 3, "#GP", 0, "stack_return.null_only_in_64_bit"),
    ("long", nothing, CODE1, 0, "#GP", 0, "stack_return.null_rpl_equals_cpl"),
    ("long", nothing, CODE2, 3, "#GP", 0, "stack_return.null_rpl_equals_cpl"),
    ("protected", no_ldt, CODE3, 0x0F, "#GP", 0x0C, "stack_return.ldt_loaded"),
    ("protected", nothing, CODE3, 0x103, "#GP", 0x100, "stack_return.selector_in_table"),
    ("long", nothing, CODE3, 0x47, "#GP", 0x44, "stack_return.selector_in_table"),
    ("protected", nothing, CODE3, DATA3 & ~3, "#GP", DATA3 & ~3, "stack_return.rpl_equals_cpl"),
    ("long", nothing, CODE1, DATA1 & ~3 | 3, "#GP", DATA1 & ~3, "stack_return.rpl_equals_cpl"),
    (
        "protected",
        describes(segment(DATA_READ_ONLY, dpl=3)),
        CODE3,
        FREE | 3,
        "#GP",
        FREE,
        "stack_return.writable_data",
    ),
    ("protected", nothing, CODE3, CODE3, "#GP", CODE3 & ~3, "stack_return.writable_data"),
    ("long", nothing, CODE3, TSS_SELECTOR | 3, "#GP", TSS_SELECTOR, "stack_return.writable_data"),
    ("protected", nothing, CODE3, DATA0 | 3, "#GP", DATA0, "stack_return.dpl_equals_cpl"),
    ("long", nothing, CODE2, DATA3 & ~3 | 2, "#GP", DATA3 & ~3, "stack_return.dpl_equals_cpl"),
    ("protected", describes(segment(DATA, dpl=3, present=False)), CODE3, FREE | 3, "#SS", FREE, "stack_return.present"),
    ("long", describes(segment(DATA, dpl=3, present=False)), CODE3, FREE | 3, "#SS", FREE, "stack_return.present"),
    # Of two things wrong, the one that the manual names first.
    (
        "protected",
        describes(segment(DATA_READ_ONLY, dpl=0, present=False)),
        CODE3,
        FREE | 3,
        "#GP",
        FREE,
        "stack_return.writable_data",
    ),
    (
        "protected",
        changes(
            describes(segment(CODE, dpl=3, limit=0, granular=False), OTHER),
            describes(segment(DATA, dpl=3, present=False)),
        ),
        OTHER | 3,
        FREE | 3,
        "#SS",
        FREE,
        "stack_return.present",
    ),
]


@pytest.mark.parametrize("mnemonic", ["retf", "iret"])
@pytest.mark.parametrize(("mode", "change", "cs", "ss", "vector", "error", "check"), STACK_FAULTS)
def test_stack_fault(
    mnemonic: str, mode: str, change: Change, cs: int, ss: int, vector: str, error: int, check: str
) -> None:
    scene = Scene(mode)
    change(scene)
    push_frame(scene, mnemonic, NATIVE[mode], cs=cs, rip=TARGET, stack=(ss, USER))
    step = back(scene, mnemonic, NATIVE[mode])
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)


def cut_stack(scene: Scene, words: int, size: int) -> None:
    """The stack segment ends one byte short of that many words above the stack pointer."""
    scene.machine.set_segment("ss", DATA0, 0, scene.machine.get("rsp") + words * size - 2, 0x4093)


@pytest.mark.parametrize("mnemonic", ["retf", "iret"])
@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("words", [2, 4])
@pytest.mark.parametrize("mode", ["protected", "compatibility"])
def test_what_is_popped_must_lie_in_the_stack_segment(mode: str, words: int, width: int, mnemonic: str) -> None:
    scene = Scene(mode)
    # A null CS: the stack is looked at before it, and its second part only for an outer level.
    cs = (CODE32_3 if mode == "compatibility" else CODE3) if words == 4 else 0
    push_frame(scene, mnemonic, width, cs=cs, rip=TARGET, stack=(3, USER & 0xFFFF))
    cut_stack(scene, words + (mnemonic == "iret"), width // 8)
    step = back(scene, mnemonic, width)
    assert_faults(step, "#SS", error=0, check="stack.room")
    assert_interrupts(step)


@pytest.mark.parametrize("mnemonic", ["retf", "iret"])
@pytest.mark.parametrize("width", [16, 32, 64])
def test_what_is_popped_must_be_canonical(width: int, mnemonic: str) -> None:
    scene = Scene("long")
    scene.gate(12, INTERRUPT_GATE, CODE0, HANDLERS + 16 * 12, count=1)  # a good stack for the exception
    scene.machine.set("rsp", (1 << 47) - width // 8)
    step = back(scene, mnemonic, width)
    assert_faults(step, "#SS", error=0, check="stack.canonical")
    assert_interrupts(step)


# --- RETURN-TO-SAME-PRIVILEGE-LEVEL ----------------------------------------------------------------------------------

SAME = [
    # mode, CPL, width, selector returned to, mode then
    ("protected", 0, 32, CODE0, "protected"),
    ("protected", 0, 16, CODE0, "protected"),
    ("protected", 1, 32, CODE1, "protected"),
    ("protected", 3, 32, CODE3, "protected"),
    ("protected", 3, 16, CONFORMING0 | 3, "protected"),
    ("long", 0, 16, CODE0, "64-bit"),
    ("long", 0, 32, CODE0, "64-bit"),
    ("long", 0, 64, CODE0, "64-bit"),
    ("long", 3, 64, CODE3, "64-bit"),
    ("long", 3, 64, CONFORMING0 | 3, "64-bit"),
    ("long", 0, 64, CODE32_0, "compatibility"),
    ("long", 3, 32, CODE32_3, "compatibility"),
    ("compatibility", 0, 32, CODE0, "64-bit"),
    ("compatibility", 3, 32, CODE32_3, "compatibility"),
]


@pytest.mark.parametrize("release", [0, 8, 0x30])
@pytest.mark.parametrize(("mode", "cpl", "width", "cs", "mode_then"), SAME)
def test_same(mode: str, cpl: int, width: int, cs: int, mode_then: str, release: int) -> None:
    scene = Scene(mode, cpl=cpl)
    push_frame(scene, "retf", width, cs=cs, rip=TARGET)
    step = back(scene, "retf", width, release)
    assert_enters(step, cs=cs, rip=TARGET, cpl=cpl, ss=step.selectors_before["ss"], rsp=STACK[cpl] + release)
    assert scene.machine.mode == mode_then
    assert step.pushes == []


def test_same_through_the_ldt() -> None:
    scene = Scene("protected")
    scene.descriptor(0x10, segment(CODE_EXECUTE_ONLY, base=0x4000, limit=0x8FFF, granular=False), ldt=True)
    push_frame(scene, "retf", 32, cs=0x14, rip=0x8000)
    assert_enters(back(scene, "retf", 32), cs=0x14, rip=0x8000, cpl=0, rsp=STACK[0])
    assert scene.machine.segment("cs")["base"] == 0x4000
    assert scene.read(0x2000 + 0x10 + 5, 1) == b"\x99", "accessed"


def test_a_selector_popped_in_a_wider_word_loses_what_is_above_it() -> None:
    scene = Scene("protected")
    push_frame(scene, "retf", 32, cs=0xABCD0000 | CODE0, rip=TARGET)
    assert_enters(back(scene, "retf", 32), cs=CODE0, rip=TARGET, cpl=0, rsp=STACK[0])


def test_a_16_bit_stack_pointer_wraps_and_leaves_the_rest_of_esp_alone() -> None:
    scene = Scene("protected")
    scene.machine.set_segment("ss", DATA0, 0x50000, 0xFFFF, 0x0093)
    scene.machine.set("rsp", 0x1234FFFC)
    scene.write(0x5FFFC, TARGET.to_bytes(4, "little"))
    scene.write(0x50000, CODE0.to_bytes(4, "little"))
    assert_enters(back(scene, "retf", 32, 8), cs=CODE0, rip=TARGET, cpl=0, rsp=0x1234000C)


# --- RETURN-TO-OUTER-PRIVILEGE-LEVEL ---------------------------------------------------------------------------------

OUTER = [
    # mode, CPL, width, selectors returned to: code and stack, mode then
    ("protected", 0, 32, CODE3, DATA3, "protected"),
    ("protected", 0, 16, CODE3, DATA3, "protected"),
    ("protected", 0, 32, CODE1, DATA1, "protected"),
    ("protected", 1, 32, CODE2, DATA2, "protected"),
    ("protected", 2, 32, CODE3, DATA3, "protected"),
    ("protected", 0, 32, CONFORMING0 | 3, DATA3, "protected"),
    ("long", 0, 64, CODE3, DATA3, "64-bit"),
    ("long", 0, 32, CODE3, DATA3, "64-bit"),
    ("long", 0, 16, CODE3, DATA3, "64-bit"),
    ("long", 0, 64, CODE32_3, DATA3, "compatibility"),
    ("long", 1, 64, CODE2, DATA2, "64-bit"),
    ("long", 0, 64, CODE1, 1, "64-bit"),  # a null SS
    ("long", 0, 32, CODE2, 2, "64-bit"),
    ("compatibility", 0, 32, CODE32_3, DATA3, "compatibility"),
    ("compatibility", 0, 32, CODE3, DATA3, "64-bit"),
    ("compatibility", 0, 32, CODE1, 1, "64-bit"),
]


@pytest.mark.parametrize("parameters", [0, 2, 5])
@pytest.mark.parametrize(("mode", "cpl", "width", "cs", "ss", "mode_then"), OUTER)
def test_outer(mode: str, cpl: int, width: int, cs: int, ss: int, mode_then: str, parameters: int) -> None:
    """Parameters are released from both stacks."""
    scene = Scene(mode, cpl=cpl)
    rsp = 0x6FC0 if width == 16 else USER
    push_frame(scene, "retf", width, cs=cs, rip=TARGET, stack=(ss, rsp), parameters=(0xAA,) * parameters)
    release = parameters * width // 8
    step = back(scene, "retf", width, release)
    assert_enters(step, cs=cs, rip=TARGET, cpl=cs & 3, ss=ss, rsp=rsp + release)
    assert scene.machine.mode == mode_then


@pytest.mark.parametrize("mnemonic", ["retf", "iret"])
def test_an_outer_16_bit_stack_takes_sp_alone(mnemonic: str) -> None:
    """The upper half of ESP is still that of the inner stack."""
    scene = Scene("protected")
    scene.descriptor(FREE, segment(DATA, dpl=3, limit=0xFFFF, granular=False, db=False))
    release = 8 if mnemonic == "retf" else 0
    parameters = (0,) * (release // 4)
    push_frame(scene, mnemonic, 32, cs=CODE3, rip=TARGET, stack=(FREE | 3, 0x1234FFFC), parameters=parameters)
    inner = scene.machine.get("rsp")
    step = back(scene, mnemonic, 32, release)
    sp = (0xFFFC + release) & 0xFFFF
    assert_enters(step, cs=CODE3, rip=TARGET, cpl=3, ss=FREE | 3, rsp=inner & 0xFFFF0000 | sp)


def test_outer_stack_in_the_ldt_becomes_accessed() -> None:
    scene = Scene("protected")
    scene.descriptor(0x08, segment(CODE, dpl=2), ldt=True)
    scene.descriptor(0x10, segment(DATA, dpl=2), ldt=True)
    push_frame(scene, "retf", 32, cs=0x0E, rip=TARGET, stack=(0x16, USER))
    assert_enters(back(scene, "retf", 32), cs=0x0E, rip=TARGET, cpl=2, ss=0x16, rsp=USER)
    assert scene.read(0x2000 + 8 + 5, 1) + scene.read(0x2000 + 0x10 + 5, 1) == b"\xdb\xd3"


# --- data segments on the way out ------------------------------------------------------------------------------------

DATA_SEGMENTS = [
    # type and DPL of what the register points to, level returned to, survives
    (DATA, 0, 3, False),
    (DATA, 2, 3, False),
    (DATA, 3, 3, True),
    (DATA, 1, 1, True),
    (DATA, 0, 1, False),
    (DATA_READ_ONLY, 2, 3, False),
    (CODE, 0, 3, False),
    (CODE, 2, 2, True),
    (CODE, 3, 3, True),
    (CODE_CONFORMING, 0, 3, True),
]


@pytest.mark.parametrize("mnemonic", ["retf", "iret"])
@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize(("type_", "dpl", "level", "survives"), DATA_SEGMENTS)
def test_data_segments_too_privileged_become_null(
    mode: str, mnemonic: str, type_: int, dpl: int, level: int, survives: bool
) -> None:
    for name in ("es", "ds", "fs", "gs"):
        scene = Scene(mode)
        scene.machine.set_segment(name, FREE | 3, 0, 0xFFFFFFFF, 0xC081 | type_ | dpl << 5)
        cs, ss = [(CODE1, DATA1), (CODE2, DATA2), (CODE3, DATA3)][level - 1]
        push_frame(scene, mnemonic, NATIVE[mode], cs=cs, rip=TARGET, stack=(ss, USER))
        step = back(scene, mnemonic, NATIVE[mode])
        assert_enters(step, cs=cs, rip=TARGET, cpl=level)
        assert step.selector(name) == (FREE | 3 if survives else 0)
        for other in {"es", "ds", "fs", "gs"} - {name}:
            assert step.selector(other) == DATA3


@pytest.mark.parametrize("mnemonic", ["retf", "iret"])
def test_a_null_selector_loses_its_rpl_but_fs_keeps_its_base(mnemonic: str) -> None:
    scene = Scene("long")
    scene.machine.set_segment("fs", 3, 0x7000_0000_0000, 0, 0)
    scene.machine.set_segment("ds", 1, 0, 0, 0)
    push_frame(scene, mnemonic, 64, cs=CODE3, rip=TARGET, stack=(DATA3, USER))
    step = back(scene, mnemonic, 64)
    assert_enters(step, cs=CODE3, rip=TARGET, cpl=3, ss=DATA3, rsp=USER)
    assert (step.selector("fs"), step.selector("ds")) == (0, 0)
    assert scene.machine.get("fs_base") == 0x7000_0000_0000


@pytest.mark.parametrize("mnemonic", ["retf", "iret"])
def test_at_the_same_level_data_segments_stay(mnemonic: str) -> None:
    scene = Scene("protected", cpl=3)
    scene.machine.set_segment("ds", DATA0, 0, 0xFFFFFFFF, 0xC093)
    scene.machine.set_segment("gs", 2, 0, 0, 0)
    push_frame(scene, mnemonic, 32, cs=CODE3, rip=TARGET)
    step = back(scene, mnemonic, 32)
    assert_enters(step, cs=CODE3, rip=TARGET, cpl=3, rsp=STACK[3])
    assert (step.selector("ds"), step.selector("gs")) == (DATA0, 2)


# --- REAL-ADDRESS-MODE -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", [0, 6])
@pytest.mark.parametrize("width", [16, 32])
def test_real_mode(width: int, release: int) -> None:
    scene = Scene("real")
    push_frame(scene, "retf", width, cs=0x0500, rip=0x1234)
    assert_enters(back(scene, "retf", width, release), cs=0x0500, rip=0x1234, cpl=0, rsp=0x7000 + release)
    assert scene.machine.segment("cs")["base"] == 0x5000


def test_real_mode_stack_pointer_wraps() -> None:
    scene = Scene("real")
    scene.machine.set("rsp", 0xFFFE)
    scene.write(0xFFFE, (0x1234).to_bytes(2, "little"))
    scene.write(0, (0x0500).to_bytes(2, "little"))
    assert_enters(back(scene, "retf", 16), cs=0x0500, rip=0x1234, cpl=0, rsp=2)


def test_real_mode_word_across_the_end_of_the_stack_segment() -> None:
    scene = Scene("real")
    scene.machine.set("rsp", 0xFFFF)
    assert_faults(back(scene, "retf", 16), "#SS", error=0, check="stack.room")


def test_real_mode_offset_beyond_the_limit() -> None:
    scene = Scene("real")
    push_frame(scene, "retf", 32, cs=0x0500, rip=0x10000)
    assert_faults(back(scene, "retf", 32), "#GP", error=0, check="return_target.pointer_within_limit")
