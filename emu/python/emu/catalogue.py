"""The catalogue of protection checks: what must hold, where the manual says so, and which fault follows if not.

The core owns it (emu/checks/*.hpp); this module gives it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from emu import _core
from emu.structures import vector_name

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Check:
    """One protection check."""

    id: int
    """Its number in records; it may change from version to version, the name does not."""
    name: str
    """`family.rule`, for example `idt.gate_dpl_permits`."""
    says: str
    """What must hold, as a sentence."""
    sdm: str
    """Where the manual says so: instruction or chapter, and the label in its pseudo-code."""
    vector: int
    """Of the fault that follows if it does not hold."""
    error_code_names: str
    """What the error code of that fault names: no_code, nothing, selector, idt_entry or page."""
    operands: tuple[str, ...]
    """Labels of what it looks at, in order; at most three."""
    cost: str
    """The cost event that each such check is counted as."""

    @property
    def family(self) -> str:
        """The part of the name before the dot: what is being checked."""
        return self.name.partition(".")[0]

    @property
    def fault(self) -> str:
        """The fault that follows, as the manual writes it: `#GP(selector)`, `#UD`, ..."""
        names = {"no_code": "", "nothing": "(0)", "selector": "(selector)", "idt_entry": "(IDT entry)"}
        return vector_name(self.vector) + names.get(self.error_code_names, "(fault code)")


def _read() -> tuple[Check, ...]:
    return tuple(
        Check(
            number,
            entry["name"],
            entry["says"],
            entry["sdm"],
            entry["vector"],
            entry["names"],
            tuple(entry["operands"]),
            entry["cost"],
        )
        for number, entry in enumerate(_core.checks())
    )


CHECKS = _read()
"""All checks, in the order of their ids."""

catalogue: Mapping[str, Check] = MappingProxyType({check.name: check for check in CHECKS})
"""All checks, by name."""
