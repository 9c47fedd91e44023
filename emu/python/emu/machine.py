"""A machine: a processor with memory and the debug devices, to be loaded, poked, run and looked at."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from emu import _core
from emu.autopsy import Scene, autopsy
from emu.disassembly import LONGEST_INSTRUCTION, disassemble
from emu.errors import EmuError
from emu.profile import Profile, load
from emu.records import COSTS, Tables
from emu.run import Run, Stop
from emu.structures import is_ia32e
from emu.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emu._core import Machine as CoreMachine

    Buffer = bytes | bytearray | memoryview

TraceLevel = Literal["off", "transitions", "checks"]

DEFAULT_MEMORY = 64 << 20
DEFAULT_BUDGET = 200_000_000
"""Instructions after which a run stops by itself."""
CAPACITY = {"off": 1 << 10, "transitions": 1 << 16, "checks": 1 << 18}
"""Records kept, by trace level, unless the caller says otherwise."""


class NoSuchRegister(EmuError, AttributeError):  # noqa: N818 - named for what is missing, like KeyError
    """A register that the processor does not have."""


@contextmanager
def _refusals() -> Iterator[None]:
    """What the core refuses becomes the one exception type of emu."""
    try:
        yield
    except KeyError as error:
        raise EmuError(str(error.args[0])) from error
    except (ValueError, RuntimeError, MemoryError) as error:
        raise EmuError(str(error)) from error


class Registers:
    """The registers, by attribute. Assigning pokes: no check is made, hidden state follows."""

    __slots__ = ("_core",)
    _core: CoreMachine

    def __init__(self, core: CoreMachine) -> None:
        object.__setattr__(self, "_core", core)

    def __getattr__(self, name: str) -> int:
        """NoSuchRegister if there is none of that name."""
        try:
            return self._core.get(name)
        except KeyError as error:
            raise NoSuchRegister(str(error.args[0])) from error

    def __setattr__(self, name: str, value: SupportsIndex) -> None:
        """NoSuchRegister if there is none of that name, EmuError if it cannot hold the value."""
        try:
            with _refusals():
                self._core.set(name, value)
        except EmuError as error:
            if isinstance(error.__cause__, KeyError):
                raise NoSuchRegister(str(error)) from error
            raise

    def __dir__(self) -> list[str]:
        return self._core.register_names()

    def as_dict(self) -> dict[str, int]:
        """All registers by name."""
        return {name: self._core.get(name) for name in self._core.register_names()}


class Memory:
    """Physical memory, and linear memory through the page tables in force. Addresses and sizes in bytes."""

    def __init__(self, core: CoreMachine, size: int) -> None:
        self._core = core
        self.size = size

    def read(self, physical: SupportsIndex, size: SupportsIndex) -> bytes:
        """Where nothing answers, ones are read."""
        with _refusals():
            return self._core.read_physical(physical, size)

    def write(self, physical: SupportsIndex, data: Buffer) -> None:
        """EmuError unless all of it goes to RAM."""
        with _refusals():
            self._core.write_physical(physical, bytes(memoryview(data)))

    def translate(self, linear: SupportsIndex) -> int | None:
        """Physical address of a linear one, without access rights or side effects; None if it is not mapped."""
        with _refusals():
            return self._core.translate(linear)

    def read_linear(self, linear: SupportsIndex, size: SupportsIndex) -> bytes | None:
        """None if a byte of it is not mapped."""
        with _refusals():
            return self._core.read_linear(linear, size)


@dataclass(frozen=True)
class Segment:
    """A segment register with its hidden part."""

    selector: int
    base: int
    limit: int
    attributes: int
    """Bits 40-47 and 52-55 of the descriptor, as bits 0-7 and 12-15."""


class Machine:
    """A processor with memory and the debug devices (emu/devices/devices.hpp), in the state after RESET."""

    def __init__(self, memory: int = DEFAULT_MEMORY, profile: Profile | str | Path | None = None) -> None:
        """`memory`: bytes of RAM, a multiple of 4096. `profile`: prices and processor, or the name of a packaged one.

        Without a profile nothing has a price, so the time-stamp counter stands still, and the processor has every
        feature that emu models.
        """
        with _refusals():
            self._core = _core.Machine(memory)
        self.memory = Memory(self._core, memory)
        self.registers = Registers(self._core)
        self._profile: Profile | None = None
        if profile is not None:
            self.profile = profile
            self._core.reset()  # EDX after RESET depends on the processor

    @property
    def profile(self) -> Profile | None:
        """Prices and processor model in force. May be assigned between runs, by name too."""
        return self._profile

    @profile.setter
    def profile(self, profile: Profile | str | Path) -> None:
        chosen = profile if isinstance(profile, Profile) else load(profile)
        with _refusals():
            self._core.set_model(chosen.model.for_core())
            self._core.set_prices(chosen.millicycles())
        self._profile = chosen

    def load_rom(self, image: Buffer) -> None:
        """An image that ends at 4 GiB; its last 128 KiB also answer below 1 MiB.

        Its size must be a multiple of 4096 bytes, at most 16 MiB: EmuError otherwise.
        """
        with _refusals():
            self._core.load_rom(bytes(memoryview(image)))

    def reset(self) -> None:
        """The state after RESET (Intel SDM vol. 3, Processor State After Reset). Memory stays as it is."""
        with _refusals():
            self._core.reset()

    @property
    def mode(self) -> str:
        """real, protected, compatibility, 64-bit or virtual-8086."""
        return self._core.mode

    def segment(self, name: str) -> Segment:
        """es, cs, ss, ds, fs, gs, ldtr or tr."""
        with _refusals():
            return Segment(**self._core.segment(name))

    def set_segment(self, name: str, segment: Segment) -> None:
        """Pokes the selector and the hidden part: no check is made."""
        with _refusals():
            self._core.set_segment(name, segment.selector, segment.base, segment.limit, segment.attributes)

    def run(self, budget: int = DEFAULT_BUDGET, trace: TraceLevel = "off", capacity: int | None = None) -> Run:
        """Runs until the guest ends it, but for at most `budget` instructions; an exception delivered counts as one.

        `trace`: "off" keeps failed checks and faults only, "transitions" adds where each passage led, "checks" adds
        everything. `capacity`: records kept; the oldest are dropped, and counted in Run.dropped.
        """
        with _refusals():
            end = self._core.run(budget, trace, CAPACITY.get(trace, 1) if capacity is None else capacity)
        tables = self._tables()
        lines: list[str] | None = None
        if end.reason == "shutdown":
            view = Trace(end.records, trace, self._profile, tables, repriced=False)
            lines = autopsy(view, Scene(self.mode, self.instruction_at, self._descriptor))
        return Run(
            stop=Stop.of(end, budget),
            status=end.detail if end.reason == "exit" else None,
            instructions=end.instructions,
            millicycles=end.millicycles,
            counts=dict(zip(COSTS, end.counts.tolist(), strict=True)),
            output=end.output,
            serial=end.serial,
            output_dropped=end.output_dropped,
            records=end.records,
            dropped=end.dropped,
            level=trace,
            profile=self._profile,
            tables=tables,
            autopsy_lines=tuple(lines or ()),
        )

    def step(self, trace: TraceLevel = "checks") -> Run:
        """Runs one instruction, or delivers the exception that it raises."""
        return self.run(1, trace)

    def instruction_at(self, rip: int | None = None) -> str | None:
        """Disassembly of the instruction at CS:`rip`, or at CS:RIP. None if it cannot be read or is no instruction."""
        at = self.registers.rip if rip is None else rip
        code = self.segment("cs")
        is_64 = self.mode == "64-bit"
        bits = 64 if is_64 else 32 if code.attributes >> 14 & 1 else 16
        linear = at if is_64 else (code.base + at) & 0xFFFFFFFF
        for size in range(LONGEST_INSTRUCTION, 0, -1):  # the next page may be missing
            found = self.memory.read_linear(linear, size)
            if found is not None:
                return disassemble(found, at, bits)
        return None

    def _tables(self) -> Tables:
        read = self._core.get
        return Tables(read("gdtr_base"), self.segment("ldtr").base, read("idtr_base"), self.segment("tr").base)

    def _descriptor(self, selector: int) -> int | None:
        table = self.segment("ldtr").base if selector & 4 else self.registers.gdtr_base
        linear = table + (selector & 0xFFF8)
        found = self.memory.read_linear(linear if is_ia32e(self.mode) else linear & 0xFFFFFFFF, 8)
        return None if found is None else int.from_bytes(found, "little")

    def __repr__(self) -> str:
        state: dict[str, Any] = {"mode": self.mode, "cpl": self.registers.cpl, "rip": hex(self.registers.rip)}
        return f"<Machine {', '.join(f'{name}={value}' for name, value in state.items())}>"
