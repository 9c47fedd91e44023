"""emu: an x86 emulator that explains and prices every crossing between privilege levels."""

from emu.catalogue import Check, catalogue
from emu.errors import EmuError
from emu.machine import DEFAULT_BUDGET, Machine, Segment
from emu.profile import Profile, ProfileError
from emu.records import Access, CheckSeen, Fault, Place, StackWord
from emu.run import Run, Stop
from emu.trace import Transition
from emu.trips import RoundTrip, round_trips

__all__ = [
    "DEFAULT_BUDGET",
    "Access",
    "Check",
    "CheckSeen",
    "EmuError",
    "Fault",
    "Machine",
    "Place",
    "Profile",
    "ProfileError",
    "RoundTrip",
    "Run",
    "Segment",
    "StackWord",
    "Stop",
    "Transition",
    "catalogue",
    "round_trips",
]
