"""A machine with one address whose paging-structure entries, controls and access a test chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .paging_oracle import PDE, PDPTE, PML4E, PTE, Access, Control, P
from .scene import INTEL, KINDS, Scene

FRAME = 0x30000  # the physical page; large pages begin at 0 and so contain it
PDPT, PD, PT = 0x20000, 0x21000, 0x22000
LOW_TABLES = 0x10000
USER_CODE, SUPERVISOR_CODE = 0x8000, 0x9000  # pages with the same code, for either privilege
CODE = {"read": 0x00, "write": 0x10}  # MOV EAX, [ESI]; MOV [ESI], EAX
VALUE = 0x90909090  # what is there: also instructions that do nothing

PG, WP, PSE, PAE, SMEP, SMAP, NXE, AC = 1 << 31, 1 << 16, 1 << 4, 1 << 5, 1 << 20, 1 << 21, 1 << 11, 1 << 18
ENTRY_SIZE = {"32-bit": 4, "PAE": 8, "4-level": 8}
LEVELS = {"32-bit": (PDE, PTE), "PAE": (PDE, PTE), "4-level": (PML4E, PDPTE, PDE, PTE)}
BASE = {"32-bit": 1 << 22, "PAE": 1 << 30, "4-level": 1 << 39}  # of the part of linear memory that is the test's own


@dataclass(frozen=True)
class Result:
    error: int | None
    cr2: int | None
    entries: dict[int, int]


class Space:
    """The address `linear` maps FRAME through entries of its own; code and tables lie elsewhere."""

    def __init__(self, paging: str, **features: Any) -> None:
        self.paging = paging
        self.size = ENTRY_SIZE[paging]
        self.linear = BASE[paging] + FRAME
        self.scene = Scene("long" if paging == "4-level" else "protected", paging=True, model=INTEL | features)
        self.machine = self.scene.machine
        index = FRAME >> 12
        self.at = {PML4E: LOW_TABLES + 8, PDPTE: PDPT, PDE: PD, PTE: PT + index * self.size}
        self.points_to = {PML4E: PDPT, PDPTE: PD, PDE: PT, PTE: FRAME}
        if paging == "32-bit":
            self.at[PDE] = LOW_TABLES + self.size
        if paging == "PAE":
            self._pae_tables()
        for page in (USER_CODE, SUPERVISOR_CODE):
            self.scene.write(page, bytes([0x8B, 0x06]))
            self.scene.write(page + 0x10, bytes([0x89, 0x06]))
        self._own(SUPERVISOR_CODE, SUPERVISOR_CODE | 3)
        self.scene.write(FRAME, VALUE.to_bytes(4, "little") * 4)
        self.machine.set(
            "idtr_limit", 0
        )  # nothing is delivered: a fault ends in shutdown, with the registers as they were
        self.machine.set("rsi", self.linear)
        self.machine.set("rax", VALUE)
        self.cpl = -1
        self.enter(0)

    def _own(self, linear: int, entry: int) -> None:
        low = 0x13000 if self.paging == "4-level" else 0x12000 if self.paging == "PAE" else 0x11000
        self.scene.write(low + (linear >> 12) * self.size, entry.to_bytes(self.size, "little"))

    def _pae_tables(self) -> None:
        self.scene.write(LOW_TABLES, b"".join(e.to_bytes(8, "little") for e in (0x11000 | P, PD | P, 0, 0)))
        self.scene.write(0x11000, (0x12000 | 7).to_bytes(8, "little") + bytes(0xFF8))
        self.scene.write(0x12000, b"".join((page << 12 | 7).to_bytes(8, "little") for page in range(512)))
        self.machine.set("cr4", PAE)

    def enter(self, cpl: int) -> None:
        if cpl == self.cpl:
            return
        self.cpl = cpl
        self.machine.set("cpl", cpl)
        long = self.paging == "4-level"
        self.machine.set_segment("cs", 8 + 16 * cpl | cpl, 0, 0xFFFFFFFF, (0xA09B if long else 0xC09B) | cpl << 5)
        self.machine.set_segment("ss", 16 + 16 * cpl | cpl, 0, 0xFFFFFFFF, 0xC093 | cpl << 5)

    def control(self, control: Control) -> None:
        m = self.machine
        m.set("cr0", PG | 0x11 | WP * control.wp)
        pae = PAE if self.paging != "32-bit" else 0
        m.set("cr4", pae | PSE * control.pse | SMEP * control.smep | SMAP * control.smap)
        m.set("efer", (0x501 if self.paging == "4-level" else 1) | NXE * control.nxe)
        m.set("rflags", 2 | AC * control.ac)

    def write(self, level: int, entry: int) -> None:
        self.scene.write(self.at[level], entry.to_bytes(self.size, "little"))

    def read(self, level: int) -> int:
        return int.from_bytes(self.scene.read(self.at[level], self.size), "little")

    def access(self, access: Access) -> Result:
        """One access; whether it faulted, and the entries afterwards."""
        self.enter(access.cpl)
        code = USER_CODE if access.cpl == 3 else SUPERVISOR_CODE
        self.machine.set("rip", self.linear if access.kind == "fetch" else code + CODE[access.kind])
        end = self.machine.run(1, "off", 16)
        entries = {level: self.read(level) for level in LEVELS[self.paging]}
        faults = end.records[end.records["kind"] == KINDS["fault"]]
        if not len(faults):
            return Result(None, None, entries)
        assert faults[0]["a"] == 14, f"#PF expected, not vector {faults[0]['a']}"
        assert self.machine.get("cr2") == faults[0]["c"]
        return Result(int(faults[0]["b"]), int(faults[0]["c"]), entries)
