"""What is to be done to a machine so that it runs an image: made before the machine is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from emu.machine import Machine

    from .entry import State
    from .layout import Piece

Kind = Literal["rom", "boot sector", "flat", "multiboot", "elf32", "elf64"]


@dataclass(frozen=True)
class Plan:
    """`entry`: physical address of the first instruction. `info`: of the Multiboot information."""

    kind: Kind
    entry: int
    state: State
    pieces: tuple[Piece, ...]
    info: int | None = None

    def carry_out(self, machine: Machine) -> None:
        """EmuError if a ROM that was loaded before lies where RAM is needed."""
        machine.reset()
        for piece in self.pieces:
            piece.write(machine)
        self.state.enter(machine)
