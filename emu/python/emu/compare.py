"""What each way into the kernel costs, in which parts: one steady round trip of every guest, under one profile."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from emu import guests
from emu.errors import EmuError
from emu.machine import Machine
from emu.published import Figure, figure_for

if TYPE_CHECKING:
    from rich.console import Console

    from emu.profile import Profile

WIDE = 130
"""Columns of a terminal in which the parts fit beside the totals."""


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
        raise EmuError(
            f"guest {name} is not steady: its last round trips took {before.cycles} and {last.cycles} cycles"
        )
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


def show(console: Console, rows: list[Row], profile: Profile) -> None:
    """A table with a row per mechanism; the parts stand in it or, in a narrow terminal, below it."""
    console.print(f"One round trip from ring 3 to ring 0 and back: {profile.description}", highlight=False)
    wide = console.width >= WIDE
    ran = [row for row in rows if not row.note]
    console.print()
    console.print(_table(ran, with_parts=wide))
    console.print()
    if not wide:
        parts = Table.grid("name", "parts", padding=(0, 2))
        parts.columns[0].no_wrap = True
        for row in ran:
            parts.add_row(f"{row.mechanism}, {row.bits}", f"{row.cycles:.0f} = {_parts(row, row.cycles / 50)}")
        console.print(parts)
        console.print()
    for note in _notes(rows, profile):
        console.print(note, highlight=False, soft_wrap=True)


def _table(rows: list[Row], *, with_parts: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False, collapse_padding=True)
    table.add_column("mechanism", no_wrap=True)
    for column in ("bits", "instr.", "checks", "reads", "writes", "cycles"):
        table.add_column(column, justify="right", no_wrap=True)
    if with_parts:
        table.add_column("in parts")
    table.add_column("published", justify="right", no_wrap=True)
    for row in rows:
        published = f"{row.published.cycles:g} {_percent(row)}" if row.published else ""
        table.add_row(
            row.mechanism,
            *map(str, (row.bits, row.instructions, row.checks, row.reads, row.writes)),
            f"{row.cycles:.0f}",
            *([_parts(row, 1)] if with_parts else []),
            published,
        )
    return table


def _percent(row: Row) -> str:
    return f"{round(row.difference or 0, 3) + 0:+.1%}"  # the sum turns -0.0 into 0.0


def _parts(row: Row, least: float) -> str:
    """The dearest first; those under `least` cycles together."""
    largest = sorted(row.parts.items(), key=lambda part: -part[1])
    text = " + ".join(f"{name} {cycles:.0f}" for name, cycles in largest if cycles >= least)
    rest = sum(cycles for _, cycles in largest if cycles < least)
    return f"{text} + others {rest:.0f}" if rest >= 0.5 else text


def _notes(rows: list[Row], profile: Profile) -> list[str]:
    """Sources of the published figures, how prices are known, and what the processor does not have."""
    notes = [f"published: {source}" for source in dict.fromkeys(r.published.source for r in rows if r.published)]
    methods = Counter(price.method for price in profile.prices.values())
    notes.append("prices: " + ", ".join(f"{count} {method}" for method, count in sorted(methods.items())))
    if "fitted" in methods:
        notes.append("the published figures took part in the fit: they show that the parts add up, not a prediction")
    missing: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            missing.setdefault(row.note, []).append(row.guest)
    return notes + [f"{note}: {', '.join(names)}" for note, names in missing.items()]
