"""Round trips: from ring 3 into the kernel and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from emu.errors import EmuError
from emu.records import Access, CheckSeen, StackWord, counts_of, elapsed, select

if TYPE_CHECKING:
    from emu.records import Records
    from emu.trace import Transition

ENTERING = frozenset({"interrupt_delivery", "exception_delivery", "far_call", "sysenter", "syscall"})
"""Mechanisms that lead from ring 3 to more privilege."""


@dataclass(frozen=True)
class RoundTrip:
    """From an entry at CPL 3 until ring 3 has control again."""

    entry: Transition
    exit: Transition

    @property
    def records(self) -> Records:
        """All records of the trip, in order."""
        return self.entry.trace.records[self.entry._begin : self.exit._end + 1]  # noqa: SLF001

    @property
    def instructions(self) -> int:
        """Instructions retired on the trip: the one that entered (unless it faulted) up to the one that returned."""
        # Records say how many had retired before the instruction they belong to; the one that returned is one more.
        return int(self.exit.records[0]["instructions"]) - int(self.entry.records[0]["instructions"]) + 1

    @property
    def checks(self) -> list[CheckSeen]:
        """All checks on the trip, those of memory accesses on the way included."""
        return [CheckSeen.of(record) for record in select(self.records, "check")]

    @property
    def reads(self) -> list[Access]:
        """Reads of system structures."""
        return [Access.of(record) for record in select(self.records, "read")]

    @property
    def writes(self) -> list[Access]:
        """Writes of system structures."""
        return [Access.of(record) for record in select(self.records, "write")]

    @property
    def stack_words(self) -> list[StackWord]:
        """What the processor pushed and popped."""
        return [StackWord.of(record) for record in select(self.records, "push", "pop")]

    @property
    def cycles(self) -> float:
        """What the trip cost under the profile of the run, the instructions between included."""
        if self.entry.trace.repriced:
            raise EmuError("a round trip is priced by the profile it ran under; run again under the other profile")
        return elapsed(self.records[0], self.records[-1])

    @property
    def parts(self) -> dict[str, float]:
        """Cycles by act or arm, and the rest as "instructions"; they add up to `cycles`."""
        profile = self.entry.trace.profile
        if profile is None:
            return {}
        if self.entry.trace.level != "checks":
            raise EmuError('the acts of a round trip are recorded with trace="checks" only; run again with that')
        parts = profile.parts(counts_of(self.records))
        rest = round(self.cycles - sum(parts.values()), 3)
        return {**parts, "instructions": rest} if rest else parts


def round_trips(transitions: list[Transition]) -> list[RoundTrip]:
    """Pairs each entry from CPL 3 with the transition that brings CPL 3 back."""
    trips, entry = [], None
    for passage in transitions:
        if not passage.committed:
            continue
        if entry is None and passage.mechanism in ENTERING and passage.cpl_before == 3 and passage.cpl_after < 3:
            entry = passage
        elif entry is not None and passage.cpl_after == 3:
            trips.append(RoundTrip(entry, passage))
            entry = None
    return trips
