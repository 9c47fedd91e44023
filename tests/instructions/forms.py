"""Instruction encodings with their operands left open, by family."""

from __future__ import annotations

from dataclasses import dataclass, field

CF, PF, AF, ZF, SF, DF, OF = 1, 4, 16, 64, 128, 1024, 2048
ARITHMETIC = CF | PF | AF | ZF | SF | OF
SCAN = 1 << 32  # among undefined flags: the result is undefined if ZF says that the source was 0


@dataclass(frozen=True)
class Form:
    name: str
    opcode: bytes
    digit: int | None = None  # of ModR/M's reg field; None: a register
    modrm: bool = True
    immediate: int = 0  # bytes; -1: by operand size, at most 4; -8: up to 8
    byte: bool = False  # operands of one byte
    undefined: int = 0
    memory: bool = True  # E may be memory
    register: bool = True  # E may be a register
    prefixes: tuple[bytes, ...] = (b"",)
    bits: tuple[int, ...] = (16, 32, 64)  # modes
    shift: bool = False  # undefined flags depend on the count
    setup: dict[str, int] = field(default_factory=dict)
    count_mask: int | None = None  # keeps RCX small


def alu_forms() -> list[Form]:
    forms = []
    for i, name in enumerate(["add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"]):
        undefined = AF if name in ("or", "and", "xor") else 0
        forms += [Form(f"{name} {n}", bytes([8 * i + n]), byte=n % 2 == 0, undefined=undefined) for n in range(4)]
        for opcode, immediate, byte in ((0x80, 1, True), (0x81, -1, False), (0x83, 1, False)):
            forms.append(
                Form(f"{name} {opcode:x}", bytes([opcode]), i, immediate=immediate, byte=byte, undefined=undefined)
            )
        forms.append(Form(f"{name} a8", bytes([8 * i + 4]), modrm=False, immediate=1, byte=True, undefined=undefined))
        forms.append(Form(f"{name} a", bytes([8 * i + 5]), modrm=False, immediate=-1, undefined=undefined))
    for name, digit, opcodes in (
        ("inc", 0, (0xFE, 0xFF)),
        ("dec", 1, (0xFE, 0xFF)),
        ("not", 2, (0xF6, 0xF7)),
        ("neg", 3, (0xF6, 0xF7)),
    ):
        forms += [Form(f"{name} {opcode:x}", bytes([opcode]), digit, byte=opcode % 2 == 0) for opcode in opcodes]
    forms += [Form("test 84", b"\x84", byte=True, undefined=AF), Form("test 85", b"\x85", undefined=AF)]
    forms += [
        Form("test f6", b"\xf6", 0, immediate=1, byte=True, undefined=AF),
        Form("test f7", b"\xf7", 0, immediate=-1, undefined=AF),
    ]
    forms += [Form(f"incdec {i:x}", bytes([i]), modrm=False, bits=(16, 32)) for i in (0x40, 0x47, 0x48, 0x4F)]
    return forms


def shift_forms() -> list[Form]:
    forms = []
    for digit, name in enumerate(["rol", "ror", "rcl", "rcr", "shl", "shr", "sal", "sar"]):
        for opcode, immediate in ((0xC0, 1), (0xD0, 0), (0xD2, 0)):
            forms += [
                Form(
                    f"{name} {opcode:x}",
                    bytes([opcode + (not byte)]),
                    digit,
                    immediate=immediate,
                    byte=byte,
                    shift=True,
                )
                for byte in (True, False)
            ]
    for name, opcode in (("shld", 0xA4), ("shrd", 0xAC)):
        forms.append(Form(name, bytes([0x0F, opcode]), immediate=1, shift=True))
        forms.append(Form(f"{name} cl", bytes([0x0F, opcode + 1]), shift=True))
    return forms


def bit_forms() -> list[Form]:
    rest = OF | SF | AF | PF
    forms = [Form(f"bit {op:x}", bytes([0x0F, op]), undefined=rest, memory=False) for op in (0xA3, 0xAB, 0xB3, 0xBB)]
    forms += [
        Form(f"bit {op:x} memory", bytes([0x0F, op]), undefined=rest, register=False, setup={"small": 1})
        for op in (0xA3, 0xAB, 0xB3, 0xBB)
    ]
    forms += [Form(f"bit imm {digit}", b"\x0f\xba", digit, immediate=1, undefined=rest) for digit in range(4, 8)]
    forms += [
        Form("bsf", b"\x0f\xbc", undefined=rest | CF | SCAN),
        Form("bsr", b"\x0f\xbd", undefined=rest | CF | SCAN),
    ]
    forms += [
        Form("popcnt", b"\x0f\xb8", prefixes=(b"\xf3",)),
        Form("tzcnt", b"\x0f\xbc", prefixes=(b"\xf3",), undefined=rest),
    ]
    forms += [Form("lzcnt", b"\x0f\xbd", prefixes=(b"\xf3",), undefined=rest)]
    forms += [
        Form(f"bswap {r}", bytes([0x0F, 0xC8 + r]), modrm=False, bits=(32, 64), setup={"wide": 1}) for r in (0, 3)
    ]
    return forms


