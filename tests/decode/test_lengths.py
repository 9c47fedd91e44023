"""Instruction lengths against Capstone: random bytes, 32-bit and 64-bit code.

The instruction is put at the end of the last mapped page. With all its bytes before the end, fetching it must not touch
the next page; with one byte less before the end, it must.
"""

import random
from typing import Any

import pytest

from emu._core import Machine

capstone = pytest.importorskip("capstone")

pytestmark = pytest.mark.peer

CODE_END = 0x20_0000  # the first page that is not mapped
TRIALS, SEED = 4000, 1
PREFIXES = [0x66, 0x67, 0x2E, 0x64, 0xF2, 0xF3, 0xF0]
MODES = {32: capstone.CS_MODE_32, 64: capstone.CS_MODE_64}


def machine_of(bits: int) -> Machine:
    """Paging on, 2 MiB mapped, no IDT: a fetch beyond the mapping ends in a shutdown after #PF with this CR2."""
    machine = Machine(8 << 20)
    table = {64: 8, 32: 4}[bits]
    if bits == 64:
        machine.write_physical(0x1000, (0x2003).to_bytes(table, "little"))
        machine.write_physical(0x2000, (0x3003).to_bytes(table, "little"))
        machine.write_physical(0x3000, (0x83).to_bytes(table, "little"))
        machine.set("cr4", 0x20)
        machine.set("efer", 0x500)
    else:
        machine.write_physical(0x1000, (0x2003).to_bytes(table, "little"))
        machine.write_physical(0x2000, b"".join((i << 12 | 3).to_bytes(table, "little") for i in range(512)))
    machine.set("cr3", 0x1000)
    machine.set("cr0", 0x8000_0011)
    machine.set_segment("cs", 8, 0, 0xFFFF_FFFF, 0xA09B if bits == 64 else 0xC09B)
    for name in ("es", "ss", "ds", "fs", "gs"):
        machine.set_segment(name, 16, 0, 0xFFFF_FFFF, 0xC093)
    return machine


def fetch_faults(machine: Machine, code: bytes) -> bool:
    """Whether the processor asks for a byte after `code`."""
    at = CODE_END - len(code)
    machine.write_physical(at, code)
    machine.set("cr2", 0)
    machine.set("rflags", 2)
    machine.set("cpl", 0)
    machine.set("rsp", 0x10_0000)
    machine.set("rip", at)
    machine.set("idtr_limit", 0)
    end = machine.run(1, "off")
    first = [r for r in end.records if r["a"] == 14 and int(r["c"]) == CODE_END and int(r["d"]) == at]
    return bool(first)


@pytest.mark.parametrize("bits", [32, 64])
def test_lengths(bits: int) -> None:
    rng = random.Random(SEED + bits)
    disassembler = capstone.Cs(capstone.CS_ARCH_X86, MODES[bits])
    disassembler.detail = True
    failures = []
    for _ in range(TRIALS):
        prefixes = bytes(rng.sample(PREFIXES, rng.choice([0, 0, 0, 1, 1, 2])))
        rex = bytes([rng.randrange(0x40, 0x50)]) if bits == 64 and rng.random() < 0.3 else b""
        escape = b"\x0f" if rng.random() < 0.3 else b""
        code = prefixes + rex + escape + rng.randbytes(15)
        found = next(disassembler.disasm(code, 0x1000, 1), None)
        if found is None or found.size < 2 or skipped(found, bits):
            continue
        machine = machine_of(bits)
        exact, short = code[: found.size], code[: found.size - 1]
        if fetch_faults(machine, exact) or not fetch_faults(machine_of(bits), short):
            failures.append(f"{exact.hex(' ')}: {found.mnemonic} {found.op_str}")
    assert not failures, "\n" + "\n".join(failures[:60])


# Extensions that the modelled processors do not have: to them these are invalid opcodes, without operands.
ABSENT = ("v", "xsave", "xrstor", "xcrypt", "xsha", "xstore", "montmul", "rdrand", "rdseed", "rdpid", "movbe", "crc32",
          "insertq", "extrq", "xbegin", "xabort", "rstorssp")  # fmt: skip
THREE_D_NOW = b"\x0f\x0f"


def skipped(found: Any, bits: int) -> bool:
    name = found.mnemonic.split()[-1]
    if THREE_D_NOW in found.bytes or (name.startswith(ABSENT) and name not in ("verr", "verw")):
        return True
    # Prefix 66 before near branches: Capstone follows AMD, and takes RET's operand for longer than it is.
    return bits == 64 and 0x66 in found.prefix and name.startswith(("j", "call", "ret", "loop"))
