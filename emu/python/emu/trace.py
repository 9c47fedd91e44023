"""Views of the stream of records: passages through rooms, and what each of them did and cost.

Nothing here is kept twice: a view holds a piece of the array.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.catalogue import CHECKS
from emu.errors import EmuError
from emu.explain import event_name, explain_passage
from emu.records import (
    KINDS,
    MECHANISMS,
    Access,
    CheckSeen,
    Fault,
    Place,
    StackWord,
    Tables,
    counts_of,
    elapsed,
    select,
)

if TYPE_CHECKING:
    from emu.profile import Profile
    from emu.records import Records

TRANSFERS = frozenset({
    "interrupt_delivery", "exception_delivery", "interrupt_return", "far_call", "far_jump", "far_return", "sysenter",
    "sysexit", "syscall", "sysret",
})  # fmt: skip
"""Mechanisms that go elsewhere, and may change the privilege level on the way."""


@dataclass(eq=False)
class Trace:
    """The records of one run, indexed by passage."""

    records: Records
    level: str
    profile: Profile | None
    tables: Tables
    repriced: bool

    @cached_property
    def passages(self) -> list[Transition]:
        """Every passage through a room whose beginning was kept, in order."""
        kinds, spans = self.records["kind"], self.records["span"]
        ends = {int(spans[at]): int(at) for at in np.flatnonzero(kinds == KINDS["end"])}
        last = len(self.records) - 1
        begins = np.flatnonzero(kinds == KINDS["begin"])
        return [Transition(self, int(at), ends.get(int(spans[at]), last)) for at in begins]

    @cached_property
    def faults(self) -> list[Fault]:
        """Every fault that was raised, in order; #DF among them."""
        return [self.fault_at(int(at)) for at in np.flatnonzero(self.records["kind"] == KINDS["fault"])]

    def fault_at(self, index: int) -> Fault:
        """The fault that a record of kind fault or escalate reports, with the check that failed before it."""
        record = self.records[index]
        check = self._failed_check(index, int(record["id"]))
        if record["kind"] == KINDS["escalate"]:
            return Fault(int(record["b"]), int(record["d"]), None, None, check)
        vector = int(record["a"])
        return Fault(vector, int(record["b"]), int(record["c"]) if vector == 14 else None, int(record["d"]), check)

    def _failed_check(self, index: int, check: int) -> CheckSeen | None:
        """The last failure of this check before a record. It is near: a fault follows its check at once."""
        if check >= len(CHECKS):
            return None
        before = self.records[max(0, index - 64) : index]
        failed = (before["kind"] == KINDS["check"]) & (before["held"] == 0) & (before["id"] == check)
        found = np.flatnonzero(failed)
        return CheckSeen.of(before[found[-1]]) if len(found) else None

    def next_fault(self, index: int, check: int) -> Fault | None:
        """The fault that the failure of `check` became, from the record at `index` on."""
        after = self.records[index : index + 8]
        for kind in ("fault", "escalate"):  # a fault that became another is named by the record of kind escalate alone
            found = np.flatnonzero((after["kind"] == KINDS[kind]) & (after["id"] == check))
            if len(found):
                return self.fault_at(index + int(found[0]))
        return None


