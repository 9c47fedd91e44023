"""Single records of the stream, unpacked: places, checks, accesses, stack words, faults (emu/trace/records.hpp)."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from emu import _core
from emu.catalogue import CHECKS
from emu.explain import explain_fault
from emu.structures import MODES, fault_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from emu.catalogue import Check

    Records = npt.NDArray[np.void]

KINDS = {name: number for number, name in enumerate(_core.record_kinds())}
MECHANISMS = tuple(_core.mechanisms())
STRUCTURES = tuple(_core.structures())
PUSHED = tuple(_core.pushed())
COSTS = tuple(event["name"] for event in _core.cost_events())


@dataclass(frozen=True)
class Place:
    """Where the processor was: selector in CS, privilege level, mode and instruction pointer."""

    cs: int
    cpl: int
    mode: str
    rip: int

    @classmethod
    def unpack(cls, word: int, rip: int) -> Place:
        """From the core's packed form (struct Place in emu/trace/records.hpp)."""
        return cls(word & 0xFFFF, word >> 16 & 0xFF, MODES[word >> 24 & 0xFF], rip)


@dataclass(frozen=True)
class CheckSeen:
    """A check that was made: which one, on what, and whether it held."""

    check: Check
    held: bool
    operands: Mapping[str, int]
    """The values it looked at, by their labels."""
    examined: int
    """What the error code names: a selector, a vector, or the code of a page fault; else 0."""

    @classmethod
    def of(cls, record: np.void) -> CheckSeen:
        check = CHECKS[int(record["id"])]
        values = (int(record["a"]), int(record["b"]), int(record["c"]))
        operands = dict(zip(check.operands, values, strict=False))
        return cls(check, bool(record["held"]), operands, int(record["d"]))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"check": self.check.name, "held": self.held, **asdict(self, dict_factory=_without_check)}


def _without_check(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields if name in {"operands", "examined"}}


@dataclass(frozen=True)
class Access:
    """A read or write of a system structure by the processor itself."""

    structure: str
    linear: int
    """Linear address; of a paging-structure entry, its physical one."""
    value: int
    size: int
    level: int
    """Of a paging-structure entry: 1 is the page table. Else 0."""

    @classmethod
    def of(cls, record: np.void) -> Access:
        return cls(STRUCTURES[record["id"]], *(int(record[field]) for field in "abcd"))


@dataclass(frozen=True)
class StackWord:
    """A value that the processor itself pushed or popped."""

    what: str
    linear: int
    value: int
    size: int

    @classmethod
    def of(cls, record: np.void) -> StackWord:
        return cls(PUSHED[record["id"]], *(int(record[field]) for field in "abc"))


@dataclass(frozen=True)
class Fault:
    """A fault that was raised."""

    vector: int
    error_code: int
    linear: int | None
    """What goes to CR2, if it is a page fault and known."""
    rip: int | None
    """Of the instruction it belongs to, if known."""
    check: CheckSeen | None
    """The check that failed; None for a #DF, which no check raises."""

    @property
    def name(self) -> str:
        """`#GP(0x0008)`."""
        return fault_name(self.vector, self.error_code)

    def explain(self) -> str:
        """One line: what failed, with its values, and what the error code names."""
        return explain_fault(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        fields = {"name": self.name, "vector": self.vector, "error_code": self.error_code}
        check = self.check.to_dict() if self.check else None
        return {**fields, "linear": self.linear, "rip": self.rip, "check": check}


@dataclass(frozen=True)
class Tables:
    """Where the descriptor tables and the TSS were at the end of the run: gives addresses their names."""

    gdt: int = 0
    ldt: int = 0
    idt: int = 0
    tss: int = 0


def select(records: Records, *kinds: str) -> Records:
    """The records of these kinds."""
    chosen: Records = records[np.isin(records["kind"], [KINDS[kind] for kind in kinds])]
    return chosen


def counts_of(records: Records) -> dict[str, int]:
    """Acts and arms in a piece of the stream, and the checks, each counted as what it costs."""
    counts: Counter[str] = Counter()
    for record in select(records, "cost"):
        counts[COSTS[record["id"]]] += int(record["a"])
    # Fetches are traced, but not counted: how often code is fetched is a matter of the emulator's block cache.
    entered = select(records, "begin")
    fetches = entered["span"][entered["id"] == MECHANISMS.index("fetch")]
    checks = select(records, "check")
    checks = checks[~np.isin(checks["span"], fetches)]
    for check, n in zip(*np.unique(checks["id"], return_counts=True), strict=True):
        counts[CHECKS[int(check)].cost] += int(n)
    return dict(counts)


def elapsed(first: np.void, last: np.void) -> float:
    """Cycles from one record to another."""
    return (int(last["cycles"]) - int(first["cycles"])) / _core.MILLICYCLES_PER_CYCLE
