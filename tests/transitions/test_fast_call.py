"""SYSENTER, SYSEXIT, SYSCALL, SYSRET, SWAPGS by both vendors' rules (Intel SDM vol. 2; AMD APM vol. 3)."""

from __future__ import annotations

from typing import Any

import pytest

from kit.changes import Change, changes, nothing, register
from kit.expect import assert_enters, assert_faults, assert_interrupts
from kit.scene import AMD, CODE0, CODE_AT, DATA0, DATA3, INTEL, STACK, TARGET, Scene, Step

FLAT_CODE_64, FLAT_CODE_32, FLAT_STACK = 0xA09B, 0xC09B, 0xC093  # G, L or D, P, type; without DPL
SYSTEM_CS, SYSTEM_ESP = 0x48, 0x61230  # selectors of no matter: no descriptor is read
HIGH = 0x7FFF_0000_0000
SYSCALL_CS, SYSRET_CS = 0xA0, 0xC3
SWAPGS = b"\x0f\x01\xf8"

Model = dict[str, Any]


def good(mode: str, model: Model, cpl: int = 0) -> Scene:
    scene = Scene(mode, cpl=cpl, model=model)
    m = scene.machine
    m.set("efer", m.get("efer") | 1)
    m.set("star", SYSRET_CS << 48 | SYSCALL_CS << 32 | TARGET)
    m.set("lstar", HIGH | TARGET)
    m.set("cstar", HIGH | TARGET + 0x100)
    m.set("sysenter_cs", SYSTEM_CS)
    m.set("sysenter_esp", SYSTEM_ESP)
    m.set("sysenter_eip", TARGET)
    m.set("rdx", TARGET)
    m.set("rcx", TARGET)
    m.set("r11", 2)
    return scene


def assert_flat(step: Step, *, code: int, dpl: int, stack: int | None = FLAT_STACK) -> None:
    """CS and SS have base 0, limit 4 GiB and fixed attributes."""
    for name, attributes in (("cs", code), ("ss", stack)):
        if attributes is None:
            continue
        hidden = step.scene.machine.segment(name)
        assert (hidden["base"], hidden["limit"], hidden["attributes"]) == (0, 0xFFFFFFFF, attributes | dpl << 5)


no_system_cs = register("sysenter_cs", 0xFFFF0003)
no_sce = register("efer", 0xD00)
BAD = 1 << 47

