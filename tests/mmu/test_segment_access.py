"""Accesses and fetches through a segment (Intel SDM vol. 3, Limit Checking; Type Checking; Interrupt 17): every check
both ways."""

from __future__ import annotations

import pytest

from kit.changes import Change, changes, nothing, register, segment_register
from kit.descriptors import CODE, CODE_CONFORMING, CODE_EXECUTE_ONLY, DATA, DATA_EXPAND_DOWN, DATA_READ_ONLY
from kit.expect import assert_faults, assert_interrupts, assert_runs
from kit.scene import CODE3, CODE_AT, DATA3, KINDS, STACK, Scene

AM, AC = 1 << 18, 1 << 18
PRESENT, BIG = 0x80, 0x4000
USER = 3 << 5


def attributes(type_: int, *, big: bool = True) -> int:
    return type_ | USER | PRESENT | BIG * big


def ds(type_: int, limit: int, *, base: int = 0, big: bool = True) -> Change:
    return segment_register("ds", DATA3, base, limit, attributes(type_, big=big))


def ss(limit: int, *, type_: int = DATA, big: bool = True) -> Change:
    return segment_register("ss", DATA3, 0, limit, attributes(type_, big=big))


def at(address: int) -> Change:
    return changes(register("rsi", address), register("rdi", address))


NULL_DS = segment_register("ds", 0, 0, 0, 0)
NULL_FS = segment_register("fs", 3, 0, 0, 0)

FAULTS: list[tuple[str, str, Change, str, str]] = [
    # mode, instruction, change, vector, check; the error code is 0
    ("protected", "mov eax, [esi]", changes(NULL_DS, at(0)), "#GP", "access.segment_not_null"),
    ("compatibility", "mov [fs:esi], al", changes(NULL_FS, at(0)), "#GP", "access.segment_not_null"),
    ("protected", "mov eax, [esi]", changes(ds(CODE_EXECUTE_ONLY, 0xFFFFF), at(0)), "#GP", "access.readable"),
    ("protected", "mov eax, [cs:esi]", segment_register("cs", CODE3, 0, 0xFFFFFFFF, 0xC0F9), "#GP", "access.readable"),
    ("protected", "mov [esi], eax", changes(ds(DATA_READ_ONLY, 0xFFFFF), at(0x9000)), "#GP", "access.writable"),
    ("protected", "mov [esi], eax", changes(ds(CODE, 0xFFFFF), at(0x9000)), "#GP", "access.writable"),
    ("compatibility", "mov [cs:esi], eax", at(0x9000), "#GP", "access.writable"),
    ("protected", "add [esi], al", changes(ds(DATA_READ_ONLY, 0xFFFFF), at(0x9000)), "#GP", "access.writable"),
    ("protected", "cmp [esi], al", changes(ds(CODE_EXECUTE_ONLY, 0xFFFFF), at(0x9000)), "#GP", "access.readable"),
    ("protected", "mov al, [esi]", changes(ds(DATA, 0xFF), at(0x100)), "#GP", "data_access.within_limit"),
    ("protected", "mov ax, [esi]", changes(ds(DATA, 0xFF), at(0xFF)), "#GP", "data_access.within_limit"),
    ("protected", "mov eax, [esi]", changes(ds(DATA, 0xFF), at(0xFD)), "#GP", "data_access.within_limit"),
    ("compatibility", "mov [esi], eax", changes(ds(DATA, 0xFFFF), at(0xFFFD)), "#GP", "data_access.within_limit"),
    ("protected", "mov al, [esi]", changes(ds(DATA_EXPAND_DOWN, 0xFF), at(0xFF)), "#GP", "data_access.within_limit"),
    ("protected", "mov eax, [esi]", changes(ds(DATA_EXPAND_DOWN, 0xFF), at(0xFC)), "#GP", "data_access.within_limit"),
    (
        "protected",
        "mov al, [esi]",
        changes(ds(DATA_EXPAND_DOWN, 0xFF, big=False), at(0x10000)),
        "#GP",
        "data_access.within_limit",
    ),
    (
        "protected",
        "mov ax, [esi]",
        changes(ds(DATA_EXPAND_DOWN, 0xFF, big=False), at(0xFFFF)),
        "#GP",
        "data_access.within_limit",
    ),
    ("protected", "mov al, [esi]", changes(ds(DATA_EXPAND_DOWN, 0xFFFFFFFF), at(0)), "#GP", "data_access.within_limit"),
    ("real", "mov al, [esi]", at(0x10000), "#GP", "data_access.within_limit"),
    ("real", "mov ax, [si]", at(0xFFFF), "#GP", "data_access.within_limit"),
    ("protected", "push eax", ss(STACK[3] - 2), "#SS", "stack_access.within_limit"),
    ("protected", "pop eax", ss(STACK[3] + 2), "#SS", "stack_access.within_limit"),
    ("protected", "mov eax, [ebp]", changes(ss(0xFFF), register("rbp", 0x1000)), "#SS", "stack_access.within_limit"),
    ("compatibility", "mov [ss:esi], al", changes(ss(0xFFF), at(0x1000)), "#SS", "stack_access.within_limit"),
    ("protected", "push eax", ss(STACK[3], type_=DATA_EXPAND_DOWN), "#SS", "stack_access.within_limit"),
    ("real", "push ax", register("rsp", 1), "#SS", "stack_access.within_limit"),
    ("long", "mov al, [rsi]", at(1 << 47), "#GP", "data_access.canonical"),
    ("long", "mov ax, [rsi]", at((1 << 47) - 1), "#GP", "data_access.canonical"),
    ("long", "mov [rsi], rax", at(0xFFFF_7FFF_FFFF_FFFF), "#GP", "data_access.canonical"),
    (
        "long",
        "mov al, [fs:rsi]",
        changes(register("fs_base", (1 << 47) - 0x10), at(0x10)),
        "#GP",
        "data_access.canonical",
    ),
    ("long", "push rax", register("rsp", (1 << 47) + 16), "#SS", "stack_access.canonical"),
    ("long", "pop rax", register("rsp", (1 << 47) - 4), "#SS", "stack_access.canonical"),
    ("long", "mov al, [rbp]", register("rbp", 1 << 63), "#SS", "stack_access.canonical"),
]


