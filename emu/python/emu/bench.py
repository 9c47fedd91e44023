"""Speed, as ratios against a peer that runs the same ROM in the same session.

Every row is a guest built twice, with few and with many rounds; what is reported is the difference, so start-up and
boot cancel out, for the peer as well. Repetitions of all machines are interleaved, so a busy host slows all of them.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from . import guests
from .errors import EmuError
from .machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable

FEW, BUDGET = 16, 1 << 62
TRANSITIONS = [
    "int_gate_64",
    "int_ist_64",
    "call_gate_64",
    "syscall_64",
    "syscall_swapgs_64",
    "sysenter_64",
    "page_fault_64",
    "invalid_opcode_64",
    "int_gate_32",
    "call_gate_32",
    "sysenter_32",
]
PROGRAMS = ["bench/alu_64", "bench/sieve_64"]
QEMU = "qemu-system-x86_64"


@dataclass
class Row:
    """One guest: seconds of each repetition by machine, and what the difference of the two builds amounts to."""

    test: str
    unit: str
    work: float
    """Round trips or instructions between the two builds."""
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def rates(self, machine: str) -> list[float]:
        """Millions of units per second, one per repetition."""
        return [self.work / seconds / 1e6 for seconds in self.seconds.get(machine, []) if seconds > 0]

    def median(self, machine: str) -> float | None:
        rates = self.rates(machine)
        return statistics.median(rates) if rates else None


def _seconds(run: Callable[[Path], None], few: Path, many: Path) -> float:
    times = []
    for image in (few, many):
        start = time.perf_counter()
        run(image)
        times.append(time.perf_counter() - start)
    return times[1] - times[0]


def _run_emu(image: Path) -> None:
    machine = Machine(memory=16 << 20)
    machine.load_rom(image.read_bytes())
    end = machine.run(budget=BUDGET)
    if end.stop.reason != "exit" or end.status != 0:
        raise EmuError(f"{image.name} did not end as expected: {end.stop.detail}")


def _run_qemu(image: Path) -> None:
    command = [QEMU, "-bios", str(image), "-m", "16", "-display", "none", "-debugcon", "null", "-cpu"]
    command += ["max,vendor=GenuineIntel", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
    done = subprocess.run(command, capture_output=True, timeout=600, check=False)
    if done.returncode != 1:  # the device exits with status * 2 + 1
        raise EmuError(
            f"QEMU ended {image.name} with {done.returncode}: {done.stderr.decode(errors='replace').strip()}"
        )


def _instructions(image: Path) -> int:
    machine = Machine(memory=16 << 20)
    machine.load_rom(image.read_bytes())
    return machine.run(budget=BUDGET).instructions


def measure(names: list[str], seconds: float, repetitions: int, note: Callable[[str], None]) -> list[Row]:
    """Runs every guest on every machine present; `seconds`: about how long one run of ours may take."""
    machines: dict[str, Callable[[Path], None]] = {"emu": _run_emu}
    if shutil.which(QEMU):
        machines["qemu"] = _run_qemu
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            note(name)
            few, many = Path(folder, "few.bin"), Path(folder, "many.bin")
            few.write_bytes(guests.build(name, rounds=FEW))
            rounds = FEW + _rounds_for(name, seconds, few, many)
            many.write_bytes(guests.build(name, rounds=rounds))
            if name in PROGRAMS:
                row = Row(name, "M instr/s", _instructions(many) - _instructions(few))
            else:
                row = Row(name, "M trips/s", rounds - FEW)
            for _ in range(repetitions):
                for machine, run in machines.items():
                    row.seconds.setdefault(machine, []).append(_seconds(run, few, many))
            rows.append(row)
    return rows


def _rounds_for(name: str, seconds: float, few: Path, trial: Path) -> int:
    """How many rounds take about that long here."""
    rounds = 2000 if name in PROGRAMS else 100_000
    while True:
        trial.write_bytes(guests.build(name, rounds=FEW + rounds))
        took = _seconds(_run_emu, few, trial)
        if took > seconds / 10:
            return max(rounds, int(rounds * seconds / took))
        rounds *= 10


def table(rows: list[Row]) -> Table:
    """The rows for people: medians, with the lowest and highest repetition, and the ratio to the peer."""
    out = Table(title="Speed: median (lowest - highest) of the repetitions", show_edge=False, pad_edge=False)
    for column in ("guest", "unit", "emu", "QEMU TCG", "ratio"):
        out.add_column(column, justify="left" if column in ("guest", "unit") else "right", no_wrap=True)
    for row in rows:
        cells = []
        for machine in ("emu", "qemu"):
            rates = row.rates(machine)
            cells.append(f"{statistics.median(rates):.1f} ({min(rates):.1f} - {max(rates):.1f})" if rates else "-")
        ours, peer = row.median("emu"), row.median("qemu")
        out.add_row(row.test, row.unit, *cells, f"{ours / peer:.2f}" if ours and peer else "-")
    return out


@click.command()
@click.option("--only", "names", multiple=True, metavar="GUEST", help="Measure this guest only; may be repeated.")
@click.option("--seconds", default=0.5, show_default=True, help="About how long one run may take.")
@click.option("--repetitions", default=5, show_default=True, help="How often each machine runs each guest.")
@click.option("--json", "target", type=click.Path(dir_okay=False), default="bench.json", show_default=True)
def bench(names: tuple[str, ...], seconds: float, repetitions: int, target: str) -> None:
    """Measure round trips and instructions per second, beside QEMU TCG where it is installed."""
    console = Console()
    if not shutil.which(QEMU):
        console.print(f"{QEMU} is not installed, so there is no peer in this run (Debian: apt install qemu-system-x86)")
    with console.status("measuring") as status:
        rows = measure(list(names) or TRANSITIONS + PROGRAMS, seconds, repetitions, status.update)
    console.print(table(rows))
    result = {
        "rows": [
            {"test": r.test, "unit": r.unit, "emu": r.median("emu"), "qemu": r.median("qemu")}
            | {f"{m}_spread": [min(r.rates(m)), max(r.rates(m))] for m in r.seconds}
            for r in rows
        ]
    }
    Path(target).write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"written to {target}")