FAULTS: list[tuple[str, str, Model, int, Change, str, int | None, str]] = [
    # mode, instruction, model, CPL, change, vector, error code, check
    ("long", "sysenter", AMD, 3, nothing, "#UD", None, "sysenter.mode_allows"),
    ("compatibility", "sysenter", AMD, 3, nothing, "#UD", None, "sysenter.mode_allows"),
    ("real", "sysenter", INTEL, 0, nothing, "#GP", 0, "sysenter.protected_mode"),
    ("real", "sysenter", AMD, 0, nothing, "#GP", 0, "sysenter.protected_mode"),
    ("protected", "sysenter", INTEL, 3, no_system_cs, "#GP", 0, "sysenter.target_not_null"),
    ("protected", "sysenter", AMD, 3, no_system_cs, "#GP", 0, "sysenter.target_not_null"),
    ("long", "sysenter", INTEL, 3, no_system_cs, "#GP", 0, "sysenter.target_not_null"),
    ("long", "o64 sysexit", AMD, 0, nothing, "#UD", None, "sysenter.mode_allows"),
    ("compatibility", "sysexit", AMD, 3, nothing, "#UD", None, "sysenter.mode_allows"),
    ("protected", "sysexit", INTEL, 0, no_system_cs, "#GP", 0, "sysexit.target_not_null"),
    ("long", "o64 sysexit", INTEL, 0, no_system_cs, "#GP", 0, "sysexit.target_not_null"),
    ("real", "sysexit", INTEL, 0, nothing, "#GP", 0, "sysexit.protected_mode"),
    ("real", "sysexit", AMD, 0, nothing, "#GP", 0, "sysexit.protected_mode"),
    ("protected", "sysexit", INTEL, 3, nothing, "#GP", 0, "sysexit.from_ring_0"),
    ("protected", "sysexit", AMD, 1, nothing, "#GP", 0, "sysexit.from_ring_0"),
    ("long", "o64 sysexit", INTEL, 3, nothing, "#GP", 0, "sysexit.from_ring_0"),
    ("long", "o64 sysexit", INTEL, 0, register("rdx", BAD), "#GP", 0, "sysexit.pointer_canonical"),
    ("long", "o64 sysexit", INTEL, 0, register("rcx", BAD), "#GP", 0, "sysexit.stack_canonical"),
    ("protected", "syscall", INTEL, 3, nothing, "#UD", None, "syscall.mode_allows"),
    ("compatibility", "syscall", INTEL, 3, nothing, "#UD", None, "syscall.mode_allows"),
    ("real", "syscall", INTEL, 0, nothing, "#UD", None, "syscall.mode_allows"),
    ("long", "syscall", INTEL, 3, no_sce, "#UD", None, "syscall.enabled"),
    ("long", "syscall", AMD, 3, no_sce, "#UD", None, "syscall.enabled"),
    ("compatibility", "syscall", AMD, 3, no_sce, "#UD", None, "syscall.enabled"),
    ("protected", "syscall", AMD, 3, register("efer", 0), "#UD", None, "syscall.enabled"),
    ("protected", "sysret", INTEL, 0, nothing, "#UD", None, "sysret.mode_allows"),
    ("compatibility", "sysret", INTEL, 0, nothing, "#UD", None, "sysret.mode_allows"),
    ("long", "o64 sysret", INTEL, 0, no_sce, "#UD", None, "sysret.enabled"),
    ("long", "o64 sysret", AMD, 0, no_sce, "#UD", None, "sysret.enabled"),
    ("real", "sysret", AMD, 0, nothing, "#GP", 0, "sysret.protected_mode"),
    ("long", "o64 sysret", INTEL, 3, nothing, "#GP", 0, "sysret.from_ring_0"),
    ("long", "sysret", AMD, 3, nothing, "#GP", 0, "sysret.from_ring_0"),
    ("protected", "sysret", AMD, 2, nothing, "#GP", 0, "sysret.from_ring_0"),
    ("long", "o64 sysret", INTEL, 0, register("rcx", BAD), "#GP", 0, "sysret.pointer_canonical"),
    # Of two things wrong, the one that the manual names first.
    ("long", "o64 sysret", INTEL, 3, changes(no_sce, register("rcx", BAD)), "#UD", None, "sysret.enabled"),
    ("long", "o64 sysret", INTEL, 3, register("rcx", BAD), "#GP", 0, "sysret.from_ring_0"),
    ("long", "o64 sysexit", INTEL, 3, register("rdx", BAD), "#GP", 0, "sysexit.from_ring_0"),
    ("real", "sysexit", INTEL, 0, no_system_cs, "#GP", 0, "sysexit.target_not_null"),
]


@pytest.mark.parametrize(("mode", "instruction", "model", "cpl", "change", "vector", "error", "check"), FAULTS)
def test_fault(
    mode: str, instruction: str, model: Model, cpl: int, change: Change, vector: str, error: int | None, check: str
) -> None:
    scene = good(mode, model, cpl)
    change(scene)
    step = scene.step(instruction)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)
    if error is None:
        assert "error_code" not in dict(step.pushes)


# --- SYSENTER and SYSEXIT --------------------------------------------------------------------------------------------

SYSENTERS: list[tuple[str, Model, int]] = [
    ("protected", INTEL, 3),
    ("protected", INTEL, 0),
    ("protected", AMD, 3),
    ("long", INTEL, 3),
    ("long", INTEL, 0),
    ("compatibility", INTEL, 3),
]


@pytest.mark.parametrize(("mode", "model", "cpl"), SYSENTERS)
def test_sysenter(mode: str, model: Model, cpl: int) -> None:
    scene = good(mode, model, cpl)
    high = HIGH if scene.long else 0xABCD_0000_0000  # outside IA-32e mode the low halves count
    scene.machine.set("sysenter_cs", SYSTEM_CS | 3)
    scene.machine.set("sysenter_esp", high | SYSTEM_ESP)
    scene.machine.set("sysenter_eip", high | TARGET)
    scene.machine.set("rflags", 0x246 | 0x7000 | 0x200000)  # IF among others
    step = scene.step("sysenter")
    kept = HIGH if scene.long else 0
    assert_enters(step, cs=SYSTEM_CS, rip=kept | TARGET, cpl=0, ss=SYSTEM_CS + 8, rsp=kept | SYSTEM_ESP)
    assert_flat(step, code=FLAT_CODE_64 if scene.long else FLAT_CODE_32, dpl=0)
    assert scene.machine.mode == ("64-bit" if scene.long else "protected")
    assert step.register("rflags") == 0x046 | 0x7000 | 0x200000
    assert step.pushes == []


