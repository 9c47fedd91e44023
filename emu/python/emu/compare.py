"""What each way into the kernel costs, in which parts: one steady round trip of every guest, under one profile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from emu import guests
from emu.errors import EmuError
from emu.machine import Machine
from emu.profile import Profile
from emu.published import Figure, figure_for


@dataclass(frozen=True)
class Row:
    """One mechanism: the last round trip of its guest, from the entering instruction to the returning one."""

    guest: str
    mechanism: str
    bits: int
    enter: str
    leave: str
    instructions: int
    checks: int
    reads: int
    writes: int
    stack_words: int
    cycles: float
    parts: dict[str, float]
    """Cycles by act or arm; they add up to `cycles`."""
    published: Figure | None
    note: str = ""
    """Why there are no figures, if the processor does not have the mechanism."""

    @property
    def difference(self) -> float | None:
        """Cycles beside the published figure, as a fraction of it."""
        return None if self.published is None else self.cycles / self.published.cycles - 1

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        figure = self.published
        return {
            "guest": self.guest,
            "mechanism": self.mechanism,
            "bits": self.bits,
            "enter": self.enter,
            "leave": self.leave,
            "instructions": self.instructions,
            "checks": self.checks,
            "reads": self.reads,
            "writes": self.writes,
            "stack_words": self.stack_words,
            "cycles": self.cycles,
            "parts": self.parts,
            "published": None if figure is None else figure.cycles,
            "source": None if figure is None else f"{figure.source} ({figure.id}): {figure.note}",
            "difference": self.difference,
            "note": self.note,
        }


def compare(profile: Profile) -> list[Row]:
    """A row for every guest, the dearest first; guests that this processor cannot run say so in `note`."""
    rows = [measure(name, profile) for name in guests.names()]
    return sorted(rows, key=lambda row: (bool(row.note), -row.bits, -row.cycles))


def measure(name: str, profile: Profile) -> Row:
    """One round trip of a guest in its steady state. EmuError if the guest breaks for another reason than the CPU."""
    guest = guests.find(name)
    machine = Machine(profile=profile)
    machine.load_rom(guests.build(name))
    run = machine.run(budget=5_000_000, trace="checks")
    if run.stop.reason != "exit" or run.status != 0:
        lines = run.autopsy() or [fault.explain() for fault in run.faults[:1]] or [run.stop.detail]
        return _row(guest, note=f"not on this processor: {lines[0]}")
    trips = run.round_trips
    if len(trips) < 3:
        raise EmuError(f"guest {name} made {len(trips)} round trips; it takes three to find a steady one")
    last, before = trips[-1], trips[-2]
    if not math.isclose(last.cycles, before.cycles, abs_tol=0.001):
        raise EmuError(f"guest {name} is not steady: its last round trips took {before.cycles} and {last.cycles} cycles")
    return _row(
        guest,
        instructions=last.instructions,
        checks=len(last.checks),
        reads=len(last.reads),
        writes=len(last.writes),
        stack_words=len(last.stack_words),
        cycles=last.cycles,
        parts=last.parts,
        published=figure_for(name, profile.name),
    )


def _row(guest: guests.Guest, **values: Any) -> Row:
    nothing = {"instructions": 0, "checks": 0, "reads": 0, "writes": 0, "stack_words": 0, "cycles": 0.0, "parts": {}}
    fixed = {
        "guest": guest.name,
        "mechanism": guest.mechanism,
        "bits": guest.bits,
        "enter": guest.header.get("enter", ""),
        "leave": guest.header.get("leave", ""),
    }
    return Row(**{"published": None, **nothing, **fixed, **values})
