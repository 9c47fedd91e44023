"""The catalogue of checks and the list of cost events, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from emu import _core
from emu.catalogue import Check, catalogue
from emu.errors import EmuError

if TYPE_CHECKING:
    from rich.console import Console

NAMES = {
    "no_code": "no error code",
    "nothing": "error code 0 (plus EXT)",
    "selector": "error code: the selector's index and TI (plus EXT)",
    "idt_entry": "error code: vector * 8 + 2 (plus EXT)",
    "page": "error code: P, W/R, U/S, RSVD, I/D of the access",
}


def entry(check: Check) -> dict[str, Any]:
    """A check as plain data."""
    return {
        "name": check.name,
        "mechanism": check.family,
        "sentence": check.says,
        "citation": check.sdm,
        "fault": check.fault,
        "operands": list(check.operands),
    }


def chosen(name: str | None) -> list[Check]:
    """The check of that name, the family of that name, or all. EmuError if there is none."""
    if name is None:
        return list(catalogue.values())
    if name in catalogue:
        return [catalogue[name]]
    family = [check for check in catalogue.values() if check.family == name]
    if not family:
        near = [check.name for check in catalogue.values() if name.lower() in check.name]
        hint = f"did you mean {', '.join(near[:4])}?" if near else "`emu doc` lists all"
        raise EmuError(f"there is no check or family {name!r}: {hint}")
    return family


def show(console: Console, checks: list[Check]) -> None:
    """One check in full, several as a table."""
    if len(checks) == 1:
        check = checks[0]
        console.print(Text(check.name, style="bold"))
        console.print(f"  {check.says}", highlight=False)
        console.print(f"  manual:   {check.sdm}", highlight=False)
        console.print(f"  if not:   {check.fault}, {NAMES[check.error_code_names]}", highlight=False)
        console.print(f"  operands: {', '.join(check.operands)}", highlight=False)
        return
    table = Table(show_edge=False, pad_edge=False)
    for column in ("check", "what must hold", "if not"):
        table.add_column(column, no_wrap=column != "what must hold")
    for check in checks:
        table.add_row(check.name, check.says, check.fault)
    console.print(table)


def show_costs(console: Console) -> None:
    """What is counted."""
    table = Table(show_edge=False, pad_edge=False)
    for column in ("event", "kind", "what is counted"):
        table.add_column(column)
    for event in _core.cost_events():
        table.add_row(event["name"], event["kind"], event["says"])
    console.print(table)
