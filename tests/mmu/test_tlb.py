"""What a cached translation survives and what drops it (Intel SDM vol. 3, Caching Translation Information)."""

from __future__ import annotations

import pytest

from kit.changes import changes, register
from kit.expect import assert_runs
from kit.scene import CODE_AT, INTEL, PAGE_TABLES, PML4, Scene, Step

PAGE, OLD, NEW = 0x9000, 0x9000, 0x31000
GLOBAL, LARGE = 0x100, 0x80
PGE, PSE, TSD, SMEP, SMAP, WP, PG = 1 << 7, 1 << 4, 1 << 2, 1 << 20, 1 << 21, 1 << 16, 1 << 31
MODES = ("protected", "long")


def entry_at(scene: Scene, linear: int = PAGE) -> int:
    return PAGE_TABLES + 0x2000 + (linear >> 12) * 8 if scene.long else PAGE_TABLES + (linear >> 12) * 4


def good(mode: str, *, global_page: bool = False, cr4: int = 0) -> Scene:
    """PAGE maps OLD, whose first word is 1; NEW begins with 2."""
    scene = Scene(mode, paging=True)
    scene.page(CODE_AT, 3)  # a supervisor's, for SMEP
    scene.page(PAGE, 7 | GLOBAL * global_page, physical=OLD)
    scene.write(OLD, b"\x01\x00\x00\x00")
    scene.write(NEW, b"\x02\x00\x00\x00")
    scene.machine.set("cr4", scene.machine.get("cr4") | cr4)
    return scene


def run(scene: Scene, source: str) -> Step:
    """Several instructions; memory operands are absolute."""
    lines = [line.strip() for line in source.strip().splitlines()]
    absolute = "default abs\n" if scene.mode == "long" else ""
    return scene.step(absolute + "\n".join(lines), instructions=len(lines))


def remap(scene: Scene, entry: int) -> str:
    """The guest changes the entry of PAGE; changes made from outside would drop all translations."""
    return f"mov dword [{entry_at(scene):#x}], {entry:#x}"


def seen(mode: str, scene: Scene, drop: str) -> tuple[int, int]:
    """What PAGE reads as before and after its entry is changed and something is done."""
    accumulator = "rdx" if mode == "long" else "edx"
    step = run(
        scene,
        f"""mov ebx, [{PAGE:#x}]
        {remap(scene, NEW | 7)}
        {drop.replace("REG", accumulator)}
        mov ecx, [{PAGE:#x}]""".replace("\n        \n", "\n"),
    )
    assert_runs(step)
    return step.register("rbx"), step.register("rcx")


DROPS = [
    # what is done, REG = what EDX must hold; is a global page dropped too?
    ("nop", None, None),
    ("mov cr3, REG", "cr3", False),
    ("mov cr4, REG", PGE, True),
    ("mov cr4, REG", SMEP, True),
    (f"invlpg [{PAGE:#x}]", None, True),
    (f"invlpg [{PAGE + 0xFFF:#x}]", None, True),
    (f"invlpg [{PAGE + 0x1000:#x}]", None, None),
    ("mov cr4, REG", TSD, None),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("drop", "value", "drops_global"), DROPS)
@pytest.mark.parametrize("global_page", [False, True])
def test_what_drops_a_translation(
    mode: str, drop: str, value: int | str | None, drops_global: bool | None, global_page: bool
) -> None:
    scene = good(mode, global_page=global_page, cr4=PGE if global_page else 0)
    m = scene.machine
    if isinstance(value, int):  # this bit of CR4 changes
        m.set("rdx", m.get("cr4") ^ value)
    elif value is not None:
        m.set("rdx", m.get(value))
    dropped = drops_global is not None and (drops_global or not global_page)
    assert seen(mode, scene, drop) == (1, 2 if dropped else 1)


@pytest.mark.parametrize("mode", MODES)
def test_global_pages_need_pge(mode: str) -> None:
    scene = good(mode, global_page=True)
    scene.machine.set("rdx", PML4)
    assert seen(mode, scene, "mov cr3, REG") == (1, 2)


