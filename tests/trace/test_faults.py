"""Faults and the autopsy of a shutdown: the story is the manual's, told whether or not the run was traced."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from python.two_rings import TwoRings

USER, KERNEL = 0x10000, 0x20000
IRETD, UD2, HLT = b"\xcf", b"\x0f\x0b", b"\xf4"
LEVELS: list[Literal["off", "transitions", "checks"]] = ["off", "transitions", "checks"]


def iret_frame(machine: TwoRings, cs: int, ss: int) -> None:
    """A frame for IRETD at the top of the stack of ring 0."""
    machine.memory.write(machine.registers.rsp, struct.pack("<5I", USER, cs, 0x202, 0x18000, ss))


@pytest.mark.parametrize("level", LEVELS)
def test_triple_fault_of_a_wrong_return_selector(
    machine: TwoRings, level: Literal["off", "transitions", "checks"]
) -> None:
    """The classic: the frame names the kernel's code segment with RPL 3, and there is no IDT to report it."""
    machine.registers.idtr_limit = 0
    machine.go(0, IRETD)
    iret_frame(machine, 0x0B, 0x23)
    run = machine.run(trace=level)
    assert run.stop.reason == "shutdown"
    lines = run.autopsy()
    assert lines is not None
    assert lines[0] == (
        "iretd at 0x20000: return CS 0x000B names GDT[1], code, non-conforming, DPL=0 but RPL=3 -> #GP(0x0008)"
    )
    assert "return_target.dpl_equals_rpl" in lines[1]
    assert "GDT[1]" in lines[1]
    # Gate of #GP: 13 * 8 + 7 is beyond the limit; error code 13 * 8 + IDT + EXT. Contributory twice: #DF.
    assert "#GP cannot be delivered" in lines[2]
    assert "last byte=0x6F but limit=0" in lines[2]
    assert "#GP(0x006B), together #DF" in lines[2]
    assert "#DF cannot be delivered" in lines[3]
    assert "#GP(0x0043)" in lines[3]
    assert "triple fault" in lines[4]
    assert len(lines) == 5


def test_a_benign_exception_first_still_takes_five_lines(machine: TwoRings) -> None:
    machine.registers.idtr_limit = 0
    machine.go(0, UD2)
    lines = machine.run().autopsy()
    assert lines is not None
    assert len(lines) <= 5
    assert lines[0].startswith("ud2 at 0x20000: ")
    assert "#UD" in lines[0]
    story = "\n".join(lines)
    assert story.index("#UD cannot be delivered") < story.index("#GP cannot be") < story.index("#DF cannot be")


def test_page_fault_in_the_autopsy(machine: TwoRings) -> None:
    """Paging goes on with an empty page directory but for the first 4 MiB, where everything lies."""
    machine.memory.write(0x5000, struct.pack("<I", 0x87))
    machine.registers.cr3 = 0x5000
    machine.registers.cr4 = 1 << 4
    machine.registers.cr0 = 0x80000011
    machine.registers.idtr_base = 0x00500000
    machine.go(0, b"\xa1" + struct.pack("<I", 0x00400123))  # mov eax, [0x400123]
    lines = machine.run().autopsy()
    assert lines is not None
    assert lines[0].startswith("mov eax, dword ptr [0x400123] at 0x20000: ")
    assert lines[0].endswith("-> #PF(0x0000) on linear address 0x400123")
    assert "page not present (P=0), read (W/R=0), supervisor (U/S=0)" in lines[1]
    assert "#PF cannot be delivered" in lines[2]
    assert "together #DF" in lines[2]


def test_runs_that_end_otherwise_have_no_autopsy(machine: TwoRings) -> None:
    machine.go(0, HLT)
    assert machine.run().autopsy() is None