def multiply_forms() -> list[Form]:
    rest = SF | ZF | AF | PF
    forms = []
    for digit, name in ((4, "mul"), (5, "imul"), (6, "div"), (7, "idiv")):
        undefined = ARITHMETIC if digit > 5 else rest
        forms += [
            Form(f"{name} {opcode:x}", bytes([opcode]), digit, byte=opcode == 0xF6, undefined=undefined)
            for opcode in (0xF6, 0xF7)
        ]
    forms += [Form("imul2", b"\x0f\xaf", undefined=rest), Form("imul3", b"\x69", immediate=-1, undefined=rest)]
    return [*forms, Form("imul3 8", b"\x6b", immediate=1, undefined=rest)]


def move_forms() -> list[Form]:
    forms = [Form(f"mov {op:x}", bytes([op]), byte=op % 2 == 0) for op in range(0x88, 0x8C)]
    forms += [Form("mov c6", b"\xc6", 0, immediate=1, byte=True), Form("mov c7", b"\xc7", 0, immediate=-1)]
    forms += [Form("mov b3", b"\xb3", modrm=False, immediate=1), Form("mov b4", b"\xb4", modrm=False, immediate=1)]
    forms += [Form("mov bb", b"\xbb", modrm=False, immediate=-8), Form("lea", b"\x8d", register=False)]
    forms += [Form(f"extend {op:x}", bytes([0x0F, op]), byte=op % 2 == 0) for op in (0xB6, 0xB7, 0xBE, 0xBF)]
    forms += [Form("movsxd", b"\x63", bits=(64,)), Form("xchg 86", b"\x86", byte=True), Form("xchg 87", b"\x87")]
    forms += [
        Form(f"one byte {op:x}", bytes([op]), modrm=False)
        for op in (0x90, 0x91, 0x97, 0x98, 0x99, 0xF5, 0xF8, 0xF9, 0xFC, 0xFD)
    ]
    forms += [
        Form(f"ah {op:x}", bytes([op]), modrm=False, setup={"no_rex": 1}) for op in (0x9E, 0x9F)
    ]  # Unicorn takes SPL
    forms += [Form(f"cmov {c:x}", bytes([0x0F, 0x40 + c])) for c in range(16)]
    forms += [Form(f"set {c:x}", bytes([0x0F, 0x90 + c]), 0, byte=True) for c in range(16)]
    forms += [Form("xadd 8", b"\x0f\xc0", byte=True), Form("xadd", b"\x0f\xc1")]
    forms += [Form("cmpxchg 8", b"\x0f\xb0", byte=True), Form("cmpxchg", b"\x0f\xb1")]
    forms += [
        Form("cmpxchg8b", b"\x0f\xc7", 1, register=False),
        Form("nop", b"\x0f\x1f", 0),
        Form("movnti", b"\x0f\xc3", register=False, bits=(32, 64), setup={"wide": 1}),
    ]
    decimal = (
        ("daa", b"\x27", OF),
        ("das", b"\x2f", OF),
        ("aaa", b"\x37", OF | SF | ZF | PF),
        ("aas", b"\x3f", OF | SF | ZF | PF),
    )
    forms += [
        Form(name, opcode, modrm=False, undefined=undefined, bits=(16, 32)) for name, opcode, undefined in decimal
    ]
    return [
        *forms,
        *(
            Form(n, o, modrm=False, immediate=1, undefined=OF | AF | CF, bits=(16, 32))
            for n, o in (("aam", b"\xd4"), ("aad", b"\xd5"))
        ),
    ]


def stack_forms() -> list[Form]:
    forms = [
        Form(f"push pop {op:x}", bytes([op]), modrm=False) for op in (0x50, 0x53, 0x54, 0x58, 0x5B, 0x5C, 0x9C, 0xC9)
    ]
    forms += [
        Form("push imm", b"\x68", modrm=False, immediate=-1),
        Form("push imm8", b"\x6a", modrm=False, immediate=1),
    ]
    forms += [Form("push e", b"\xff", 6), Form("pop e", b"\x8f", 0)]
    forms += [Form(f"enter {n}", bytes([0xC8, 0x18, 0, n]), modrm=False) for n in (0, 1, 2, 5)]
    return [
        *forms,
        Form("pusha", b"\x60", modrm=False, bits=(16, 32)),
        Form("popa", b"\x61", modrm=False, bits=(16, 32)),
    ]


def string_forms() -> list[Form]:
    return [
        Form(
            f"string {op:x}",
            bytes([op]),
            modrm=False,
            prefixes=(b"", b"\xf3", b"\xf2") if op in (0xA6, 0xA7, 0xAE, 0xAF) else (b"", b"\xf3"),
            count_mask=15,
            setup={"string": 1},
        )
        for op in (0xA4, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF)
    ]


def branch_forms() -> list[Form]:
    forms = [Form(f"jcc {c:x}", bytes([0x70 + c]), modrm=False, immediate=1, setup={"branch": 1}) for c in range(16)]
    forms += [
        Form(f"loop {op:x}", bytes([op]), modrm=False, immediate=1, setup={"branch": 1}, count_mask=3)
        for op in range(0xE0, 0xE4)
    ]
    forms += [Form("jmp", b"\xeb", modrm=False, immediate=1, setup={"branch": 1})]
    forms += [
        Form("call", b"\xe8\x10\x01", modrm=False, bits=(16,)),
        Form("call", b"\xe8\x10\x01\0\0", modrm=False, bits=(32, 64), setup={"wide": 1}),
    ]
    return forms


FORMS = (
    alu_forms()
    + shift_forms()
    + bit_forms()
    + multiply_forms()
    + move_forms()
    + stack_forms()
    + string_forms()
    + branch_forms()
)
