"""Instructions with random operands, registers and flags, against Unicorn, one by one and in streams.

Each trial fills in the operands of a form, runs the code on both sides from the same state, and compares registers,
memory and all flags but those that the manual leaves undefined.
"""

from __future__ import annotations

import dataclasses
import random

import capstone
import pytest

from instructions import forms
from instructions.forms import AF, CF, DF, FORMS, OF, PF, SF, ZF, Form
from instructions.peer import DATA, SIZE, START, Ours, State, Theirs, difference

pytestmark = pytest.mark.peer

TARGET = DATA + 0x800  # memory operands are here
RSP, RBP, RSI, RDI = 4, 5, 6, 7
TRIALS, STREAMS = 40, 300


def interesting(rng: random.Random, bits: int) -> int:
    """Random values, drawn toward the edges of all widths."""
    width = rng.choice([8, 16, 32, 64])
    value = rng.choice([0, 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, *[rng.getrandbits(64)] * 6])
    return value & ((1 << bits) - 1)


def memory_operand(rng: random.Random, bits: int, registers: list[int], digit: int, target: int) -> tuple[int, bytes]:
    """REX bits and ModR/M with what follows it, for an operand at `target`: the base register is set to fit."""
    mask = (1 << bits) - 1
    high = bits == 64 and rng.random() < 0.5
    base = rng.choice([0, 1, 2, 3, 5, 6, 7]) + 8 * high
    size = rng.choice([1, 4])
    displacement = rng.randrange(-100, 100)
    tail = (displacement & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    mod = (1 if size == 1 else 2) << 6
    index = rng.choice([i for i in range(8) if i not in (4, base)]) if rng.random() < 0.5 or base & 7 == 4 else None
    if index is None:
        registers[base] = (target - displacement) & mask
        return int(high), bytes([mod | digit << 3 | base & 7]) + tail
    scale = rng.randrange(4)
    registers[base] = (target - displacement - (registers[index] << scale)) & mask
    return int(high), bytes([mod | digit << 3 | 4, scale << 6 | index << 3 | base & 7]) + tail


def trial(rng: random.Random, form: Form, bits: int) -> tuple[bytes, State, int]:  # noqa: C901
    mode = 64 if bits == 64 else 32
    registers = [interesting(rng, mode) for _ in range(16)]
    if mode == 32:
        registers[8:] = [0] * 8
    if form.setup.get("small"):
        registers = [r & 0xFF if rng.random() < 0.5 else -(r & 0xFF) & ((1 << mode) - 1) for r in registers]
    if form.count_mask is not None:
        registers[1] &= form.count_mask
    registers[RSP] = DATA + 0xC00 + rng.randrange(16)
    if form.setup.get("string"):
        registers[RSI], registers[RDI] = DATA + 0x400, DATA + 0x700 + rng.randrange(3)
    if form.name.startswith(("enter", "push pop c9")):
        registers[RBP] = DATA + 0xC80
    rex = 8 if bits == 64 and rng.random() < 0.4 and not form.setup.get("no_rex") else 0
    operand_prefix = (
        b"\x66"
        if rng.random() < 0.3 and not rex and not form.setup.get("branch") and not form.setup.get("wide")
        else b""
    )
    size = 8 if rex else 2 if (bits == 16) != bool(operand_prefix) else 4
    tail = b""
    if form.modrm:
        digit = rng.randrange(8) if form.digit is None else form.digit
        if form.register and (not form.memory or rng.random() < 0.5):
            rm = rng.choice([i for i in range(8) if i != RSP or form.byte])
            if bits == 64 and rng.random() < 0.5:
                rex |= 5 if form.digit is None else 1
            tail = bytes([0xC0 | digit << 3 | rm])
        else:
            extension, tail = memory_operand(rng, mode, registers, digit, TARGET + rng.randrange(8))
            rex |= extension
    if form.setup.get("small") and TARGET - 0x1000 < registers[digit] < TARGET + 0x1000:
        return b"", State([], 0, b""), -1
    immediate = size if form.immediate == -8 else min(size, 4) if form.immediate == -1 else form.immediate
    value = rng.getrandbits(8 * immediate) if immediate else 0
    if form.setup.get("branch"):
        value &= 0x3F
    tail += value.to_bytes(immediate, "little")
    prefix = operand_prefix + rng.choice(form.prefixes) + (bytes([0x40 | rex]) if rex else b"")
    memory = rng.randbytes(SIZE)
    flags = (
        2
        | sum(flag for flag in (CF, PF, AF, ZF, SF, OF) if rng.random() < 0.5)
        | (DF if form.setup.get("string") and rng.random() < 0.3 else 0)
    )
    undefined = form.undefined
    if form.shift:
        by_immediate = form.immediate != 0
        count = (value if by_immediate else 1 if form.opcode[0] in (0xD0, 0xD1) else registers[1]) & (
            63 if size == 8 and not form.byte else 31
        )
        width = 8 if form.byte else 8 * size
        rotate = form.digit is not None and form.digit < 4
        undefined = (
            (0 if count == 0 or rotate else AF)
            | (0 if count <= 1 else OF)
            | (CF if count >= width and not rotate else 0)
        )
        if form.opcode[0] == 0x0F and count > width:
            undefined = -1  # the result as well
    return prefix + form.opcode + tail, State(registers, flags, memory, START), undefined


@pytest.mark.parametrize("bits", [32, 64])
def test_forms(bits: int) -> None:
    ours, theirs = Ours(bits), Theirs(bits)
    rng = random.Random(bits)
    failures = []
    for form in FORMS:
        if bits not in form.bits:
            continue
        for _ in range(TRIALS):
            code, before, undefined = trial(rng, form, bits)
            if undefined == -1:
                continue
            if what := difference(ours.run(code, before), theirs.run(code, before), undefined):
                failures.append(f"{form.name}: {code.hex(' ')}: {what}")
                break
    assert not failures, "\n" + "\n".join(failures)


def capstone_of(bits: int) -> capstone.Cs:
    return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64 if bits == 64 else capstone.CS_MODE_32)