def test_a_gate_that_ring_3_may_not_use(machine: TwoRings) -> None:
    """INT n from ring 3 through a gate with DPL 0: #GP(vector * 8 + IDT), delivered to its handler."""
    machine.gate(0x80, struct.pack("<HHBBH", 0x100, 0x08, 0, 0x8E, 2))
    machine.gate(13, struct.pack("<HHBBH", 0x200, 0x08, 0, 0x8E, 2))
    machine.memory.write(KERNEL + 0x200, HLT)
    machine.go(3, b"\xcd\x80")
    run = machine.run(trace="checks")
    tried, delivered = run.transitions
    assert run.stop.reason == "halted"
    assert (tried.event, delivered.event) == ("INT 0x80", "#GP")

    assert tried.faulted
    assert not tried.committed
    assert tried.cpl_after == 3
    assert tried.failed is not None
    assert tried.failed.check.name == "idt.gate_dpl_permits"
    assert tried.failed.operands == {"CPL": 3, "DPL": 0}
    assert tried.fault is not None
    assert (tried.fault.vector, tried.fault.error_code, tried.fault.rip) == (13, 0x402, USER)
    text = tried.explain()
    assert "FAILED  idt.gate_dpl_permits: CPL=3, DPL=0: a software interrupt needs CPL <= DPL of the gate" in text
    assert "#GP(0x0402): IDT[0x80]" in text

    assert delivered.cause == tried.fault
    assert delivered.pushes[-1].what == "error_code"
    assert delivered.pushes[-1].value == 0x402
    assert delivered.pushes[-2].value == USER  # a fault returns to the instruction itself
    assert (delivered.cpl_before, delivered.cpl_after) == (3, 0)


def test_faults_are_known_without_a_trace(machine: TwoRings) -> None:
    machine.gate(13, struct.pack("<HHBBH", 0x200, 0x08, 0, 0x8E, 2))
    machine.memory.write(KERNEL + 0x200, HLT)
    machine.go(3, HLT)  # privileged
    run = machine.run()
    (fault,) = run.faults
    assert (fault.name, fault.rip) == ("#GP(0x0000)", USER)
    assert fault.check is not None
    assert fault.check.operands == {"CPL": 3}
    assert "CPL=3" in fault.explain()


def test_stepping_onto_a_fault_delivers_it(machine: TwoRings) -> None:
    machine.gate(6, struct.pack("<HHBBH", 0x200, 0x08, 0, 0x8E, 2))
    machine.go(3, UD2)
    step = machine.step()
    assert step.instructions == 0
    assert [passage.event for passage in step.transitions] == ["#UD"]
    assert machine.registers.rip == KERNEL + 0x200


def test_a_guest_that_only_faults_ends_by_its_budget(machine: TwoRings) -> None:
    machine.gate(6, struct.pack("<HHBBH", 0x200, 0x08, 0, 0x8E, 2))
    machine.memory.write(KERNEL + 0x200, UD2)
    machine.go(0, UD2)
    machine.registers.rsp = 0x40000
    run = machine.run(budget=1000)
    assert (run.stop.reason, run.instructions) == ("budget", 0)
    assert run.counts["interrupt_same"] == 1000


def test_double_fault_that_is_handled(machine: TwoRings) -> None:
    """#GP whose gate is not present: #NP while delivering #GP, contributory twice, so #DF with error code 0."""
    machine.gate(8, struct.pack("<HHBBH", 0x200, 0x08, 0, 0x8E, 2))
    machine.memory.write(KERNEL + 0x200, HLT)
    machine.gate(13, struct.pack("<HHBBH", 0x300, 0x08, 0, 0x0E, 2))  # P = 0
    machine.go(3, HLT)
    run = machine.run(trace="checks")
    assert run.stop.reason == "halted"
    assert run.autopsy() is None
    assert [fault.name for fault in run.faults] == ["#GP(0x0000)", "#DF(0x0000)"]
    failed = next(passage for passage in run.transitions if passage.faulted)
    assert failed.fault is not None
    assert failed.fault.name == "#NP(0x006B)"
    assert run.transitions[-1].event == "#DF"
    assert run.transitions[-1].pushes[-1].value == 0
