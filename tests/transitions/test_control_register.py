"""Moves to and from control and debug registers, LMSW, CLTS (Intel SDM vol. 2): every check both ways."""

from __future__ import annotations

import struct

import pytest

from kit.changes import Change, changes, nothing, register, segment_register
from kit.expect import assert_faults, assert_interrupts, assert_runs
from kit.scene import AMD, CODE32_0, CODE_AT, DATA3, IDT, INTEL, PAGE_TABLES, PML4, TSS, TSS_SELECTOR, Scene

PE, MP, EM, TS, ET, NE, WP, AM = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 16, 1 << 18
NW, CD, PG = 1 << 29, 1 << 30, 1 << 31
TSD, DE, PSE, PAE, PGE, UMIP, LA57, FSGSBASE, SMEP, SMAP = (1 << bit for bit in (2, 3, 4, 5, 7, 11, 12, 16, 20, 21))
LME, LMA = 1 << 8, 1 << 10
BIT39 = 1 << 39  # the first physical address bit that the scene's processor does not have
ACCUMULATOR = {"real": "eax", "protected": "eax", "compatibility": "eax", "long": "rax"}


def about_to_page(scene: Scene) -> None:
    """Protected mode without paging, and everything in place for 4-level paging but for CR0.PG."""
    other = Scene("long")
    for at in range(PML4, PAGE_TABLES + 0x3000, 0x1000):
        scene.write(at, other.read(at, 0x1000))
    changes(register("cr4", PAE), register("efer", LME))(scene)


def pae(scene: Scene, *, pdpte: int = 1, paging: bool = True) -> None:
    """PAE paging of the first 2 MiB: four PDPTEs at PML4, the first of them good."""
    scene.write(PML4, struct.pack("<4Q", PAGE_TABLES | 1, pdpte, 0, 0))
    scene.write(PAGE_TABLES, struct.pack("<Q", (PAGE_TABLES + 0x1000) | 7))
    scene.write(PAGE_TABLES + 0x1000, b"".join(struct.pack("<Q", page << 12 | 7) for page in range(512)))
    changes(register("cr4", PAE), register("cr3", PML4), register("cr0", PG * paging | PE | ET))(scene)


def bad_pdpte(bits: int, *, paging: bool = True) -> Change:
    return lambda scene: pae(scene, pdpte=1 | bits, paging=paging)