SYSEXITS: list[tuple[str, str, Model, int, str]] = [
    # mode, instruction, model, what is added to IA32_SYSENTER_CS, mode then
    ("protected", "sysexit", INTEL, 16, "protected"),
    ("protected", "sysexit", AMD, 16, "protected"),
    ("long", "o64 sysexit", INTEL, 32, "64-bit"),
    ("long", "sysexit", INTEL, 16, "compatibility"),
    ("compatibility", "sysexit", INTEL, 16, "compatibility"),
]


@pytest.mark.parametrize(("mode", "instruction", "model", "added", "mode_then"), SYSEXITS)
def test_sysexit(mode: str, instruction: str, model: Model, added: int, mode_then: str) -> None:
    scene = good(mode, model)
    scene.machine.set("rdx", HIGH | TARGET)
    scene.machine.set("rcx", HIGH | SYSTEM_ESP)
    scene.machine.set("rflags", 0x46)
    step = scene.step(instruction)
    wide = mode_then == "64-bit"
    kept = HIGH if wide else 0
    cs = SYSTEM_CS + added | 3
    assert_enters(step, cs=cs, rip=kept | TARGET, cpl=3, ss=cs + 8, rsp=kept | SYSTEM_ESP)
    assert_flat(step, code=FLAT_CODE_64 if wide else FLAT_CODE_32, dpl=3)
    assert scene.machine.mode == mode_then
    assert step.register("rflags") == 0x46


def test_sysexit_to_32_bits_does_not_ask_for_canonical_addresses() -> None:
    scene = good("long", INTEL)
    scene.machine.set("rdx", BAD | TARGET)
    scene.machine.set("rcx", BAD | SYSTEM_ESP)
    assert_enters(scene.step("sysexit"), cs=SYSTEM_CS + 16 | 3, rip=TARGET, cpl=3, rsp=SYSTEM_ESP)


# --- SYSCALL ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cpl", [0, 3])
@pytest.mark.parametrize(
    ("mode", "model", "entry"),
    [
        ("long", INTEL, HIGH | TARGET),
        ("long", AMD, HIGH | TARGET),
        ("compatibility", AMD, HIGH | TARGET + 0x100),  # CSTAR
    ],
    ids=["Intel", "AMD", "AMD compatibility mode"],
)
def test_syscall(mode: str, model: Model, entry: int, cpl: int) -> None:
    scene = good(mode, model, cpl)
    scene.machine.set("rflags", 0x3246 | 0x200000)
    scene.machine.set("fmask", 0x2200 | 0x40)
    step = scene.step("syscall")
    assert_enters(step, cs=SYSCALL_CS, rip=entry, cpl=0, ss=SYSCALL_CS + 8, rsp=STACK[cpl])
    assert_flat(step, code=FLAT_CODE_64, dpl=0)
    assert scene.machine.mode == "64-bit"
    assert (step.register("rcx"), step.register("r11")) == (CODE_AT + 2, 0x3246 | 0x200000)
    assert step.register("rflags") == 0x1006 | 0x200000
    assert step.pushes == []


def test_syscall_on_amd_in_legacy_mode() -> None:
    """EIP is STAR's low half; IF is cleared, R11 and the mask play no part."""
    scene = good("protected", AMD, 3)
    scene.machine.set("rflags", 0x246)
    scene.machine.set("fmask", 0xFFFFFFFF)
    step = scene.step("syscall")
    assert_enters(step, cs=SYSCALL_CS, rip=TARGET, cpl=0, ss=SYSCALL_CS + 8, rsp=STACK[3])
    assert_flat(step, code=FLAT_CODE_32, dpl=0)
    assert (step.register("rcx"), step.register("r11")) == (CODE_AT + 2, 2)
    assert step.register("rflags") == 0x046