@pytest.mark.parametrize(("mode", "source", "change", "vector", "check"), FAULTS)
def test_fault(mode: str, source: str, change: Change, vector: str, check: str) -> None:
    scene = Scene(mode, cpl=0 if mode == "real" else 3)
    scene.machine.set("rsi", 0x9000)
    change(scene)
    step = scene.step(source)
    if mode == "real" and vector == "#SS":
        assert step.faults[0][::2] == (12, check)  # the stack has no room for the exception either
        return
    assert_faults(step, vector, error=0, check=check)
    if mode != "real":
        assert_interrupts(step)


PASSES: list[tuple[str, str, Change, str]] = [
    # mode, instruction, change, the check that holds
    ("protected", "mov eax, [esi]", changes(ds(DATA, 0x9003), at(0x9000)), "data_access.within_limit"),
    ("protected", "mov al, [esi]", changes(ds(DATA, 0x9000), at(0x9000)), "access.segment_not_null"),
    ("protected", "mov eax, [esi]", changes(ds(CODE, 0xFFFFF), at(0x9000)), "access.readable"),
    ("protected", "mov eax, [esi]", changes(ds(CODE_CONFORMING, 0xFFFFF), at(0x9000)), "access.readable"),
    ("protected", "mov eax, [esi]", changes(ds(DATA_READ_ONLY, 0xFFFFF), at(0x9000)), "access.readable"),
    ("protected", "mov [esi], eax", changes(ds(DATA, 0xFFFFF), at(0x9000)), "access.writable"),
    ("protected", "mov al, [esi]", changes(ds(DATA_EXPAND_DOWN, 0xFF), at(0x100)), "data_access.within_limit"),
    ("protected", "mov [esi], eax", changes(ds(DATA_EXPAND_DOWN, 0xFF), at(0xF000)), "data_access.within_limit"),
    (
        "protected",
        "mov ax, [esi]",
        changes(ds(DATA_EXPAND_DOWN, 0xFF, big=False), at(0xFFFE)),
        "data_access.within_limit",
    ),
    ("protected", "push eax", ss(STACK[3] - 1), "stack_access.within_limit"),
    ("protected", "push eax", ss(STACK[3] - 5, type_=DATA_EXPAND_DOWN), "stack_access.within_limit"),
    ("real", "mov ax, [si]", at(0xFFFE), "data_access.within_limit"),
    ("long", "mov al, [rsi]", at(0x9000), "data_access.canonical"),
    ("long", "push rax", nothing, "stack_access.canonical"),
]


