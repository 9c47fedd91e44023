"""The C++ core: registers, memory, one run loop, one stream of records. Numbers only; words are made in Python."""

from typing import Any, Final, SupportsIndex

import numpy as np
import numpy.typing as npt

MILLICYCLES_PER_CYCLE: Final[int]
RECORD_DTYPE: Final[np.dtype[np.void]]
"""cycles u8, instructions u8, id u2, kind u1, held u1, span u4, a u8, b u8, c u8, d u8 (trace/records.hpp)."""

def checks() -> list[dict[str, Any]]:
    """The catalogue, in order of CheckId: name, says, sdm, vector (int), names (str), cost (str), operands (list of
    labels), mechanism family is the part of the name before the dot."""

def cost_events() -> list[dict[str, str]]:
    """In order of CostEvent: name, kind ("act" | "arm" | "instruction"), says."""

def mechanisms() -> list[str]: ...
def record_kinds() -> list[str]: ...
def structures() -> list[str]: ...
def pushed() -> list[str]: ...
def stop_reasons() -> list[str]: ...
def unmodelled() -> list[str]:
    """What is not modelled, as sentences, in order of Unmodelled."""

def build_info() -> dict[str, str]: ...

class RunEnd:
    """How a run ended. Plain numbers; emu.Run gives them names."""

    @property
    def reason(self) -> str: ...
    @property
    def detail(self) -> int:
        """Exit status, or index into unmodelled(); else 0."""
    @property
    def instructions(self) -> int: ...
    @property
    def millicycles(self) -> int: ...
    @property
    def counts(self) -> npt.NDArray[np.uint64]:
        """This run's counts, one per cost event."""
    @property
    def records(self) -> npt.NDArray[np.void]:
        """A copy of the ring, oldest first, of dtype RECORD_DTYPE."""
    @property
    def dropped(self) -> int: ...
    @property
    def output(self) -> bytes:
        """What the guest printed on port 0xE9 in this run (and nothing else)."""
    @property
    def serial(self) -> bytes:
        """What the guest sent to the 16550 at 0x3F8 in this run."""
    @property
    def output_dropped(self) -> int:
        """Bytes beyond the 1 MiB a run keeps."""

class Machine:
    """A processor with memory and the debug devices. Everything of the processor can be read and poked by name.

    Numbers that do not fit raise ValueError. While one thread runs a machine, others get RuntimeError.
    """

    def __init__(self, memory: SupportsIndex = ...) -> None:
        """memory: bytes of RAM, a multiple of 4096, at most 64 GiB. ValueError else; MemoryError if refused."""
    def load_rom(self, image: bytes) -> None:
        """An image that ends at 4 GiB; its last 128 KiB also answer below 1 MiB. Multiple of 4096, at most 16 MiB."""
    def read_physical(self, address: SupportsIndex, size: SupportsIndex) -> bytes: ...
    def write_physical(self, address: SupportsIndex, data: bytes) -> None:
        """ValueError unless all of it goes to RAM. Forgets translations, and code decoded from what is overwritten."""
    def translate(self, linear: SupportsIndex) -> int | None:
        """Physical address by the page tables in force, without access rights or side effects; None if not mapped."""
    def read_linear(self, linear: SupportsIndex, size: SupportsIndex) -> bytes | None: ...
    def reset(self) -> None:
        """The state after RESET (Intel SDM vol. 3, Processor State After Reset); memory stays."""
    def register_names(self) -> list[str]:
        """rax..r15, rip, rflags, cr0, cr2, cr3, cr4, cr8, efer, dr0..dr7, star, lstar, cstar, fmask, kernel_gs_base,
        sysenter_cs, sysenter_esp, sysenter_eip, cpl, gdtr_base, gdtr_limit, idtr_base, idtr_limit, fs_base,
        gs_base, tsc_aux."""
    def get(self, name: str) -> int: ...
    def set(self, name: str, value: SupportsIndex) -> None:
        """Pokes: no checks. KeyError if there is no such register, ValueError if the value does not fit."""
    def segment(self, name: str) -> dict[str, int]:
        """es cs ss ds fs gs ldtr tr: selector, base, limit, attributes (the hidden part)."""
    def set_segment(
        self,
        name: str,
        selector: SupportsIndex,
        base: SupportsIndex,
        limit: SupportsIndex,
        attributes: SupportsIndex,
    ) -> None: ...
    @property
    def mode(self) -> str:
        """One of "real", "protected", "compatibility", "64-bit" or "virtual-8086"."""
    def set_prices(self, millicycles: npt.NDArray[np.uint64]) -> None:
        """One price per cost event. Drops decoded blocks, since they carry summed prices."""
    def set_model(self, model: dict[str, Any]) -> None:
        """vendor ("intel" | "amd"), physical_address_bits, feature booleans by their names in arch/cpu_model.hpp, and
        "cpuid": a list of dicts leaf, subleaf, eax, ebx, ecx, edx."""
    def run(self, budget: SupportsIndex, level: str = "off", capacity: SupportsIndex = ...) -> RunEnd:
        """level: "off" | "transitions" | "checks"; capacity: records kept, rounded up to a power of two. Releases the
        GIL, and looks for signals now and then. Returns after at most `budget` instructions and
        deliveries of exceptions."""
