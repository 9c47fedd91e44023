"""One run of a machine: how it ended, what it did, what it cost, and the views of its records."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from emu import _core
from emu.records import COSTS, Tables, select
from emu.trace import TRANSFERS, Trace
from emu.trips import round_trips

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from emu.profile import Profile
    from emu.records import Fault
    from emu.trace import Transition
    from emu.trips import RoundTrip

UNMODELLED = tuple(_core.unmodelled())
NOWHERE = Tables()
KEPT_OUTPUT = 1 << 20
"""Bytes that a run keeps of what the guest prints on a port."""


@dataclass(frozen=True)
class Stop:
    """Why a run ended."""

    reason: str
    """budget, exit, reset, halted, shutdown or unmodelled."""
    detail: str
    """The same as a sentence, with its details."""

    @classmethod
    def of(cls, end: _core.RunEnd, budget: int) -> Stop:
        sentences = {
            "budget": f"the budget of {budget} instructions is used up",
            "exit": f"the guest wrote its status to port 0xF4: {end.detail}",
            "reset": "the guest asked for a reset by writing 0xFE to port 0x64",
            "halted": "HLT, and nothing can wake the processor",
            "shutdown": "a fault while delivering #DF: the processor shuts down (triple fault)",
        }
        if end.reason == "unmodelled":
            return cls(end.reason, f"the guest needs what emu does not model: {UNMODELLED[end.detail]}")
        return cls(end.reason, sentences[end.reason])


@dataclass(frozen=True, eq=False)
class Run:
    """What a run left behind. Everything is computed from these fields, on demand."""

    stop: Stop
    status: int | None
    """What the guest wrote to port 0xF4, if that ended the run."""
    instructions: int
    millicycles: int
    """Thousandths of a cycle under `profile`; 0 without one."""
    counts: dict[str, int]
    """How often each cost event happened; every event is there."""
    output: bytes
    """What the guest printed on port 0xE9."""
    serial: bytes
    """What the guest sent to the serial port at 0x3F8."""
    output_dropped: int
    """Bytes that did not fit: at most 1 MiB is kept of each."""
    records: npt.NDArray[np.void]
    """The stream of records, oldest first; fields in emu/trace/records.hpp."""
    dropped: int
    """Records that did not fit: the oldest."""
    level: str
    """How much was recorded: off, transitions or checks."""
    profile: Profile | None = None
    is_repriced: bool = False
    """True if `profile` is another than the one it ran under. A guest that reads the clock saw that one."""
    tables: Tables = NOWHERE
    autopsy_lines: tuple[str, ...] = ()

    @property
    def cycles(self) -> float:
        """What the run cost under its profile."""
        return self.millicycles / _core.MILLICYCLES_PER_CYCLE

    @property
    def parts(self) -> dict[str, float]:
        """Cycles by cost event; they add up to `cycles`. Empty without a profile."""
        return self.profile.parts(self.counts) if self.profile else {}

    @cached_property
    def trace(self) -> Trace:
        """The records, indexed."""
        return Trace(self.records, self.level, self.profile, self.tables, repriced=self.is_repriced)

    @property
    def passages(self) -> list[Transition]:
        """Every passage through a room: transitions, loads of segments, ports, page walks, ..."""
        return self.trace.passages

    @cached_property
    def transitions(self) -> list[Transition]:
        """The passages that transfer control: interrupts, exceptions, IRET, far CALL, JMP and RET, fast calls."""
        return [passage for passage in self.passages if passage.mechanism in TRANSFERS]

    @property
    def round_trips(self) -> list[RoundTrip]:
        """Each entry from ring 3, with the transition that gives ring 3 control again."""
        return round_trips(self.transitions)

    @property
    def faults(self) -> list[Fault]:
        """Faults in the order they were raised. They are recorded whatever the trace level, the latest ones surely."""
        return self.trace.faults

    @property
    def checks(self) -> npt.NDArray[np.void]:
        """The records of kind check: id indexes emu.catalogue.CHECKS, a, b and c are the operands."""
        return select(self.records, "check")

    def autopsy(self) -> list[str] | None:
        """Why the run ended in shutdown, in at most five lines; None if it ended otherwise."""
        return list(self.autopsy_lines) or None

    def repriced(self, profile: Profile) -> Run:
        """The same run under another profile: same counts, other prices, nothing is run again."""
        priced = (profile.millicycles().tolist()[at] * self.counts[event] for at, event in enumerate(COSTS))
        return replace(self, profile=profile, millicycles=sum(priced), is_repriced=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: texts are Latin-1, so that each character is one byte."""
        return {
            "schema": 1,
            "stop": {"reason": self.stop.reason, "detail": self.stop.detail},
            "status": self.status,
            "instructions": self.instructions,
            "cycles": self.cycles,
            "profile": self.profile.name if self.profile else None,
            "repriced": self.is_repriced,
            "counts": {event: n for event, n in self.counts.items() if n},
            "parts": self.parts,
            "output": self.output.decode("latin-1"),
            "serial": self.serial.decode("latin-1"),
            "output_dropped": self.output_dropped,
            "trace": self.level,
            "dropped": self.dropped,
            "autopsy": self.autopsy(),
            "faults": [fault.to_dict() for fault in self.faults],
            "transitions": [passage.to_dict() for passage in self.transitions],
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)
