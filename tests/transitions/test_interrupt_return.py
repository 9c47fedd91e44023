"""IRET, IRETD, IRETQ (Intel SDM vol. 2, IRET/IRETD/IRETQ, Operation).

What it checks as the far RET does (return_target.*, stack_return.*) is in test_far_return.py.
"""

from __future__ import annotations

import pytest

from kit.descriptors import CODE, DATA, segment
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
    DATA1,
    DATA2,
    DATA3,
    FREE,
    STACK,
    TARGET,
    Scene,
)
from kit.transfers import back, push_frame

USER = STACK[3] - 0x40
ARITHMETIC_DF, TF, IF, IOPL, NT, RF, VM, AC = 0xCD5, 0x100, 0x200, 0x3000, 0x4000, 0x10000, 0x20000, 0x40000
VIF_VIP, ID = 0x180000, 0x200000


# --- the nested task and virtual-8086 mode ---------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "width"), [("long", 64), ("long", 32), ("compatibility", 32), ("compatibility", 16)])
def test_no_nested_task_in_ia_32e_mode(mode: str, width: int) -> None:
    scene = Scene(mode, cpl=3)
    scene.machine.set("rflags", NT | 2)
    push_frame(scene, "iret", width, cs=CODE3, rip=TARGET, stack=(DATA3, USER & 0xFFFF))
    step = back(scene, "iret", width)
    assert_faults(step, "#GP", error=0, check="iret.no_nested_task")
    assert_interrupts(step)


def test_a_nested_task_in_protected_mode_is_not_modelled() -> None:
    scene = Scene("protected")
    scene.machine.set("rflags", NT | 2)
    step = back(scene, "iret", 32)
    assert_runs(step)
    assert step.end.reason == "unmodelled"


def test_a_return_to_virtual_8086_mode_is_not_modelled() -> None:
    scene = Scene("protected")
    push_frame(scene, "iret", 32, cs=0x0500, rip=0x1234, flags=VM | 2)
    step = back(scene, "iret", 32)
    assert_runs(step)
    assert step.end.reason == "unmodelled"


@pytest.mark.parametrize(("mode", "cpl", "cs"), [("protected", 3, CODE3), ("protected", 1, CODE1), ("long", 0, CODE0)])
def test_vm_in_the_image_is_ignored_above_ring_0_and_in_ia_32e_mode(mode: str, cpl: int, cs: int) -> None:
    scene = Scene(mode, cpl=cpl)
    stack = ([DATA0, DATA1, DATA2, DATA3][cpl], USER) if mode == "long" else None
    push_frame(scene, "iret", scene.bits, cs=cs, rip=TARGET, flags=VM | 1 | 2, stack=stack)
    step = back(scene, "iret", scene.bits)
    assert_enters(step, cs=cs, rip=TARGET, cpl=cpl)
    assert step.register("rflags") == 0x3


# --- RETURN-TO-SAME-PRIVILEGE-LEVEL ----------------------------------------------------------------------------------

SAME = [
    # mode, CPL, width, selector returned to, mode then
    ("protected", 0, 32, CODE0, "protected"),
    ("protected", 0, 16, CODE0, "protected"),
    ("protected", 2, 32, CODE2, "protected"),
    ("protected", 3, 32, CODE3, "protected"),
    ("protected", 3, 32, CONFORMING0 | 3, "protected"),
    ("compatibility", 0, 32, CODE32_0, "compatibility"),
    ("compatibility", 0, 16, CODE0, "64-bit"),
    ("compatibility", 3, 32, CODE3, "64-bit"),
]


