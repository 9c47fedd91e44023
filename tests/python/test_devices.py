"""The devices of the test bench, driven by small programs in real mode."""

from __future__ import annotations

import pytest

from emu import Machine, Segment
from emu.run import KEPT_OUTPUT, Run

EXIT = b"\xe6\xf4"  # out 0xF4, al
HALT = b"\xf4"


def run(code: bytes, **registers: int) -> tuple[Machine, Run]:
    machine = Machine(memory=1 << 20)
    machine.memory.write(0x7C00, code)
    machine.set_segment("cs", Segment(0, 0, 0xFFFF, 0x93))
    machine.registers.rip = 0x7C00
    for name, value in registers.items():
        setattr(machine.registers, name, value)
    return machine, machine.run(budget=10_000_000)


@pytest.mark.parametrize(("out", "status"), [(b"\xe6\xf4", 0x78), (b"\xe7\xf4", 0x5678), (b"\x66\xe7\xf4", 0x12345678)])
def test_exit_takes_the_value_written_whole(out: bytes, status: int) -> None:
    _, end = run(out, rax=0x12345678)
    assert (end.stop.reason, end.status) == ("exit", status)
    assert str(status) in end.stop.detail


def test_text_written_to_the_debug_port_is_the_output() -> None:
    code = b"".join(b"\xb0" + bytes([letter]) + b"\xe6\xe9" for letter in b"hi\n") + EXIT
    _, end = run(code)
    assert (end.output, end.serial, end.output_dropped) == (b"hi\n", b"", 0)


def test_each_run_has_its_own_output() -> None:
    machine, first = run(b"\xb0A\xe6\xe9\xe6\xf4\xb0B\xe6\xe9\xe6\xf4")
    second = machine.run(budget=100)
    assert (first.output, second.output) == (b"A", b"B")


def test_output_is_bounded() -> None:
    rounds = KEPT_OUTPUT + 5
    _, end = run(b"\xe6\xe9\x66\x49\x75\xfa" + EXIT, rax=ord("x"), rcx=rounds)  # out; dec ecx; jnz
    assert (len(end.output), end.output_dropped) == (KEPT_OUTPUT, 5)


def test_the_debug_port_can_be_found() -> None:
    machine, _ = run(b"\xe4\xe9" + HALT)
    assert machine.registers.rax & 0xFF == 0xE9


def test_nobody_answers_with_ones() -> None:
    machine, _ = run(b"\x66\xed" + HALT, rdx=0xCF8)  # in eax, dx
    assert machine.registers.rax & 0xFFFFFFFF == 0xFFFFFFFF


def test_keyboard_controller_resets_only_on_its_command() -> None:
    machine, end = run(b"\xb0\xd1\xe6\x64\xb0\xfe\xe6\x64" + HALT)
    assert end.stop.reason == "reset"
    assert machine.registers.rax & 0xFF == 0xFE


def test_halt_ends_the_run() -> None:
    _, end = run(HALT)
    assert end.stop.reason == "halted"


def out(port: int, value: int) -> bytes:
    return b"\xba" + port.to_bytes(2, "little") + b"\xb0" + bytes([value]) + b"\xee"


def inp(port: int) -> bytes:
    return b"\xba" + port.to_bytes(2, "little") + b"\xec"


# PC16550D data sheet, section "Registers".
DATA, ENABLE, IDENTIFICATION, LINE, MODEM, LINE_STATUS, MODEM_STATUS, SCRATCH = range(0x3F8, 0x400)


def test_polled_serial_output() -> None:
    poll = inp(LINE_STATUS) + b"\xa8\x20\x74\xf8"  # test al, THRE; jz back to the mov
    _, end = run(b"".join(poll + out(DATA, letter) for letter in b"ok") + EXIT)
    assert (end.serial, end.output) == (b"ok", b"")


def test_with_dlab_the_divisor_is_written_not_sent() -> None:
    code = out(LINE, 0x80) + out(DATA, 0x0C) + out(ENABLE, 1) + inp(DATA) + b"\x88\xc3" + out(LINE, 3) + out(DATA, 65)
    machine, end = run(code + EXIT)
    assert machine.registers.rbx == 0x0C
    assert end.serial == b"A"


@pytest.mark.parametrize(
    ("write", "read", "value"),
    [
        (out(SCRATCH, 0x5A), SCRATCH, 0x5A),
        (out(ENABLE, 0xFF), ENABLE, 0x0F),  # the upper four bits do not exist
        (b"", IDENTIFICATION, 0x01),  # no interrupt is pending
        (out(IDENTIFICATION, 0x01), IDENTIFICATION, 0xC1),  # FIFOs are on
        (b"", LINE_STATUS, 0x60),
        (out(MODEM, 0x10) + out(DATA, 0xAE), DATA, 0xAE),  # loopback
        (out(MODEM, 0x10) + out(DATA, 0xAE), LINE_STATUS, 0x61),
        (out(MODEM, 0x1A), MODEM_STATUS, 0x90),  # loopback: OUT2 to DCD, RTS to CTS
    ],
)
def test_serial_registers(write: bytes, read: int, value: int) -> None:
    machine, end = run(write + inp(read) + HALT)
    assert machine.registers.rax & 0xFF == value
    assert end.serial == b""