@pytest.mark.parametrize("model", [INTEL, AMD], ids=["Intel", "AMD"])
def test_syscall_clears_rpl_in_cs_but_only_adds_to_ss(model: Model) -> None:
    scene = good("long", model, 3)
    scene.machine.set("star", (SYSCALL_CS | 3) << 32)
    step = scene.step("syscall")
    assert_enters(step, cs=SYSCALL_CS, rip=HIGH | TARGET, cpl=0, ss=(SYSCALL_CS | 3) + 8)


def test_no_flag_survives_a_full_mask() -> None:
    scene = good("long", INTEL, 3)
    scene.machine.set("fmask", 0xFFFFFFFF)
    scene.machine.set("rflags", 0x200AD7)
    assert scene.step("syscall").register("rflags") == 2


# --- SYSRET ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [INTEL, AMD], ids=["Intel", "AMD"])
@pytest.mark.parametrize(("instruction", "wide"), [("o64 sysret", True), ("sysret", False)])
def test_sysret(instruction: str, wide: bool, model: Model) -> None:
    scene = good("long", model)
    scene.machine.set("rcx", HIGH | TARGET)
    scene.machine.set("r11", 0xFFFF_FFFF_FFFF_FEFF)  # all but TF
    step = scene.step(instruction)
    cs = (SYSRET_CS + 16 if wide else SYSRET_CS) | 3
    rip = HIGH | TARGET if wide else TARGET
    assert_enters(step, cs=cs, rip=rip, cpl=3, ss=SYSRET_CS + 8, rsp=STACK[0])
    assert_flat(step, code=FLAT_CODE_64 if wide else FLAT_CODE_32, dpl=3, stack=None)
    assert scene.machine.mode == ("64-bit" if wide else "compatibility")
    assert step.register("rflags") == 0x3C7ED7 | 2  # RF, VM and what is reserved are clear


@pytest.mark.parametrize("instruction", ["o64 sysret", "sysret"])
def test_sysret_loads_the_stack_segment_on_intel(instruction: str) -> None:
    scene = good("long", INTEL)
    scene.machine.set("star", (SYSRET_CS & ~3) << 48)
    scene.machine.set_segment("ss", 0, 0, 0, 0)
    step = scene.step(instruction)
    assert step.selector("ss") == SYSRET_CS + 8, "RPL is forced to 3"
    assert_flat(step, code=FLAT_CODE_64 if "o64" in instruction else FLAT_CODE_32, dpl=3)


@pytest.mark.parametrize("instruction", ["o64 sysret", "sysret"])
def test_sysret_changes_the_selector_of_ss_alone_on_amd(instruction: str) -> None:
    scene = good("long", AMD)
    scene.machine.set("star", (SYSRET_CS & ~3) << 48)
    scene.machine.set_segment("ss", 0, 0x1234, 0x5678, 0x0093)
    step = scene.step(instruction)
    assert step.selector("ss") == (SYSRET_CS & ~3) + 8, "with the RPL that STAR has"
    assert step.selector("cs") & 3 == 3
    ss = scene.machine.segment("ss")
    assert (ss["base"], ss["limit"]) == (0x1234, 0x5678)
    assert ss["attributes"] & ~0x60 == 0x0093


@pytest.mark.parametrize(("mode", "mode_then"), [("protected", "protected"), ("compatibility", "compatibility")])
def test_sysret_on_amd_outside_64_bit_mode(mode: str, mode_then: str) -> None:
    """IF becomes 1; R11 is not read."""
    scene = good(mode, AMD)
    scene.machine.set("r11", 0x8D5)
    scene.machine.set("rflags", 0x46)
    step = scene.step("sysret")
    assert_enters(step, cs=SYSRET_CS, rip=TARGET, cpl=3, ss=SYSRET_CS + 8, rsp=STACK[0])
    assert_flat(step, code=FLAT_CODE_32, dpl=3, stack=None)
    assert step.register("rflags") == 0x246
    assert scene.machine.mode == mode_then