def only_registers(form: Form) -> Form:
    return dataclasses.replace(form, memory=False)


def stream_forms(bits: int) -> list[Form]:
    """Forms whose flags are all defined but AF, which nothing in a stream reads; registers only."""
    chosen = forms.alu_forms() + [
        f for f in forms.move_forms() if f.name.startswith(("mov", "extend", "cmov", "set", "xchg"))
    ]
    return [f for f in chosen if bits in f.bits and f.register and not f.undefined & ~AF]


@pytest.mark.parametrize("bits", [32, 64])
def test_streams(bits: int) -> None:
    """Thirty instructions and branches over one of them: blocks, links and fused pairs are all in use."""
    ours, theirs = Ours(bits), Theirs(bits)
    rng = random.Random(1000 + bits)
    chosen = stream_forms(bits)
    failures = []
    for _ in range(STREAMS):
        code = b""
        for _ in range(15):
            plain, skipped = (trial(rng, only_registers(rng.choice(chosen)), bits)[0] for _ in range(2))
            code += plain + bytes([0x70 | rng.randrange(16), len(skipped)]) + skipped
        before = trial(rng, chosen[0], bits)[1]
        if what := difference(ours.run(code, before), theirs.run(code, before, whole=True), AF):
            failures.append(f"{code.hex(' ')}: {what}")
    assert not failures, "\n" + "\n".join(failures[:3])


@pytest.mark.parametrize("bits", [32, 64])
def test_addresses(bits: int) -> None:
    """LEA with any ModR/M, SIB and displacement, with and without the address-size prefix."""
    ours, theirs = Ours(bits), Theirs(bits)
    rng = random.Random(2000 + bits)
    failures = []
    for _ in range(1000):
        prefix = rng.choice([b"", b"\x67", b"\x66", b"\x67\x66"])
        rex = bytes([0x40 | rng.randrange(16)]) if bits == 64 and rng.random() < 0.7 else b""
        code = (
            prefix
            + rex
            + b"\x8d"
            + bytes([rng.randrange(0xC0) & ~0x38 | rng.choice([0, 3, 7]) << 3])
            + rng.randbytes(5)
        )
        _, before, _ = trial(rng, FORMS[0], bits)
        length = next(capstone_of(bits).disasm(code, START, 1)).size
        if what := difference(ours.run(code[:length], before), theirs.run(code[:length], before), 0):
            failures.append(f"{code.hex(' ')}: {what}")
    assert not failures, "\n" + "\n".join(failures[:10])
