"""LLDT, LTR, LGDT, LIDT, and LAR, LSL, VERR, VERW, SGDT...SMSW (Intel SDM vol. 2): every check both ways."""

from __future__ import annotations

import struct

import pytest

from kit.changes import Change, changes, describes, no_ldt, nothing, register
from kit.descriptors import (
    CALL_GATE,
    CALL_GATE16,
    CODE,
    CODE_CONFORMING,
    CODE_EXECUTE_ONLY,
    DATA,
    DATA_READ_ONLY,
    INTERRUPT_GATE,
    LDT,
    TASK_GATE,
    TSS16,
    TSS16_BUSY,
    TSS32,
    TSS32_BUSY,
    gate,
    segment,
    system,
)
from kit.expect import assert_faults, assert_interrupts, assert_runs
from kit.scene import CODE0, DATA0, DATA3, FREE, GDT, GDT_LIMIT, IDT, LDT_SELECTOR, TSS_SELECTOR, Scene, Step

UMIP = 1 << 11
ZF = 1 << 6
AREA = 0x9000


def load(scene: Scene, mnemonic: str, selector: int) -> Step:
    scene.machine.set("rax", selector)
    return scene.step(f"{mnemonic} ax")


def upper(data: bytes, type_: int) -> bytes:
    """A 16-byte descriptor whose second half has something where a descriptor has its type."""
    low, high = struct.unpack("<QQ", data)
    return struct.pack("<QQ", low, high | type_ << 40)


WIDE_LDT = system(LDT, 0x5000, 0x3F, wide=True)
WIDE_TSS = system(TSS32, 0x5000, 0x67, wide=True)

FAULTS: list[tuple[str, str, int, int, Change, str, int | None, str]] = [
    # mnemonic, mode, CPL, selector, change, vector, error code, check
    ("lldt", "real", 0, LDT_SELECTOR, nothing, "#UD", None, "lldt.protected_mode_only"),
    ("lldt", "protected", 3, LDT_SELECTOR, nothing, "#GP", 0, "lldt.ring_0_only"),
    ("lldt", "long", 1, 0, nothing, "#GP", 0, "lldt.ring_0_only"),
    ("lldt", "protected", 0, LDT_SELECTOR | 4, nothing, "#GP", LDT_SELECTOR | 4, "ldt_load.selector_in_gdt"),
    ("lldt", "protected", 0, GDT_LIMIT + 1, nothing, "#GP", GDT_LIMIT + 1, "ldt_load.selector_in_table"),
    ("lldt", "protected", 0, FREE, register("gdtr_limit", FREE + 6), "#GP", FREE, "ldt_load.selector_in_table"),
    ("lldt", "long", 0, FREE, register("gdtr_limit", FREE + 14), "#GP", FREE, "ldt_load.selector_in_table"),
    ("lldt", "protected", 0, DATA0, nothing, "#GP", DATA0, "ldt_load.is_ldt"),
    ("lldt", "protected", 0, TSS_SELECTOR | 3, nothing, "#GP", TSS_SELECTOR, "ldt_load.is_ldt"),
    ("lldt", "long", 0, TSS_SELECTOR, nothing, "#GP", TSS_SELECTOR, "ldt_load.is_ldt"),
    ("lldt", "protected", 0, FREE, describes(system(LDT, 0, 7, present=False)), "#NP", FREE, "ldt_load.present"),
    ("ltr", "real", 0, TSS_SELECTOR, nothing, "#UD", None, "ltr.protected_mode_only"),
    ("ltr", "protected", 1, TSS_SELECTOR, nothing, "#GP", 0, "ltr.ring_0_only"),
    ("ltr", "long", 3, 0, nothing, "#GP", 0, "ltr.ring_0_only"),
    ("ltr", "protected", 0, 0, nothing, "#GP", 0, "task_load.selector_not_null"),
    ("ltr", "long", 0, 3, nothing, "#GP", 0, "task_load.selector_not_null"),
    ("ltr", "protected", 0, TSS_SELECTOR | 4, nothing, "#GP", TSS_SELECTOR | 4, "task_load.selector_in_gdt"),
    ("ltr", "protected", 0, GDT_LIMIT + 1, nothing, "#GP", GDT_LIMIT + 1, "task_load.selector_in_table"),
    ("ltr", "long", 0, FREE, register("gdtr_limit", FREE + 14), "#GP", FREE, "task_load.selector_in_table"),
    ("ltr", "protected", 0, TSS_SELECTOR, nothing, "#GP", TSS_SELECTOR, "task_load.is_available_tss"),  # busy
    ("ltr", "protected", 0, LDT_SELECTOR, nothing, "#GP", LDT_SELECTOR, "task_load.is_available_tss"),
    ("ltr", "protected", 0, CODE0, nothing, "#GP", CODE0, "task_load.is_available_tss"),
    ("ltr", "long", 0, FREE, describes(system(TSS16, 0, 0x67, wide=True)), "#GP", FREE, "task_load.is_available_tss"),
    ("ltr", "compatibility", 0, FREE, describes(system(TSS16, 0, 43)), "#GP", FREE, "task_load.is_available_tss"),
    ("ltr", "long", 0, FREE, describes(upper(WIDE_TSS, 2)), "#GP", FREE, "task_load.upper_type_zero"),
    ("ltr", "protected", 0, FREE, describes(system(TSS32, 0, 0x67, present=False)), "#NP", FREE, "task_load.present"),
    ("ltr", "protected", 0, FREE, describes(system(TSS16, 0, 43, present=False)), "#NP", FREE, "task_load.present"),
]


