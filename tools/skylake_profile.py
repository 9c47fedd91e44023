"""Composes emu/python/emu/profiles/skylake.toml: prior beliefs about each act, conditioned on published round trips.

    .venv/bin/python tools/skylake_profile.py          writes the profile
    .venv/bin/python tools/skylake_profile.py --show   prints priors, fitted prices and what remains

Each act has a prior price with a standard deviation (what is known of it by itself), and each published measurement is
a linear equation over the acts that emu counts when it runs the same mechanism. Conditioning the priors on the
measurements (a Gaussian posterior, in closed form) moves the acts that are least known, and no further than the
figures ask. Nothing is tuned to one row: the same prices have to explain all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from emu import Machine, guests, round_trips
from emu.records import counts_of

OUT = Path(__file__).parents[1] / "emu/python/emu/profiles/skylake.toml"

# event: (prior cycles, standard deviation, why)
PRIORS: dict[str, tuple[float, float, str]] = {
    "comparison": (0.5, 0.2, "two micro-operations a cycle for a compare and a conditional exit"),
    "microcode_entry": (4, 1.5, "switching from the decoders to the microcode sequencer"),
    "gate_fetch": (12, 8, "two dependent loads from the first-level cache, 4 to 5 cycles each, and unpacking"),
    "descriptor_fetch": (12, 8, "a load from the first-level cache, and unpacking; LAR as a whole takes 60"),
    "tss_read": (8, 6, "a load from the first-level cache whose address comes from TR"),
    "segment_refill": (50, 25, "LLDT, which fetches a descriptor and loads a hidden part, takes 129"),
    "segment_constant": (1.5, 0.75, "a write of fixed values"),
    "stack_switch": (15, 15, "hardly known: reading and replacing SS:RSP"),
    "push": (1, 0.3, "one store a cycle"),
    "pop": (1, 0.3, "two loads a cycle, in order"),
    "parameter_copy": (2, 0.5, "a load and a store"),
    "msr_use": (2, 1, "an internal register"),
    "flags_write": (3, 2, "POPFQ as a whole takes 21"),
    "privilege_change": (22, 8, "a pipeline refill as after a mispredicted branch, 16 to 20, or somewhat more"),
    "pipeline_refill": (20, 6, "as after a mispredicted branch, 16 to 20, or somewhat more"),
    "serialise": (100, 50, "CPUID takes 101, LGDT 121"),
    "exception_entry": (200, 200, "hardly known"),
}

# id of the published figure: (guest, which part, cycles, standard deviation)
MEASURED: dict[str, tuple[str, str, float, float]] = {
    "seed-x86lol-int_gate": ("int_gate_64", "trip", 614, 0.1),
    "seed-x86lol-call_gate": ("call_gate_64", "trip", 456, 0.1),
    "seed-x86lol-syscall": ("syscall_64", "trip", 76, 0.1),
    "seed-x86lol-sysenter": ("sysenter_64", "trip", 73, 0.1),
    "linus-iret-hsw": ("int_gate_64", "exit", 330, 50),  # Haswell, so held loosely
    "linus-pf-hsw": ("page_fault_64", "entry", 715, 70),  # Haswell, estimated from a profile
}

# Whole instructions measured by uops.info on Skylake (reciprocal throughput): arms, not composed of acts.
ARMS = {
    "cli_sti": (3, "CLI 2.00, STI 4.00"),
    "clts": (57, "CLTS 57.00"),
    "cpuid": (100.72, "CPUID 100.72"),
    "invlpg": (211.13, "INVLPG 211.13"),
    "lgdt": (121.06, "LGDT 120.85, LIDT 121.28"),
    "lmsw": (137.13, "LMSW r16 137.13"),
    "popf": (21, "POPFQ 21.00"),
    "pushf": (1.12, "PUSHFQ 1.12"),
    "rdmsr": (87.08, "RDMSR 87.08, which register is not said"),
    "wrmsr": (135.09, "WRMSR 135.09, which register is not said"),
    "rdtsc": (25, "RDTSC 25.00, RDTSCP 32.06"),
    "read_cr": (7.87, "MOV r64, CR 7.87"),
    "write_dr": (200.63, "MOV DR, r64 200.63"),
    "write_dr67": (200.63, "MOV DR, r64 200.63"),
}

ASSUMED = {
    "swapgs": (8, "two internal registers exchanged; no measurement of SWAPGS alone was found"),
    "accessed_write": (20, "a locked read-modify-write in the first-level cache"),
    "walk_step": (5, "a load from the first-level cache"),
    "walk_write": (20, "a locked read-modify-write in the first-level cache"),
    "write_cr0": (150, "a serialising write, like LMSW at 137"),
    "write_cr2": (40, "a serialising write of a register nothing depends on"),
    "write_cr3": (200, "half of the 494 cycles by which two CR3 writes slow a seL4 system call, less refills"),
    "write_cr4": (150, "a serialising write, like LMSW at 137"),
    "read_dr": (30, "an internal register"),
    "read_dr67": (30, "an internal register"),
    "hlt": (100, "entering the halted state"),
    "port_read": (300, "a round trip on the bus"),
    "port_write": (300, "a round trip on the bus"),
    "lldt": (40, "what LLDT's 129 leaves beside descriptor_fetch and segment_refill"),
    "ltr": (40, "as LLDT"),
    # Ordinary instructions: reciprocal throughput in a wide out-of-order core, as a simple program sees it.
    "move": (0.25, "four a cycle"),
    "load": (0.5, "two a cycle"),
    "store": (1, "one a cycle"),
    "extend": (0.25, "four a cycle"),
    "alu": (0.25, "four a cycle"),
    "alu_load": (0.5, "two a cycle"),
    "alu_modify": (1, "one store a cycle"),
    "lea": (0.5, "two a cycle"),
    "nop": (0.25, "four a cycle"),
    "shift": (0.5, "two a cycle"),
    "shift_modify": (1, "one store a cycle"),
    "bit_test": (0.5, "BT two a cycle, BSF one"),
    "multiply": (1, "one a cycle"),
    "divide": (26, "DIV r32"),
    "push_register": (1, "one store a cycle"),
    "push_memory": (1, "one store a cycle"),
    "pop_register": (0.5, "two loads a cycle"),
    "call_near": (2, "a store and a jump, predicted"),
    "return_near": (1, "predicted"),
    "jump_near": (1, "predicted"),
    "jump_conditional": (0.5, "predicted; two a cycle if not taken"),
    "jump_taken": (0.5, "one taken branch a cycle"),
    "loop": (5, "microcoded"),
    "string_start": (25, "starting REP MOVS in microcode"),
    "string_step": (1, "one element a cycle; fast string operation is not modelled"),
    "exchange": (20, "a locked read-modify-write; between registers 1"),
    "flag_change": (0.5, "SETcc, CMOVcc two a cycle"),
    "frame": (3, "LEAVE; ENTER and PUSHA take more"),
    "decimal": (10, "microcoded"),
    "store_segment": (1, "MOV r64, Sreg 1.00; SGDT 8.00"),
    "inspect": (48, "LAR 60, LSL 58, VERR 64 less the fetch"),
    "other": (1, "anything else"),
}

MODEL = """[model]
vendor = "intel"
physical_address_bits = 39
features = [
    "long_mode", "nx", "pages_1gib", "global_pages", "page_size_extension", "pae", "smep", "smap", "syscall",
    "sysenter", "rdtscp", "fsgsbase",
]
cpuid = [
    # GenuineIntel, family 6, model 0x5E (Skylake), with the features that emu models. FPU and SIMD are not announced.
    { leaf = 0x0, eax = 0x7, ebx = 0x756E6547, ecx = 0x6C65746E, edx = 0x49656E69 },
    { leaf = 0x1, eax = 0x506E3, ebx = 0x0, ecx = 0x2000, edx = 0x0003A97C },
    { leaf = 0x7, eax = 0x0, ebx = 0x00100081, ecx = 0x0, edx = 0x0 },
    { leaf = 0x80000000, eax = 0x80000008, ebx = 0x0, ecx = 0x0, edx = 0x0 },
    { leaf = 0x80000001, eax = 0x0, ebx = 0x0, ecx = 0x1, edx = 0x2C100800 },
    { leaf = 0x80000008, eax = 0x3027, ebx = 0x0, ecx = 0x0, edx = 0x0 },
]
"""

SOURCES = {
    "composed": "tools/skylake_profile.py, from round trips measured on Skylake (1001 Ways of Implementing a System "
    "Call, x86.lol, 2019), and #PF and IRETQ on Haswell (L. Torvalds, 2014), held loosely",
    "uops": "uops.info, Skylake, measured reciprocal throughput",
    "assumed": "assumed: no measurement of it alone was found; the reason stands beside it",
}


def counts(guest: str, part: str) -> dict[str, int]:
    """What emu counts for a mechanism: its last round trip, or one way of it."""
    machine = Machine()
    machine.load_rom(guests.build(guest))
    trip = round_trips(machine.run(trace="checks").transitions)[-1]
    if part == "trip":
        return counts_of(trip.records)
    return counts_of((trip.entry if part == "entry" else trip.exit).records)


def compose() -> dict[str, tuple[float, float]]:
    """Posterior price and standard deviation of each act, in cycles."""
    events = list(PRIORS)
    mean = np.array([PRIORS[e][0] for e in events], float)
    covariance = np.diag([PRIORS[e][1] ** 2 for e in events])
    rows, targets, noise = [], [], []
    for guest, part, cycles, deviation in MEASURED.values():
        counted = counts(guest, part)
        arms = {e: n for e, n in counted.items() if e not in PRIORS and n and e in {**ARMS, **ASSUMED}}
        rows.append([counted.get(e, 0) for e in events])
        targets.append(cycles - sum(n * {**ARMS, **ASSUMED}[e][0] for e, n in arms.items()))
        noise.append(deviation**2)
    a = np.array(rows, float)
    gain = covariance @ a.T @ np.linalg.inv(a @ covariance @ a.T + np.diag(noise))
    posterior = mean + gain @ (np.array(targets) - a @ mean)
    spread = np.sqrt(np.diag(covariance - gain @ a @ covariance))
    if (posterior <= 0).any():
        raise SystemExit(f"a price would not be positive: {dict(zip(events, posterior.round(2), strict=True))}")
    return {e: (round(float(p), 3), round(float(s), 1)) for e, p, s in zip(events, posterior, spread, strict=True)}


def toml() -> str:
    """The profile as text."""
    lines = [
        "# Written by tools/skylake_profile.py: change it there. Acts are fitted, ordinary instructions assumed.",
        "",
        'name = "skylake"',
        'description = "Intel Skylake (Xeon E3-1270 v5): acts fitted to published round trips of four mechanisms"',
        "",
        MODEL,
        "[sources]",
        *(f'{key} = "{text}"' for key, text in SOURCES.items()),
        "",
        "# --- acts: the prior, and what the measurements made of it " + "-" * 58,
        "",
        "[prices]",
    ]
    for event, (price, spread) in compose().items():
        prior, deviation, why = PRIORS[event]
        if (price, spread) == (prior, deviation):  # no measurement has to do with it
            lines.append(_price(event, price, "assumed", "assumed", f"{prior:g} +- {deviation:g}: {why}"))
            continue
        path = f"{price:.1f} +- {spread:.1f}; before the measurements {prior:g} +- {deviation:g}: {why}"
        lines.append(_price(event, price, "fitted", "composed", path))
    lines += ["", "# --- arms: whole instructions " + "-" * 87, ""]
    lines += [_price(event, price, "measured", "uops", path) for event, (price, path) in ARMS.items()]
    lines += ["", "# --- assumed " + "-" * 104, ""]
    lines += [_price(event, price, "assumed", "assumed", path) for event, (price, path) in ASSUMED.items()]
    free = [e for e in _events() if e not in PRIORS and e not in ARMS and e not in ASSUMED and e != "tlb_flush"]
    lines += ["", "[[free]]", 'reason = "arms are not priced: their acts are"', "events = ["]
    lines += [f'    "{e}",' for e in free]
    lines += [
        "]",
        "",
        "[[free]]",
        'reason = "dropping translations costs what refilling them costs"',
        'events = ["tlb_flush"]',
        "",
    ]
    return "\n".join(lines)


def _events() -> tuple[str, ...]:
    from emu.profile import event_names  # noqa: PLC0415 - only needed when writing

    return event_names()


def _price(event: str, cycles: float, method: str, source: str, path: str) -> str:
    return f'{event} = {{ cycles = {cycles:g}, method = "{method}", source = "{source}", path = "{path}" }}'


if __name__ == "__main__":
    if "--show" in sys.argv:
        fitted = compose()
        for event, (price, spread) in fitted.items():
            print(
                f"{event:18} prior {PRIORS[event][0]:6.1f} +- {PRIORS[event][1]:5.1f}   fitted {price:8.3f} +- {spread}"
            )
        for row, (guest, part, cycles, _) in MEASURED.items():
            have = counts(guest, part)
            model = sum(n * fitted[e][0] for e, n in have.items() if e in fitted)
            print(f"{row:24} published {cycles:6.1f}   model {model:7.2f}")
    else:
        OUT.write_text(toml())
        print(f"written: {OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT}")
