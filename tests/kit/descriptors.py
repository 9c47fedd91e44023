"""Descriptors and gates built from the manual's fields (Intel SDM vol. 3, Segment Descriptors; Gate Descriptors).

Independent of the C++ views on purpose: a shared mistake would prove nothing.
"""

from __future__ import annotations

import struct

CODE = 0x1A  # S, execute/read
CODE_EXECUTE_ONLY = 0x18
CODE_CONFORMING = 0x1E
DATA = 0x12  # S, read/write
DATA_READ_ONLY = 0x10
DATA_EXPAND_DOWN = 0x16
LDT = 0x02
TSS16, TSS16_BUSY, TSS32, TSS32_BUSY, TSS64, TSS64_BUSY = 0x01, 0x03, 0x09, 0x0B, 0x09, 0x0B
CALL_GATE16, TASK_GATE, INTERRUPT_GATE16, TRAP_GATE16 = 0x04, 0x05, 0x06, 0x07
CALL_GATE, INTERRUPT_GATE, TRAP_GATE = 0x0C, 0x0E, 0x0F


def segment(
    type_: int,
    *,
    base: int = 0,
    limit: int = 0xFFFFF,
    dpl: int = 0,
    present: bool = True,
    long: bool = False,
    db: bool = True,
    granular: bool = True,
) -> bytes:
    """An 8-byte segment descriptor; `type_` holds S in bit 4, the type field below; `limit` is the raw 20 bits."""
    low = (limit & 0xFFFF) | (base & 0xFFFFFF) << 16 | type_ << 40 | dpl << 45 | int(present) << 47
    low |= (limit >> 16 & 0xF) << 48 | int(long) << 53 | int(db) << 54 | int(granular) << 55
    low |= (base >> 24 & 0xFF) << 56
    return struct.pack("<Q", low)


def system(type_: int, base: int, limit: int, *, dpl: int = 0, present: bool = True, wide: bool = False) -> bytes:
    """A TSS or LDT descriptor; 16 bytes long if `wide` (IA-32e mode)."""
    low = segment(type_, base=base & 0xFFFFFFFF, limit=limit, dpl=dpl, present=present, db=False, granular=False)
    return low + struct.pack("<Q", base >> 32) if wide else low


def gate(
    type_: int,
    selector: int,
    offset: int,
    *,
    dpl: int = 0,
    present: bool = True,
    count: int = 0,
    wide: bool = False,
    upper_type: int = 0,
) -> bytes:
    """A gate; `count` is the parameter count of a call gate, or the IST index of a 64-bit gate."""
    low = (offset & 0xFFFF) | selector << 16 | count << 32 | type_ << 40 | dpl << 45 | int(present) << 47
    low |= (offset >> 16 & 0xFFFF) << 48
    if not wide:
        return struct.pack("<Q", low)
    return struct.pack("<QQ", low, offset >> 32 | upper_type << 40)
