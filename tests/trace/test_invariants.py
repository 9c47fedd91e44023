"""Counts are facts and prices are models: neither depends on how much is written down, or on who looks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from emu import EmuError, Machine, Profile, Segment
from emu.records import counts_of, select

if TYPE_CHECKING:
    from python.two_rings import TwoRings

Level = Literal["off", "transitions", "checks"]
RAM = 1 << 20
BUDGET = 12


def state(machine: Machine) -> tuple[dict[str, int], list[Segment], bytes]:
    """Everything a guest could see."""
    segments = [machine.segment(name) for name in ("es", "cs", "ss", "ds", "fs", "gs", "ldtr", "tr")]
    return machine.registers.as_dict(), segments, machine.memory.read(0, RAM)


def traced(machine: TwoRings, level: Level) -> tuple[object, ...]:
    run = machine.run(budget=BUDGET, trace=level)
    return state(machine), run.counts, run.cycles, run.instructions, run.stop


@pytest.fixture
def machines(profile: Profile, round_trip_machine: TwoRings) -> list[TwoRings]:
    """Three machines in the same state."""
    twins = [round_trip_machine]
    for _ in range(2):
        twin = type(round_trip_machine)(profile)
        twin.memory.write(0, round_trip_machine.memory.read(0, RAM))
        twin.go(3, round_trip_machine.memory.read(0x10000, 16))
        twins.append(twin)
    return twins


def test_tracing_changes_neither_state_nor_counts(machines: list[TwoRings]) -> None:
    assert state(machines[0]) == state(machines[1]) == state(machines[2])
    levels: tuple[Level, ...] = ("off", "transitions", "checks")
    off, transitions, checks = (traced(machine, level) for machine, level in zip(machines, levels, strict=True))
    assert off == transitions
    assert off == checks


def test_stepping_ends_where_running_ends(machines: list[TwoRings]) -> None:
    run = machines[0].run(budget=BUDGET)
    steps = [machines[1].step() for _ in range(BUDGET)]
    assert [step.instructions for step in steps] == [1] * BUDGET
    assert state(machines[0]) == state(machines[1])
    for event, n in run.counts.items():
        if event != "comparison":  # stepping fetches each instruction anew, and checks the fetch
            assert sum(step.counts[event] for step in steps) == n, event


def test_cycles_are_counts_times_prices(round_trip_machine: TwoRings, profile: Profile) -> None:
    run = round_trip_machine.run(budget=BUDGET)
    assert run.cycles == pytest.approx(profile.cycles(run.counts), abs=1e-9)
    assert sum(run.parts.values()) == pytest.approx(run.cycles, abs=1e-9)


def test_everything_counted_in_rooms_is_in_the_records(round_trip_machine: TwoRings) -> None:
    run = round_trip_machine.run(budget=BUDGET, trace="checks")
    assert run.dropped == 0
    acts = {event: n for event, n in run.counts.items() if n}
    recorded = counts_of(run.records)
    assert recorded == {event: acts[event] for event in recorded}
    instructions = {event: n for event, n in acts.items() if event not in recorded}
    assert sum(instructions.values()) == 6, instructions  # PUSHA and POPA, three times


def test_time_never_goes_back(round_trip_machine: TwoRings) -> None:
    records = round_trip_machine.run(budget=BUDGET, trace="checks").records
    assert np.all(np.diff(records["cycles"].astype(np.int64)) >= 0)
    assert np.all(np.diff(records["instructions"].astype(np.int64)) >= 0)


def test_repricing_changes_prices_only(round_trip_machine: TwoRings, profile: Profile, other_profile: Profile) -> None:
    run = round_trip_machine.run(budget=BUDGET, trace="checks")
    other = run.repriced(other_profile)
    assert other.counts == run.counts
    assert other.cycles == pytest.approx(3 * run.cycles, abs=1e-9)
    assert other.is_repriced
    assert not run.is_repriced
    assert other.profile is other_profile
    for old, new in zip(run.transitions, other.transitions, strict=True):
        assert new.cycles == pytest.approx(3 * old.cycles, abs=1e-9)
        assert sum(new.parts.values()) == pytest.approx(new.cycles, abs=1e-9)
    with pytest.raises(EmuError, match="run again"):
        _ = other.round_trips[0].cycles


def test_a_run_under_a_profile_costs_what_repricing_says(machines: list[TwoRings], other_profile: Profile) -> None:
    machines[1].profile = other_profile
    ran = machines[1].run(budget=BUDGET)
    assert ran.cycles == machines[0].run(budget=BUDGET).repriced(other_profile).cycles


def test_json_says_the_same_as_the_objects(round_trip_machine: TwoRings) -> None:
    run = round_trip_machine.run(budget=BUDGET, trace="checks")
    read = json.loads(run.to_json())
    assert read == run.to_dict()
    assert read["stop"] == {"reason": "budget", "detail": run.stop.detail}
    assert (read["instructions"], read["cycles"]) == (BUDGET, run.cycles)
    assert read["counts"] == {event: n for event, n in run.counts.items() if n}
    first = read["transitions"][0]
    assert (first["event"], first["before"]["cpl"], first["after"]["cpl"]) == ("INT 0x80", 3, 0)
    seen = run.transitions[0].checks
    assert [check["check"] for check in first["checks"]] == [check.check.name for check in seen]
    assert first["checks"][0]["operands"] == dict(seen[0].operands)


def test_views_are_made_from_the_array(round_trip_machine: TwoRings) -> None:
    run = round_trip_machine.run(budget=BUDGET, trace="checks")
    assert len(run.checks) == len(select(run.records, "check")) == sum(len(p.checks) for p in run.passages)
    assert set(run.checks["held"].tolist()) == {1}