@pytest.mark.parametrize(("mnemonic", "mode", "cpl", "selector", "change", "vector", "error", "check"), FAULTS)
def test_fault(
    mnemonic: str, mode: str, cpl: int, selector: int, change: Change, vector: str, error: int | None, check: str
) -> None:
    scene = Scene(mode, cpl=cpl)
    change(scene)
    descriptors = scene.read(GDT + TSS_SELECTOR, GDT_LIMIT + 1 - TSS_SELECTOR)
    before = scene.machine.segment("ldtr"), scene.machine.segment("tr")
    step = load(scene, mnemonic, selector)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)
    assert (scene.machine.segment("ldtr"), scene.machine.segment("tr")) == before
    assert scene.read(GDT + TSS_SELECTOR, GDT_LIMIT + 1 - TSS_SELECTOR) == descriptors


@pytest.mark.parametrize("mode", ["protected", "compatibility"])
def test_lldt_takes_8_bytes(mode: str) -> None:
    scene = Scene(mode)
    scene.machine.set("gdtr_limit", FREE + 7)
    scene.descriptor(FREE, system(LDT, 0x98765432, 0xABC) + b"\xff" * 8)
    assert_runs(load(scene, "lldt", FREE | 2))
    assert scene.machine.segment("ldtr") == {
        "selector": FREE | 2,
        "base": 0x98765432,
        "limit": 0xABC,
        "attributes": 0x82,
    }


def test_lldt_takes_16_bytes_in_64_bit_mode() -> None:
    scene = Scene("long")
    scene.descriptor(FREE, system(LDT, 0xFFFF_8765_98765432, 0xABC, wide=True))
    assert_runs(load(scene, "lldt", FREE))
    assert scene.machine.segment("ldtr")["base"] == 0xFFFF_8765_98765432


@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize("selector", [0, 3])
def test_lldt_of_null_marks_the_ldt_as_invalid(mode: str, selector: int) -> None:
    scene = Scene(mode)
    assert_runs(load(scene, "lldt", selector))
    assert scene.machine.segment("ldtr")["selector"] == selector
    scene.machine.set("rip", 0x8100)
    scene.machine.set("rax", 0x0C)
    assert_faults(scene.step("mov ds, ax"), "#GP", error=0x0C, check="data_load.ldt_loaded")


@pytest.mark.parametrize(("mode", "type_"), [("protected", TSS32), ("protected", TSS16), ("compatibility", TSS32)])
def test_ltr_takes_8_bytes_and_marks_the_task_busy(mode: str, type_: int) -> None:
    scene = Scene(mode)
    scene.descriptor(FREE, system(type_, 0x12345678, 0x1234) + b"\xff" * 8)
    scene.machine.set("gdtr_limit", FREE + 7)
    assert_runs(load(scene, "ltr", FREE))
    busy = type_ | 2
    assert scene.machine.segment("tr") == {
        "selector": FREE,
        "base": 0x12345678,
        "limit": 0x1234,
        "attributes": 0x80 | busy,
    }
    assert scene.read(GDT + FREE + 5, 1)[0] == 0x80 | busy


def test_ltr_takes_16_bytes_in_64_bit_mode() -> None:
    scene = Scene("long")
    scene.descriptor(FREE, system(TSS32, 0xFFFF_8765_98765432, 0x67, wide=True))
    assert_runs(load(scene, "ltr", FREE))
    assert scene.machine.segment("tr")["base"] == 0xFFFF_8765_98765432
    assert scene.read(GDT + FREE + 5, 1)[0] == 0x8B


def test_the_old_task_stays_busy() -> None:
    scene = Scene("protected")
    scene.descriptor(FREE, system(TSS32, 0x5000, 0x67))
    assert_runs(load(scene, "ltr", FREE))
    assert scene.read(GDT + TSS_SELECTOR + 5, 1)[0] == 0x8B


# --- LGDT and LIDT ---------------------------------------------------------------------------------------------------


