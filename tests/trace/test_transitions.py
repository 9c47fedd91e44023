"""What a traced INT 0x80 and its IRETD look like: order, values and stack words are those of the manual.

Intel SDM vol. 2, INT n, Operation (PROTECTED-MODE, INTER-PRIVILEGE-LEVEL-INTERRUPT); IRET, Operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emu import EmuError

if TYPE_CHECKING:
    from emu import Run
    from python.two_rings import TwoRings

USER, KERNEL = 0x10000, 0x20000
IN_HANDLER = 4  # INT, PUSHA, POPA, IRETD
THREE_TRIPS = 3 * IN_HANDLER


@pytest.fixture
def run(round_trip_machine: TwoRings) -> Run:
    return round_trip_machine.run(budget=THREE_TRIPS, trace="checks")


def test_where_an_interrupt_comes_from_and_goes_to(run: Run) -> None:
    entry = run.transitions[0]
    assert (entry.mechanism, entry.event) == ("interrupt_delivery", "INT 0x80")
    assert (entry.cpl_before, entry.cs_before, entry.rip_before) == (3, 0x1B, USER)
    assert (entry.cpl_after, entry.cs_after, entry.rip_after) == (0, 0x08, KERNEL + 0x100)
    assert (entry.mode_before, entry.mode_after) == ("protected", "protected")
    assert entry.stack_pointer_after == 0x28000 - 5 * 4
    assert entry.flags_after == 0x002  # an interrupt gate clears IF
    assert not entry.faulted


def test_what_an_interrupt_pushes(run: Run) -> None:
    words = [(word.what, word.value, word.linear) for word in run.transitions[0].pushes]
    assert words == [
        ("ss", 0x23, 0x27FFC),
        ("stack_pointer", 0x18000, 0x27FF8),
        ("flags", 0x202, 0x27FF4),
        ("cs", 0x1B, 0x27FF0),
        ("instruction_pointer", USER + 2, 0x27FEC),
    ]


def test_checks_of_an_interrupt_come_in_the_order_of_the_manual(run: Run) -> None:
    seen = [check.check.name for check in run.transitions[0].checks if check.check.family != "paging"]
    in_order = [
        "idt.entry_within_limit",
        "idt.gate_type_allowed",
        "idt.gate_dpl_permits",
        "idt.gate_present",
        "handler.selector_not_null",
        "handler.selector_in_table",
        "handler.is_code",
        "handler.dpl_not_above_cpl",
        "handler.present",
        "stack_switch.selector_not_null",
        "stack_switch.rpl_equals_cpl",
        "stack_switch.dpl_equals_cpl",
        "stack_switch.present",
    ]
    assert [name for name in seen if name in in_order] == in_order
    assert all(check.held for check in run.transitions[0].checks)


def test_operands_are_labelled(run: Run) -> None:
    by_name = {seen.check.name: seen for seen in run.transitions[0].checks}
    assert by_name["idt.gate_dpl_permits"].operands == {"CPL": 3, "DPL": 3}
    assert by_name["idt.entry_within_limit"].operands == {"last byte": 0x80 * 8 + 7, "limit": 0x407}
    assert by_name["idt.gate_present"].examined == 0x80


def test_what_is_read_on_the_way(run: Run) -> None:
    structures = [read.structure for read in run.transitions[0].reads]
    assert structures[0] == "idt"
    assert structures.count("gdt") == 2  # the handler's code segment and the inner stack
    assert structures.count("tss") == 2  # ESP0 and SS0


def test_the_return_pops_what_was_pushed(run: Run) -> None:
    entry, leave = run.transitions[:2]
    assert leave.event == "IRETD"
    popped = {word.what: word.value for word in leave.pops}
    assert popped == {word.what: word.value for word in entry.pushes}
    assert (leave.cpl_before, leave.cpl_after, leave.rip_after) == (0, 3, USER + 2)


def test_round_trips(run: Run) -> None:
    trips = run.round_trips
    assert [trip.instructions for trip in trips] == [IN_HANDLER] * 3
    fetches_in_ring_3 = [
        passage for passage in run.passages if passage.mechanism == "memory" and passage.cpl_before == 3
    ]
    outside = sum(passage.cycles for passage in fetches_in_ring_3)
    assert sum(trip.cycles for trip in trips) + outside == pytest.approx(run.cycles, abs=1e-9)
    assert len(trips[1].stack_words) == 10
    assert "instructions" in trips[0].parts
    for trip in trips:
        assert sum(trip.parts.values()) == pytest.approx(trip.cycles, abs=1e-9)


def test_parts_of_a_transition_add_up(run: Run) -> None:
    for passage in run.transitions:
        assert passage.cycles > 0
        assert sum(passage.parts.values()) == pytest.approx(passage.cycles, abs=1e-9)
    assert run.transitions[0].costs["push"] == 5
    assert run.transitions[0].costs["interrupt_inner"] == 1
    assert run.transitions[0].costs["comparison"] == len(run.transitions[0].checks)


def test_explanation_tells_the_story_in_order(run: Run) -> None:
    text = run.transitions[0].explain()
    story = [
        "INT 0x80 at 001B:0x10000, CPL 3 -> CPL 0, protected mode",
        "IDT[0x80] at 0x3400",
        "32-bit interrupt gate to 0x0008:0x20100, DPL=3, P=1",
        "idt.gate_dpl_permits: CPL=3, DPL=3",
        "GDT[1] at 0x1008",
        "TSS.ESP0 at 0x2004 = 0x28000",
        "push    SS 0x00000023 at 0x27FFC",
        "now     CS:RIP 0008:0x20100",
        "cycles",
    ]
    at = [text.find(part) for part in story]
    assert -1 not in at, text
    assert at == sorted(at), text
    assert "FAILED" not in text
    assert "[INT n," not in text
    assert "[INT n," in run.transitions[0].explain(citations=True)


def test_without_checks_the_way_is_still_told(round_trip_machine: TwoRings) -> None:
    run = round_trip_machine.run(budget=THREE_TRIPS, trace="transitions")
    assert [passage.event for passage in run.transitions] == ["INT 0x80", "IRETD"] * 3
    entry = run.transitions[0]
    assert (entry.cpl_before, entry.cpl_after, entry.checks, entry.pushes) == (3, 0, [], [])
    assert entry.cycles > 0
    assert entry.explain().startswith("INT 0x80 at 001B:0x10000, CPL 3 -> CPL 0")
    with pytest.raises(EmuError, match="checks"):
        _ = entry.costs


def test_an_untraced_run_has_no_transitions(round_trip_machine: TwoRings) -> None:
    run = round_trip_machine.run(budget=THREE_TRIPS)
    assert run.transitions == []
    assert run.instructions == THREE_TRIPS
    assert run.counts["interrupt_inner"] == 3


def test_a_full_ring_drops_the_oldest(round_trip_machine: TwoRings) -> None:
    run = round_trip_machine.run(budget=THREE_TRIPS, trace="checks", capacity=128)
    assert len(run.records) == 128
    assert run.dropped > 0
    assert run.transitions[-1].event == "IRETD"
    assert run.transitions[-1].cpl_after == 3
