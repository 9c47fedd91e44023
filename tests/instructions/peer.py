"""The emulator and Unicorn, each running one piece of code from the same state, and what differs afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from emu._core import Machine
from instructions.forms import ARITHMETIC, DF, SCAN, ZF

unicorn = pytest.importorskip("unicorn")
from unicorn import x86_const as uc  # noqa: E402

CODE, DATA, SIZE = 0x40_0000, 0x60_0000, 0x1000
START = CODE + 0x80
NAMES = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{i}" for i in range(8, 16))]
HALT = 0xF4


@dataclass
class State:
    registers: list[int]
    flags: int
    memory: bytes
    rip: int = CODE


class Ours:
    """The emulator, in one mode, with flat segments and (in 64-bit mode) an identity map."""

    def __init__(self, bits: int) -> None:
        self.machine = machine = Machine(8 << 20)
        if bits == 64:
            machine.write_physical(0x1000, (0x2003).to_bytes(8, "little"))
            machine.write_physical(0x2000, (0x3003).to_bytes(8, "little"))
            machine.write_physical(0x3000, b"".join((i << 21 | 0x83).to_bytes(8, "little") for i in range(4)))
            machine.set("cr3", 0x1000)
            machine.set("cr4", 0x20)
            machine.set("efer", 0x500)
        machine.set("cr0", 0x8000_0011 if bits == 64 else 0x11)
        code = {16: 0x009B, 32: 0xC09B, 64: 0xA09B}[bits]
        data = 0x8093 if bits == 16 else 0xC093
        machine.set_segment("cs", 8, 0, 0xFFFF_FFFF, code | 0x8000)
        for name in ("es", "ss", "ds", "fs", "gs"):
            machine.set_segment(name, 16, 0, 0xFFFF_FFFF, data)
        machine.write_physical(CODE, bytes([HALT]) * SIZE)

    def run(self, code: bytes, before: State) -> State | None:
        machine = self.machine
        machine.write_physical(START, code + bytes([HALT]))
        machine.write_physical(DATA, before.memory)
        for name, value in zip(NAMES, before.registers, strict=True):
            machine.set(name, value)
        machine.set("rflags", before.flags)
        machine.set("rip", before.rip)
        end = machine.run(1000)
        machine.write_physical(START, bytes([HALT]) * (len(code) + 1))
        if end.reason != "halted":
            return None
        registers = [machine.get(name) for name in NAMES]
        return State(registers, machine.get("rflags"), machine.read_physical(DATA, SIZE), machine.get("rip") - 1)


class Theirs:
    def __init__(self, bits: int) -> None:
        self.emulator = unicorn.Uc(
            unicorn.UC_ARCH_X86, {16: unicorn.UC_MODE_32, 32: unicorn.UC_MODE_32, 64: unicorn.UC_MODE_64}[bits]
        )
        self.emulator.mem_map(CODE, SIZE)
        self.emulator.mem_map(DATA, SIZE)
        self.emulator.mem_write(CODE, bytes([0x90]) * SIZE)
        self.registers = [
            getattr(uc, f"UC_X86_REG_{(n if bits == 64 else 'e' + n[1:]).upper()}")
            for n in NAMES[: 16 if bits == 64 else 8]
        ]
        self.flags = uc.UC_X86_REG_EFLAGS
        self.faulted = False
        self.emulator.hook_add(unicorn.UC_HOOK_INTR, self.interrupted)
        self.rip = uc.UC_X86_REG_RIP if bits == 64 else uc.UC_X86_REG_EIP

    def interrupted(self, emulator: Any, number: int, data: object) -> None:
        self.faulted = True
        emulator.emu_stop()

    def run(self, code: bytes, before: State, *, whole: bool = False) -> State | None:
        """One instruction, or all of the code."""
        emulator = self.emulator
        self.faulted = False
        emulator.mem_write(START, code)
        emulator.ctl_remove_cache(CODE, CODE + SIZE)
        emulator.mem_write(DATA, before.memory)
        for register, value in zip(self.registers, before.registers, strict=False):
            emulator.reg_write(register, value)
        emulator.reg_write(self.flags, before.flags)
        try:
            if whole or code[0] in (0xF2, 0xF3) or code[:2] in (b"\x66\xf2", b"\x66\xf3"):
                emulator.emu_start(START, START + len(code))
            else:
                emulator.emu_start(START, 0, count=1)
        except unicorn.UcError:
            return None
        if self.faulted or emulator.reg_read(self.rip) == START:  # with count=1 some faults only leave RIP alone
            return None
        registers = [emulator.reg_read(r) for r in self.registers]
        registers += before.registers[len(registers) :]
        return State(
            registers, emulator.reg_read(self.flags), bytes(emulator.mem_read(DATA, SIZE)), emulator.reg_read(self.rip)
        )


def difference(ours: State | None, theirs: State | None, undefined: int) -> str:
    if ours is None or theirs is None:
        return "" if ours is theirs else f"ours {'faults' if ours is None else 'runs'}, theirs does not do the same"
    if undefined & SCAN and theirs.flags & ZF:
        return ""
    out = [f"{n}: {a:x}, not {b:x}" for n, a, b in zip(NAMES, ours.registers, theirs.registers, strict=True) if a != b]
    if (ours.flags ^ theirs.flags) & (ARITHMETIC | DF) & ~undefined:
        out.append(f"flags: {ours.flags:x}, not {theirs.flags:x}")
    if ours.rip != theirs.rip:
        out.append(f"rip: {ours.rip:x}, not {theirs.rip:x}")
    out += [
        f"memory {i:x}: {a:x}, not {b:x}"
        for i, (a, b) in enumerate(zip(ours.memory, theirs.memory, strict=True))
        if a != b
    ][:4]
    return "; ".join(out)