class Transition:
    """One passage through a room: from the moment the processor leaves the ordinary path until it is back on it."""

    def __init__(self, trace: Trace, begin: int, end: int) -> None:
        self.trace = trace
        self.records: Records = trace.records[begin : end + 1]
        """Its own records and those of passages inside it."""
        self._begin, self._end = begin, end
        first = self.records[0]
        self.mechanism = MECHANISMS[first["id"]]
        self.argument = int(first["c"])
        """Vector, selector or register; see struct Record in emu/trace/records.hpp."""
        self.span = int(first["span"])
        self.before = Place.unpack(int(first["b"]), int(first["a"]))
        self.next_rip = int(first["d"])

    def __repr__(self) -> str:
        return f"<{self.event} at 0x{self.rip_before:X}, CPL {self.cpl_before} -> {self.cpl_after}>"

    @property
    def event(self) -> str:
        """`INT 0x80`, `#PF`, `IRETQ`, `SYSCALL`, ..."""
        return event_name(self.mechanism, self.argument)

    # --- where from, where to -------------------------------------------------------------------------------------

    @cached_property
    def _commit(self) -> np.void | None:
        found = self._own("commit")
        return found[-1] if len(found) else None

    @property
    def committed(self) -> bool:
        """True if control went elsewhere; False if it faulted, or if it is no transfer."""
        return self._commit is not None

    @cached_property
    def after(self) -> Place:
        """Where the processor is afterwards; after a fault, where it was before."""
        if self._commit is not None:
            return Place.unpack(int(self._commit["b"]), int(self._commit["a"]))
        rip = self.before.rip if self.faulted else self.next_rip
        return Place(self.before.cs, self.before.cpl, self.before.mode, rip)

    @property
    def mode_before(self) -> str:
        return self.before.mode

    @property
    def mode_after(self) -> str:
        return self.after.mode

    @property
    def cpl_before(self) -> int:
        return self.before.cpl

    @property
    def cpl_after(self) -> int:
        return self.after.cpl

    @property
    def cs_before(self) -> int:
        return self.before.cs

    @property
    def cs_after(self) -> int:
        return self.after.cs

    @property
    def rip_before(self) -> int:
        return self.before.rip

    @property
    def rip_after(self) -> int:
        return self.after.rip

    @property
    def stack_pointer_after(self) -> int | None:
        """RSP once the new state is in force; None if nothing was committed."""
        return int(self._commit["c"]) if self._commit is not None else None

    @property
    def flags_after(self) -> int | None:
        """RFLAGS once the new state is in force; None if nothing was committed."""
        return int(self._commit["d"]) if self._commit is not None else None

    # --- what happened --------------------------------------------------------------------------------------------

    def _own(self, kind: str) -> Records:
        own: Records = self.records[self.records["span"] == self.span]
        return select(own, kind)

    @cached_property
    def checks(self) -> list[CheckSeen]:
        """Checks in the order they were made. Those that held are recorded with trace="checks" only."""
        return [CheckSeen.of(record) for record in self._own("check")]

    @property
    def reads(self) -> list[Access]:
        """Reads of system structures (trace="checks")."""
        return [Access.of(record) for record in self._own("read")]

    @property
    def writes(self) -> list[Access]:
        """Writes of system structures (trace="checks")."""
        return [Access.of(record) for record in self._own("write")]

    @property
    def pushes(self) -> list[StackWord]:
        """What the processor pushed (trace="checks")."""
        return [StackWord.of(record) for record in self._own("push")]

    @property
    def pops(self) -> list[StackWord]:
        """What the processor popped (trace="checks")."""
        return [StackWord.of(record) for record in self._own("pop")]

    @property
    def failed(self) -> CheckSeen | None:
        """The check that failed, if one did."""
        return next((seen for seen in self.checks if not seen.held), None)

    @property
    def faulted(self) -> bool:
        """True if a check failed."""
        return self.failed is not None

    @cached_property
    def fault(self) -> Fault | None:
        """The fault it ended with, if it did."""
        if self.failed is None:
            return None
        return self.trace.next_fault(self._end, self.failed.check.id)

    @cached_property
    def cause(self) -> Fault | None:
        """Of the delivery of an exception: the fault that is delivered."""
        if self.mechanism != "exception_delivery":
            return None
        before = self.trace.records[max(0, self._begin - 8) : self._begin]
        found = np.flatnonzero((before["kind"] == KINDS["fault"]) & (before["a"] == self.argument & 0xFF))
        return self.trace.fault_at(self._begin - len(before) + int(found[-1])) if len(found) else None

    # --- what it cost ---------------------------------------------------------------------------------------------

    @cached_property
    def costs(self) -> dict[str, int]:
        """How often each act was done, passages inside included. EmuError unless traced with "checks"."""
        if self.trace.level != "checks":
            raise EmuError('the acts of a transition are recorded with trace="checks" only; run again with that')
        return counts_of(self.records)

    @property
    def cycles(self) -> float:
        """What it cost under the profile of the run. EmuError if repriced and not traced with "checks"."""
        if self.trace.repriced and self.trace.profile is not None:
            return self.trace.profile.cycles(self.costs)
        return elapsed(self.records[0], self.records[-1])

    @property
    def parts(self) -> dict[str, float]:
        """Cycles by act or arm; they add up to `cycles`. Empty without a profile."""
        return self.trace.profile.parts(self.costs) if self.trace.profile else {}

    def explain(self, *, citations: bool = False) -> str:
        """What happened, in the manual's order: one line for each check, read, write and push."""
        return explain_passage(self, citations=citations)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        traced = self.trace.level == "checks"
        priced = traced or not self.trace.repriced
        return {
            "event": self.event,
            "mechanism": self.mechanism,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "committed": self.committed,
            "fault": self.fault.to_dict() if self.fault else None,
            "checks": [seen.to_dict() for seen in self.checks],
            "reads": [asdict(access) for access in self.reads],
            "writes": [asdict(access) for access in self.writes],
            "pushes": [asdict(word) for word in self.pushes],
            "pops": [asdict(word) for word in self.pops],
            "costs": self.costs if traced else None,
            "cycles": self.cycles if priced else None,
            "parts": self.parts if traced else None,
        }