FAULTS: list[tuple[str, int, str, int, Change, str, int | None, str]] = [
    # mode, CPL, instruction, value, change, vector, error code, check
    ("protected", 0, "mov cr1, eax", 0, nothing, "#UD", None, "control.register_exists"),
    ("protected", 0, "mov eax, cr5", 0, nothing, "#UD", None, "control.register_exists"),
    ("long", 0, "mov cr15, rax", 0, nothing, "#UD", None, "control.register_exists"),
    ("long", 0, "mov rax, cr9", 0, nothing, "#UD", None, "control.register_exists"),
    ("protected", 1, "mov eax, cr0", 0, nothing, "#GP", 0, "mov_cr.ring_0_only"),
    ("long", 3, "mov rax, cr3", 0, nothing, "#GP", 0, "mov_cr.ring_0_only"),
    ("compatibility", 3, "mov cr2, eax", 0, nothing, "#GP", 0, "mov_cr.ring_0_only"),
    ("long", 2, "mov cr8, rax", 0, nothing, "#GP", 0, "mov_cr.ring_0_only"),
    ("long", 0, "mov cr0, rax", 1 << 32 | PG | PE, nothing, "#GP", 0, "control.cr0_upper_clear"),
    ("protected", 0, "mov cr0, eax", PG, nothing, "#GP", 0, "control.paging_needs_protection"),
    ("real", 0, "mov cr0, eax", PG, nothing, "#GP", None, "control.paging_needs_protection"),
    ("protected", 0, "mov cr0, eax", PE | NW, nothing, "#GP", 0, "control.write_through_needs_cache_disable"),
    ("long", 0, "mov cr0, rax", PG | PE | NW, nothing, "#GP", 0, "control.write_through_needs_cache_disable"),
    ("protected", 0, "mov cr0, eax", PG | PE, register("efer", LME), "#GP", 0, "control.long_paging_needs_pae"),
    (
        "protected",
        0,
        "mov cr0, eax",
        PG | PE,
        changes(about_to_page, segment_register("cs", CODE32_0, 0, 0xFFFFFFFF, 0xE09B)),  # L and D
        "#GP",
        0,
        "control.long_paging_from_legacy_code",
    ),
    (
        "protected",
        0,
        "mov cr0, eax",
        PG | PE,
        changes(about_to_page, segment_register("tr", TSS_SELECTOR, TSS, 43, 0x83)),
        "#GP",
        0,
        "control.long_paging_needs_32_bit_tss",
    ),
    ("long", 0, "mov cr0, rax", PE, nothing, "#GP", 0, "control.paging_stays_in_64_bit"),
    ("long", 0, "mov cr3, rax", PML4 | BIT39, nothing, "#GP", 0, "control.cr3_reserved_clear"),
    ("long", 0, "mov cr3, rax", PML4 | 1 << 63, nothing, "#GP", 0, "control.cr3_reserved_clear"),
    ("protected", 0, "mov cr3, eax", PML4, bad_pdpte(1 << 1), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr3, eax", PML4, bad_pdpte(1 << 8), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr3, eax", PML4, bad_pdpte(BIT39), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr3, eax", PML4, bad_pdpte(1 << 63), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr0, eax", PG | PE, bad_pdpte(2, paging=False), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr0, eax", PG | PE | CD, bad_pdpte(2), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr4, eax", PAE | PGE, bad_pdpte(4), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr4, eax", PAE | PSE, bad_pdpte(4), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr4, eax", PAE | SMEP, bad_pdpte(4), "#GP", 0, "control.pdpte_reserved_clear"),
    ("protected", 0, "mov cr4, eax", 1 << 31, nothing, "#GP", 0, "control.cr4_reserved_clear"),
    ("real", 0, "mov cr4, eax", 1 << 15, nothing, "#GP", None, "control.cr4_reserved_clear"),
    ("long", 0, "mov cr4, rax", 1 << 32 | PAE, nothing, "#GP", 0, "control.cr4_reserved_clear"),
    ("long", 0, "mov cr4, rax", PGE, nothing, "#GP", 0, "control.pae_stays_in_long_mode"),
    ("compatibility", 0, "mov cr4, eax", 0, nothing, "#GP", 0, "control.pae_stays_in_long_mode"),
    ("long", 0, "mov cr8, rax", 0x10, nothing, "#GP", 0, "control.cr8_reserved_clear"),
    ("protected", 3, "lmsw ax", 0, nothing, "#GP", 0, "lmsw.ring_0_only"),
    ("long", 1, "lmsw ax", 0, nothing, "#GP", 0, "lmsw.ring_0_only"),
    ("protected", 3, "clts", 0, nothing, "#GP", 0, "clts.ring_0_only"),
    ("protected", 0, "mov dr4, eax", 0, register("cr4", DE), "#UD", None, "debug.register_exists"),
    ("protected", 3, "mov eax, dr5", 0, register("cr4", DE), "#UD", None, "debug.register_exists"),
    ("long", 0, "mov dr8, rax", 0, nothing, "#UD", None, "debug.register_exists"),
    ("protected", 3, "mov eax, dr0", 0, nothing, "#GP", 0, "mov_dr.ring_0_only"),
    ("long", 1, "mov dr7, rax", 0x400, nothing, "#GP", 0, "mov_dr.ring_0_only"),
    ("long", 0, "mov dr6, rax", 1 << 32, nothing, "#GP", 0, "debug.upper_clear"),
    ("long", 0, "mov dr7, rax", 1 << 63, nothing, "#GP", 0, "debug.upper_clear"),
    ("long", 0, "mov dr4, rax", 1 << 40, nothing, "#GP", 0, "debug.upper_clear"),
]