def test_turning_paging_off_and_on_drops_everything() -> None:
    scene = good("protected", global_page=True, cr4=PGE)
    changes(register("rdx", scene.machine.get("cr0") & ~PG), register("rdi", scene.machine.get("cr0")))(scene)
    assert seen("protected", scene, "mov cr0, edx\n mov cr0, edi") == (1, 2)


def test_a_change_of_privilege_drops_nothing() -> None:
    scene = good("long")
    scene.gate(0x40, 0xE, 8, 0xC000)
    scene.write(0xC000, b"\x48\xcf")  # IRETQ
    step = run(
        scene,
        f"""mov ebx, [{PAGE:#x}]
        {remap(scene, NEW | 7)}
        int 0x40
        mov ecx, [{PAGE:#x}]""",
    )
    assert step.register("rbx") == 1
    scene.machine.run(1, "checks")  # IRET was the fourth
    assert scene.machine.get("rcx") == 1


@pytest.mark.parametrize("mode", MODES)
def test_rights_are_cached_as_well(mode: str) -> None:
    """A page that becomes read-only can be written until it is invalidated."""
    scene = good(mode)
    scene.machine.set("idtr_limit", 0)
    step = run(
        scene,
        f"""mov dword [{PAGE:#x}], 3
        {remap(scene, OLD | 5)}
        mov dword [{PAGE:#x}], 4
        invlpg [{PAGE:#x}]
        mov dword [{PAGE:#x}], 5""",
    )
    assert step.faults[0] == (14, 3, "paging.writable")
    assert scene.read(OLD, 4) == b"\x04\x00\x00\x00"


@pytest.mark.parametrize("mode", MODES)
def test_more_rights_need_no_invalidation(mode: str) -> None:
    """Absent pages are not cached, and a write that a cached read forbids looks at the tables again."""
    scene = good(mode)
    scene.page(PAGE, 1)
    step = run(
        scene,
        f"""mov ebx, [{PAGE:#x}]
        {remap(scene, OLD | 3)}
        mov dword [{PAGE:#x}], 3""",
    )
    assert_runs(step)
    scene = good(mode)
    scene.page(PAGE, 0)
    step = run(scene, f"{remap(scene, OLD | 3)}\n mov ebx, [{PAGE:#x}]")
    assert_runs(step)


@pytest.mark.parametrize("mode", MODES)
def test_the_first_write_after_reads_sets_the_dirty_flag(mode: str) -> None:
    scene = good(mode)
    run(scene, f"mov ebx, [{PAGE:#x}]\n mov ebx, [{PAGE:#x}]")
    assert scene.read(entry_at(scene), 1)[0] == 0x27
    scene.machine.set("rip", CODE_AT)
    run(scene, f"mov ebx, [{PAGE:#x}]\n mov [{PAGE:#x}], ebx")
    assert scene.read(entry_at(scene), 1)[0] == 0x67


@pytest.mark.parametrize("mode", MODES)
def test_cleared_flags_come_back_after_an_invalidation(mode: str) -> None:
    scene = good(mode)
    step = run(
        scene,
        f"""mov [{PAGE:#x}], ebx
        {remap(scene, OLD | 7)}
        invlpg [{PAGE:#x}]
        mov [{PAGE:#x}], ebx""",
    )
    assert_runs(step)
    assert scene.read(entry_at(scene), 1)[0] == 0x67


def test_cr0_wp_takes_effect_at_once() -> None:
    scene = good("protected")
    scene.page(PAGE, 1)
    changes(register("cr0", 0x80000011), register("rdx", 0x80000011 | WP), register("idtr_limit", 0))(scene)
    step = run(scene, f"mov dword [{PAGE:#x}], 3\n mov cr0, edx\n mov dword [{PAGE:#x}], 4")
    assert step.faults[0] == (14, 3, "paging.writable")
    assert scene.read(OLD, 4) == b"\x03\x00\x00\x00"


