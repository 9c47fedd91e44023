"""Every CPL, RPL, DPL, type and P for loads of data and stack segments, against the manual's conditions
(Intel SDM vol. 2, MOV, Operation: loading a segment register in protected mode)."""

from __future__ import annotations

from itertools import product

import pytest

from kit.descriptors import segment
from kit.scene import FREE, KINDS, VECTORS, Scene

S, CODE, CONFORMING, READABLE, WRITABLE = 0x10, 8, 4, 2, 2


def expected_for_stack(cpl: int, rpl: int, dpl: int, type_: int, present: bool) -> int | None:
    writable_data = bool(type_ & S) and not type_ & CODE and bool(type_ & WRITABLE)
    if rpl != cpl or not writable_data or dpl != cpl:
        return VECTORS["#GP"]
    return None if present else VECTORS["#SS"]


def expected_for_data(cpl: int, rpl: int, dpl: int, type_: int, present: bool) -> int | None:
    is_code = bool(type_ & CODE)
    if not type_ & S or (is_code and not type_ & READABLE):
        return VECTORS["#GP"]
    if not (is_code and type_ & CONFORMING) and (rpl > dpl or cpl > dpl):
        return VECTORS["#GP"]
    return None if present else VECTORS["#NP"]


@pytest.mark.parametrize("cpl", range(4))
@pytest.mark.parametrize(
    ("name", "opcode", "expected"), [("ss", 0xD0, expected_for_stack), ("ds", 0xD8, expected_for_data)]
)
@pytest.mark.parametrize("mode", ["protected", "long", "compatibility"])
def test_load(mode: str, name: str, opcode: int, expected, cpl: int) -> None:  # type: ignore[no-untyped-def]
    scene = Scene(mode, cpl=cpl)
    m = scene.machine
    scene.write(m.get("rip"), bytes([0x8E, opcode]))  # MOV sreg, AX
    m.set("idtr_limit", 0)  # nothing is delivered: a fault leaves everything as it is
    start, before = m.get("rip"), m.segment(name)
    for rpl, dpl, type_, present in product(range(4), range(4), range(32), (False, True)):
        scene.descriptor(FREE, segment(type_, dpl=dpl, present=present))
        m.set("rax", FREE | rpl)
        m.set("rip", start)
        end = m.run(1, "off", 16)
        faults = end.records[end.records["kind"] == KINDS["fault"]]
        got = (int(faults[0]["a"]), int(faults[0]["b"])) if len(faults) else None
        vector = expected(cpl, rpl, dpl, type_, present)
        what = f"CPL={cpl} RPL={rpl} DPL={dpl} type={type_:#x} P={present}"
        assert got == (None if vector is None else (vector, FREE)), what
        if vector is None:
            assert m.segment(name)["selector"] == FREE | rpl, what
            m.set_segment(name, before["selector"], before["base"], before["limit"], before["attributes"])
        assert m.segment(name) == before, what
