"""The machine from Python: state after RESET, pokes, memory, translation, and what it refuses."""

from __future__ import annotations

import contextlib
import signal
import struct
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from emu import EmuError, Machine, Segment

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

MIB = 1 << 20
JUMP_TO_SELF = b"\xeb\xfe"


@pytest.fixture
def machine() -> Machine:
    return Machine(memory=16 * MIB)


def real_mode(machine: Machine, code: bytes) -> None:
    """Puts code at 0000:7C00 and goes there."""
    machine.memory.write(0x7C00, code)
    machine.set_segment("cs", Segment(0, 0, 0xFFFF, 0x93))
    machine.registers.rip = 0x7C00


# Intel SDM vol. 3, Processor State After Reset, column "RESET".
AFTER_RESET = {
    "rip": 0xFFF0, "rflags": 2, "cr0": 0x60000010, "cr2": 0, "cr3": 0, "cr4": 0, "efer": 0, "rax": 0, "rsp": 0,
    "dr0": 0, "dr6": 0xFFFF0FF0, "dr7": 0x400, "gdtr_base": 0, "gdtr_limit": 0xFFFF, "idtr_base": 0,
    "idtr_limit": 0xFFFF, "cpl": 0,
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), AFTER_RESET.items())
def test_register_after_reset(machine: Machine, name: str, value: int) -> None:
    for register in AFTER_RESET:
        if register not in {"cr0", "cr4", "efer"}:
            setattr(machine.registers, register, 2)
    machine.reset()
    assert getattr(machine.registers, name) == value


def test_segments_after_reset(machine: Machine) -> None:
    assert machine.segment("cs") == Segment(0xF000, 0xFFFF0000, 0xFFFF, 0x93)
    assert machine.segment("ds") == Segment(0, 0, 0xFFFF, 0x93)
    assert machine.segment("tr").limit == machine.segment("ldtr").limit == 0xFFFF
    assert machine.mode == "real"


def test_memory_survives_reset(machine: Machine) -> None:
    machine.memory.write(0x1234, b"still here")
    machine.reset()
    assert machine.memory.read(0x1234, 10) == b"still here"


def test_registers_keep_what_is_poked(machine: Machine) -> None:
    machine.registers.r15 = 0x0123456789ABCDEF
    machine.registers.lstar = 0xFFFFFFFF80000000
    values = machine.registers.as_dict()
    assert (values["r15"], values["lstar"]) == (0x0123456789ABCDEF, 0xFFFFFFFF80000000)


def test_numbers_of_numpy_are_numbers(machine: Machine) -> None:
    setattr(machine.registers, "rbx", np.uint64(1 << 63))  # noqa: B010 - what numpy gives is no int to mypy
    machine.memory.write(np.int64(16), np.arange(4, dtype=np.uint8).data)
    assert machine.registers.rbx == 1 << 63
    assert machine.memory.read(np.uint32(16), np.int8(4)) == bytes(range(4))


def test_a_number_is_not_data(machine: Machine) -> None:
    with pytest.raises(TypeError):
        machine.memory.write(0, 5)  # type: ignore[arg-type]


def test_mode_follows_pokes(machine: Machine) -> None:
    machine.registers.cr0 = 0x11
    assert machine.mode == "protected"
    machine.registers.efer = 0x500
    assert machine.mode == "compatibility"
    machine.set_segment("cs", Segment(0x08, 0, 0xFFFFFFFF, 0xA09B))  # L = 1
    assert machine.mode == "64-bit"


def test_nothing_reads_as_ones(machine: Machine) -> None:
    assert machine.memory.read(16 * MIB - 1, 3)[1:] == b"\xff\xff"


def test_rom_ends_at_4_gib_and_shows_below_1_mib(machine: Machine) -> None:
    machine.load_rom(bytes(0xF000) + b"begin" + bytes(0xFF0 - 5) + b"reset vector16 b")
    assert machine.memory.read(0xFFFFFFF0, 16) == b"reset vector16 b"
    assert machine.memory.read(0xFFFF0, 16) == b"reset vector16 b"
    assert machine.memory.read(0xFF000, 5) == b"begin"


REFUSED: list[tuple[Callable[[Machine], object], str]] = [
    (lambda _: Machine(memory=4097), "multiple of 4096"),
    (lambda _: Machine(memory=-4096), "memory"),
    (lambda _: Machine(memory=1 << 60), "64 GiB"),
    (lambda m: m.registers.no_such, "no_such"),
    (lambda m: setattr(m.registers, "no_such", 1), "no_such"),
    (lambda m: setattr(m.registers, "rax", 1 << 64), "rax"),
    (lambda m: setattr(m.registers, "cr0", 1 << 6), "cr0"),
    (lambda m: setattr(m.registers, "cpl", 4), "cpl"),
    (lambda m: m.segment("xs"), "xs"),
    (lambda m: m.set_segment("cs", Segment(0x10000, 0, 0, 0)), "selector"),
    (lambda m: m.set_segment("cs", Segment(8, 0, 0, 0x0F00)), "attributes"),
    (lambda m: m.memory.write(16 * MIB - 1, b"ab"), "RAM"),
    (lambda m: m.memory.read(1 << 52, 1), "physical address"),
    (lambda m: m.memory.read(0, 1 << 40), "1 GiB"),
    (lambda m: m.memory.read_linear(-1, 1), "linear address"),
    (lambda m: m.load_rom(b"odd"), "4096"),
    (lambda m: m.run(-1), "budget"),
    (lambda m: m.run(1.5), "budget"),  # type: ignore[arg-type]
    (lambda m: setattr(m.registers, "rip", "top"), "rip"),
    (lambda m: m.run(1, trace="all"), "all"),  # type: ignore[arg-type]
    (lambda m: m.run(1, capacity=0), "capacity"),
    (lambda m: m.run(1, capacity=1 << 40), "capacity"),
    (lambda _: Machine(profile="no such profile"), "no such profile"),
]