def encode(source: str) -> str | bytes:
    """Registers that do not exist have no mnemonic either."""
    known = {
        "mov cr1, eax": b"\x0f\x22\xc8",
        "mov eax, cr5": b"\x0f\x20\xe8",
        "mov cr15, rax": b"\x44\x0f\x22\xf8",
        "mov rax, cr9": b"\x44\x0f\x20\xc8",
        "mov dr8, rax": b"\x44\x0f\x23\xc0",
    }
    return known.get(source, source)


@pytest.mark.parametrize(("mode", "cpl", "source", "value", "change", "vector", "error", "check"), FAULTS)
def test_fault(
    mode: str, cpl: int, source: str, value: int, change: Change, vector: str, error: int | None, check: str
) -> None:
    scene = Scene(mode, cpl=cpl)
    change(scene)
    scene.machine.set("rax", value)
    step = scene.step(encode(source))
    assert_faults(step, vector, error=error, check=check)
    if mode != "real":
        assert_interrupts(step)
    for name in ("cr0", "cr2", "cr3", "cr4", "cr8", "efer", "dr0", "dr6", "dr7"):
        assert step.register(name) == step.registers_before[name], name


# --- CR0 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "before", "value", "after"),
    [
        ("protected", PE | ET, PE | MP | NE | WP | AM | CD | NW, PE | MP | ET | NE | WP | AM | CD | NW),
        ("protected", PE | ET, PE | 1 << 6 | 1 << 28, PE | ET),  # reserved bits below 32 stay clear, ET stays set
        ("protected", PE | ET | WP, 0, ET),
        ("real", ET, PE, PE | ET),
        ("long", PG | PE | ET, PG | PE | WP | TS, PG | PE | ET | WP | TS),
    ],
)
def test_cr0(mode: str, before: int, value: int, after: int) -> None:
    scene = Scene(mode)
    changes(register("cr0", before), register("rax", value))(scene)
    step = scene.step(f"mov cr0, {ACCUMULATOR[mode]}")
    assert_runs(step)
    assert step.register("cr0") == after


def test_the_way_into_ia32e_mode_and_back() -> None:
    scene = Scene("protected")
    changes(about_to_page, register("rax", PG | PE))(scene)
    assert_runs(scene.step("mov cr0, eax"))
    assert scene.machine.get("efer") == LME | LMA
    assert scene.machine.mode == "compatibility"
    scene.machine.set("rax", PE)
    step = scene.step("mov cr0, eax")
    assert_runs(step)
    assert ("control.paging_stays_in_64_bit", True) in step.checks
    assert scene.machine.get("efer") == LME
    assert scene.machine.mode == "protected"


def test_protected_mode_and_back_to_real_mode() -> None:
    scene = Scene("real")
    scene.machine.set("rax", PE)
    assert_runs(scene.step("mov cr0, eax"))
    assert (scene.machine.mode, scene.machine.get("cpl")) == ("protected", 0)
    scene.machine.set("rax", 0)
    assert_runs(scene.step("mov cr0, eax"))
    assert scene.machine.mode == "real"


def test_the_checks_of_activation_are_made_only_when_paging_is_turned_on() -> None:
    scene = Scene("long")
    scene.machine.set("rax", PG | PE | WP)
    step = scene.step("mov cr0, rax")
    assert_runs(step)
    assert not [name for name, _ in step.checks if name.startswith("control.long_paging")]


