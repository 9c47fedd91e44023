"""Cost profiles: what each cost event is worth on one processor, where each number comes from, and what the CPU has.

A run counts events; a profile prices them. Prices are kept in thousandths of a cycle, so that a sum of them is exact.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from emu import _core
from emu.errors import EmuError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.abc import Traversable

# Python has had it since 3.11; the package tomli is the same for those before.
tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

Method = Literal["documented", "measured", "fitted", "assumed"]
METHODS: tuple[Method, ...] = ("documented", "measured", "fitted", "assumed")
VENDORS = ("intel", "amd")
MILLICYCLES = 1000

FEATURES = (
    "long_mode",
    "nx",
    "pages_1gib",
    "global_pages",
    "page_size_extension",
    "pae",
    "smep",
    "smap",
    "syscall",
    "sysenter",
    "rdtscp",
    "fsgsbase",
    "umip",
    "pcid",
)
"""What a processor may have or lack; the core knows them by the same names (arch/cpu_model.hpp)."""


class ProfileError(EmuError):
    """A profile that cannot be used; the message says why, in one sentence."""


@dataclass(frozen=True)
class Price:
    """What one event costs, how that is known, and from where."""

    millicycles: int
    method: Method
    source: str
    path: str = ""

    @property
    def cycles(self) -> float:
        return self.millicycles / MILLICYCLES


@dataclass(frozen=True)
class CpuidLeaf:
    """What CPUID returns for one leaf and subleaf."""

    leaf: int
    subleaf: int
    eax: int
    ebx: int
    ecx: int
    edx: int


@dataclass(frozen=True)
class ProcessorModel:
    """What distinguishes one processor from another."""

    vendor: str
    physical_address_bits: int
    features: frozenset[str]
    cpuid: tuple[CpuidLeaf, ...]

    def for_core(self) -> dict[str, Any]:
        """The form in which the core takes it."""
        return {
            "vendor": self.vendor,
            "physical_address_bits": self.physical_address_bits,
            **{feature: feature in self.features for feature in FEATURES},
            "cpuid": [vars(leaf).copy() for leaf in self.cpuid],
        }


@dataclass(frozen=True)
class Profile:
    """Prices for all cost events, and the processor they belong to. Every event is priced, or free with a reason."""

    name: str
    description: str
    model: ProcessorModel
    prices: Mapping[str, Price]
    free: Mapping[str, str]

    def millicycles(self) -> npt.NDArray[np.uint64]:
        """One price per cost event, in the core's order."""
        return np.array([self._millicycles(event) for event in event_names()], dtype=np.uint64)

    def price(self, event: str) -> float:
        """Price of an event, in cycles."""
        return self._millicycles(event) / MILLICYCLES

    def parts(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Cycles by event, for events that were counted and cost something."""
        spent = {event: n * self._millicycles(event) for event, n in counts.items()}
        return {event: millicycles / MILLICYCLES for event, millicycles in spent.items() if millicycles}

    def cycles(self, counts: Mapping[str, int]) -> float:
        """What these counts cost."""
        return sum(n * self._millicycles(event) for event, n in counts.items()) / MILLICYCLES

    def _millicycles(self, event: str) -> int:
        price = self.prices.get(event)
        return price.millicycles if price else 0


@cache
def event_names() -> tuple[str, ...]:
    """The cost events, in the core's order."""
    return tuple(event["name"] for event in _core.cost_events())


def names() -> list[str]:
    """The profiles that come with emu."""
    return sorted(entry.name.removesuffix(".toml") for entry in _packaged().iterdir() if entry.name.endswith(".toml"))


def load(name: str | Path) -> Profile:
    """A profile that comes with emu, by its name, or one of your own, by the path of its TOML file."""
    if str(name) in names():
        return parse((_packaged() / f"{name}.toml").read_text("utf-8"), str(name))
    path = Path(name)
    if path.suffix != ".toml":
        raise ProfileError(f"there is no profile {str(name)!r}: emu has {', '.join(names())}, or give a .toml file")
    try:
        return parse(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"cannot read the profile {path}: {getattr(error, 'strerror', None) or error}") from error


def parse(text: str, where: str) -> Profile:
    """A profile from TOML text; `where` names it in messages."""
    try:
        # Decimal keeps 0.25 what it says, so that thousandths are exact.
        top = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"profile {where} is not TOML: {error}") from error
    try:
        return _profile(top)
    except ProfileError as error:
        raise ProfileError(f"profile {where}: {error}") from error


def _packaged() -> Traversable:
    return resources.files("emu") / "profiles"


def _profile(top: dict[str, Any]) -> Profile:
    _only(top, {"name", "description", "model", "sources", "prices", "free", "prices_from"}, "at the top")
    if "prices_from" in top:
        if "prices" in top or "free" in top:
            raise ProfileError("prices_from takes all prices from another profile, so there can be no prices here")
        other = load(_text(top, "prices_from", "at the top"))
        note = f"profile {other.name}: "
        prices = {e: Price(p.millicycles, "assumed", note + p.source, p.path) for e, p in other.prices.items()}
        free = dict(other.free)
    else:
        prices = _prices(_table(top, "prices"), _table(top, "sources"))
        free = _free(top.get("free", []))
    _complete(prices, free)
    return Profile(
        _text(top, "name", "at the top"),
        _text(top, "description", "at the top"),
        _model(_table(top, "model")),
        prices,
        free,
    )


