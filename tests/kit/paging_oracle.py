"""What a translation does, from the manual alone (Intel SDM vol. 3, Paging: 32-Bit Paging; PAE Paging; 4-Level Paging;
Determination of Access Rights; Page-Fault Exceptions; Accessed and Dirty Flags)."""

from __future__ import annotations

from dataclasses import dataclass

P, RW, US, A, D, PS, G, XD = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 63
ERROR_P, ERROR_WR, ERROR_US, ERROR_RSVD, ERROR_ID = 1, 2, 4, 8, 16
PTE, PDE, PDPTE, PML4E = 1, 2, 3, 4


@dataclass(frozen=True)
class Control:
    """The bits of CR0, CR4, EFER and RFLAGS that paging looks at, and the processor's features."""

    wp: bool = False
    pse: bool = False
    smep: bool = False
    smap: bool = False
    nxe: bool = False
    ac: bool = False
    physical_address_bits: int = 39
    pages_1gib: bool = True


@dataclass(frozen=True)
class Access:
    kind: str  # "read", "write" or "fetch"
    cpl: int
    implicit: bool = False  # to a system structure

    @property
    def user(self) -> bool:
        return self.cpl == 3 and not self.implicit


@dataclass(frozen=True)
class Outcome:
    error: int | None  # error code of the #PF, or None
    entries: dict[int, int]  # what the manual says an entry holds afterwards, by level; nothing where it says nothing


def bits(high: int, low: int) -> int:
    return (1 << high + 1) - (1 << low) if high >= low else 0


def maps_page(paging: str, level: int, entry: int, control: Control) -> bool:
    if level == PTE:
        return True
    if paging == "32-bit":
        return control.pse and bool(entry & PS)
    return bool(entry & PS) and (level == PDE or (level == PDPTE and paging == "4-level" and control.pages_1gib))


def reserved(paging: str, level: int, entry: int, control: Control) -> int:
    """The bits of a present entry that must be 0."""
    width = control.physical_address_bits
    large = level != PTE and maps_page(paging, level, entry, control)
    if paging == "32-bit":
        return bits(21, min(40, width) - 19) if large else 0
    mask = bits(62 if paging == "PAE" else 51, width)
    if not control.nxe:
        mask |= XD
    if level == PML4E or (level == PDPTE and not control.pages_1gib):
        mask |= PS
    if large:
        mask |= bits(29 if level == PDPTE else 20, 13)
    return mask


def may_access(paging: str, entries: list[int], control: Control, access: Access) -> bool:
    """Access rights: `entries` are all that control the translation."""
    user_address = all(entry & US for entry in entries)
    writable = all(entry & RW for entry in entries)
    execute_disable = paging != "32-bit" and control.nxe and any(entry & XD for entry in entries)
    if access.user:
        if not user_address:
            return False
        return {"read": True, "write": writable, "fetch": not execute_disable}[access.kind]
    if access.kind == "fetch":
        return not execute_disable and not (user_address and control.smep)
    if user_address and control.smap and (access.implicit or not control.ac):
        return False
    return access.kind == "read" or writable or not control.wp


def translate(paging: str, entries: dict[int, int], control: Control, access: Access) -> Outcome:
    """`entries` by level. A PDPTE of PAE paging is no entry here: it has no rights and is checked when it is loaded."""
    error = 0
    if access.kind == "write":
        error |= ERROR_WR
    if access.user:
        error |= ERROR_US
    if access.kind == "fetch" and (control.smep or (paging != "32-bit" and control.nxe)):
        error |= ERROR_ID

    used: list[int] = []
    for level in sorted(entries, reverse=True):
        entry = entries[level]
        untouched = {below: entries[below] for below in entries if below <= level}
        if not entry & P:
            return Outcome(error, untouched)
        if entry & reserved(paging, level, entry, control):
            return Outcome(error | ERROR_P | ERROR_RSVD, untouched)
        used.append(level)
        if maps_page(paging, level, entry, control):
            break
    after = dict(entries)
    for level in used[:-1]:
        after[level] |= A
    leaf = used[-1]
    if not may_access(paging, [entries[level] for level in used], control, access):
        return Outcome(error | ERROR_P, after)
    after[leaf] |= A | (D if access.kind == "write" else 0)
    return Outcome(None, after)
