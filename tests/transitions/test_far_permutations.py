"""Far CALL, JMP and RET with every CPL, DPL, RPL, kind of descriptor and P, against the oracle."""

from __future__ import annotations

import itertools

import pytest

from kit.descriptors import CALL_GATE, CODE, CODE_CONFORMING, DATA, LDT, gate, segment
from kit.expect import assert_interrupts
from kit.scene import DATA0, DATA1, DATA2, DATA3, FREE, GDT, STACK, TARGET, VECTORS, Scene, Step
from kit.transfers import back, far, push_frame
from transitions.oracle_far_transfers import Answer, Gate, Target, call_or_jump, far_return, through_call_gate

LEVELS = range(4)
STACKS = [DATA0, DATA1, DATA2, DATA3]
TYPES = {"conforming": CODE_CONFORMING, "nonconforming": CODE, "data": DATA, "system": LDT}
TARGETS = [Target(kind, dpl, p) for kind, dpl, p in itertools.product(TYPES, LEVELS, (True, False))]
TARGET_SELECTOR, GATE_SELECTOR = FREE, FREE + 0x10


class Bench:
    """One machine for many transfers: it is put back to where it was after each."""

    def __init__(self, mode: str, cpl: int) -> None:
        self.scene = Scene(mode, cpl=cpl)
        self.names = self.scene.machine.register_names()
        self.registers = {name: self.scene.machine.get(name) for name in self.names}
        self.segments = {name: self.scene.machine.segment(name) for name in ("cs", "ss", "ds", "es", "fs", "gs")}

    def again(self, target: Target) -> Scene:
        machine = self.scene.machine
        for name, hidden in self.segments.items():
            machine.set_segment(name, hidden["selector"], hidden["base"], hidden["limit"], hidden["attributes"])
        for name in ("cpl", "rip", "rsp", "rflags"):
            machine.set(name, self.registers[name])
        long = self.scene.mode == "long" and target.kind != "system"
        options = {"long": long and target.kind != "data", "db": not long}
        self.scene.descriptor(
            TARGET_SELECTOR, segment(TYPES[target.kind], dpl=target.dpl, present=target.present, **options)
        )
        return self.scene


def assert_answers(step: Step, expected: Answer, what: str) -> None:
    if isinstance(expected, int):
        assert not step.faults, f"{what}: expected to arrive at level {expected}, got {step.faults}"
        arrived = (step.selector("cs"), step.register("rip"), step.register("cpl"))
        assert arrived == (TARGET_SELECTOR | expected, TARGET, expected), what
    else:
        vector, named = expected
        error = {"target": TARGET_SELECTOR, "gate": GATE_SELECTOR}[named]
        assert [fault[:2] for fault in step.faults] == [(VECTORS[vector], error)], f"{what}: expected {expected}"
        assert_interrupts(step)


@pytest.mark.parametrize("cpl", LEVELS)
@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize("mnemonic", ["call", "jmp"])
def test_direct(mnemonic: str, mode: str, cpl: int) -> None:
    bench = Bench(mode, cpl)
    for target, rpl in itertools.product(TARGETS, LEVELS):
        step = far(bench.again(target), mnemonic, TARGET_SELECTOR | rpl, TARGET)
        assert_answers(step, call_or_jump(cpl, rpl, target), f"{mnemonic} CPL={cpl} RPL={rpl} {target}")


@pytest.mark.parametrize("cpl", LEVELS)
@pytest.mark.parametrize("mode", ["protected", "long"])
def test_return(mode: str, cpl: int) -> None:
    bench = Bench(mode, cpl)
    width = bench.scene.bits
    for target, rpl in itertools.product(TARGETS, LEVELS):
        scene = bench.again(target)
        stack = (STACKS[rpl], STACK[3] - 0x100) if rpl > cpl else None
        push_frame(scene, "retf", width, cs=TARGET_SELECTOR | rpl, rip=TARGET, stack=stack)
        step = back(scene, "retf", width)
        expected = far_return(cpl, rpl, target)
        assert_answers(step, expected, f"RET CPL={cpl} RPL={rpl} {target}")
        if isinstance(expected, int):
            assert step.selector("ss") == STACKS[expected]


@pytest.mark.parametrize("cpl", LEVELS)
@pytest.mark.parametrize("mode", ["protected", "long"])
@pytest.mark.parametrize("mnemonic", ["call", "jmp"])
def test_call_gate(mnemonic: str, mode: str, cpl: int) -> None:
    bench = Bench(mode, cpl)
    targets = [target for target in TARGETS if target.present or target.dpl == cpl]
    for target, rpl, dpl, present in itertools.product(targets, (0, cpl, 3), LEVELS, (True, False)):
        scene = bench.again(target)
        wide = gate(CALL_GATE, TARGET_SELECTOR | rpl, TARGET, dpl=dpl, present=present, wide=scene.long)
        scene.write(GDT + GATE_SELECTOR, wide)
        step = far(scene, mnemonic, GATE_SELECTOR | rpl, 0)
        expected = through_call_gate(mnemonic == "jmp", cpl, rpl, Gate(dpl, present), target)
        assert_answers(step, expected, f"{mnemonic} CPL={cpl} RPL={rpl} gate DPL={dpl} P={present} {target}")
