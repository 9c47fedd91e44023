"""What far CALL, JMP and RET do with a selector, from the manual's pseudo-code alone (Intel SDM vol. 2).

Nothing here is shared with the emulator: the answer is a vector and what its error code names, or the level arrived at.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The code segment named, as its descriptor has it: `kind` is conforming, nonconforming, data or system."""

    kind: str
    dpl: int
    present: bool


@dataclass(frozen=True)
class Gate:
    dpl: int
    present: bool


Answer = tuple[str, str] | int
GP, NP = ("#GP", "target"), ("#NP", "target")


def call_or_jump(cpl: int, rpl: int, target: Target) -> Answer:
    """CONFORMING-CODE-SEGMENT and NONCONFORMING-CODE-SEGMENT."""
    if target.kind == "conforming":
        if target.dpl > cpl:
            return GP
    elif target.kind == "nonconforming":
        if rpl > cpl or target.dpl != cpl:
            return GP
    else:
        return GP
    return cpl if target.present else NP


def far_return(cpl: int, rpl: int, target: Target) -> Answer:
    """RET: the levels compared are those of the selector popped."""
    if target.kind not in ("conforming", "nonconforming"):
        return GP
    if rpl < cpl:
        return GP
    if target.kind == "conforming" and target.dpl > rpl:
        return GP
    if target.kind == "nonconforming" and target.dpl != rpl:
        return GP
    return rpl if target.present else NP


def through_call_gate(jump: bool, cpl: int, rpl: int, gate: Gate, target: Target) -> Answer:
    """CALL-GATE. RPL of the selector in the gate plays no part."""
    if gate.dpl < cpl or rpl > gate.dpl:
        return "#GP", "gate"
    if not gate.present:
        return "#NP", "gate"
    if target.kind not in ("conforming", "nonconforming"):
        return GP
    if target.dpl > cpl:
        return GP
    if jump and target.kind == "nonconforming" and target.dpl != cpl:
        return GP
    if not target.present:
        return NP
    return target.dpl if target.kind == "nonconforming" else cpl