@pytest.mark.parametrize(("mode", "source", "change", "check"), PASSES)
def test_passes(mode: str, source: str, change: Change, check: str) -> None:
    scene = Scene(mode, cpl=0 if mode == "real" else 3)
    change(scene)
    step = scene.step(source)
    assert_runs(step)
    assert (check, True) in step.checks


@pytest.mark.parametrize("name", ["ds", "es", "ss"])
def test_64_bit_mode_looks_neither_at_type_nor_limit(name: str) -> None:
    scene = Scene("long", cpl=3)
    changes(segment_register(name, 0, 0x1000, 0, 0), at(0x9000))(scene)
    scene.write(0x9000, b"\x78\x56\x34\x12")
    step = scene.step(f"mov eax, [{name}:rsi]\n mov [{name}:rsi + 4], eax", instructions=2)
    assert_runs(step)
    assert step.register("rax") == 0x12345678
    assert scene.read(0x9004, 4) == b"\x78\x56\x34\x12"


@pytest.mark.parametrize("mode", ["protected", "compatibility"])
def test_linear_addresses_wrap_at_4_gib(mode: str) -> None:
    """Base plus offset beyond 4 GiB goes on at 0, in compatibility mode too."""
    scene = Scene(mode, cpl=3)
    changes(ds(DATA, 0xFFFFFFFF, base=0xFFFF0000), at(0x19000))(scene)
    scene.write(0x9000, b"\x78\x56\x34\x12")
    step = scene.step("mov eax, [esi]\n mov [esi + 4], eax", instructions=2)
    assert_runs(step)
    assert step.register("rax") == 0x12345678
    assert scene.read(0x9004, 4) == b"\x78\x56\x34\x12"


def test_code_wraps_at_4_gib_too() -> None:
    scene = Scene("compatibility", cpl=3)
    changes(segment_register("cs", CODE3, 0xFFFF0000, 0xFFFFFFFF, 0xC0FB), register("rip", 0x10000 + CODE_AT))(scene)
    scene.write(CODE_AT, b"\x90")
    step = scene.machine.run(1, "checks")
    assert step.reason == "budget"
    assert scene.machine.get("rip") == 0x10001 + CODE_AT


# --- fetches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "limit", "code", "faults"),
    [
        ("protected", CODE_AT, b"\x90", False),
        ("protected", CODE_AT - 1, b"\x90", True),
        ("protected", CODE_AT, b"\x89\xc0", True),  # the second byte lies beyond
        ("compatibility", CODE_AT + 1, b"\x89\xc0", False),
        ("real", CODE_AT, b"\x89\xc0", True),
    ],
)
def test_fetch_limit(mode: str, limit: int, code: bytes, faults: bool) -> None:
    scene = Scene(mode, cpl=0 if mode == "real" else 3)
    cs = scene.machine.segment("cs")
    scene.machine.set_segment("cs", cs["selector"], 0, limit, cs["attributes"])
    step = scene.step(code)
    if faults:
        assert_faults(step, "#GP", error=0, check="fetch.within_limit")
    else:
        assert_runs(step)
        assert ("fetch.within_limit", True) in step.checks


