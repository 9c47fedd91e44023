"""Raw bits in words; the values are the manual's own examples and field layouts."""

from __future__ import annotations

import pytest

from emu.structures import (
    descriptor_words,
    error_code_words,
    fault_name,
    gate_words,
    page_entry_words,
    tss_field,
    vector_name,
)


@pytest.mark.parametrize(
    ("low", "ia32e", "words"),
    [
        (0x00CF9A000000FFFF, False, "code, non-conforming, readable, 32-bit, base 0x0, limit 0xFFFFFFFF, DPL=0, P=1"),
        (0x00AFFA000000FFFF, True, "code, non-conforming, readable, 64-bit, base 0x0, limit 0xFFFFFFFF, DPL=3, P=1"),
        (0x00409D0000001234, False, "code, conforming, execute-only, 32-bit, base 0x0, limit 0x1234, DPL=0, P=1"),
        (0x0000960000000FFF, False, "data, writable, expand-down, 16-bit, base 0x0, limit 0xFFF, DPL=0, P=1"),
        (0x1200890034560067, False, "available 32-bit TSS, base 0x12003456, limit 0x67, DPL=0, P=1"),
        (0x00008B0000000067, True, "busy 64-bit TSS, base 0x0, limit 0x67, DPL=0, P=1"),
        (0x0000010000000000, True, "reserved system type 1, base 0x0, limit 0x0, DPL=0, P=0"),
    ],
)
def test_descriptors(low: int, ia32e: bool, words: str) -> None:
    assert descriptor_words(low, ia32e=ia32e) == words


@pytest.mark.parametrize(
    ("low", "high", "ia32e", "words"),
    [
        (0xDEADEE000008BEEF, 0, False, "32-bit interrupt gate to 0x0008:0xDEADBEEF, DPL=3, P=1"),
        (0x00018E0200085678, 0xFFFF8000, True, "64-bit interrupt gate to 0x0008:0xFFFF800000015678, DPL=0, P=1, IST2"),
        (0x12348C0300080000, 0, False, "32-bit call gate to 0x0008:0x12340000, DPL=0, P=1, 3 parameters"),
        (0xFFFF870000081234, 0, False, "16-bit trap gate to 0x0008:0x1234, DPL=0, P=1"),
        (0x0000E50000280000, 0, False, "task gate to TSS 0x0028, DPL=3, P=1"),
    ],
)
def test_gates(low: int, high: int, ia32e: bool, words: str) -> None:
    assert gate_words(low, high, ia32e=ia32e) == words


@pytest.mark.parametrize(
    ("vector", "code", "parts"),
    [
        (13, 0x0008, ["GDT[1]"]),
        (13, 0x000C, ["LDT[1]"]),
        (13, 0x0402, ["IDT[0x80]"]),
        (11, 0x006B, ["IDT[0x0D]", "EXT=1"]),
        (13, 0, ["no descriptor"]),
        (14, 0x05, ["protection violation", "read", "user"]),
        (14, 0x02, ["not present", "write", "supervisor"]),
        (14, 0x19, ["protection violation", "reserved", "fetch"]),
    ],
)
def test_error_codes(vector: int, code: int, parts: list[str]) -> None:
    words = error_code_words(vector, code)
    assert all(part in words for part in parts), words


def test_fetch_and_reserved_are_said_only_when_set() -> None:
    assert "fetch" not in error_code_words(14, 0x7)
    assert "EXT" not in error_code_words(13, 0x10)


def test_names_of_faults() -> None:
    assert fault_name(13, 8) == "#GP(0x0008)"
    assert fault_name(6, 0) == "#UD"
    assert vector_name(0x80) == "vector 0x80"


@pytest.mark.parametrize(
    ("entry", "level", "size", "words"),
    [
        (0x5067, 1, 8, "page at 0x5000, P=1, R/W=1, U/S=1, A=1, D=1, G=0"),
        (0x8000000000003003, 3, 8, "table at 0x3000, P=1, R/W=1, U/S=0, A=0, XD=1"),
        (0x200083, 2, 8, "page at 0x200000, P=1, R/W=1, U/S=0, A=0, D=0, G=0"),
        (0x00C00087, 2, 4, "page at 0xC00000, P=1, R/W=1, U/S=1, A=0, D=0, G=0"),
        (0xFFE, 1, 8, "not present"),
    ],
)
def test_page_entries(entry: int, level: int, size: int, words: str) -> None:
    assert page_entry_words(entry, level, size) == words


@pytest.mark.parametrize(
    ("offset", "ia32e", "name"),
    [(4, True, "RSP0"), (20, True, "RSP2"), (36, True, "IST1"), (84, True, "IST7"), (28, True, None),
     (4, False, "ESP0"), (8, False, "SS0"), (24, False, "SS2"), (28, False, None), (102, False, "I/O map base")],
)  # fmt: skip
def test_tss_fields(offset: int, ia32e: bool, name: str | None) -> None:
    assert tss_field(offset, ia32e=ia32e) == name
