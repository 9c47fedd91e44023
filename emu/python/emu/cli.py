"""The command `emu`: run, explain, compare, doc, guests, bench."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from emu import compare as comparison
from emu import doc as documentation
from emu import guests, loaders, profile
from emu.bench import bench
from emu.errors import EmuError
from emu.machine import DEFAULT_BUDGET, DEFAULT_MEMORY, Machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from emu.run import Run

BAD_INPUT = 2
MEMORY = f"{DEFAULT_MEMORY >> 20}M"
EXIT_CODES = {"budget": 124, "shutdown": 125, "unmodelled": 126, "halted": 0, "reset": 0}
"""Exit status by the reason of the stop; a guest that leaves through port 0xF4 gives its own, modulo 256."""
EXIT_HELP = """\b
Exit status:
  any  what the guest wrote to port 0xF4, modulo 256
  0    the guest asked for a reset, or halted for good
  2    bad input: the guest, the profile or an option
  124  the instruction budget is used up
  125  shutdown (triple fault)
  126  the guest needs what emu does not model"""


def size(text: str) -> int:
    """A number of bytes, with K, M or G after it if wanted."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    digits, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    if not (digits.isascii() and digits.isdigit()):
        raise click.BadParameter(f"{text!r} is not a size: give bytes, or a number with K, M or G")
    return int(digits) * unit


def number(text: str) -> int:
    """A number in decimal or, after 0x, in hexadecimal."""
    try:
        return int(text, 0)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a number") from error


@dataclass(frozen=True)
class Job:
    """A guest and how to run it, as the command line says."""

    guest: str
    cpu: str
    budget: int
    memory: int
    at: int | None
    modules: tuple[Path, ...]
    command_line: str

    def machine(self) -> Machine:
        """A machine with the guest in it: a built-in one by name, else a file."""
        machine = Machine(memory=self.memory, profile=self.cpu)
        if not Path(self.guest).exists() and not Path(self.guest).is_absolute() and "." not in self.guest:
            if self.at is not None or self.modules or self.command_line:
                raise EmuError(f"{self.guest} is a built-in guest: leave out --at, --module and --append")
            machine.load_rom(guests.build(self.guest))
        else:
            loaders.load(machine, Path(self.guest), at=self.at, modules=self.modules, command_line=self.command_line)
        return machine


def job_options(command: Callable[..., None]) -> Callable[..., None]:
    """What every command that runs a guest takes, gathered in a Job."""

    @wraps(command)
    def gathered(**values: Any) -> None:
        job = Job(**{field.name: values.pop(field.name) for field in fields(Job)})
        command(job, **values)

    for option in (
        click.option("--append", "command_line", default="", help="Command line for a Multiboot kernel."),
        click.option("--module", "modules", multiple=True, type=Path, help="Module for a Multiboot kernel."),
        click.option("--at", type=number, default=None, help="Address of a flat binary."),
        click.option("--memory", type=size, default=MEMORY, show_default=True, help="RAM, as 64M or 1G."),
        click.option(
            "--budget", type=number, default=str(DEFAULT_BUDGET), show_default=True, help="Most instructions run."
        ),
        click.option("--cpu", default="skylake", show_default=True, help="Profile: a name, or your own TOML file."),
        click.argument("guest"),
    ):
        gathered = option(gathered)
    return gathered


class Group(click.Group):
    """Turns the one exception type of emu into one sentence and a status."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except EmuError as error:
            click.echo(f"emu: {error}", err=True)
            ctx.exit(BAD_INPUT)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


@click.group(cls=Group)
@click.version_option(package_name="emu")
def main() -> None:
    """An x86 machine that explains and prices every crossing between privilege levels."""


@main.command(epilog=EXIT_HELP)
@job_options
@click.option(
    "--trace",
    type=click.Choice(["off", "transitions", "checks"]),
    default="off",
    show_default=True,
    help="What to show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def run(job: Job, trace: Any, as_json: bool) -> None:
    """Run GUEST: a built-in guest's name, an .asm file, a ROM, a boot sector, a Multiboot kernel, an ELF file, ..."""
    result = job.machine().run(budget=job.budget, trace=trace)
    if as_json:
        click.echo(result.to_json(indent=2))
    else:
        report(result, trace)
    sys.exit(status_of(result))