def _complete(prices: Mapping[str, Price], free: Mapping[str, str]) -> None:
    known = event_names()
    for event in (*prices, *free):
        if event not in known:
            raise ProfileError(f"there is no cost event {event!r}; `emu doc --costs` lists them")
    for event in known:
        if event in prices and event in free:
            raise ProfileError(f"{event} is both priced and free")
        if event not in prices and event not in free:
            raise ProfileError(f"{event} has no price; give it one, or list it under [[free]] with a reason")


def _prices(table: dict[str, Any], sources: dict[str, Any]) -> dict[str, Price]:
    prices = {}
    for event, entry in table.items():
        where = f"in the price of {event}"
        if not isinstance(entry, dict):
            raise ProfileError(f"the price of {event} must be a table with cycles, method and source")
        _only(entry, {"cycles", "method", "source", "path"}, where)
        method = _text(entry, "method", where)
        if method not in METHODS:
            raise ProfileError(f"method {method!r} {where} is not one of {', '.join(METHODS)}")
        key = _text(entry, "source", where)
        if key not in sources:
            raise ProfileError(f"source {key!r} {where} is not listed under [sources]")
        path = _text(entry, "path", where) if "path" in entry else ""
        millicycles = _millicycles(entry.get("cycles"), event)
        prices[event] = Price(millicycles, method, _text(sources, key, "under [sources]"), path)
    return prices


def _millicycles(value: object, event: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ProfileError(f"the price of {event} has no number of cycles")
    if not Decimal(value).is_finite():
        raise ProfileError(f"the price of {event} is not a number of cycles: {value}")
    if value < 0:
        raise ProfileError(f"the price of {event} is negative: {value}")
    try:
        millicycles = Decimal(value) * MILLICYCLES
        if millicycles != millicycles.to_integral_value():
            raise ProfileError(f"the price of {event} has more than three decimals: {value}")
    except InvalidOperation as error:
        raise ProfileError(f"the price of {event} is not a number of cycles: {value}") from error
    if millicycles > 10**9:
        raise ProfileError(f"the price of {event} is more than a million cycles: {value}")
    return int(millicycles)


def _free(groups: object) -> dict[str, str]:
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise ProfileError("free events are listed as [[free]] with events and a reason")
    free: dict[str, str] = {}
    for group in groups:
        _only(group, {"events", "reason"}, "in [[free]]")
        reason = _text(group, "reason", "in [[free]]")
        events = group.get("events")
        if not isinstance(events, list) or not all(isinstance(event, str) for event in events):
            raise ProfileError("events in [[free]] must be a list of names")
        for event in events:
            if event in free:
                raise ProfileError(f"{event} is listed as free twice")
            free[event] = reason
    return free


def _model(table: dict[str, Any]) -> ProcessorModel:
    where = "in [model]"
    _only(table, {"vendor", "physical_address_bits", "features", "cpuid"}, where)
    vendor = _text(table, "vendor", where)
    if vendor not in VENDORS:
        raise ProfileError(f"vendor {vendor!r} is not one of {', '.join(VENDORS)}")
    bits = table.get("physical_address_bits")
    if not isinstance(bits, int) or isinstance(bits, bool) or not 32 <= bits <= 52:
        raise ProfileError(f"physical_address_bits must be a number from 32 to 52, not {bits!r}")
    features = table.get("features")
    if not isinstance(features, list):
        raise ProfileError("features in [model] must be a list of names")
    for feature in features:
        if feature not in FEATURES:
            raise ProfileError(f"there is no feature {feature!r}; there are {', '.join(FEATURES)}")
    leaves = table.get("cpuid", [])
    if not isinstance(leaves, list) or len(leaves) > 32:
        raise ProfileError("cpuid in [model] must be a list of at most 32 leaves")
    return ProcessorModel(vendor, bits, frozenset(features), tuple(_leaf(leaf) for leaf in leaves))


def _leaf(entry: object) -> CpuidLeaf:
    fields = CpuidLeaf.__annotations__
    if not isinstance(entry, dict):
        raise ProfileError(f"a cpuid leaf must be a table with {', '.join(fields)}")
    _only(entry, set(fields), "in a cpuid leaf")
    values = {"subleaf": 0, **entry}
    for field in fields:
        value = values.get(field)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
            raise ProfileError(f"{field} in a cpuid leaf must be a number of 32 bits, not {value!r}")
    return CpuidLeaf(**values)


def _only(table: Mapping[str, object], allowed: set[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise ProfileError(f"unknown key {key!r} {where}; known are {', '.join(sorted(allowed))}")


def _text(table: Mapping[str, object], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ProfileError(f"{key} is missing {where}")
    return value


def _table(top: Mapping[str, object], key: str) -> dict[str, Any]:
    value = top.get(key)
    if not isinstance(value, dict):
        raise ProfileError(f"the table [{key}] is missing")
    return value