# --- CR2, CR3, CR4, CR8 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "name", "value", "after"),
    [
        ("protected", "cr2", 0xFEDCBA98, 0xFEDCBA98),
        ("long", "cr2", 0x1234_5678_9ABC_DEF0, 0x1234_5678_9ABC_DEF0),  # need not be canonical
        ("long", "cr3", PML4 | 0x18, PML4 | 0x18),
        ("compatibility", "cr3", PML4 | 0xFFFF_FFFF_0000_0000, PML4),  # 32 bits of the register are moved
        ("protected", "cr4", PSE | PGE | TSD | DE | SMEP | SMAP | UMIP, PSE | PGE | TSD | DE | SMEP | SMAP | UMIP),
        ("long", "cr4", PAE | FSGSBASE, PAE | FSGSBASE),
        ("long", "cr8", 15, 15),
    ],
)
def test_writes_and_reads(mode: str, name: str, value: int, after: int) -> None:
    scene = Scene(mode)
    accumulator, other = ACCUMULATOR[mode], ACCUMULATOR[mode].replace("a", "b")
    scene.machine.set("rax", value)
    scene.machine.set("rbx", 0xFFFF_FFFF_FFFF_FFFF)
    step = scene.step(f"mov {name}, {accumulator}\n mov {other}, {name}", instructions=2)
    assert_runs(step)
    assert (step.register(name), step.register("rbx")) == (after, after)


@pytest.mark.parametrize("feature", ["smep", "smap", "umip", "fsgsbase", "global_pages", "page_size_extension"])
def test_bits_of_cr4_exist_with_their_feature(feature: str) -> None:
    bits = {"smep": SMEP, "smap": SMAP, "umip": UMIP, "fsgsbase": FSGSBASE, "global_pages": PGE}
    for present in (True, False):
        scene = Scene("protected", model=INTEL | {feature: present})
        scene.machine.set("rax", bits.get(feature, PSE))
        step = scene.step("mov cr4, eax")
        if present:
            assert_runs(step)
        else:
            assert_faults(step, "#GP", error=0, check="control.cr4_reserved_clear")


def test_the_width_of_physical_addresses_decides_about_cr3() -> None:
    scene = Scene("long", model=AMD)  # 48 bits
    scene.machine.set("rax", PML4 | BIT39)
    assert_runs(scene.step("mov cr3, rax"))


# --- PDPTEs ----------------------------------------------------------------------------------------------------------

LATER = PML4 + 0x20  # PAE: a page-directory-pointer table is aligned to 32 bytes


@pytest.mark.parametrize("junk", [0xFFFF_FFFF_FFFF_FFFE, 1 << 63])
def test_absent_pdptes_may_hold_anything(junk: int) -> None:
    scene = Scene("protected")
    pae(scene, pdpte=junk)
    scene.machine.set("rax", PML4)
    step = scene.step("mov cr3, eax")
    assert_runs(step)
    assert ("control.pdpte_reserved_clear", True) in step.checks


def test_the_low_bits_of_a_pdpte_that_may_be_set() -> None:
    """PWT, PCD and bits 11:9 are no reserved bits."""
    scene = Scene("protected")
    pae(scene, pdpte=1 | 0xE18)
    scene.machine.set("rax", PML4)
    assert_runs(scene.step("mov cr3, eax"))


def test_pdptes_are_registers() -> None:
    """Changed in memory, they are in force from the next load of CR3 on."""
    scene = Scene("protected")
    pae(scene)
    scene.machine.set("rax", PML4)
    scene.write(PML4, bytes(8))
    step = scene.step("nop\n mov cr3, eax\n nop", instructions=3)
    assert step.faults[0] == (14, 0, "paging.present")
    assert (step.register("cr2"), step.register("rip"), step.end.reason) == (IDT + 8 * 8, CODE_AT + 4, "shutdown")


def test_a_failing_load_of_pdptes_keeps_the_old_ones() -> None:
    scene = Scene("protected")
    pae(scene)
    scene.write(LATER, struct.pack("<4Q", 0, 0, 0, 3))
    scene.machine.set("rax", LATER)
    step = scene.step("mov cr3, eax")
    assert_faults(step, "#GP", error=0, check="control.pdpte_reserved_clear")
    assert step.register("cr3") == PML4
    assert_interrupts(step)  # delivered through the old tables


def test_cr3_finds_pdptes_at_32_bytes() -> None:
    scene = Scene("protected")
    pae(scene)
    scene.write(LATER, struct.pack("<4Q", PAGE_TABLES | 1, 0, 0, 0))
    scene.machine.set("rax", LATER)
    assert_runs(scene.step("mov cr3, eax\n nop", instructions=2))