def test_a_bad_return_address_faults_in_ring_0_on_intel() -> None:
    scene = good("long", INTEL)
    scene.machine.set("rcx", BAD)
    scene.machine.set("rsp", STACK[3])  # the user's stack, as a kernel has it before SYSRET
    step = scene.step("o64 sysret")
    assert step.faults == [(13, 0, "sysret.pointer_canonical")]
    frame = dict(step.pushes)
    assert (frame["cs"], frame["instruction_pointer"], frame["ss"]) == (CODE0, CODE_AT, DATA0)
    assert STACK[3] - 0x40 < step.register("rsp") < STACK[3]


def test_a_bad_return_address_faults_in_ring_3_on_amd() -> None:
    scene = good("long", AMD)
    scene.machine.set("rcx", BAD)
    scene.machine.set("rsp", STACK[3])
    step = scene.step("o64 sysret", instructions=2)
    assert [fault[:2] for fault in step.faults] == [(13, 0)]
    frame = dict(step.pushes)
    assert (frame["cs"], frame["instruction_pointer"], frame["ss"]) == (SYSRET_CS + 16, BAD, SYSRET_CS + 8)
    assert STACK[0] - 0x40 < step.register("rsp") < STACK[0]


def test_there_and_back() -> None:
    scene = good("long", INTEL, 3)
    scene.machine.set("lstar", TARGET)
    scene.machine.set("fmask", 0x200)
    scene.machine.set("rflags", 0x246)
    scene.write(TARGET, b"\x48\x0f\x07")
    step = scene.step("syscall", instructions=2)
    assert_enters(step, cs=SYSRET_CS + 16, rip=step.next_rip, cpl=3, ss=SYSRET_CS + 8, rsp=STACK[3])
    assert step.register("rflags") == 0x246


# --- SWAPGS ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [INTEL, AMD], ids=["Intel", "AMD"])
def test_swapgs(model: Model) -> None:
    scene = Scene("long", model=model)
    scene.machine.set("gs_base", 0x1111_0000)
    scene.machine.set("kernel_gs_base", 0xFFFF_8000_0000_2000)
    step = scene.step(SWAPGS)
    assert_enters(step, cs=CODE0, rip=CODE_AT + 3, cpl=0)
    assert (step.register("gs_base"), step.register("kernel_gs_base")) == (0xFFFF_8000_0000_2000, 0x1111_0000)
    assert step.selector("gs") == DATA3


SWAPGS_FAULTS: list[tuple[str, int, str, int | None, str]] = [
    # mode, CPL, vector, error code, check
    ("compatibility", 0, "#UD", None, "swapgs.mode_allows"),
    ("protected", 0, "#UD", None, "swapgs.mode_allows"),
    ("compatibility", 3, "#UD", None, "swapgs.mode_allows"),  # before the privilege
    ("long", 3, "#GP", 0, "swapgs.from_ring_0"),
    ("long", 1, "#GP", 0, "swapgs.from_ring_0"),
]


@pytest.mark.parametrize("model", [INTEL, AMD], ids=["Intel", "AMD"])
@pytest.mark.parametrize(("mode", "cpl", "vector", "error", "check"), SWAPGS_FAULTS)
def test_swapgs_fault(mode: str, cpl: int, vector: str, error: int | None, check: str, model: Model) -> None:
    scene = Scene(mode, cpl=cpl, model=model)
    scene.machine.set("gs_base", 0x1111_0000)
    step = scene.step(SWAPGS)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)
    assert (step.register("gs_base"), step.register("kernel_gs_base")) == (0x1111_0000, 0)


def test_the_code_that_sysret_returns_to_can_use_the_stack_on_intel() -> None:
    scene = good("long", INTEL)
    scene.machine.set_segment("ss", 0, 0, 0, 0)
    scene.machine.set("rcx", TARGET)
    scene.write(TARGET, b"\x50")  # push eax
    step = scene.step("sysret", instructions=2)
    assert_enters(step, cs=SYSRET_CS, rip=TARGET + 1, cpl=3, rsp=STACK[0] - 4)


def test_on_amd_a_null_stack_segment_stays_unusable_in_compatibility_mode() -> None:
    scene = good("long", AMD)
    scene.machine.set_segment("ss", 0, 0, 0, 0)
    scene.machine.set("rcx", TARGET)
    scene.write(TARGET, b"\x50")  # push eax
    step = scene.step("sysret", instructions=2)
    assert step.faults, "the selector looks right, the hidden part is not"
    assert ("cs", SYSRET_CS) in step.pushes