@pytest.mark.parametrize(("mode", "cpl", "width", "cs", "mode_then"), SAME)
def test_same(mode: str, cpl: int, width: int, cs: int, mode_then: str) -> None:
    """Outside 64-bit mode the stack stays."""
    scene = Scene(mode, cpl=cpl)
    push_frame(scene, "iret", width, cs=cs, rip=TARGET, stack=(0, 0))
    step = back(scene, "iret", width)
    ss = step.selectors_before["ss"]
    assert_enters(step, cs=cs, rip=TARGET, cpl=cpl, ss=ss, rsp=STACK[cpl] - 2 * width // 8)
    assert scene.machine.mode == mode_then


SAME_64 = [
    # CPL, width, selectors returned to, mode then
    (0, 64, CODE0, DATA0, "64-bit"),
    (0, 32, CODE0, DATA0, "64-bit"),
    (0, 16, CODE0, DATA0, "64-bit"),
    (0, 64, CODE0, 0, "64-bit"),  # a null SS
    (1, 64, CODE1, 1, "64-bit"),
    (2, 32, CODE2, 2, "64-bit"),
    (3, 64, CODE3, DATA3, "64-bit"),
    (3, 64, CODE32_3, DATA3, "compatibility"),
    (0, 64, CODE32_0, DATA0, "compatibility"),
    (3, 64, CONFORMING0 | 3, DATA3, "64-bit"),
]


@pytest.mark.parametrize(("cpl", "width", "cs", "ss", "mode_then"), SAME_64)
def test_64_bit_mode_pops_the_stack_at_the_same_level_too(
    cpl: int, width: int, cs: int, ss: int, mode_then: str
) -> None:
    scene = Scene("long", cpl=cpl)
    push_frame(scene, "iret", width, cs=cs, rip=TARGET, stack=(ss, 0x5678))
    step = back(scene, "iret", width)
    assert_enters(step, cs=cs, rip=TARGET, cpl=cpl, ss=ss, rsp=0x5678)
    assert scene.machine.mode == mode_then
    assert step.selector("ds") == DATA3


@pytest.mark.parametrize(
    ("cpl", "cs", "ss", "check"),
    [
        (3, CODE3, 3, "stack_return.null_only_in_64_bit"),
        (0, CODE32_0, 0, "stack_return.null_only_in_64_bit"),
        (0, CODE0, 3, "stack_return.null_rpl_equals_cpl"),
        (1, CODE1, 0, "stack_return.null_rpl_equals_cpl"),
    ],
)
def test_a_null_stack_at_the_same_level(cpl: int, cs: int, ss: int, check: str) -> None:
    scene = Scene("long", cpl=cpl)
    push_frame(scene, "iret", 64, cs=cs, rip=TARGET, stack=(ss, USER))
    step = back(scene, "iret", 64)
    assert_faults(step, "#GP", error=0, check=check)
    assert_interrupts(step)


# --- RETURN-TO-OUTER-PRIVILEGE-LEVEL ---------------------------------------------------------------------------------

OUTER = [
    # mode, CPL, width, selectors returned to, mode then
    ("protected", 0, 32, CODE3, DATA3, "protected"),
    ("protected", 0, 16, CODE3, DATA3, "protected"),
    ("protected", 0, 32, CODE1, DATA1, "protected"),
    ("protected", 1, 32, CODE2, DATA2, "protected"),
    ("protected", 0, 32, CONFORMING0 | 3, DATA3, "protected"),
    ("long", 0, 64, CODE3, DATA3, "64-bit"),
    ("long", 0, 32, CODE3, DATA3, "64-bit"),
    ("long", 0, 16, CODE3, DATA3, "64-bit"),
    ("long", 0, 64, CODE32_3, DATA3, "compatibility"),
    ("long", 0, 64, CODE1, 1, "64-bit"),  # a null SS
    ("long", 1, 64, CODE2, 2, "64-bit"),
    ("compatibility", 0, 32, CODE32_3, DATA3, "compatibility"),
    ("compatibility", 0, 32, CODE3, DATA3, "64-bit"),
    ("compatibility", 0, 32, CODE1, 1, "64-bit"),
]


@pytest.mark.parametrize(("mode", "cpl", "width", "cs", "ss", "mode_then"), OUTER)
def test_outer(mode: str, cpl: int, width: int, cs: int, ss: int, mode_then: str) -> None:
    scene = Scene(mode, cpl=cpl)
    rsp = 0x6FC0 if width == 16 else USER
    push_frame(scene, "iret", width, cs=cs, rip=TARGET, stack=(ss, rsp))
    step = back(scene, "iret", width)
    assert_enters(step, cs=cs, rip=TARGET, cpl=cs & 3, ss=ss, rsp=rsp)
    assert scene.machine.mode == mode_then
    assert step.pushes == []


def test_all_64_bits_of_rip_and_rsp() -> None:
    scene = Scene("long")
    push_frame(scene, "iret", 64, cs=CODE3, rip=0x7FFF_1234_5678, stack=(DATA3, 0xFFFF_8000_0000_1230))
    step = back(scene, "iret", 64)
    assert_enters(step, cs=CODE3, rip=0x7FFF_1234_5678, cpl=3, ss=DATA3, rsp=0xFFFF_8000_0000_1230)


def test_outer_hidden_parts() -> None:
    scene = Scene("protected")
    scene.descriptor(FREE, segment(CODE, base=0x4000, limit=0x8FFF, granular=False, dpl=3))
    scene.descriptor(FREE + 8, segment(DATA, base=0x20000, limit=0x3F, dpl=3))
    push_frame(scene, "iret", 32, cs=FREE | 3, rip=0x8000, stack=(FREE + 8 | 3, 0x2000))
    step = back(scene, "iret", 32)
    assert_enters(step, cs=FREE | 3, rip=0x8000, cpl=3, ss=FREE + 8 | 3, rsp=0x2000)
    cs, ss = scene.machine.segment("cs"), scene.machine.segment("ss")
    assert (cs["base"], cs["limit"], cs["attributes"]) == (0x4000, 0x8FFF, 0x40FB)
    assert (ss["base"], ss["limit"], ss["attributes"]) == (0x20000, 0x3FFFF, 0xC0F3)


@pytest.mark.parametrize("mode", ["protected", "long"])
def test_back_to_where_an_interrupt_came_from(mode: str) -> None:
    scene = Scene(mode, cpl=3)
    scene.gate(0x80, 0x0E, CODE0, TARGET, dpl=3)
    scene.write(TARGET, b"\x48\xcf" if mode == "long" else b"\xcf")
    scene.machine.set("rflags", 0xA97)  # OF, IF, SF, AF, PF, CF
    step = scene.step("int 0x80", instructions=2)
    assert_enters(step, cs=CODE3, rip=step.next_rip, cpl=3, ss=DATA3, rsp=STACK[3])
    assert step.register("rflags") == 0xA97
    assert [step.selector(name) for name in ("es", "ds", "fs", "gs")] == [DATA3] * 4


# --- flags -----------------------------------------------------------------------------------------------------------

FLAGS = [
    # CPL, IOPL, width, flags that are loaded
    (0, 0, 16, ARITHMETIC_DF | NT | IF | IOPL),
    (0, 0, 32, ARITHMETIC_DF | NT | IF | IOPL | RF | AC | ID | VIF_VIP),
    (0, 3, 32, ARITHMETIC_DF | NT | IF | IOPL | RF | AC | ID | VIF_VIP),
    (1, 0, 32, ARITHMETIC_DF | NT | RF | AC | ID),
    (1, 1, 32, ARITHMETIC_DF | NT | IF | RF | AC | ID),
    (2, 1, 16, ARITHMETIC_DF | NT),
    (3, 0, 16, ARITHMETIC_DF | NT),
    (3, 0, 32, ARITHMETIC_DF | NT | RF | AC | ID),
    (3, 2, 32, ARITHMETIC_DF | NT | RF | AC | ID),
    (3, 3, 32, ARITHMETIC_DF | NT | IF | RF | AC | ID),
    (3, 3, 16, ARITHMETIC_DF | NT | IF),
]
ALL = ARITHMETIC_DF | IF | IOPL | NT | RF | AC | VIF_VIP | ID


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize(("cpl", "iopl", "width", "loaded"), FLAGS)
def test_flags_are_loaded_by_the_privilege_of_the_handler(
    mode: str, cpl: int, iopl: int, width: int, loaded: int, outer: bool
) -> None:
    level = 3 if outer else cpl
    code, data = [(CODE0, DATA0), (CODE1, DATA1), (CODE2, DATA2), (CODE3, DATA3)][level]
    if mode == "long" and width == 32:
        width = 64
    stack = (data, 0x6000) if mode == "long" or level != cpl else None
    held = iopl << 12
    for before, image in ((held | 2, ALL | 2), ((ALL & ~(NT | IOPL)) | held | 2, 2)):
        scene = Scene(mode, cpl=cpl)
        scene.machine.set("rflags", before)
        push_frame(scene, "iret", width, cs=code, rip=TARGET, flags=image & ((1 << width) - 1), stack=stack)
        step = back(scene, "iret", width)
        assert_enters(step, cs=code, rip=TARGET, cpl=level)
        assert step.register("rflags") == (before & ~loaded) | (image & loaded) | 2


def test_reserved_flags_keep_their_values() -> None:
    scene = Scene("protected")
    push_frame(scene, "iret", 32, cs=CODE0, rip=TARGET, flags=0xFFC0802A)
    step = back(scene, "iret", 32)
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0)
    assert step.register("rflags") == 2


