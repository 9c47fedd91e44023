"""RDMSR, WRMSR, RDTSC, RDTSCP, CPUID, RDFSBASE...WRGSBASE (Intel SDM vol. 2; vol. 4): every check both ways."""

from __future__ import annotations

import pytest

from kit.changes import Change, changes, nothing, register
from kit.expect import assert_faults, assert_interrupts, assert_runs
from kit.scene import AMD, INTEL, Scene, Step

TSD, FSGSBASE = 1 << 2, 1 << 16
SCE, LME, LMA, NXE = 1, 1 << 8, 1 << 10, 1 << 11
PLATFORM_ID, APIC_BASE, TSC, MICROCODE, SYSENTER_CS, SYSENTER_ESP, SYSENTER_EIP = (
    0x17,
    0x1B,
    0x10,
    0x8B,
    0x174,
    0x175,
    0x176,
)
MISC_ENABLE, PAT, EFER, STAR, LSTAR, CSTAR, FMASK = 0x1A0, 0x277, *range(0xC0000080, 0xC0000085)
FS_BASE, GS_BASE, KERNEL_GS_BASE, TSC_AUX = range(0xC0000100, 0xC0000104)
NOT_CANONICAL = 1 << 47
HIGH = 0xFFFF_8000_0000_1000


def write_msr(scene: Scene, number: int, value: int) -> Step:
    changes(register("rcx", number), register("rax", value & 0xFFFFFFFF), register("rdx", value >> 32))(scene)
    return scene.step("wrmsr")


def read_msr(scene: Scene, number: int) -> Step:
    scene.machine.set("rcx", number)
    return scene.step("rdmsr")


def value_of(step: Step) -> int:
    return step.register("rdx") << 32 | step.register("rax")


WRITE_FAULTS: list[tuple[str, int, int, int, Change, str]] = [
    # mode, CPL, register, value, change, check: always #GP(0)
    ("protected", 3, EFER, SCE, nothing, "wrmsr.ring_0_only"),
    ("long", 1, 0x12345, 0, nothing, "wrmsr.ring_0_only"),
    ("protected", 0, 0x12345, 0, nothing, "msr.exists"),
    ("long", 0, 0xC0001234, 0, nothing, "msr.exists"),
    ("long", 0, EFER, SCE | LME | LMA | 1 << 1, nothing, "msr.reserved_clear"),
    ("long", 0, EFER, SCE | LME | LMA | 1 << 63, nothing, "msr.reserved_clear"),
    ("long", 0, FMASK, 1 << 32, nothing, "msr.reserved_clear"),
    ("long", 0, TSC_AUX, 1 << 32, nothing, "msr.reserved_clear"),
    ("long", 0, APIC_BASE, 0xFEE00900 | 1 << 9, nothing, "msr.reserved_clear"),
    ("long", 0, APIC_BASE, 0xFEE00900 | 1, nothing, "msr.reserved_clear"),
    ("long", 0, APIC_BASE, 0xFEE00900 | 1 << 39, nothing, "msr.reserved_clear"),
    ("long", 0, EFER, SCE | LMA, nothing, "msr.long_mode_stays_while_paging"),
    ("long", 0, SYSENTER_ESP, NOT_CANONICAL, nothing, "msr.canonical"),
    ("long", 0, SYSENTER_EIP, 1 << 63, nothing, "msr.canonical"),
    ("long", 0, LSTAR, NOT_CANONICAL, nothing, "msr.canonical"),
    ("long", 0, CSTAR, NOT_CANONICAL, nothing, "msr.canonical"),
    ("long", 0, FS_BASE, 0xFFFF_7FFF_FFFF_FFFF, nothing, "msr.canonical"),
    ("long", 0, GS_BASE, NOT_CANONICAL, nothing, "msr.canonical"),
    ("long", 0, KERNEL_GS_BASE, NOT_CANONICAL, nothing, "msr.canonical"),
    *(("protected", 0, PAT, memory_type << 56, nothing, "msr.memory_types_valid") for memory_type in (2, 3, 8, 0x80)),
]


@pytest.mark.parametrize(("mode", "cpl", "number", "value", "change", "check"), WRITE_FAULTS)
def test_write_fault(mode: str, cpl: int, number: int, value: int, change: Change, check: str) -> None:
    scene = Scene(mode, cpl=cpl)
    change(scene)
    step = write_msr(scene, number, value)
    assert_faults(step, "#GP", error=0, check=check)
    assert_interrupts(step)
    for name in ("efer", "star", "lstar", "cstar", "fmask", "kernel_gs_base", "fs_base", "gs_base", "tsc_aux"):
        assert step.register(name) == step.registers_before[name]


