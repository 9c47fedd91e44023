"""Why a run ended in shutdown: the chain from the first fault to the last, in at most five lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from emu.explain import contrast_words, subject_words
from emu.records import KINDS
from emu.structures import PF, descriptor_type, error_code_words, fault_name, is_ia32e, type_words, vector_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from emu.records import CheckSeen, Fault
    from emu.trace import Trace

SHUTDOWN = 255
LONGEST = 5


class Scene(NamedTuple):
    """What the machine tells about the moment of death; nothing of it has changed since the first fault."""

    mode: str
    instruction: Callable[[int], str | None]
    """Disassembly of the instruction at CS:RIP, or None if its bytes cannot be read."""
    descriptor: Callable[[int], int | None]
    """First 8 bytes of the descriptor that a selector names, or None."""


class Link(NamedTuple):
    """One fault that came while another was being delivered."""

    first: int
    fault: Fault
    becomes: int


def autopsy(trace: Trace, scene: Scene) -> list[str] | None:
    """At most five lines, or None if the records do not end in a shutdown."""
    chain = _chain(trace)
    if not chain:
        return None
    at, links = chain
    first = trace.fault_at(at)
    lines = [_culprit(first, scene), *_rule(first)]
    told = [_link(link) for link in links]
    end = "a fault while delivering #DF shuts the processor down (triple fault)"
    room = LONGEST - len(lines) - 1
    if len(told) > room:  # a benign exception came first: one link more than usual
        told = ["; ".join(told[: len(told) - room + 1]), *told[len(told) - room + 1 :]]
    return [*lines, *told, end]


def _chain(trace: Trace) -> tuple[int, list[Link]] | None:
    """Index of the first fault, and the escalations from it to the shutdown."""
    records = trace.records
    steps = [int(at) for at in np.flatnonzero(records["kind"] == KINDS["escalate"])]
    if not steps or records[steps[-1]]["c"] != SHUTDOWN:
        return None
    links: list[Link] = []
    wanted = SHUTDOWN
    for at in reversed(steps):
        record = records[at]
        if record["c"] != wanted:
            break
        links.insert(0, Link(int(record["a"]), trace.fault_at(at), int(record["c"])))
        wanted = links[0].first
        faults = np.flatnonzero((records[:at]["kind"] == KINDS["fault"]) & (records[:at]["a"] == wanted))
        if not len(faults):
            return None  # the ring has dropped it
        start = int(faults[-1])
        if start == 0 or records[start - 1]["kind"] != KINDS["escalate"]:
            return start, links
    return start, links


def _culprit(fault: Fault, scene: Scene) -> str:
    rip = fault.rip or 0
    instruction = scene.instruction(rip) or "the instruction"
    text = f"{instruction} at 0x{rip:04X}: "
    seen = fault.check
    if seen is None:
        return f"{text}{fault.name}"
    where = f" on linear address 0x{fault.linear:X}" if fault.linear is not None else ""
    return f"{text}{_examined(seen, scene)}{contrast_words(seen)} -> {fault.name}{where}"


def _examined(seen: CheckSeen, scene: Scene) -> str:
    """`return CS 0x000B names GDT[1], code, non-conforming, `: what the failed check looked at."""
    subject = subject_words(seen)
    if seen.check.error_code_names != "selector":
        return f"{subject}: " if subject else ""
    noun, _, entry = subject.partition(" (")
    text = f"{noun} names {entry.rstrip(')')}, "
    low = scene.descriptor(seen.examined)
    if low is None or "last byte" in seen.operands:
        return text
    words = type_words(descriptor_type(low), ia32e=is_ia32e(scene.mode))
    if "type" not in seen.operands and words.startswith("code"):
        words = words.rpartition(", ")[0]  # readable or not decides nothing here
    return f"{text}{words}, "


def _rule(fault: Fault) -> list[str]:
    if fault.check is None:
        return []
    check = fault.check.check
    code = (
        f"; error code: {error_code_words(fault.vector, fault.error_code)}"
        if fault.error_code or fault.vector == PF
        else ""
    )
    return [f"rule: {check.says} ({check.name}; {check.sdm}){code}"]


def _link(link: Link) -> str:
    seen = link.fault.check
    reason = ""
    if seen is not None:
        subject = subject_words(seen)
        reason = f": {subject + ', ' if subject else ''}{contrast_words(seen)} ({seen.check.name})"
    second = fault_name(link.fault.vector, link.fault.error_code)
    text = f"{vector_name(link.first)} cannot be delivered{reason} -> {second}"
    return text if link.becomes in {SHUTDOWN, link.fault.vector} else f"{text}, together {vector_name(link.becomes)}"