def status_of(result: Run) -> int:
    """Exit status of a run; the table is in `emu run --help`."""
    return result.status & 0xFF if result.status is not None else EXIT_CODES.get(result.stop.reason, 1)


def report(result: Run, trace: str) -> None:
    """What the guest printed, what the processor did, and why it ended."""
    if result.output:
        click.echo(result.output.decode("utf-8", "replace"), nl=not result.output.endswith(b"\n"))
    if result.serial:
        click.echo(result.serial.decode("utf-8", "replace"), nl=not result.serial.endswith(b"\n"))
    if trace != "off":
        if result.dropped:
            click.echo(f"({result.dropped} older records were dropped; the trace below is the end of the run)")
        for number, passage in enumerate(result.transitions, 1):
            click.echo(f"[{number}] {passage.explain()}\n")
    click.echo(f"{result.stop.detail}; {result.instructions} instructions, {result.cycles:.0f} cycles")
    for line in result.autopsy() or last_fault(result):
        click.echo(line)


def last_fault(result: Run) -> list[str]:
    """What to look at if a run did not end well although the guest took all its faults."""
    if not result.faults or result.status == 0 or result.stop.reason == "reset":
        return []
    return [f"last fault: {result.faults[-1].explain()}"]


@main.command()
@job_options
@click.option("--transition", type=int, default=None, help="Explain the N-th transition only, counting from 1.")
@click.option("--citations", is_flag=True, help="Say with each check where the manual demands it.")
def explain(job: Job, transition: int | None, citations: bool) -> None:
    """Explain GUEST: what went wrong if something did, else each transition, check by check."""
    result = job.machine().run(budget=job.budget, trace="checks")
    passages = result.transitions
    if transition is not None:
        if not 1 <= transition <= len(passages):
            raise EmuError(f"there is no transition {transition}: the run has {len(passages)}, counted from 1")
        click.echo(passages[transition - 1].explain(citations=citations))
        return
    failed = [passage for passage in passages if passage.faulted or passage.mechanism == "exception_delivery"]
    for passage in failed or passages:
        click.echo(passage.explain(citations=citations) + "\n")
    for line in result.autopsy() or [fault.explain() for fault in result.faults]:
        click.echo(line)
    click.echo(result.stop.detail)


@main.command(name="compare")
@click.option("--cpu", default="skylake", show_default=True, help="Profile: a name, or your own TOML file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array instead.")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("build/compare"), show_default=True,
    help="Where the chart goes.",
)  # fmt: skip
def compare_command(cpu: str, as_json: bool, output: Path) -> None:
    """Compare what every way into the kernel costs, in which parts, beside published figures."""
    chosen = profile.load(cpu)
    rows = comparison.compare(chosen)
    if as_json:
        click.echo(json.dumps([row.to_dict() for row in rows], indent=2))
        return
    from emu.plot import stacked_bars  # noqa: PLC0415 - matplotlib takes a while to import

    console = Console()
    comparison.show(console, rows, chosen)
    try:
        paths = stacked_bars(rows, f"One round trip into the kernel, profile {chosen.name}", output)
    except OSError as error:
        raise EmuError(
            f"cannot write the chart to {output}: {error.strerror}; choose a folder with --output"
        ) from error
    console.print(f"chart: {' and '.join(map(str, paths))}", highlight=False, soft_wrap=True)


@main.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array instead.")
@click.option("--costs", is_flag=True, help="List the cost events instead.")
def doc(name: str | None, as_json: bool, costs: bool) -> None:
    """Say what the check NAME, or each check of the family NAME, demands; without NAME list all."""
    if costs:
        documentation.show_costs(Console())
        return
    checks = documentation.chosen(name)
    if as_json:
        click.echo(json.dumps([documentation.entry(check) for check in checks], indent=2))
    else:
        documentation.show(Console(), checks)


@main.command(name="guests")
def guests_command() -> None:
    """List the built-in guests: one mechanism each, with its question."""
    table = Table(show_edge=False, pad_edge=False)
    for column in ("guest", "bits", "mechanism", "question"):
        table.add_column(column, no_wrap=column in ("guest", "mechanism"))
    for name in guests.names():
        guest = guests.find(name)
        table.add_row(name, str(guest.bits), guest.mechanism, guest.question)
    Console().print(table)


main.add_command(bench)
