"""Raw bits of the manual's structures in words: vectors, selectors, descriptors, gates, page entries, error codes."""

from __future__ import annotations

VECTORS = {
    0: "#DE", 1: "#DB", 2: "NMI", 3: "#BP", 4: "#OF", 5: "#BR", 6: "#UD", 7: "#NM", 8: "#DF", 10: "#TS", 11: "#NP",
    12: "#SS", 13: "#GP", 14: "#PF", 16: "#MF", 17: "#AC", 18: "#MC", 19: "#XM", 20: "#VE", 21: "#CP",
}  # fmt: skip
GP, PF, DF = 13, 14, 8

MODES = ("real", "protected", "compatibility", "64-bit", "virtual-8086")
"""In order of the core's enum Mode."""

# Intel SDM vol. 3, System-Segment and Gate-Descriptor Types. {} is the width: 32-bit, or 64-bit in IA-32e mode.
_SYSTEM_TYPES = {
    1: "available 16-bit TSS", 2: "LDT", 3: "busy 16-bit TSS", 4: "16-bit call gate", 5: "task gate",
    6: "16-bit interrupt gate", 7: "16-bit trap gate", 9: "available {} TSS", 11: "busy {} TSS", 12: "{} call gate",
    14: "{} interrupt gate", 15: "{} trap gate",
}  # fmt: skip
_GATES = frozenset({4, 5, 6, 7, 12, 14, 15})


def vector_name(vector: int) -> str:
    """`#GP`, `#PF`, ... or, for vectors without a mnemonic, `vector 0x80`."""
    return VECTORS.get(vector, f"vector 0x{vector:02X}")


def fault_name(vector: int, error_code: int) -> str:
    """`#GP(0x0008)`, or `#UD` if the vector has no error code."""
    with_code = vector in {8, 10, 11, 12, 13, 14, 17, 21}
    return f"{vector_name(vector)}(0x{error_code:04X})" if with_code else vector_name(vector)


def entry_name(selector: int) -> str:
    """The descriptor that a selector names: `GDT[1]`, `LDT[2]`."""
    return f"{'LDT' if selector & 4 else 'GDT'}[{selector >> 3}]"


def is_ia32e(mode: str) -> bool:
    """True in compatibility and 64-bit mode, where system descriptors have 16 bytes."""
    return mode in {"compatibility", "64-bit"}


def type_words(type_field: int, *, ia32e: bool) -> str:
    """S (bit 4) and the four type bits in words."""
    if not type_field & 0x10:
        words = _SYSTEM_TYPES.get(type_field)
        if words is None or (ia32e and type_field in {1, 3, 4, 5, 6, 7}):
            return f"reserved system type {type_field}"
        return words.format("64-bit" if ia32e else "32-bit")
    if type_field & 8:
        conforming = "conforming" if type_field & 4 else "non-conforming"
        return f"code, {conforming}, {'readable' if type_field & 2 else 'execute-only'}"
    down = ", expand-down" if type_field & 4 else ""
    return f"data, {'writable' if type_field & 2 else 'read-only'}{down}"


def descriptor_type(low: int) -> int:
    """S and type of a descriptor, from its first 8 bytes."""
    return (low >> 40) & 0x1F


def descriptor_words(low: int, high: int = 0, *, ia32e: bool) -> str:
    """A segment descriptor, system descriptor or gate in words. `high`: the second half, if it has 16 bytes."""
    kind = descriptor_type(low)
    if kind in _GATES:
        return gate_words(low, high, ia32e=ia32e)
    words = [type_words(kind, ia32e=ia32e)]
    if kind & 0x18 == 0x18:
        words.append("64-bit" if low >> 53 & 1 else _width(low))
    elif kind & 0x10:
        words.append(_width(low))
    base = (low >> 16 & 0xFFFFFF) | (low >> 56 << 24) | (high << 32)
    limit = (low & 0xFFFF) | (low >> 48 & 0xF) << 16
    if low >> 55 & 1:
        limit = limit << 12 | 0xFFF
    words += [f"base 0x{base:X}", f"limit 0x{limit:X}", *_rights(low)]
    return ", ".join(words)


def gate_words(low: int, high: int = 0, *, ia32e: bool) -> str:
    """A call, interrupt, trap or task gate in words."""
    kind = descriptor_type(low)
    selector = low >> 16 & 0xFFFF
    if kind == 5:
        return ", ".join([f"task gate to TSS 0x{selector:04X}", *_rights(low)])
    offset = low & 0xFFFF
    if kind >= 8:
        offset |= low >> 48 << 16
    if ia32e:
        offset |= (high & 0xFFFFFFFF) << 32
    words = [f"{type_words(kind, ia32e=ia32e)} to 0x{selector:04X}:0x{offset:X}", *_rights(low)]
    if ia32e and kind != 12 and low >> 32 & 7:
        words.append(f"IST{low >> 32 & 7}")
    if not ia32e and kind in {4, 12} and low >> 32 & 0x1F:
        words.append(f"{low >> 32 & 0x1F} parameters")
    return ", ".join(words)


def _width(low: int) -> str:
    return "32-bit" if low >> 54 & 1 else "16-bit"


def _rights(low: int) -> list[str]:
    return [f"DPL={low >> 45 & 3}", f"P={low >> 47 & 1}"]


def page_entry_words(entry: int, level: int, size: int) -> str:
    """A paging-structure entry of 4 or 8 bytes in words. Level 1 is the page table."""
    if not entry & 1:
        return "not present"
    bits = [("R/W", 1), ("U/S", 2), ("A", 5)]
    large = level > 1 and bool(entry >> 7 & 1)
    if level == 1 or large:
        bits += [("D", 6), ("G", 8)]
    words = [f"{name}={entry >> at & 1}" for name, at in bits]
    if size == 8 and entry >> 63:
        words.append("XD=1")
    address = entry & 0x000FFFFFFFFFF000
    if large:
        address &= ~((1 << (12 + (9 if size == 8 else 10) * (level - 1))) - 1)
    return f"{'page' if level == 1 or large else 'table'} at 0x{address:X}, P=1, {', '.join(words)}"


def error_code_words(vector: int, code: int) -> str:
    """What the error code of an exception names. Intel SDM vol. 3, Error Code; Page-Fault Exceptions."""
    if vector == PF:
        words = [
            "protection violation (P=1)" if code & 1 else "page not present (P=0)",
            "write (W/R=1)" if code & 2 else "read (W/R=0)",
            "user (U/S=1)" if code & 4 else "supervisor (U/S=0)",
        ]
        words += ["reserved bit set (RSVD=1)"] * bool(code & 8) + ["instruction fetch (I/D=1)"] * bool(code & 16)
        return ", ".join(words)
    ext = ", EXT=1: met while delivering an event" if code & 1 else ""
    if code & 2:
        return f"IDT[0x{code >> 3:02X}]{ext}"
    if code & ~1:
        return f"{entry_name(code)}{ext}"
    return f"names no descriptor{ext}"


def tss_field(offset: int, *, ia32e: bool) -> str | None:
    """The field of a TSS at this offset, if the processor reads it in a transition."""
    if offset == 102:
        return "I/O map base"
    if ia32e:
        if 4 <= offset < 28 and offset % 8 == 4:
            return f"RSP{(offset - 4) // 8}"
        return f"IST{(offset - 28) // 8}" if 36 <= offset < 92 and offset % 8 == 4 else None
    if 4 <= offset < 28 and offset % 4 == 0:
        return f"{'SS' if offset % 8 == 0 else 'ESP'}{(offset - 4) // 8}"
    return None