def test_lme_cannot_be_set_while_paging_is_on() -> None:
    step = write_msr(Scene("protected", paging=True), EFER, LME)
    assert_faults(step, "#GP", error=0, check="msr.long_mode_stays_while_paging")


@pytest.mark.parametrize(
    ("mode", "cpl", "number", "check"),
    [
        ("protected", 3, TSC, "rdmsr.ring_0_only"),
        ("compatibility", 3, EFER, "rdmsr.ring_0_only"),
        ("long", 2, 0x12345, "rdmsr.ring_0_only"),
        ("long", 0, 0x12345, "msr.exists"),
    ],
)
def test_read_fault(mode: str, cpl: int, number: int, check: str) -> None:
    step = read_msr(Scene(mode, cpl=cpl), number)
    assert_faults(step, "#GP", error=0, check=check)
    assert_interrupts(step)


@pytest.mark.parametrize(
    ("number", "without"),
    [
        (SYSENTER_CS, {"sysenter": False}),
        (TSC_AUX, {"rdtscp": False}),
        (STAR, {"syscall": False, "long_mode": False}),
        (FS_BASE, {"long_mode": False}),
        (EFER, {"syscall": False, "long_mode": False, "nx": False}),
        (MISC_ENABLE, {"vendor": "amd"}),
    ],
)
def test_registers_exist_with_their_feature(number: int, without: dict[str, object]) -> None:
    assert_runs(read_msr(Scene("protected"), number))
    step = read_msr(Scene("protected", model=INTEL | without), number)
    assert_faults(step, "#GP", error=0, check="msr.exists")


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (SYSENTER_CS, 0x1234),
        (SYSENTER_ESP, HIGH),
        (SYSENTER_EIP, 0x7FFF_FFFF_FFFF),
        (STAR, 0x0123_4567_89AB_CDEF),
        (LSTAR, HIGH),
        (CSTAR, HIGH),
        (FMASK, 0xFFFFFFFF),
        (FS_BASE, HIGH),
        (GS_BASE, 0x1234),
        (KERNEL_GS_BASE, HIGH),
        (TSC_AUX, 0xFFFFFFFF),
        (PAT, 0x0001_0405_0607_0100),
        (APIC_BASE, 0x7F_FEE0_0900),
        (EFER, SCE | LME | LMA | NXE),
    ],
)
@pytest.mark.parametrize("mode", ["long", "compatibility"])
def test_what_is_written_is_read(mode: str, number: int, value: int) -> None:
    scene = Scene(mode)
    assert_runs(write_msr(scene, number, value))
    scene.machine.set("rdx", 0xFFFF_FFFF_FFFF_FFFF)
    step = read_msr(scene, number)
    assert_runs(step)
    assert value_of(step) == value


def test_lma_is_read_only() -> None:
    scene = Scene("protected")
    assert_runs(write_msr(scene, EFER, LME | SCE))
    assert scene.machine.get("efer") == LME | SCE
    assert scene.machine.mode == "protected"
    scene = Scene("long")
    assert_runs(write_msr(scene, EFER, LME))
    assert scene.machine.get("efer") == LME | LMA


@pytest.mark.parametrize(("vendor", "number"), [(INTEL, PLATFORM_ID), (INTEL, MICROCODE), (AMD, MICROCODE)])
def test_registers_about_the_processor_itself(vendor: dict[str, object], number: int) -> None:
    step = read_msr(Scene("protected", model=vendor), number)
    assert_runs(step)
    assert value_of(step) == 0


def test_bases_take_effect() -> None:
    scene = Scene("long")
    scene.write(0x9010, b"\x78\x56\x34\x12")
    assert_runs(write_msr(scene, FS_BASE, 0x9000))
    step = scene.step("mov eax, [fs:0x10]")
    assert_runs(step)
    assert step.register("rax") == 0x12345678


