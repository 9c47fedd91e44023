"""A good machine in a mode of choice, one thing to change in it, and one instruction to run.

A scene is poked into being, not booted: descriptor tables, page tables, TSS, IDT and hidden parts are all valid, so a
test changes one thing and sees which check notices.
"""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from emu import _core

from .descriptors import CODE, CODE_CONFORMING, DATA, INTERRUPT_GATE, LDT, TSS32_BUSY, TSS64_BUSY, gate, segment, system

if TYPE_CHECKING:
    import numpy as np

GDT, LDT_AT, IDT, TSS = 0x1000, 0x2000, 0x3000, 0x4000
PML4, PAGE_TABLES = 0x10000, 0x11000
CODE_AT, HANDLERS, TARGET = 0x8000, 0xA000, 0xC000
STACK = {0: 0x70000, 1: 0x68000, 2: 0x64000, 3: 0x60000}
IST1 = 0x6C000

# Selectors of the scene's GDT. In long mode CODEn are 64-bit segments.
CODE0, DATA0 = 0x08, 0x10
CODE1, DATA1 = 0x18 | 1, 0x20 | 1
CODE2, DATA2 = 0x28 | 2, 0x30 | 2
CODE3, DATA3 = 0x38 | 3, 0x40 | 3
CODE32_0, CODE32_3 = 0x48, 0x50 | 3  # 32-bit code; compatibility mode in long mode
CONFORMING0 = 0x58
TSS_SELECTOR, LDT_SELECTOR = 0x60, 0x70
FREE = 0x80  # free slots for the test, up to the limit
GDT_LIMIT = 0xFF

CHECKS = _core.checks()
CHECK_NAMES = [str(check["name"]) for check in CHECKS]
VECTORS = {"#DE": 0, "#DB": 1, "#BP": 3, "#OF": 4, "#BR": 5, "#UD": 6, "#NM": 7, "#DF": 8, "#TS": 10, "#NP": 11}
VECTORS |= {"#SS": 12, "#GP": 13, "#PF": 14, "#AC": 17}
KINDS = {name: index for index, name in enumerate(_core.record_kinds())}
PUSHED = _core.pushed()
SEGMENTS = ("es", "cs", "ss", "ds", "fs", "gs")

INTEL: dict[str, Any] = {"vendor": "intel", "physical_address_bits": 39}
AMD: dict[str, Any] = {"vendor": "amd", "physical_address_bits": 48}