def test_cr4_smap_takes_effect_at_once() -> None:
    scene = good("protected")
    changes(register("rdx", SMAP), register("idtr_limit", 0))(scene)
    step = run(scene, f"mov ebx, [{PAGE:#x}]\n mov cr4, edx\n mov ecx, [{PAGE:#x}]")
    assert step.faults[0] == (14, 1, "paging.smap")


def test_invlpg_drops_all_of_a_large_page() -> None:
    """Whatever address in it is named."""
    scene = Scene("long")
    directory = PAGE_TABLES + 0x1000
    scene.write(directory + 8, (0x400000 | LARGE | 7).to_bytes(8, "little"))
    scene.write(0x400000, b"\x01")
    scene.write(0x500000, b"\x03")
    scene.write(0x600000, b"\x02")
    scene.write(0x700000, b"\x04")
    source = f"""mov eax, [0x200000]
    mov ebx, [0x300000]
    mov dword [{directory + 8:#x}], {0x600000 | LARGE | 7:#x}
    mov ecx, [0x200000]
    invlpg [0x3ff000]
    mov edx, [0x200000]
    mov esi, [0x300000]"""
    step = run(scene, source)
    assert_runs(step)
    assert [step.register(name) for name in ("rax", "rbx", "rcx", "rdx", "rsi")] == [1, 3, 1, 2, 4]


def test_invlpg_adds_the_base_of_its_segment() -> None:
    scene = good("protected")
    scene.machine.set_segment("fs", 0x43, 0x8000, 0xFFFFFFFF, 0xC0F3)
    assert seen("protected", scene, f"invlpg [fs:{PAGE - 0x8000:#x}]") == (1, 2)


def test_invlpg_ignores_limits_and_rights() -> None:
    """No access is made: neither limit nor absent page fault."""
    scene = good("protected")
    scene.machine.set_segment("ds", 0x43, 0, 0xFFF, 0x40F3)
    scene.page(PAGE, 0)
    assert_runs(scene.step(f"invlpg [{PAGE:#x}]"))
    assert_runs(Scene("long").step("mov rax, 1 << 47\n invlpg [rax]", instructions=2))  # not canonical: no operation


@pytest.mark.parametrize("drop", ["invlpg [0xc000]", "mov cr3, edx"])
def test_code_is_fetched_through_the_new_translation(drop: str) -> None:
    scene = good("protected")
    code, elsewhere = 0xC000, 0x32000
    scene.write(code, b"\xb8\x01\x00\x00\x00\xc3")  # MOV EAX, 1; RET
    scene.write(elsewhere, b"\xb8\x02\x00\x00\x00\xc3")
    scene.machine.set("rdx", PML4)
    source = f"""call 0xc000
    mov ebx, eax
    mov dword [{entry_at(scene, code):#x}], {elsewhere | 7:#x}
    {drop}
    call 0xc000
    mov ecx, eax"""
    step = scene.step(source, instructions=6 + 4)
    assert_runs(step)
    assert (step.register("rbx"), step.register("rcx")) == (1, 2)


def test_user_and_supervisor_are_cached_apart() -> None:
    """What a supervisor has cached does not let a user in."""
    scene = Scene("long")
    scene.page(PAGE, 3)
    scene.gate(0x40, 0xE, 8, 0xC000, dpl=3)
    # ring 0: MOV EBX, [PAGE]; IRETQ to ring 3, which reads the same page
    scene.push(0x43, 0x60000, 2, 0x3B, CODE_AT + 0x100)
    scene.write(CODE_AT + 0x100, b"\x8b\x1c\x25\x00\x90\x00\x00")
    step = scene.step(f"mov ebx, [abs {PAGE:#x}]\n iretq", instructions=3)
    assert step.faults[0] == (14, 5, "paging.user_allowed")


def test_a_processor_without_large_pages_ignores_pse() -> None:
    scene = Scene("protected", paging=True, model=INTEL | {"page_size_extension": False})
    scene.machine.set("rax", PSE)
    assert scene.step("mov cr4, eax").faults[0] == (13, 0, "control.cr4_reserved_clear")
