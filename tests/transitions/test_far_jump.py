"""JMP to a code segment (Intel SDM vol. 2, JMP, Operation). What it checks as CALL does is in test_far_call.py."""

from __future__ import annotations

import pytest

from kit.descriptors import CODE, segment
from kit.expect import assert_enters, assert_faults, assert_interrupts
from kit.scene import CODE0, CODE1, CODE2, CODE3, CODE32_0, CODE32_3, CONFORMING0, STACK, TARGET, Scene, assemble
from kit.transfers import far

JUMPS = [
    # mode, CPL, selector, width; selector of CS then, mode then
    ("protected", 0, CODE0, 32, CODE0, "protected"),
    ("protected", 0, CODE0, 16, CODE0, "protected"),
    ("protected", 1, CODE1, 32, CODE1, "protected"),
    ("protected", 2, CODE2 & ~3, 32, CODE2, "protected"),  # RPL of CS becomes CPL
    ("protected", 3, CODE3, 16, CODE3, "protected"),
    ("protected", 3, CONFORMING0, 32, CONFORMING0 | 3, "protected"),
    ("protected", 0, CONFORMING0 | 3, 32, CONFORMING0, "protected"),  # RPL is not looked at
    ("long", 0, CODE0, 16, CODE0, "64-bit"),
    ("long", 3, CODE3, 32, CODE3, "64-bit"),
    ("long", 3, CODE3, 64, CODE3, "64-bit"),
    ("long", 0, CODE32_0, 32, CODE32_0, "compatibility"),
    ("long", 3, CODE32_3, 64, CODE32_3, "compatibility"),
    ("compatibility", 0, CODE0, 32, CODE0, "64-bit"),
    ("compatibility", 3, CODE32_3, 16, CODE32_3, "compatibility"),
    ("compatibility", 3, CONFORMING0, 32, CONFORMING0 | 3, "64-bit"),
]


@pytest.mark.parametrize(("mode", "cpl", "selector", "width", "cs", "mode_then"), JUMPS)
def test_jump(mode: str, cpl: int, selector: int, width: int, cs: int, mode_then: str) -> None:
    scene = Scene(mode, cpl=cpl)
    step = far(scene, "jmp", selector, TARGET, width)
    assert_enters(step, cs=cs, rip=TARGET, cpl=cpl, ss=step.selectors_before["ss"], rsp=STACK[cpl])
    assert step.pushes == []
    assert scene.machine.mode == mode_then


def test_a_pointer_in_the_instruction() -> None:
    step = Scene("protected").step(f"jmp {CODE0:#x}:{TARGET:#x}")
    assert_enters(step, cs=CODE0, rip=TARGET, cpl=0, rsp=STACK[0])


def test_the_ldt_and_the_accessed_bit() -> None:
    scene = Scene("protected", cpl=3)
    scene.descriptor(0x08, segment(CODE, base=0x4000, dpl=3), ldt=True)
    assert_enters(far(scene, "jmp", 0x0F, 0x8000), cs=0x0F, rip=0x8000, cpl=3)
    assert scene.machine.segment("cs")["base"] == 0x4000
    assert scene.read(0x2000 + 0x08 + 5, 1) == b"\xfb"


def test_the_offset_is_not_cut_for_compatibility_mode() -> None:
    step = far(Scene("long"), "jmp", CODE32_0, 1 << 32 | TARGET, 64)
    assert_faults(step, "#GP", error=0, check="far_target.pointer_within_limit")
    assert_interrupts(step)


@pytest.mark.parametrize("width", [16, 32])
def test_real_mode(width: int) -> None:
    scene = Scene("real")
    assert_enters(far(scene, "jmp", 0x0500, 0x1234, width), cs=0x0500, rip=0x1234, cpl=0, rsp=0x7000)
    assert scene.machine.segment("cs")["base"] == 0x5000


def test_the_code_jumped_to_runs() -> None:
    scene = Scene("long")
    scene.write(TARGET, assemble("mov eax, 0x12345678", 32))
    scene.write(0x9000, TARGET.to_bytes(4, "little") + CODE32_0.to_bytes(2, "little"))
    step = scene.step("jmp far dword [abs 0x9000]", instructions=2)
    assert_enters(step, cs=CODE32_0, rip=TARGET + 5, cpl=0)
    assert step.register("rax") == 0x12345678