def pseudo_descriptor(scene: Scene, base: int, limit: int) -> None:
    scene.write(AREA, limit.to_bytes(2, "little") + base.to_bytes(8, "little"))


@pytest.mark.parametrize("name", ["gdt", "idt"])
@pytest.mark.parametrize(
    ("mode", "cpl", "base", "check"),
    [
        ("protected", 3, 0x1234, "lgdt.ring_0_only"),
        ("compatibility", 1, 0x1234, "lgdt.ring_0_only"),
        ("long", 3, 0x1234, "lgdt.ring_0_only"),
        ("long", 0, 1 << 47, "table_register.base_canonical"),
    ],
)
def test_table_register_fault(name: str, mode: str, cpl: int, base: int, check: str) -> None:
    scene = Scene(mode, cpl=cpl)
    pseudo_descriptor(scene, base, 0xFF)
    before = scene.machine.get(f"{name}r_base")
    step = scene.step(f"l{name} [{AREA:#x}]")
    assert_faults(step, "#GP", error=0, check=check)
    assert scene.machine.get(f"{name}r_base") == before


@pytest.mark.parametrize("name", ["gdt", "idt"])
@pytest.mark.parametrize(
    ("mode", "prefix", "base", "loaded"),
    [
        ("real", "", 0x12345678, 0x345678),  # a 16-bit operand: 24 bits of the base
        ("real", "o32 ", 0x12345678, 0x12345678),
        ("protected", "", 0xFEDCBA98, 0xFEDCBA98),
        ("protected", "o16 ", 0xFEDCBA98, 0xDCBA98),
        ("compatibility", "", 0x1_FEDCBA98, 0xFEDCBA98),
        ("long", "", 0xFFFF_8000_0000_0000, 0xFFFF_8000_0000_0000),
    ],
)
def test_table_registers(name: str, mode: str, prefix: str, base: int, loaded: int) -> None:
    scene = Scene(mode)
    pseudo_descriptor(scene, base, 0x1234)
    assert_runs(scene.step(f"{prefix}l{name} [{AREA:#x}]"))
    assert (scene.machine.get(f"{name}r_base"), scene.machine.get(f"{name}r_limit")) == (loaded, 0x1234)


# --- SGDT, SIDT, SLDT, STR, SMSW -------------------------------------------------------------------------------------

STORES = [f"sgdt [{AREA:#x}]", f"sidt [{AREA:#x}]", "sldt eax", "str eax", "smsw eax"]


@pytest.mark.parametrize("source", STORES)
@pytest.mark.parametrize("mode", ["protected", "long"])
def test_user_mode_instruction_prevention(source: str, mode: str) -> None:
    scene = Scene(mode, cpl=3)
    scene.machine.set("cr4", scene.machine.get("cr4") | UMIP)
    assert_faults(scene.step(source), "#GP", error=0, check="umip.permitted")
    for cpl, umip in ((0, UMIP), (3, 0)):
        scene = Scene(mode, cpl=cpl)
        scene.machine.set("cr4", scene.machine.get("cr4") | umip)
        step = scene.step(source)
        assert_runs(step)
        assert ("umip.permitted", True) in step.checks


def test_what_is_stored() -> None:
    scene = Scene("protected", cpl=3)
    assert_runs(scene.step(f"sgdt [{AREA:#x}]\n sidt [{AREA + 8:#x}]\n sldt ebx\n str ecx\n smsw edx", instructions=5))
    assert scene.read(AREA, 6) == struct.pack("<HI", GDT_LIMIT, GDT)
    assert scene.read(AREA + 8, 6) == struct.pack("<HI", 256 * 8 - 1, IDT)
    m = scene.machine
    assert (m.get("rbx"), m.get("rcx"), m.get("rdx")) == (LDT_SELECTOR, TSS_SELECTOR, m.get("cr0"))


@pytest.mark.parametrize("source", ["sldt ax", "str ax"])
def test_segments_that_real_mode_does_not_have(source: str) -> None:
    assert_faults(Scene("real").step(source), "#UD", error=None, check="instruction.opcode_defined")


# --- LAR, LSL, VERR, VERW --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mnemonic", ["lar bx, ax", "lsl bx, ax", "verr ax", "verw ax"])
def test_inspection_needs_protected_mode(mnemonic: str) -> None:
    assert_faults(Scene("real").step(mnemonic), "#UD", error=None, check="inspect.protected_mode_only")
    step = Scene("protected", cpl=3).step(mnemonic)
    assert_runs(step)
    assert ("inspect.protected_mode_only", True) in step.checks


