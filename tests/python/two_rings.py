"""A 32-bit machine with rings 0 and 3 for tests: poked, not booted, and small enough to read whole."""

from __future__ import annotations

import struct

from emu import Machine, Profile, Segment
from emu.profile import Price, ProcessorModel, event_names

GDT, TSS, IDT = 0x1000, 0x2000, 0x3000
USER, KERNEL = 0x10000, 0x20000
USER_STACK, KERNEL_STACK = 0x18000, 0x28000
CODE0, DATA0, CODE3, DATA3, TASK = 0x08, 0x10, 0x1B, 0x23, 0x28
FLAT_CODE, FLAT_DATA = 0xC09B, 0xC093  # attributes: 4 GiB, 32-bit, present, accessed, DPL 0
DPL3 = 0x60

INT_80, IRETD, PUSHA_POPA = b"\xcd\x80", b"\xcf", b"\x60\x61"


def gate(offset: int, *, dpl: int = 0, kind: int = 0xE, present: bool = True) -> bytes:
    """An entry of the IDT that leads to CODE0. Intel SDM vol. 3, IDT Gate Descriptors."""
    return struct.pack("<HHBBH", offset & 0xFFFF, CODE0, 0, present << 7 | dpl << 5 | kind, offset >> 16)


class TwoRings(Machine):
    """Flat segments for rings 0 and 3, a TSS, an IDT with limit 0x80 * 8 + 7; empty gates. No paging."""

    def __init__(self, profile: Profile | None = None) -> None:
        super().__init__(memory=1 << 20, profile=profile)
        descriptors = [0, 0x00CF9B000000FFFF, 0x00CF93000000FFFF, 0x00CFFB000000FFFF, 0x00CFF3000000FFFF]
        self.memory.write(GDT, struct.pack("<6Q", *descriptors, 0x00008B0020000067))
        self.memory.write(TSS + 4, struct.pack("<II", KERNEL_STACK, DATA0))
        tables = {"gdtr_base": GDT, "gdtr_limit": 6 * 8 - 1, "idtr_base": IDT, "idtr_limit": 0x81 * 8 - 1}
        for name, value in {"cr0": 0x11, **tables}.items():
            setattr(self.registers, name, value)
        self.set_segment("tr", Segment(TASK, TSS, 0x67, 0x8B))

    def gate(self, vector: int, entry: bytes) -> None:
        """Writes an entry of the IDT."""
        self.memory.write(IDT + vector * 8, entry)

    def go(self, ring: int, code: bytes) -> None:
        """Puts code where the ring has its own, and goes there."""
        at, stack = (USER, USER_STACK) if ring else (KERNEL, KERNEL_STACK - 0x1000)
        self.memory.write(at, code)
        dpl = DPL3 if ring else 0
        self.set_segment("cs", Segment(CODE3 if ring else CODE0, 0, 0xFFFFFFFF, FLAT_CODE | dpl))
        for name in ("ss", "ds", "es"):
            self.set_segment(name, Segment(DATA3 if ring else DATA0, 0, 0xFFFFFFFF, FLAT_DATA | dpl))
        for name, value in {"cpl": ring, "rip": at, "rsp": stack, "rflags": 0x202}.items():
            setattr(self.registers, name, value)


def made_up_profile(name: str = "made up", scale: int = 1) -> Profile:
    """Every event has a price of its own, so that none can be taken for another."""
    model = ProcessorModel("intel", 39, frozenset({"long_mode", "nx", "pae", "syscall", "sysenter"}), ())
    prices = {
        event: Price(scale * (1000 + 17 * at), "assumed", "made up for tests") for at, event in enumerate(event_names())
    }
    return Profile(name, "prices for tests", model, prices, {})
