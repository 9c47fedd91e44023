"""HLT, INVLPG, INVD, CLI, STI, POPF, PUSHF, STAC, CLAC, IN, OUT, and what ordinary instructions run into
(Intel SDM vol. 2): every check both ways."""

from __future__ import annotations

import pytest

from kit.changes import Change, changes, nothing, register, segment_register
from kit.descriptors import TSS16_BUSY, TSS32_BUSY
from kit.expect import assert_faults, assert_interrupts, assert_runs
from kit.scene import CODE3, CODE_AT, DATA0, INTEL, TSS, TSS_SELECTOR, Scene

CF, TF, IF, DF, NT, RF, AC, ID = 1, 1 << 8, 1 << 9, 1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 21
VIF, VIP = 1 << 19, 1 << 20
IOPL = 1 << 12
PORT = 0x2F8  # answered by nothing
MAP = 0x68  # where the scene's TSS says that its I/O permission map begins


def iopl(level: int, more: int = 0) -> Change:
    return register("rflags", 2 | level * IOPL | more)


def io_map(*, limit: int, denied: tuple[int, ...] = (), base: int = MAP, type_: int = TSS32_BUSY) -> Change:
    """An I/O permission map in which the ports `denied` have their bit set."""

    def change(scene: Scene) -> None:
        bits = sum(1 << port for port in denied)
        scene.write(TSS + 102, base.to_bytes(2, "little"))
        scene.write(TSS + base, bits.to_bytes(0x400, "little"))
        scene.machine.set_segment("tr", TSS_SELECTOR, TSS, limit, 0x80 | type_)
        if type_ == TSS16_BUSY:  # the stack for the exception is elsewhere in it
            scene.write(TSS + 2, (0x7000).to_bytes(2, "little") + DATA0.to_bytes(2, "little"))

    return change


FULL = MAP + PORT // 8 + 1  # the last byte of the two that are read for the port

FAULTS: list[tuple[str, int, str, Change, str, int | None, str]] = [
    # mode, CPL, instruction, change, vector, error code, check
    ("protected", 3, "hlt", nothing, "#GP", 0, "hlt.ring_0_only"),
    ("long", 1, "hlt", nothing, "#GP", 0, "hlt.ring_0_only"),
    ("protected", 3, "invlpg [0x9000]", nothing, "#GP", 0, "invlpg.ring_0_only"),
    ("long", 2, "invlpg [0x9000]", nothing, "#GP", 0, "invlpg.ring_0_only"),
    ("protected", 3, "invd", nothing, "#GP", 0, "invd.ring_0_only"),
    ("long", 3, "wbinvd", nothing, "#GP", 0, "invd.ring_0_only"),
    ("protected", 3, "cli", nothing, "#GP", 0, "interrupt_flag.iopl_permits"),
    ("long", 3, "sti", iopl(2), "#GP", 0, "interrupt_flag.iopl_permits"),
    ("compatibility", 3, "sti", iopl(0), "#GP", 0, "interrupt_flag.iopl_permits"),
    ("protected", 2, "cli", iopl(1), "#GP", 0, "interrupt_flag.iopl_permits"),
    ("protected", 3, "stac", nothing, "#UD", None, "alignment_flag.ring_0_only"),
    ("long", 1, "clac", nothing, "#UD", None, "alignment_flag.ring_0_only"),
    # the map must reach to the byte after the port's
    ("protected", 3, "in al, dx", io_map(limit=FULL - 1), "#GP", 0, "port.map_in_tss"),
    ("long", 3, "out dx, al", io_map(limit=FULL - 1), "#GP", 0, "port.map_in_tss"),
    ("protected", 1, "in eax, dx", io_map(limit=0x67), "#GP", 0, "port.map_in_tss"),
    ("protected", 3, "in al, dx", io_map(limit=0x66), "#GP", 0, "port.map_in_tss"),  # not even the field
    ("protected", 3, "in al, dx", io_map(limit=0x1000, type_=TSS16_BUSY), "#GP", 0, "port.map_in_tss"),  # a 16-bit TSS
    ("protected", 3, "in al, dx", io_map(limit=FULL, denied=(PORT,)), "#GP", 0, "port.map_permits"),
    ("long", 3, "out dx, ax", io_map(limit=FULL, denied=(PORT + 1,)), "#GP", 0, "port.map_permits"),
    ("compatibility", 3, "in eax, dx", io_map(limit=FULL, denied=(PORT + 3,)), "#GP", 0, "port.map_permits"),
    ("protected", 3, "in al, 0x21", io_map(limit=FULL, denied=(0x21,)), "#GP", 0, "port.map_permits"),
    ("protected", 3, "outsb", io_map(limit=FULL, denied=(PORT,)), "#GP", 0, "port.map_permits"),
    ("protected", 3, "rep insd", io_map(limit=FULL, denied=(PORT + 2,)), "#GP", 0, "port.map_permits"),
]


