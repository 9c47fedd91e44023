"""Whatever is poked and whatever is run, the host survives, runs end, and everything recorded can be explained."""

from __future__ import annotations

import contextlib
import json
import random
from typing import TYPE_CHECKING

import pytest

from emu import EmuError, Machine, Segment

if TYPE_CHECKING:
    from emu import Run
    from emu.machine import TraceLevel

EDGES = (0, 1, 0xFFF, 0x1000, 0xFFFFFFFF, 1 << 47, 1 << 63, (1 << 64) - 1, 0xFFFF800000000000)
ATTRIBUTES = (0x93, 0xC09B, 0xA09B, 0xC0F3, 0xA0FB, 0x82, 0x8B, 0x0000)
# Opcodes that lead to rooms, among those that feed them.
OPCODES = bytes.fromhex("cdcf0f9aeacbc38ef4fbfa9d9ce6ee486667f3a4ab0105073435a222203032001fe8ebff60611ec4cc")
REGISTERS = Machine(memory=4096).registers.as_dict().keys()


class Chaos:
    """A machine in a state that no boot leads to."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.machine = Machine(memory=self.random.choice([4096, 1 << 16, 1 << 20]))
        self._fill_memory()
        self._poke()

    def word(self) -> int:
        if self.random.random() < 0.4:
            return self.random.choice(EDGES)
        return self.random.getrandbits(self.random.choice([3, 8, 16, 32, 64]))

    def _fill_memory(self) -> None:
        likely = self.random.random()
        page = bytes(
            self.random.choice(OPCODES) if self.random.random() < likely else self.random.getrandbits(8)
            for _ in range(4096)
        )
        for at in range(0, min(self.machine.memory.size, 1 << 16), 4096):
            self.machine.memory.write(at, page)
        self.machine.memory.write(0, (7).to_bytes(8, "little"))  # a page table that maps itself

    def _poke(self) -> None:
        control = self.random.choice([{}, {"cr0": 0x11}, {"cr4": 0x20, "efer": 0xD01, "cr0": 0x80000011}])
        anything = {name: self.word() for name in REGISTERS if self.random.random() < 0.3}
        for name, value in {
            **anything,
            **control,
            "cr3": 0,
            "rip": self.random.choice([0, 0x100, self.word()]),
        }.items():
            with contextlib.suppress(EmuError):  # the value has bits that this register lacks
                setattr(self.machine.registers, name, value)
        for name in ("es", "cs", "ss", "ds", "fs", "gs", "ldtr", "tr"):
            limit = self.random.choice([0, 0xFFF, 0xFFFF, 0xFFFFFFFF])
            attributes = self.random.choice(ATTRIBUTES)
            self.machine.set_segment(name, Segment(self.random.getrandbits(16), self.word(), limit, attributes))

    def run(self) -> Run:
        levels: list[TraceLevel] = ["off", "transitions", "checks"]
        budget, capacity = self.random.choice([1, 20, 2000]), self.random.choice([1, 16, 4096])
        return self.machine.run(budget, trace=self.random.choice(levels), capacity=capacity)


@pytest.mark.parametrize("first", range(0, 400, 40))
def test_nothing_brings_the_host_down(first: int) -> None:
    for seed in range(first, first + 40):
        chaos = Chaos(seed)
        run = chaos.run()
        assert run.instructions <= 2000
        assert json.loads(run.to_json())["stop"]["reason"] == run.stop.reason
        for passage in run.passages:
            assert passage.event in passage.explain(citations=True)
        for fault in run.faults:
            assert fault.name in fault.explain()
        assert len(run.autopsy() or []) <= 5
        chaos.machine.step()
        chaos.machine.instruction_at()
        chaos.machine.reset()
        assert chaos.machine.registers.rip == 0xFFF0