def test_fetch_must_be_canonical() -> None:
    step = Scene("long", cpl=3).step("nop")
    assert_runs(step)
    assert ("fetch.canonical", True) in step.checks
    scene = Scene("long", cpl=3)
    scene.machine.set("rip", 1 << 47)
    end = scene.machine.run(1, "checks")
    assert end.reason == "budget"
    assert scene.machine.get("cpl") == 0  # in the handler


def test_fetch_that_runs_into_noncanonical_space() -> None:
    scene = Scene("long", cpl=3)
    scene.write(0x20000, (0x21000 | 7).to_bytes(8, "little"))
    scene.write(0x10000 + 255 * 8, (0x22000 | 7).to_bytes(8, "little"))
    scene.write(0x22000 + 511 * 8, (0x23000 | 7).to_bytes(8, "little"))
    scene.write(0x23000 + 511 * 8, (0x24000 | 7).to_bytes(8, "little"))
    scene.write(0x24000 + 511 * 8, (CODE_AT | 7).to_bytes(8, "little"))
    scene.write(CODE_AT + 0xFFF, b"\x89")  # MOV, without its second byte
    scene.machine.set("rip", (1 << 47) - 1)
    end = scene.machine.run(1, "checks")
    failed = [r for r in end.records if r["kind"] == KINDS["check"] and not r["held"]]
    assert [int(r["a"]) for r in failed] == [1 << 47]


# --- alignment -------------------------------------------------------------------------------------------------------


def aligned(scene: Scene) -> None:
    changes(register("cr0", scene.machine.get("cr0") | AM), register("rflags", 2 | AC))(scene)


MISALIGNED = [
    # mode, instruction, address, aligned to the size?
    ("protected", "mov al, [esi]", 0x9001, True),
    ("protected", "mov ax, [esi]", 0x9001, False),
    ("protected", "mov ax, [esi]", 0x9002, True),
    ("protected", "mov eax, [esi]", 0x9002, False),
    ("compatibility", "mov [esi], eax", 0x9001, False),
    ("long", "mov rax, [rsi]", 0x9004, False),
    ("long", "mov rax, [rsi]", 0x9008, True),
    ("long", "add [rsi], rax", 0x9001, False),
]


@pytest.mark.parametrize(("mode", "source", "address", "good"), MISALIGNED)
def test_alignment(mode: str, source: str, address: int, good: bool) -> None:
    scene = Scene(mode, cpl=3)
    changes(aligned, at(address))(scene)
    step = scene.step(source)
    if good:
        assert_runs(step)
        assert ("access.aligned", True) in step.checks
    else:
        assert_faults(step, "#AC", error=0, check="access.aligned")
        assert_interrupts(step)


@pytest.mark.parametrize(
    ("cpl", "am", "ac"), [(0, True, True), (1, True, True), (2, True, True), (3, False, True), (3, True, False)]
)
def test_alignment_is_checked_only_at_ring_3_with_am_and_ac(cpl: int, am: bool, ac: bool) -> None:
    scene = Scene("protected", cpl=cpl)
    changes(register("cr0", scene.machine.get("cr0") | AM * am), register("rflags", 2 | AC * ac), at(0x9001))(scene)
    assert_runs(scene.step("mov eax, [esi]"))


def test_misaligned_stacks_of_the_processor_are_not_looked_at() -> None:
    """A frame that the processor pushes for ring 0 is a supervisor's access."""
    scene = Scene("protected", cpl=3)
    changes(aligned, at(0x9001))(scene)
    scene.write(0x4004, (STACK[0] - 1).to_bytes(4, "little"))
    step = scene.step("mov eax, [esi]")
    assert step.faults == [(17, 0, "access.aligned")]
    assert step.register("rsp") == STACK[0] - 1 - 24
