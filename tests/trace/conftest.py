"""Machines for the tests of traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from python.two_rings import INT_80, IRETD, KERNEL, PUSHA_POPA, TwoRings, gate, made_up_profile

if TYPE_CHECKING:
    from emu import Profile


@pytest.fixture
def profile() -> Profile:
    return made_up_profile()


@pytest.fixture
def other_profile() -> Profile:
    return made_up_profile("other", scale=3)


@pytest.fixture
def machine(profile: Profile) -> TwoRings:
    return TwoRings(profile)


@pytest.fixture
def round_trip_machine(machine: TwoRings) -> TwoRings:
    """Ring 3 does INT 0x80 three times; the handler does two instructions of its own."""
    machine.go(3, INT_80 * 3 + b"\x0f\x0b")
    machine.memory.write(KERNEL + 0x100, PUSHA_POPA + IRETD)
    machine.gate(0x80, gate(KERNEL + 0x100, dpl=3))
    return machine