@pytest.mark.parametrize(("mode", "cpl", "source", "change", "vector", "error", "check"), FAULTS)
def test_fault(mode: str, cpl: int, source: str, change: Change, vector: str, error: int | None, check: str) -> None:
    scene = Scene(mode, cpl=cpl)
    changes(register("rdx", PORT), register("rcx", 1), register("rsi", 0x9000), register("rdi", 0x9000), change)(scene)
    step = scene.step(source)
    assert_faults(step, vector, error=error, check=check)
    assert_interrupts(step)


PASSES: list[tuple[str, int, str, Change, str | None]] = [
    # mode, CPL, instruction, change, the check that holds (None: nothing is checked)
    ("protected", 0, "invlpg [0x9000]", nothing, "invlpg.ring_0_only"),
    ("long", 0, "invd", nothing, "invd.ring_0_only"),
    ("real", 0, "wbinvd", nothing, "invd.ring_0_only"),
    ("protected", 3, "cli", iopl(3), "interrupt_flag.iopl_permits"),
    ("long", 0, "sti", nothing, "interrupt_flag.iopl_permits"),
    ("protected", 2, "sti", iopl(2), "interrupt_flag.iopl_permits"),
    ("protected", 0, "stac", nothing, "alignment_flag.ring_0_only"),
    ("real", 0, "clac", nothing, "alignment_flag.ring_0_only"),
    ("protected", 3, "in al, dx", io_map(limit=FULL, denied=(PORT - 1, PORT + 1)), "port.map_permits"),
    ("long", 3, "out dx, eax", io_map(limit=FULL, denied=(PORT - 1, PORT + 4)), "port.map_permits"),
    ("protected", 3, "in al, dx", io_map(limit=MAP + 0x80 + PORT // 8 + 1, base=MAP + 0x80), "port.map_in_tss"),
    ("protected", 1, "in al, dx", iopl(1), None),  # CPL <= IOPL: the map is not looked at
    ("real", 0, "in al, dx", nothing, None),
]


@pytest.mark.parametrize(("mode", "cpl", "source", "change", "check"), PASSES)
def test_passes(mode: str, cpl: int, source: str, change: Change, check: str | None) -> None:
    scene = Scene(mode, cpl=cpl)
    changes(register("rdx", PORT), change)(scene)
    step = scene.step(source)
    assert_runs(step)
    made = [name for name, _ in step.checks if not name.startswith(("fetch.", "paging.", "data_access."))]
    assert (check in made) if check else not made


@pytest.mark.parametrize("mode", ["real", "protected", "long"])
def test_hlt_stops_after_itself(mode: str) -> None:
    scene = Scene(mode)
    step = scene.step("hlt")
    assert_runs(step)
    assert ("hlt.ring_0_only", True) in step.checks
    assert (step.end.reason, step.register("rip")) == ("halted", CODE_AT + 1)


def test_a_port_that_nothing_answers() -> None:
    scene = Scene("protected", cpl=0)
    changes(register("rdx", PORT + 0x1000), register("rax", 0x11223344))(scene)
    assert scene.step("in ax, dx").register("rax") == 0x1122FFFF


def test_the_last_port_is_denied_by_a_map_that_ends_with_it() -> None:
    """The extra byte after the map: port 65535 needs a byte beyond the 8192 of the map."""
    for limit, reached in ((MAP + 0x1FFF, False), (MAP + 0x2000, True)):
        scene = Scene("protected", cpl=3)
        changes(register("rdx", 0xFFFF), segment_register("tr", TSS_SELECTOR, TSS, limit, 0x8B))(scene)
        scene.write(TSS + MAP, bytes(0x2000))  # over the scene's code as well
        scene.machine.set("rip", 0x200)
        step = scene.step("in al, dx")
        if reached:
            assert_runs(step)
        else:
            assert_faults(step, "#GP", error=0, check="port.map_in_tss")


# --- flags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "before", "after"), [("cli", IF, 0), ("sti", 0, IF), ("stac", 0, AC), ("clac", AC, 0)]
)
@pytest.mark.parametrize("mode", ["protected", "long"])
def test_flag_instructions(mode: str, source: str, before: int, after: int) -> None:
    scene = Scene(mode)
    scene.machine.set("rflags", 2 | before)
    step = scene.step(source)
    assert_runs(step)
    assert step.register("rflags") == 2 | after


def test_smap_brings_stac_and_clac() -> None:
    scene = Scene("long", model=INTEL | {"smap": False})
    assert_faults(scene.step("stac"), "#UD", error=None, check="instruction.opcode_defined")


ALL = CF | IF | DF | NT | AC | ID | 3 * IOPL
# What POPF may change (vol. 2, POPF, Operation): mode, CPL, IOPL before, width, bits that change
POPS = [
    ("real", 0, 0, 16, ALL & 0xFFFF),
    ("protected", 0, 0, 32, ALL),
    ("protected", 0, 0, 16, ALL & 0xFFFF),
    ("protected", 1, 0, 32, ALL & ~(IF | 3 * IOPL)),
    ("protected", 3, 0, 32, ALL & ~(IF | 3 * IOPL)),
    ("protected", 3, 3, 32, ALL & ~(3 * IOPL)),
    ("protected", 2, 2, 16, ALL & ~(3 * IOPL) & 0xFFFF),
    ("long", 0, 0, 64, ALL),
    ("long", 3, 0, 64, ALL & ~(IF | 3 * IOPL)),
    ("long", 3, 3, 16, ALL & ~(3 * IOPL) & 0xFFFF),
]


@pytest.mark.parametrize(("mode", "cpl", "level", "width", "changing"), POPS)
@pytest.mark.parametrize("value", [0, ALL, ALL | VIF | VIP | 1 << 17 | 1 << 3 | 1 << 31])
def test_popf(mode: str, cpl: int, level: int, width: int, changing: int, value: int) -> None:
    """What may not change stays, silently."""
    for before in (level * IOPL, ALL & ~(3 * IOPL) | level * IOPL):
        scene = Scene(mode, cpl=cpl)
        iopl(0, before)(scene)
        scene.push(value & (1 << width) - 1, width=width)
        step = scene.step({16: "popfw", 32: "popfd", 64: "popfq"}[width])
        assert_runs(step)
        assert step.register("rflags") == 2 | before & ~changing | value & changing


def test_popf_clears_rf() -> None:
    scene = Scene("protected")
    iopl(0, RF)(scene)
    scene.push(RF)
    assert scene.step("popfd").register("rflags") == 2


@pytest.mark.parametrize(
    ("mode", "source", "size"), [("protected", "pushfd", 4), ("protected", "pushfw", 2), ("long", "pushfq", 8)]
)
def test_pushf_hides_rf(mode: str, source: str, size: int) -> None:
    scene = Scene(mode, cpl=3)
    iopl(3, RF | AC | CF)(scene)
    step = scene.step(source)
    assert_runs(step)
    pushed = int.from_bytes(scene.read(step.register("rsp"), size), "little")
    assert pushed == (2 | 3 * IOPL | AC | CF) & (1 << 8 * size) - 1


def test_single_steps_are_not_modelled() -> None:
    scene = Scene("protected")
    scene.push(TF)
    step = scene.step("popfd\n nop", instructions=2)
    assert (step.end.reason, step.register("rip")) == ("unmodelled", CODE_AT + 1)


# --- what ordinary instructions run into -----------------------------------------------------------------------------

BOUNDS = 0x9000

TROUBLE: list[tuple[str, str | bytes, Change, str, str]] = [
    # mode, instruction, change, vector, check
    ("protected", b"\x0f\x0b", nothing, "#UD", "instruction.opcode_defined"),  # UD2
    ("long", b"\x06", nothing, "#UD", "instruction.opcode_defined"),  # PUSH ES
    ("real", b"\x63\xc0", nothing, "#UD", "instruction.opcode_defined"),  # ARPL
    ("protected", b"\xf0\x90", nothing, "#UD", "instruction.lock_allowed"),  # LOCK NOP
    ("long", b"\xf0\x01\xc0", nothing, "#UD", "instruction.lock_allowed"),  # LOCK ADD to a register
    ("protected", b"\xf0\x8b\x06", nothing, "#UD", "instruction.lock_allowed"),  # LOCK MOV from memory
    ("protected", b"\x66" * 15 + b"\x90", nothing, "#GP", "instruction.length_at_most_15"),
    ("long", b"\x2e" * 14 + b"\x89\xc0", nothing, "#GP", "instruction.length_at_most_15"),
    ("protected", "div ecx", register("rcx", 0), "#DE", "instruction.quotient_fits"),
    ("protected", "div cl", changes(register("rax", 0x100), register("rcx", 1)), "#DE", "instruction.quotient_fits"),
    ("long", "idiv rcx", changes(register("rax", 1 << 63), register("rcx", 1)), "#DE", "instruction.quotient_fits"),
    (
        "long",
        "idiv rcx",
        changes(register("rax", 1 << 63), register("rdx", (1 << 64) - 1), register("rcx", (1 << 64) - 1)),
        "#DE",
        "instruction.quotient_fits",
    ),
    ("protected", "aam 0", nothing, "#DE", "instruction.quotient_fits"),
    ("protected", f"bound eax, [{BOUNDS:#x}]", register("rax", 11), "#BR", "instruction.index_within_bounds"),
    ("protected", f"bound eax, [{BOUNDS:#x}]", register("rax", 0xFFFFFFFA), "#BR", "instruction.index_within_bounds"),
    ("protected", "jmp eax", register("rax", 0x10000), "#GP", "instruction.branch_within_limit"),
    ("protected", "call 0x10000", nothing, "#GP", "instruction.branch_within_limit"),
    ("long", "jmp rax", register("rax", 1 << 47), "#GP", "instruction.branch_canonical"),
    ("long", "ret", lambda scene: scene.push(1 << 63), "#GP", "instruction.branch_canonical"),
]


def prepare(scene: Scene) -> None:
    scene.write(BOUNDS, (-5 & 0xFFFFFFFF).to_bytes(4, "little") + (10).to_bytes(4, "little"))
    if scene.mode == "protected":
        scene.machine.set_segment("cs", CODE3, 0, 0xFFFF, 0xC0FB)


@pytest.mark.parametrize(("mode", "source", "change", "vector", "check"), TROUBLE)
def test_trouble(mode: str, source: str | bytes, change: Change, vector: str, check: str) -> None:
    scene = Scene(mode, cpl=0 if mode == "real" else 3)
    changes(prepare, change)(scene)
    step = scene.step(source)
    assert_faults(step, vector, error=0 if vector == "#GP" else None, check=check)
    if mode != "real":
        assert_interrupts(step)


@pytest.mark.parametrize("source", ["div ecx", f"bound eax, [{BOUNDS:#x}]"])
def test_what_fails_in_execution_has_been_decoded(source: str) -> None:
    """Length, opcode and LOCK are looked at first, and the trace says so."""
    scene = Scene("protected", cpl=3)
    changes(prepare, register("rax", 11))(scene)
    made = [(name, held) for name, held in scene.step(source).checks if name.startswith("instruction.")]
    decoded = ["instruction.length_at_most_15", "instruction.opcode_defined", "instruction.lock_allowed"]
    assert made[:3] == [(name, True) for name in decoded]
    assert not made[3][1]


@pytest.mark.parametrize(
    ("mode", "source", "change"),
    [
        ("protected", b"\x66" * 14 + b"\x90", nothing),  # 15 bytes
        ("protected", b"\xf0\x01\x06", register("rsi", 0x9000)),  # LOCK ADD [ESI], EAX
        ("protected", "div ecx", changes(register("rax", 7), register("rcx", 2))),
        ("long", "idiv rcx", changes(register("rax", 1 << 62), register("rcx", 1))),
        ("protected", f"bound eax, [{BOUNDS:#x}]", register("rax", 10)),
        ("protected", f"bound eax, [{BOUNDS:#x}]", register("rax", 0xFFFFFFFB)),
        ("protected", "jmp eax", register("rax", 0xFFFF)),
        ("long", "jmp rax", register("rax", 0xFFFF_8000_0000_0000)),
    ],
)
def test_no_trouble(mode: str, source: str | bytes, change: Change) -> None:
    scene = Scene(mode, cpl=3)
    changes(prepare, change)(scene)
    assert_runs(scene.step(source))