# Which types of system descriptors LAR and LSL accept (vol. 2, LAR and LSL, Operation): (protected mode, IA-32e mode).
ACCEPTED_BY_LAR = {
    TSS16: (True, False),
    LDT: (True, True),
    TSS16_BUSY: (True, False),
    CALL_GATE16: (True, False),
    TASK_GATE: (True, False),
    TSS32: (True, True),
    TSS32_BUSY: (True, True),
    CALL_GATE: (True, True),
}
ACCEPTED_BY_LSL = {t: modes for t, modes in ACCEPTED_BY_LAR.items() if t not in (CALL_GATE16, TASK_GATE, CALL_GATE)}


@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize("type_", range(32))
def test_types_that_inspection_accepts(mode: str, type_: int) -> None:
    long = mode == "long"
    is_segment, is_code, readable_or_writable = bool(type_ & 0x10), bool(type_ & 8), bool(type_ & 2)
    expected = {
        "lar ebx, eax": is_segment or ACCEPTED_BY_LAR.get(type_, (False, False))[long],
        "lsl ebx, eax": is_segment or ACCEPTED_BY_LSL.get(type_, (False, False))[long],
        "verr ax": is_segment and (not is_code or readable_or_writable),
        "verw ax": is_segment and not is_code and readable_or_writable,
    }
    data = segment(type_, limit=0x23456, present=False, granular=False)  # presence is not looked at
    for source, accepted in expected.items():
        scene = Scene(mode)
        scene.descriptor(FREE, data + bytes(8))
        scene.machine.set("rax", FREE)
        scene.machine.set("rbx", 0x55)
        step = scene.step(source)
        assert_runs(step)
        assert bool(step.register("rflags") & ZF) == accepted, source
        result = {"lar": type_ << 8 | 0x400000, "lsl": 0x23456}.get(source[:3])
        assert step.register("rbx") == (result if accepted and result is not None else 0x55), source


@pytest.mark.parametrize("cpl", range(4))
@pytest.mark.parametrize("dpl", range(4))
@pytest.mark.parametrize("rpl", range(4))
def test_visibility(cpl: int, dpl: int, rpl: int) -> None:
    seen = cpl <= dpl and rpl <= dpl
    for source in ("lar ebx, eax", "lsl ebx, eax", "verr ax", "verw ax"):
        for type_, expected in ((DATA, seen), (CODE_CONFORMING, True)):
            if type_ == CODE_CONFORMING and source == "verw ax":
                continue
            scene = Scene("protected", cpl=cpl)
            scene.descriptor(FREE, segment(type_, dpl=dpl))
            scene.machine.set("rax", FREE | rpl)
            step = scene.step(source)
            assert_runs(step)
            assert bool(step.register("rflags") & ZF) == expected, (source, type_)


@pytest.mark.parametrize(
    ("selector", "change"),
    [
        (0, nothing),
        (3, nothing),
        (GDT_LIMIT + 1, nothing),
        (0x0C, no_ldt),
        (0x44, nothing),
        (FREE, changes(describes(segment(DATA)), register("gdtr_limit", FREE + 6))),
    ],
)
@pytest.mark.parametrize("source", ["lar ebx, eax", "lsl ebx, eax", "verr ax", "verw ax"])
def test_selectors_that_name_nothing_clear_zf(selector: int, change: Change, source: str) -> None:
    scene = Scene("protected", cpl=0)
    change(scene)
    scene.machine.set("rax", selector)
    scene.machine.set("rflags", 2 | ZF)
    step = scene.step(source)
    assert_runs(step)
    assert step.register("rflags") & ZF == 0


def test_lsl_counts_bytes() -> None:
    scene = Scene("protected")
    scene.descriptor(FREE, segment(DATA_READ_ONLY, limit=0x12345))
    scene.machine.set("rax", FREE)
    assert scene.step("lsl ebx, eax").register("rbx") == 0x12345FFF


def test_lar_shows_attributes() -> None:
    scene = Scene("protected", cpl=3)
    scene.descriptor(FREE, segment(CODE, dpl=3, limit=0xFFFFF, base=0xFFFFFFFF))
    scene.machine.set("rax", FREE | 3)
    assert scene.step("lar ebx, eax").register("rbx") & 0xFFF0FFFF == 0x00C0FA00  # bits 19:16 are undefined
    scene.machine.set("rip", 0x8100)
    scene.machine.set("rcx", 0x11112222)
    assert scene.step("lar cx, ax").register("rcx") == 0x1111FA00


def test_gates_and_execute_only_code_cannot_be_read() -> None:
    for data in (gate(INTERRUPT_GATE, CODE0, 0), segment(CODE_EXECUTE_ONLY)):
        scene = Scene("protected")
        scene.descriptor(FREE, data)
        scene.machine.set("rax", FREE)
        assert scene.step("verr ax").register("rflags") & ZF == 0


def test_user_code_may_ask_for_its_own_segments() -> None:
    scene = Scene("long", cpl=3)
    scene.machine.set("rax", DATA3)
    assert scene.step("verw ax").register("rflags") & ZF