# --- REAL-ADDRESS-MODE -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "loaded"), [(16, 0x7ED5), (32, 0x257ED5)])
def test_real_mode(width: int, loaded: int) -> None:
    """IRETD keeps VM, VIF and VIP: the manual masks the image with 257FD5H and EFLAGS with 1A0000H."""
    image = 0x3F7EFF & ((1 << width) - 1)
    scene = Scene("real")
    scene.machine.set("rflags", VIF_VIP | 2)
    push_frame(scene, "iret", width, cs=0x0500, rip=0x1234, flags=image)
    step = back(scene, "iret", width)
    assert_enters(step, cs=0x0500, rip=0x1234, cpl=0, rsp=0x7000)
    assert scene.machine.segment("cs")["base"] == 0x5000
    assert step.register("rflags") == VIF_VIP | (image & loaded) | 2


def test_real_mode_offset_beyond_the_limit() -> None:
    scene = Scene("real")
    push_frame(scene, "iret", 32, cs=0x0500, rip=0x10000)
    assert_faults(back(scene, "iret", 32), "#GP", error=0, check="return_target.pointer_within_limit")


def test_real_mode_stack() -> None:
    scene = Scene("real")
    scene.machine.set("rsp", 0xFFFF)
    assert_faults(back(scene, "iret", 16), "#SS", error=0, check="stack.room")


def test_real_mode_round_trip_across_the_end_of_the_stack_segment() -> None:
    scene = Scene("real")
    scene.machine.set("rsp", 2)
    scene.write(0x80 * 4, TARGET.to_bytes(4, "little"))
    scene.write(TARGET, b"\xcf")
    step = scene.step("int 0x80", instructions=2)
    assert_enters(step, cs=0, rip=step.next_rip, cpl=0, rsp=2)