# --- RDTSC, RDTSCP ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["rdtsc", "rdtscp"])
@pytest.mark.parametrize(
    ("mode", "cpl", "cr4", "permitted"),
    [
        ("protected", 3, TSD, False),
        ("long", 1, TSD, False),
        ("protected", 3, 0, True),
        ("long", 0, TSD, True),
        ("real", 0, TSD, True),
    ],
)
def test_time_stamp_disable(source: str, mode: str, cpl: int, cr4: int, permitted: bool) -> None:
    scene = Scene(mode, cpl=cpl)
    scene.machine.set("cr4", scene.machine.get("cr4") | cr4)
    step = scene.step(source)
    if permitted:
        assert_runs(step)
        assert ("time_stamp.permitted", True) in step.checks
    else:
        assert_faults(step, "#GP", error=0, check="time_stamp.permitted")


def test_the_time_stamp_goes_on_from_what_was_written() -> None:
    scene = Scene("protected")
    assert_runs(write_msr(scene, TSC, 1 << 40))
    first = value_of(scene.step("rdtsc"))
    scene.machine.set("rax", 0)
    second = value_of(scene.step("rdtsc"))
    assert 1 << 40 <= first <= second < (1 << 40) + 100_000


def test_rdtscp_reads_tsc_aux() -> None:
    scene = Scene("long", cpl=3)
    scene.machine.set("tsc_aux", 0x89ABCDEF)
    assert scene.step("rdtscp").register("rcx") == 0x89ABCDEF


def test_rdtscp_does_not_exist_everywhere() -> None:
    scene = Scene("protected", model=INTEL | {"rdtscp": False})
    assert_faults(scene.step("rdtscp"), "#UD", error=None, check="instruction.opcode_defined")


# --- CPUID -----------------------------------------------------------------------------------------------------------


def test_cpuid_answers_what_the_model_lists() -> None:
    leaves = [{"leaf": 7, "subleaf": 1, "eax": 1, "ebx": 2, "ecx": 3, "edx": 0x89ABCDEF}]
    for subleaf, expected in ((1, (1, 2, 3, 0x89ABCDEF)), (0, (0, 0, 0, 0))):
        scene = Scene("long", cpl=3, model=INTEL | {"cpuid": leaves})
        changes(register("rax", 0xFFFF_0000_0000_0007), register("rcx", subleaf))(scene)
        step = scene.step("cpuid")
        assert_runs(step)
        assert tuple(step.register(name) for name in ("rax", "rbx", "rcx", "rdx")) == expected


# --- RDFSBASE, RDGSBASE, WRFSBASE, WRGSBASE --------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["rdfsbase rax", "rdgsbase eax", "wrfsbase rax", "wrgsbase eax"])
def test_fsgsbase_must_be_enabled(source: str) -> None:
    assert_faults(Scene("long", cpl=3).step(source), "#UD", error=None, check="fsgsbase.enabled")
    scene = Scene("long", cpl=3)
    scene.machine.set("cr4", scene.machine.get("cr4") | FSGSBASE)
    assert_runs(scene.step(source))


@pytest.mark.parametrize("name", ["fs", "gs"])
def test_fsgsbase(name: str) -> None:
    def scene() -> Scene:
        made = Scene("long", cpl=3)
        made.machine.set("cr4", made.machine.get("cr4") | FSGSBASE)
        return made

    bad = scene()
    bad.machine.set("rax", NOT_CANONICAL)
    step = bad.step(f"wr{name}base rax")
    assert_faults(step, "#GP", error=0, check="fsgsbase.canonical")
    assert_interrupts(step)

    good = scene()
    good.machine.set("rax", HIGH)
    step = good.step(f"wr{name}base rax\n rd{name}base rbx\n rd{name}base ecx", instructions=3)
    assert_runs(step)
    assert (step.register("rbx"), step.register("rcx")) == (HIGH, HIGH & 0xFFFFFFFF)
    assert good.machine.get(f"{name}_base") == HIGH

    narrow = scene()
    narrow.machine.set("rax", 0xFFFF_FFFF_8000_0000)
    assert_runs(narrow.step(f"wr{name}base eax"))  # the upper half of the base becomes 0
    assert narrow.machine.get(f"{name}_base") == 0x80000000


@pytest.mark.parametrize("mode", ["protected", "compatibility"])
def test_fsgsbase_exists_in_64_bit_mode_only(mode: str) -> None:
    scene = Scene(mode)
    scene.machine.set("cr4", scene.machine.get("cr4") | FSGSBASE)
    assert_faults(scene.step(b"\xf3\x0f\xae\xc0"), "#UD", error=None, check="instruction.opcode_defined")
