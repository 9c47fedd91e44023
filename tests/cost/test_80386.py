"""The 80386 profile gives exactly the clocks of the manual, per path, in real runs of the rooms.

Expected values: Intel 80386 Programmer's Reference Manual, instruction pages (INT, IRET, CALL, JMP, RET, MOV, POP).
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from emu import profile
from kit.descriptors import CALL_GATE, CODE_CONFORMING, INTERRUPT_GATE, gate, segment
from kit.scene import CODE0, CODE3, DATA0, DATA3, FREE, STACK, TARGET, Scene

if TYPE_CHECKING:
    from collections.abc import Callable

DOCUMENTED = Path(__file__).parents[3] / "shared/costs/documented_clocks.csv"
NOP, NOP_CLOCKS = b"\x90", 3  # what comes next in every case: one component


def clocks(scene: Scene, source: str) -> float:
    """Clocks of one instruction, wherever it leads: the NOP there is run too, and taken off again."""
    scene.machine.set_prices(profile.load("80386").millicycles())
    step = scene.step(f"{source}\nnop", instructions=2)
    assert not step.faults, step.faults
    return step.end.millicycles / 1000 - NOP_CLOCKS


def at_target(scene: Scene) -> Scene:
    scene.write(TARGET, NOP)
    return scene


def interrupt(cpl: int) -> Scene:
    scene = Scene("protected", cpl=cpl)
    scene.gate(0x80, INTERRUPT_GATE, CODE0, TARGET, dpl=3)
    return at_target(scene)


def call_gate(cpl: int, parameters: int = 0) -> Scene:
    scene = Scene("protected", cpl=cpl)
    scene.descriptor(FREE, gate(CALL_GATE, CODE0, TARGET, dpl=3, count=parameters))
    return at_target(scene)


def frame(cpl: int, *words: int) -> Scene:
    scene = at_target(Scene("protected", cpl=cpl))
    scene.push(*words)
    return scene


def real(*words: int) -> Scene:
    scene = Scene("real")
    scene.write(0x80 * 4, TARGET.to_bytes(4, "little"))
    if words:
        scene.push(*words)
    return at_target(scene)


def pointer(scene: Scene, offset: int, selector: int, width: int = 4) -> Scene:
    scene.write(0x9000, offset.to_bytes(width, "little") + selector.to_bytes(2, "little"))
    return scene


M = 1  # components of NOP, the next instruction
PATHS: dict[str, tuple[Callable[[], Scene], str, int]] = {
    "INT n, real mode": (real, "int 0x80", 37),
    "INT n, gate, same privilege": (lambda: interrupt(0), "int 0x80", 59),
    "INT n, gate, more privilege": (lambda: interrupt(3), "int 0x80", 99),
    "IRET, real mode": (lambda: real(2, 0, TARGET), "iret", 22),
    "IRET, same privilege": (lambda: frame(0, 2, CODE0, TARGET), "iretd", 38),
    "IRET, lesser privilege": (lambda: frame(0, DATA3, STACK[3], 2, CODE3, TARGET), "iretd", 82),
    "CALL far, real mode": (real, f"call 0:{TARGET:#x}", 17 + M),
    "CALL far, code segment": (lambda: at_target(Scene("protected")), f"call {CODE0}:{TARGET}", 34 + M),
    "CALL far, gate, same privilege": (lambda: call_gate(0), f"call {FREE}:0", 52 + M),
    "CALL far, gate, more privilege": (lambda: call_gate(3), f"call {FREE}:0", 86 + M),
    "CALL far, gate, 5 parameters": (lambda: call_gate(3, 5), f"call {FREE}:0", 94 + 4 * 5 + M),
    "CALL far indirect, code segment": (
        lambda: pointer(at_target(Scene("protected")), TARGET, CODE0),
        "call far [0x9000]",
        38 + M,
    ),
    "CALL far indirect, gate, more privilege": (
        lambda: pointer(call_gate(3), 0, FREE),
        "call far [0x9000]",
        90 + M,
    ),
    "CALL far indirect, real mode": (lambda: pointer(real(), TARGET, 0, 2), "call far [0x9000]", 22 + M),
    "JMP far, real mode": (real, f"jmp 0:{TARGET:#x}", 12 + M),
    "JMP far, code segment": (lambda: at_target(Scene("protected")), f"jmp {CODE0}:{TARGET}", 27 + M),
    "JMP far, gate, same privilege": (lambda: call_gate(0), f"jmp {FREE}:0", 45 + M),
    "JMP far indirect, code segment": (
        lambda: pointer(at_target(Scene("protected")), TARGET, CODE0),
        "jmp far [0x9000]",
        31 + M,
    ),
    "RET far, real mode": (lambda: real(0, TARGET), "retf", 18 + M),
    "RET far, same privilege": (lambda: frame(0, CODE0, TARGET), "retf", 32 + M),
    "RET far, lesser privilege": (lambda: frame(0, DATA3, STACK[3], CODE3, TARGET), "retf", 68),
    "RET far imm16, lesser privilege": (
        lambda: frame(0, DATA3, STACK[3], 7, 7, CODE3, TARGET),
        "retf 8",
        68,
    ),
    "MOV Sreg, r16, protected mode": (lambda: Scene("protected"), "mov ds, ax", 18),
    "POP Sreg, protected mode": (lambda: frame(0, DATA0), "pop es", 21),
    "LGDT": (lambda: Scene("protected"), "lgdt [0x9000]", 11),
    "CLI": (lambda: Scene("protected"), "cli", 3),
    "CLTS": (lambda: Scene("protected"), "clts", 5),
    "MOV r32, CR0": (lambda: Scene("protected"), "mov eax, cr0", 6),
    "MOV r32, r32": (lambda: Scene("protected"), "mov eax, ebx", 2),
    "PUSH r32": (lambda: Scene("protected"), "push eax", 2),
    "POP r32": (lambda: Scene("protected"), "pop eax", 4),
    "Jcc, not taken": (lambda: Scene("protected"), "jz $ + 8", 3),
    "JMP near": (lambda: Scene("protected"), f"jmp {TARGET}", 7 + M),
    "CALL near": (lambda: Scene("protected"), f"call {TARGET}", 7 + M),
    "RET near": (lambda: frame(0, TARGET), "ret", 10 + M),
}


@pytest.mark.parametrize("path", PATHS)
def test_documented_clocks(path: str) -> None:
    make, source, expected = PATHS[path]
    assert clocks(at_target(make()), source) == expected


def test_conforming_code_is_the_same_privilege() -> None:
    scene = at_target(Scene("protected", cpl=3))
    scene.descriptor(FREE, segment(CODE_CONFORMING))
    assert clocks(scene, f"call {FREE}:{TARGET}") == 34 + M


ROWS = [  # instruction and path of the fact sheet, and the path above that shows it
    ("INT n", "real mode", "INT n, real mode"),
    ("INT n", "pm, interrupt/trap gate, same privilege", "INT n, gate, same privilege"),
    ("INT n", "pm, interrupt/trap gate, more privilege", "INT n, gate, more privilege"),
    ("IRET/IRETD", "real mode", "IRET, real mode"),
    ("IRET/IRETD", "pm, same privilege", "IRET, same privilege"),
    ("IRET/IRETD", "pm, to lesser privilege", "IRET, lesser privilege"),
    ("CALL far", "direct, real mode", "CALL far, real mode"),
    ("CALL far", "direct, pm code segment", "CALL far, code segment"),
    ("CALL far", "direct, call gate same privilege", "CALL far, gate, same privilege"),
    ("CALL far", "direct, call gate more privilege, no parameters", "CALL far, gate, more privilege"),
    ("CALL far", "direct, call gate more privilege, x parameters", "CALL far, gate, 5 parameters"),
    ("JMP far", "direct, pm code segment", "JMP far, code segment"),
    ("JMP far", "direct, call gate same privilege", "JMP far, gate, same privilege"),
    ("RETF", "real mode", "RET far, real mode"),
    ("RETF", "pm, same privilege", "RET far, same privilege"),
    ("RETF", "pm, to lesser privilege (stack switch)", "RET far, lesser privilege"),
]


@pytest.mark.skipif(not DOCUMENTED.is_file(), reason="the fact sheet of documented clocks is not beside the repository")
@pytest.mark.parametrize(("instruction", "path", "shown"), ROWS)
def test_expected_values_are_those_of_the_fact_sheet(instruction: str, path: str, shown: str) -> None:
    with DOCUMENTED.open(encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["cpu"] == "80386"]
    (row,) = [r for r in rows if r["instruction"] == instruction and r["path"] == path]
    formula = re.sub(r"(\d)([mx])", r"\1*\2", row["clocks"])
    assert re.fullmatch(r"[\dmx+* ]+", formula)
    assert eval(formula, {"m": M, "x": 5}) == PATHS[shown][2]  # digits, m, x, + and * only
