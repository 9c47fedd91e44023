"""Records in words: transitions check by check, and single faults. Plain text; nothing is computed that C++ knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu import _core
from emu.structures import (
    PF,
    descriptor_type,
    descriptor_words,
    entry_name,
    error_code_words,
    fault_name,
    gate_words,
    is_ia32e,
    page_entry_words,
    tss_field,
    type_words,
    vector_name,
)

if TYPE_CHECKING:
    import numpy as np

    from emu.records import Access, CheckSeen, Fault, StackWord
    from emu.trace import Transition

KIND_NAMES = tuple(_core.record_kinds())
SEGMENTS = ("ES", "CS", "SS", "DS", "FS", "GS")
_SOURCES = {1: "INT3", 2: "INTO", 3: "INT1"}  # enum EventSource in emu/cpu/transition/interrupt_event.hpp

NOUNS = {
    "handler": "handler CS",
    "far_target": "target CS",
    "gate_target": "CS of the call gate",
    "call_gate": "call gate",
    "return_target": "return CS",
    "stack_return": "return SS",
    "stack_switch": "SS of the inner stack",
    "stack_load": "SS",
    "data_load": "segment",
    "ldt_load": "LDT",
    "task_load": "TSS",
}
"""What the families of checks look at."""

_DECIMAL = {"CPL", "new CPL", "DPL", "RPL", "IOPL", "P", "L", "D", "level", "size", "length", "CR", "DR"}


_EVENTS = {
    "far_call": "far CALL 0x{selector:04X}",
    "far_jump": "far JMP 0x{selector:04X}",
    "far_return": "far RET",
    "load_segment": "load {segment} with 0x{selector:04X}",
    "load_ldtr": "LLDT 0x{selector:04X}",
    "load_task_register": "LTR 0x{selector:04X}",
    "load_table_register": "LGDT or LIDT",
    "control_register": "CR{argument}",
    "debug_register": "DR{argument}",
    "model_specific_register": "MSR 0x{argument:X}",
    "memory": "memory 0x{argument:X}",
    "fetch": "fetch 0x{argument:X}",
    "port": "port 0x{argument:X}",
    "sysenter": "SYSENTER",
    "sysexit": "SYSEXIT",
    "syscall": "SYSCALL",
    "sysret": "SYSRET",
    "swapgs": "SWAPGS",
}


def event_name(mechanism: str, argument: int) -> str:
    """What a passage is called: `INT 0x80`, `#GP`, `IRETQ`, `far CALL 0x0033`, ..."""
    if mechanism in {"interrupt_delivery", "exception_delivery"}:
        source, vector = argument >> 8, argument & 0xFF
        by_vector = vector_name(vector) if mechanism == "exception_delivery" else f"INT 0x{vector:02X}"
        return _SOURCES.get(source, by_vector)
    if mechanism == "interrupt_return":
        return ("IRET", "IRETD", "IRETQ")[min(argument, 2)]
    form = _EVENTS.get(mechanism, mechanism.replace("_", " "))
    segment = SEGMENTS[min(argument >> 16 & 7, 5)]
    return form.format(argument=argument, selector=argument & 0xFFFF, segment=segment)


# --- checks and faults --------------------------------------------------------------------------------------------


_COMPARED = {"CPL", "new CPL", "DPL", "RPL", "IOPL", "last byte", "offset", "limit"}


def contrast_words(seen: CheckSeen) -> str:
    """`DPL=0 but RPL=3`, where a check compares two values; else as `operand_words`."""
    compares = len(seen.operands) == 2 and seen.operands.keys() <= _COMPARED
    return operand_words(seen, " but ") if compares else operand_words(seen)


def operand_words(seen: CheckSeen, between: str = ", ") -> str:
    """`CPL=3, DPL=0`: the values a check looked at, by their labels."""
    return between.join(f"{label}={_value(label, value)}" for label, value in seen.operands.items())


def _value(label: str, value: int) -> str:
    if label in _DECIMAL or value in {0, 1}:
        return str(value)
    return f"0x{value:04X}" if label == "selector" else f"0x{value:X}"


def _type_note(seen: CheckSeen, mode: str | None) -> str:
    """The type field of a descriptor in words, where a check looked at one."""
    if "type" not in seen.operands:
        return ""
    ia32e = is_ia32e(mode) if mode else bool(seen.operands.get("IA-32e mode"))
    return f" ({type_words(seen.operands['type'], ia32e=ia32e)})"


def subject_words(seen: CheckSeen) -> str:
    """What the check looked at, as far as the error code names it: `return CS 0x000b (GDT[1])`."""
    names, examined = seen.check.error_code_names, seen.examined
    if names == "idt_entry":
        return f"IDT[0x{examined:02X}]"
    noun = NOUNS.get(seen.check.family, "")
    if names == "selector":
        return f"{noun or 'selector'} 0x{examined:04X} ({entry_name(examined)})"
    return noun


def explain_fault(fault: Fault) -> str:
    """One line for a fault: its name, what failed with its values, and what its error code names."""
    at = f" at 0x{fault.rip:X}" if fault.rip is not None else ""
    address = f" on 0x{fault.linear:X}" if fault.linear is not None else ""
    seen = fault.check
    if seen is None:
        return f"{fault.name}{at}"
    subject = subject_words(seen)
    words = error_code_words(fault.vector, fault.error_code) if fault.error_code or fault.vector == PF else ""
    code = f"; {words}" if words and words not in subject else ""
    values = operand_words(seen) + _type_note(seen, None)
    return f"{fault.name}{at}{address}: {subject + ': ' if subject else ''}{values}: {seen.check.says}{code}"


# --- system structures --------------------------------------------------------------------------------------------


def _where(access: Access, passage: Transition) -> str:
    """The entry or field at an address, if the table registers say so."""
    tables = passage.trace.tables
    base = {"gdt": tables.gdt, "ldt": tables.ldt, "idt": tables.idt, "tss": tables.tss, "ivt": tables.idt}
    offset = access.linear - base.get(access.structure, 0)
    ia32e = is_ia32e(passage.mode_before)
    match access.structure:
        case "gdt" | "ldt" if 0 <= offset < 1 << 16:
            return f"{access.structure.upper()}[{offset // 8}]"
        case "idt" if 0 <= offset < 1 << 12:
            return f"IDT[0x{offset // (16 if ia32e else 8):02X}]"
        case "ivt" if 0 <= offset < 1 << 10:
            return f"IVT[0x{offset // 4:02X}]"
        case "tss":
            field = tss_field(offset, ia32e=ia32e)
            return f"TSS.{field}" if field else "TSS"
        case "page_entry":
            return f"level-{access.level} page entry" if access.level else "page entry"
    return access.structure.replace("_", " ").upper()


def _meaning(access: Access, passage: Transition, upper: int) -> str:
    ia32e = is_ia32e(passage.mode_before)
    match access.structure, access.size:
        case (("gdt" | "ldt"), 8):
            return descriptor_words(access.value, upper, ia32e=ia32e)
        case "idt", 8:
            return gate_words(access.value, upper, ia32e=ia32e)
        case (("gdt" | "ldt"), 1):
            return f"accessed or busy bit set: {type_words(access.value & 0x1F, ia32e=ia32e)}"
        case "page_entry", _:
            return page_entry_words(access.value, access.level or 1, access.size)
        case "ivt", 4:
            return f"handler {access.value >> 16:04X}:{access.value & 0xFFFF:04X}"
    return ""


def _access_lines(accesses: list[Access], passage: Transition) -> list[str]:
    """One line per access; the two halves of a 16-byte entry are read one after the other and decoded together."""
    lines: list[str] = []
    upper_of: Access | None = None
    for at, access in enumerate(accesses):
        if upper_of is not None and access.linear == upper_of.linear + 8:
            lines.append(f"{_where(upper_of, passage)} upper half = 0x{access.value:X}")
            upper_of = None
            continue
        following = accesses[at + 1] if at + 1 < len(accesses) else None
        paired = access.size == 8 and access.structure in {"idt", "gdt", "ldt"} and is_ia32e(passage.mode_before)
        paired = paired and not descriptor_type(access.value) & 0x10
        paired = paired and following is not None and following.linear == access.linear + 8
        upper_of = access if paired else None
        meaning = _meaning(access, passage, following.value if paired and following else 0)
        text = f"{_where(access, passage)} at 0x{access.linear:X} = 0x{access.value:X}"
        lines.append(f"{text}: {meaning}" if meaning else text)
    return lines


# --- passages -----------------------------------------------------------------------------------------------------


def explain_passage(passage: Transition, *, citations: bool) -> str:
    """A passage through a room: where from, each check, read, write and push in order, where to, what it cost."""
    lines = [_heading(passage)]
    if passage.cause is not None and passage.cause.check is not None:
        lines.append(f"  cause   {passage.cause.explain()}")
    lines += _events(passage, citations=citations)
    if passage.fault is not None:
        lines.append(f"  fault   {_fault_line(passage.fault)}")
    if passage.committed and passage.stack_pointer_after is not None and passage.flags_after is not None:
        lines.append(
            f"  now     CS:RIP {passage.cs_after:04X}:0x{passage.rip_after:X}, "
            f"RSP 0x{passage.stack_pointer_after:X}, RFLAGS 0x{passage.flags_after:X}"
        )
    lines += _cost_lines(passage)
    return "\n".join(lines)


def _heading(passage: Transition) -> str:
    text = f"{passage.event} at {passage.cs_before:04X}:0x{passage.rip_before:X}, CPL {passage.cpl_before}"
    if passage.committed and passage.cpl_after != passage.cpl_before:
        text += f" -> CPL {passage.cpl_after}"
    text += f", {passage.mode_before} mode"
    if passage.committed and passage.mode_after != passage.mode_before:
        text += f" -> {passage.mode_after} mode"
    return text


def _fault_line(fault: Fault) -> str:
    name = fault_name(fault.vector, fault.error_code)
    return f"{name}: {error_code_words(fault.vector, fault.error_code)}" if "(" in name else name


def _events(passage: Transition, *, citations: bool) -> list[str]:
    """Checks, accesses and stack words in the order of the stream."""
    views: dict[str, list[str]] = {
        "check": [_check_line(seen, passage, citations=citations) for seen in passage.checks],
        "read": [f"  read    {line}" for line in _access_lines(passage.reads, passage)],
        "write": [f"  write   {line}" for line in _access_lines(passage.writes, passage)],
        "push": [f"  push    {_stack_line(word)}" for word in passage.pushes],
        "pop": [f"  pop     {_stack_line(word)}" for word in passage.pops],
    }
    pending = {kind: iter(lines) for kind, lines in views.items()}
    return [next(pending[kind]) for kind in _kinds(passage.records, passage.span) if kind in pending]


def _kinds(records: np.ndarray[tuple[int, ...], np.dtype[np.void]], span: int) -> list[str]:
    return [KIND_NAMES[kind] for kind in records["kind"][records["span"] == span]]


def _check_line(seen: CheckSeen, passage: Transition, *, citations: bool) -> str:
    verdict = "held  " if seen.held else "FAILED"
    text = f"  {verdict}  {seen.check.name}: {operand_words(seen)}{_type_note(seen, passage.mode_before)}"
    if not seen.held:
        text += f": {seen.check.says}"
    return f"{text}  [{seen.check.sdm}]" if citations else text


def _stack_line(word: StackWord) -> str:
    names = {"stack_pointer": "stack pointer", "instruction_pointer": "instruction pointer", "error_code": "error code"}
    what = names.get(word.what) or (word.what.upper() if len(word.what) == 2 else word.what)
    return f"{what} 0x{word.value:0{2 * word.size}X} at 0x{word.linear:X}"


def _cost_lines(passage: Transition) -> list[str]:
    if passage.trace.profile is None or (passage.trace.repriced and passage.trace.level != "checks"):
        return []
    text = f"  cycles  {passage.cycles:g} ({passage.trace.profile.name})"
    if passage.trace.level == "checks":
        parts = sorted(passage.parts.items(), key=lambda part: -part[1])
        text += "".join(f"{' =' if at == 0 else ' +'} {name} {cycles:g}" for at, (name, cycles) in enumerate(parts))
    return [text]