@pytest.mark.parametrize(("name", "value"), [("cr0", PG | PE | WP), ("cr4", PAE | TSD)])
def test_writes_that_do_not_load_pdptes(name: str, value: int) -> None:
    scene = Scene("protected")
    pae(scene, pdpte=3)
    scene.machine.set("rax", value)
    step = scene.step(f"mov {name}, eax")
    assert_runs(step)
    assert not [check for check, _ in step.checks if check == "control.pdpte_reserved_clear"]


# --- LMSW, CLTS ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "before", "value", "after"),
    [
        ("real", ET, PE | MP, PE | MP | ET),
        ("protected", PE | ET | EM, MP | TS, PE | MP | TS | ET),  # sets PE, never clears it
        ("protected", PE | ET, 0xFFF0, PE | ET),  # the low four bits alone
    ],
)
def test_lmsw(mode: str, before: int, value: int, after: int) -> None:
    scene = Scene(mode)
    changes(register("cr0", before), register("rax", value))(scene)
    step = scene.step("lmsw ax")
    assert_runs(step)
    assert step.register("cr0") == after
    assert scene.machine.mode == "protected"


@pytest.mark.parametrize("mode", ["real", "protected", "long"])
def test_clts(mode: str) -> None:
    scene = Scene(mode)
    before = scene.machine.get("cr0")
    scene.machine.set("cr0", before | TS)
    step = scene.step("clts")
    assert_runs(step)
    assert step.register("cr0") == before


# --- debug registers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "name", "value", "after"),
    [
        ("protected", "dr0", 0x12345678, 0x12345678),
        ("long", "dr3", 0xFFFF_8000_1234_5678, 0xFFFF_8000_1234_5678),
        ("protected", "dr6", 0, 0xFFFF0FF0),
        ("protected", "dr6", 0xFFFFFFFF, 0xFFFFEFFF),
        ("protected", "dr7", 0, 0x400),
        ("long", "dr7", 0xFFFF_DC00, 0xFFFF0400),
    ],
)
def test_debug_registers(mode: str, name: str, value: int, after: int) -> None:
    scene = Scene(mode)
    accumulator, other = ACCUMULATOR[mode], ACCUMULATOR[mode].replace("a", "b")
    scene.machine.set("rax", value)
    step = scene.step(f"mov {name}, {accumulator}\n mov {other}, {name}", instructions=2)
    assert_runs(step)
    assert (step.register(name), step.register("rbx")) == (after, after)
    assert ("debug.register_exists", True) in step.checks


@pytest.mark.parametrize(("alias", "name"), [("dr4", "dr6"), ("dr5", "dr7")])
def test_aliases_while_debug_extensions_are_off(alias: str, name: str) -> None:
    scene = Scene("protected")
    scene.machine.set(name, 0xFFFF0FF0 if name == "dr6" else 0x400)
    step = scene.step(f"mov ebx, {alias}")
    assert_runs(step)
    assert step.register("rbx") == step.register(name)


@pytest.mark.parametrize("value", [0x401, 0x480, 0x2400])
def test_breakpoints_are_not_modelled(value: int) -> None:
    scene = Scene("protected")
    scene.machine.set("rax", value)
    step = scene.step("mov dr7, eax")
    assert step.end.reason == "unmodelled"
    assert step.register("rip") == CODE_AT


def test_user_data_segments_stay() -> None:
    """Turning protection on and off leaves the hidden parts alone: nothing is loaded."""
    scene = Scene("protected")
    scene.machine.set_segment("ds", DATA3, 0x1000, 0xFFFFF, 0xC0F3)
    scene.machine.set("rax", 0)
    assert_runs(scene.step("mov cr0, eax"))
    assert scene.machine.segment("ds") == {"selector": DATA3, "base": 0x1000, "limit": 0xFFFFF, "attributes": 0xC0F3}
