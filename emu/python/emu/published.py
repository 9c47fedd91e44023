"""Published and documented figures that a model's cycles are set beside, each with its source."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Figure:
    """One round trip, measured or documented by somebody else."""

    id: str
    cpu: str
    """Name of the profile it belongs to."""
    guest: str
    cycles: float
    source: str
    note: str


@cache
def figures() -> tuple[Figure, ...]:
    """All of them."""
    with (resources.files("emu") / "published.csv").open(encoding="utf-8") as file:
        return tuple(
            Figure(row["id"], row["cpu"], row["guest"], float(row["cycles"]), row["source"], row["note"])
            for row in csv.DictReader(file)
        )


def figure_for(guest: str, cpu: str) -> Figure | None:
    """The figure for a guest under a profile, if there is one."""
    return next((f for f in figures() if f.guest == guest and f.cpu == cpu), None)