@functools.cache
def assemble(source: str, bits: int) -> bytes:
    """NASM's bytes for a few lines of code, loaded at CODE_AT."""
    if shutil.which("nasm") is None:
        pytest.skip("nasm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snippet.asm"
        path.write_text(f"bits {bits}\norg {CODE_AT}\n{source}\n")
        subprocess.run(["nasm", "-f", "bin", "-o", f"{folder}/out", str(path)], check=True, capture_output=True)
        return Path(f"{folder}/out").read_bytes()


@dataclass
class Step:
    """What one instruction did, as the trace tells it."""

    scene: Scene
    end: _core.RunEnd
    registers_before: dict[str, int]
    selectors_before: dict[str, int]
    code: bytes
    records: np.ndarray[Any, np.dtype[np.void]] = field(init=False)

    def __post_init__(self) -> None:
        self.records = self.end.records

    def _of(self, kind: str) -> np.ndarray[Any, np.dtype[np.void]]:
        chosen: np.ndarray[Any, np.dtype[np.void]] = self.records[self.records["kind"] == KINDS[kind]]
        return chosen

    @property
    def faults(self) -> list[tuple[int, int, str]]:
        """Vector, error code and name of the check, in order of raising."""
        return [
            (int(r["a"]), int(r["b"]), CHECK_NAMES[r["id"]] if r["id"] < len(CHECK_NAMES) else "")
            for r in self._of("fault")
        ]

    @property
    def checks(self) -> list[tuple[str, bool]]:
        return [(CHECK_NAMES[r["id"]], bool(r["held"])) for r in self._of("check")]

    @property
    def pushes(self) -> list[tuple[str, int]]:
        """What was pushed, and its value, in order."""
        return [(PUSHED[r["id"]], int(r["b"])) for r in self._of("push")]

    @property
    def next_rip(self) -> int:
        """Where the instruction after this one is: the return address."""
        return self.registers_before["rip"] + len(self.code)

    def register(self, name: str) -> int:
        return self.scene.machine.get(name)

    def selector(self, segment: str) -> int:
        return int(self.scene.machine.segment(segment)["selector"])


class Scene:
    """mode: "real", "protected" (32-bit), "long" (64-bit code) or "compatibility" (32-bit code in long mode)."""

    def __init__(
        self, mode: str, *, cpl: int = 0, model: dict[str, Any] | None = None, paging: bool | None = None
    ) -> None:
        self.mode = mode
        self.cpl = cpl
        self.machine = _core.Machine(16 << 20)
        self.machine.set_model(model or INTEL)
        self.long = mode in ("long", "compatibility")
        self.bits = {"real": 16, "protected": 32, "long": 64, "compatibility": 32}[mode]
        self.paging = self.long if paging is None else paging
        if mode != "real":
            self._tables()
            self._control()
        self._registers()

    # building

    def _tables(self) -> None:
        flat = {"long": True, "db": False} if self.long else {}
        for level in range(4):
            self.descriptor(8 + level * 16, segment(CODE, dpl=level, **flat))
            self.descriptor(16 + level * 16, segment(DATA, dpl=level))
        self.descriptor(CODE32_0, segment(CODE))
        self.descriptor(CODE32_3, segment(CODE, dpl=3))
        self.descriptor(CONFORMING0, segment(CODE_CONFORMING, **flat))
        self.descriptor(TSS_SELECTOR, system(TSS64_BUSY if self.long else TSS32_BUSY, TSS, 0x67, wide=self.long))
        self.descriptor(LDT_SELECTOR, system(LDT, LDT_AT, 0x3F, wide=self.long))
        for level in range(3):
            if self.long:
                self.write(TSS + 4 + 8 * level, struct.pack("<Q", STACK[level]))
            else:
                self.write(TSS + 4 + 8 * level, struct.pack("<II", STACK[level], [DATA0, DATA1, DATA2][level]))
        if self.long:
            self.write(TSS + 36, struct.pack("<Q", IST1))
        self.write(TSS + 102, struct.pack("<H", 0x68))
        for vector in range(32):
            self.gate(vector, INTERRUPT_GATE, CODE0, HANDLERS + 16 * vector)
            self.write(HANDLERS + 16 * vector, b"\xf4")
        if self.paging:
            self._page_tables()

    def _page_tables(self) -> None:
        """Identity map of the first 2 MiB in 4-KiB pages, all user and writable; 4-level or 32-bit."""
        if self.long:
            self.write(PML4, struct.pack("<Q", PAGE_TABLES | 7))
            self.write(PAGE_TABLES, struct.pack("<Q", (PAGE_TABLES + 0x1000) | 7))
            self.write(PAGE_TABLES + 0x1000, struct.pack("<Q", (PAGE_TABLES + 0x2000) | 7))
            self.write(PAGE_TABLES + 0x2000, b"".join(struct.pack("<Q", page << 12 | 7) for page in range(512)))
        else:
            self.write(PML4, struct.pack("<I", PAGE_TABLES | 7))
            self.write(PAGE_TABLES, b"".join(struct.pack("<I", page << 12 | 7) for page in range(1024)))

    def page(self, linear: int, flags: int, *, physical: int | None = None) -> None:
        """Sets the last-level entry of a page of the identity map: `flags` holds P, R/W, U/S, ..., XD."""
        entry = (linear & ~0xFFF if physical is None else physical) | flags
        if self.long:
            self.write(PAGE_TABLES + 0x2000 + (linear >> 12) * 8, struct.pack("<Q", entry))
        else:
            self.write(PAGE_TABLES + (linear >> 12) * 4, struct.pack("<I", entry))

    def _control(self) -> None:
        m = self.machine
        m.set("cr0", 0x80010011 if self.paging else 0x11)
        m.set("cr3", PML4)
        m.set("cr4", 0x20 if self.long else 0)
        m.set("efer", 0xD01 if self.long else 0)
        m.set("gdtr_base", GDT)
        m.set("gdtr_limit", GDT_LIMIT)
        m.set("idtr_base", IDT)
        m.set("idtr_limit", 256 * (16 if self.long else 8) - 1)
        m.set_segment("tr", TSS_SELECTOR, TSS, 0x67, 0x8B)
        m.set_segment("ldtr", LDT_SELECTOR, LDT_AT, 0x3F, 0x82)

    def _registers(self) -> None:
        m = self.machine
        m.set("rflags", 0x2)
        if self.mode == "real":
            m.set_segment("cs", 0, 0, 0xFFFF, 0x93)
            for name in ("ss", "ds", "es", "fs", "gs"):
                m.set_segment(name, 0, 0, 0xFFFF, 0x93)
            m.set("rsp", 0x7000)
            m.set("rip", CODE_AT)
            m.set("idtr_base", 0)
            m.set("idtr_limit", 0x3FF)
            return
        code = {"protected": 0xC09B, "long": 0xA09B, "compatibility": 0xC09B}[self.mode] | self.cpl << 5
        selector = (CODE32_0 + 8 * (self.cpl == 3) if self.mode == "compatibility" else 8 + 16 * self.cpl) | self.cpl
        m.set("cpl", self.cpl)
        m.set_segment("cs", selector, 0, 0xFFFFFFFF, code)
        m.set_segment("ss", (16 + 16 * self.cpl) | self.cpl, 0, 0xFFFFFFFF, 0xC093 | self.cpl << 5)
        for name in ("ds", "es", "fs", "gs"):
            m.set_segment(name, DATA3, 0, 0xFFFFFFFF, 0xC0F3)
        m.set("rsp", STACK[self.cpl])
        m.set("rip", CODE_AT)

    # changing

    def write(self, address: int, data: bytes) -> None:
        self.machine.write_physical(address, data)

    def read(self, address: int, size: int) -> bytes:
        return self.machine.read_physical(address, size)

    def descriptor(self, selector: int, data: bytes, *, ldt: bool = False) -> None:
        self.write((LDT_AT if ldt else GDT) + (selector & ~7), data)

    def gate(self, vector: int, type_: int, selector: int, offset: int, **options: Any) -> None:
        size = 16 if self.long else 8
        self.write(IDT + vector * size, gate(type_, selector, offset, wide=self.long, **options))

    def push(self, *values: int, width: int | None = None) -> None:
        """Puts words on the stack in use; the last one given ends up on top."""
        size = (width or self.bits) // 8
        at = self.machine.get("rsp") + self.machine.segment("ss")["base"] * (self.mode != "long")
        for value in values:
            at -= size
            self.write(at, value.to_bytes(size, "little"))
        self.machine.set("rsp", self.machine.get("rsp") - size * len(values))

    # running

    def step(self, source: str | bytes, *, instructions: int = 1) -> Step:
        """Runs the instruction; if it faults, the handler's HLT ends the step right after delivery."""
        code = source if isinstance(source, bytes) else assemble(source, self.bits)
        self.write(self.machine.get("rip") + self.machine.segment("cs")["base"], code)
        before = {name: self.machine.get(name) for name in self.machine.register_names()}
        selectors = {name: int(self.machine.segment(name)["selector"]) for name in SEGMENTS}
        return Step(self, self.machine.run(instructions, "checks", 4096), before, selectors, code)
