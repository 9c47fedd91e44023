"""One machine instruction as text, by Capstone."""

from __future__ import annotations

from functools import cache
from typing import Any

import capstone

LONGEST_INSTRUCTION = 15


@cache
def _decoder(bits: int) -> Any:
    modes = {16: capstone.CS_MODE_16, 32: capstone.CS_MODE_32, 64: capstone.CS_MODE_64}
    return capstone.Cs(capstone.CS_ARCH_X86, modes[bits])


def disassemble(code: bytes, address: int, bits: int) -> str | None:
    """The first instruction in `code` (width 16, 32 or 64), or None if these bytes are none."""
    for _, _, mnemonic, operands in _decoder(bits).disasm_lite(code[:LONGEST_INSTRUCTION], address, 1):
        return f"{mnemonic} {operands}".rstrip()
    return None
