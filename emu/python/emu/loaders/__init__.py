"""Loads what people have: NASM sources, ROMs, boot sectors, flat binaries, Multiboot kernels and ELF files."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import assembler, elf, multiboot, raw
from .entry import flat_32, flat_64
from .layout import Layout, Range
from .plan import Kind, Plan
from .source import ImageError, Source, open_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.machine import Machine

__all__ = ["Image", "ImageError", "Kind", "Range", "load"]

RESET_VECTOR = 0xFFFFFFF0
LARGEST_ROUNDS = 0xFFFFFFFF


@dataclass(frozen=True)
class Image:
    """What was loaded, and where. Addresses are physical."""

    kind: Kind
    path: Path
    """The file as it was named: of a .asm file, the source."""
    entry: int
    """Address of the first instruction."""
    size: int
    """Bytes of the image: of the file, or of what was assembled."""
    ranges: tuple[Range, ...] = ()
    """What of RAM is in use by the image and what was made for it; () for a ROM."""
    information: int | None = None
    """Address of the Multiboot information."""


def load(
    machine: Machine,
    path: Path | str,
    *,
    at: int | None = None,
    modules: Sequence[Path] = (),
    command_line: str = "",
    rounds: int | None = None,
) -> Image:
    """Puts an image into the machine, and the processor, after a RESET, where the image expects it.

    The content says what the image is, after a file named *.asm has been assembled. In this order: ELF (a Multiboot
    kernel or not), a Multiboot kernel with addresses, a boot sector (55 AA at 510, at 0000:7C00), a ROM (a multiple of
    4096 bytes, at most 16 MiB), a flat binary.

    `at`: physical address for a flat binary; with it, boot sectors and ROMs are taken for flat binaries too.
    `modules`, `command_line`: for a Multiboot kernel. `rounds`: the ROUNDS of a .asm file.

    Raises ImageError, an EmuError, for whatever is wrong with the files, and leaves the machine as it was; EmuError, if
    a ROM that was loaded before lies where the image goes.
    """
    path = Path(path)
    with ExitStack() as files:
        source = files.enter_context(open_source(path))
        if path.suffix.lower() == assembler.SUFFIX:
            source = assembler.assemble(path, _checked(rounds, source))
        elif rounds is not None:
            raise source.error("rounds are for .asm files, and this is none; leave them out")
        extra = [files.enter_context(open_source(Path(module))) for module in modules]
        layout = Layout(machine.memory.size)
        plan = _plan(machine, source, at, modules=extra, command_line=command_line, layout=layout)
        if (extra or command_line) and (plan is None or plan.kind != "multiboot"):
            raise source.error("modules and a command line are for Multiboot kernels, and this is none; leave them out")
        if plan is None:
            machine.load_rom(source.read(0, source.size))
            machine.reset()
            return Image("rom", path, RESET_VECTOR, source.size)
        plan.carry_out(machine)
        return Image(plan.kind, path, plan.entry, source.size, tuple(sorted(layout.taken)), plan.info)


def _checked(rounds: int | None, source: Source) -> int | None:
    if rounds is not None and not 1 <= rounds <= LARGEST_ROUNDS:
        raise source.error(f"rounds must be from 1 to {LARGEST_ROUNDS}, not {rounds}")
    return rounds


def _plan(
    machine: Machine, source: Source, at: int | None, *, modules: list[Source], command_line: str, layout: Layout
) -> Plan | None:
    """None for a ROM, which needs none."""
    is_elf = elf.is_elf(source)
    told_otherwise = at is not None or raw.is_boot_sector(source) or raw.has_reset_vector(source)
    header = multiboot.find(source, strict=is_elf or not told_otherwise)
    if at is not None and (is_elf or header):
        raise source.error("it says itself where it goes, so it cannot be loaded at another address; leave out `at`")
    if header:
        return multiboot.plan(source, header, modules, command_line, layout)
    if multiboot.is_multiboot2(source):
        raise source.error("it is a Multiboot 2 kernel, but only version 1 is known; give it a Multiboot 1 header too")
    if is_elf:
        return _elf(machine, source, layout)
    if at is not None:
        return raw.flat(source, at, layout)
    if raw.is_boot_sector(source):
        return raw.boot_sector(source, layout)
    if raw.is_rom(source):
        return None
    raise source.error(
        f"its {source.size} bytes are no ELF file, no Multiboot kernel, no boot sector (55 AA at 510) and no ROM (a "
        "multiple of 4096 bytes, at most 16 MiB); if it is a flat binary, say with `at` to which address it goes"
    )


def _elf(machine: Machine, source: Source, layout: Layout) -> Plan:
    executable = elf.read(source)
    pieces = executable.place(source, layout)
    if executable.bits == 32:
        state, tables = flat_32(executable.entry, layout, source)
        return Plan("elf32", executable.entry, state, (*pieces, *tables))
    profile = machine.profile
    if profile and "long_mode" not in profile.model.features:
        raise source.error(
            f"it is 64-bit code, but the processor of profile {profile.name} has no 64-bit mode; use another"
        )
    state, tables = flat_64(executable.entry, layout, source)
    return Plan("elf64", executable.entry, state, (*pieces, *tables))
