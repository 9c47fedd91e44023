"""Assertions in the manual's words; their messages show the checks made."""

from __future__ import annotations

from .scene import VECTORS, Step


def _story(step: Step) -> str:
    lines = [f"  {'held  ' if held else 'FAILED'} {name}" for name, held in step.checks]
    return "\n".join([f"stop: {step.end.reason}, faults: {step.faults}", *lines])


def assert_faults(step: Step, vector: str, *, error: int | None, check: str) -> None:
    """The first fault is `vector` with that error code (None: pushes none), raised by that check, and the instruction
    has changed nothing that the delivery of the exception does not change."""
    assert step.faults, f"expected {vector} by {check}, nothing faulted\n{_story(step)}"
    number, code, name = step.faults[0]
    assert (number, name) == (VECTORS[vector], check), f"expected {vector} by {check}\n{_story(step)}"
    if error is not None:
        assert code == error, f"expected error code {error:#x}, not {code:#x}\n{_story(step)}"
    for register in ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r11"):
        assert step.register(register) == step.registers_before[register], (
            f"{register} changed by a faulting instruction"
        )


def assert_interrupts(step: Step) -> None:
    """The exception that was delivered shows the program as it was before the instruction, data segments included."""
    flags, rf = step.registers_before["rflags"], 1 << 16
    was = {
        "ss": step.selectors_before["ss"],
        "stack_pointer": step.registers_before["rsp"],
        "flags": flags,
        "cs": step.selectors_before["cs"],
        "instruction_pointer": step.registers_before["rip"],
    }
    frame = {name: value & ~rf if name == "flags" else value for name, value in step.pushes if name in was}
    assert frame, f"no exception was delivered\n{_story(step)}"
    assert frame == {name: was[name] for name in frame}
    for segment in ("es", "ds", "fs", "gs"):
        assert step.selector(segment) == step.selectors_before[segment], f"{segment} changed by a faulting instruction"


def assert_runs(step: Step) -> None:
    assert not step.faults, f"expected no fault\n{_story(step)}"


def assert_enters(step: Step, *, cs: int, rip: int, cpl: int, ss: int | None = None, rsp: int | None = None) -> None:
    """No fault, and control arrived there."""
    assert_runs(step)
    machine = step.scene.machine
    arrived = (machine.segment("cs")["selector"], machine.get("rip"), machine.get("cpl"))
    assert arrived == (cs, rip, cpl), (
        f"arrived at CS={arrived[0]:#x} RIP={arrived[1]:#x} CPL={arrived[2]}\n{_story(step)}"
    )
    if ss is not None:
        assert machine.segment("ss")["selector"] == ss
    if rsp is not None:
        assert machine.get("rsp") == rsp, f"RSP is {machine.get('rsp'):#x}, expected {rsp:#x}"