@pytest.mark.parametrize(("refused", "word"), REFUSED)
def test_bad_arguments_give_one_clear_sentence(
    machine: Machine, refused: Callable[[Machine], object], word: str
) -> None:
    with pytest.raises(EmuError) as caught:
        refused(machine)
    text = str(caught.value)
    assert word in text
    assert "\n" not in text


def test_a_missing_register_is_also_a_missing_attribute(machine: Machine) -> None:
    assert not hasattr(machine.registers, "no_such")


# --- translation --------------------------------------------------------------------------------------------------


def test_four_level_translation(machine: Machine) -> None:
    entries = {
        0x1000 + 8 * 511: 0x2003,  # PML4: the last 512 GiB
        0x2000 + 8 * 510: 0x3003,  # PDPT: the last but one GiB
        0x3000 + 8 * 1: 0x4003,  # page directory: a page table
        0x3000 + 8 * 2: 0x200000 | 0x83,  # and a 2-MiB page
        0x4000 + 8 * 7: 0x9003,  # page table
    }
    for address, entry in entries.items():
        machine.memory.write(address, struct.pack("<Q", entry))
    machine.memory.write(0x9123, b"found")
    for name, value in {"cr3": 0x1000, "cr4": 1 << 5, "efer": 0x500, "cr0": 0x80000011}.items():
        setattr(machine.registers, name, value)
    base = 0xFFFFFFFF80000000
    assert machine.memory.translate(base + 0x200000 + 7 * 4096 + 0x123) == 0x9123
    assert machine.memory.translate(base + 0x400000 + 0x12345) == 0x212345
    assert machine.memory.translate(base) is None
    assert machine.memory.read_linear(base + 0x200000 + 7 * 4096 + 0x123, 5) == b"found"
    assert machine.memory.read_linear(base + 0x200000 + 8 * 4096 - 2, 4) is None


def test_pae_translation_goes_by_the_pdpte_registers(machine: Machine) -> None:
    """Intel SDM vol. 3, PDPTE Registers: they are loaded with CR3, CR0 and CR4, not read on each walk."""
    machine.memory.write(0x1020 + 8 * 3, struct.pack("<Q", 0x2001))  # CR3 needs to be aligned to 32 bytes only
    machine.memory.write(0x2000 + 8 * 511, struct.pack("<Q", 0x400083))  # a 2-MiB page
    for name, value in {"cr3": 0x1020, "cr4": 1 << 5, "cr0": 0x80000011}.items():
        setattr(machine.registers, name, value)
    assert machine.memory.translate(0xFFE12345) == 0x412345
    assert machine.memory.translate(0x00012345) is None
    machine.memory.write(0x1020, bytes(32))
    machine.registers.rip = 0
    assert machine.memory.translate(0xFFE12345) == 0x412345
    machine.registers.cr3 = 0x1020
    assert machine.memory.translate(0xFFE12345) is None


def test_two_level_translation(machine: Machine) -> None:
    machine.memory.write(0x1000 + 4 * 3, struct.pack("<I", 0x2003))
    machine.memory.write(0x1000 + 4 * 4, struct.pack("<I", 0x00800083))  # a 4-MiB page
    machine.memory.write(0x2000 + 4 * 5, struct.pack("<I", 0x7003))
    for name, value in {"cr3": 0x1000, "cr4": 1 << 4, "cr0": 0x80000011}.items():
        setattr(machine.registers, name, value)
    assert machine.memory.translate(0x00C05ABC) == 0x7ABC
    assert machine.memory.translate(0x01012345) == 0x812345
    machine.registers.cr4 = 0  # without PSE the bit says nothing: the entry points to a page table
    assert machine.memory.translate(0x01012345) is None


# --- running -------------------------------------------------------------------------------------------------------


def test_step_runs_one_instruction(machine: Machine) -> None:
    real_mode(machine, b"\x40\x43")  # inc ax; inc bx
    assert machine.step().instructions == 1
    assert (machine.registers.rax, machine.registers.rbx, machine.registers.rip) == (1, 0, 0x7C01)


def test_budget_is_kept_to_the_instruction(machine: Machine) -> None:
    real_mode(machine, b"\x40\x43\xeb\xfc")  # inc ax; inc bx; jmp -4
    run = machine.run(budget=1000)
    assert (run.stop.reason, run.instructions) == ("budget", 1000)
    assert machine.registers.rax == 334
    assert machine.registers.rbx == 333


def test_code_written_by_the_host_is_seen(machine: Machine) -> None:
    real_mode(machine, b"\x40" + JUMP_TO_SELF)  # inc ax
    machine.run(budget=10)
    real_mode(machine, b"\x43" + JUMP_TO_SELF)  # inc bx
    machine.run(budget=10)
    assert (machine.registers.rax, machine.registers.rbx) == (1, 1)


def test_a_long_run_can_be_interrupted(machine: Machine) -> None:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    real_mode(machine, JUMP_TO_SELF)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            machine.run(budget=1 << 60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert machine.registers.rip == 0x7C00
    assert machine.run(budget=5).instructions == 5


def test_a_running_machine_is_left_alone_by_other_threads(machine: Machine) -> None:
    real_mode(machine, JUMP_TO_SELF)
    runner = threading.Thread(target=machine.run, args=(400_000_000,))
    runner.start()

    def refused() -> bool:
        with contextlib.suppress(EmuError):
            machine.memory.read(0, 1)
            return False
        return True

    seen = False
    while runner.is_alive() and not seen:
        seen = refused()
    runner.join()
    assert seen
    assert not refused()
