"""What the tree promises: includes go downwards only, the catalogue is whole, files stay readable."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

from emu import _core

EMU = Path(__file__).parent.parent / "emu"
SOURCES = sorted(path.relative_to(EMU).as_posix() for pattern in ("*.hpp", "*.cpp") for path in EMU.rglob(pattern))
CHECKS = _core.checks()

# From the bottom up. A file includes files of its own group, and of groups in lower layers; the first pattern counts.
LAYERS: list[dict[str, list[str]]] = [
    {"arch": ["arch/*", "checks/names.hpp"]},
    {"cost": ["cost/*"], "trace": ["trace/*"], "outcome": ["outcome.hpp"]},
    {"checks": ["checks/*"], "mmu": ["mmu/segment_register.hpp", "mmu/physical_memory.*", "mmu/tlb.*"]},
    {"state": ["cpu/state.hpp"]},
    {"core": ["core.*"]},
    {"doors": ["doors.hpp"]},
    {"access": ["mmu/access.hpp"], "decode": ["cpu/decode/*"]},
    {"transition": ["cpu/transition/*"], "execute": ["cpu/execute/*"], "devices": ["devices/*"]},
    {"machine": ["machine.*"]},
    {"bind": ["bind/*"]},
]
LONGEST = 330
MAY_BE_LONG = {"cpu/decode/opcode_table.hpp": "a table", "cpu/decode/decoder.cpp": "one encoding, byte by byte"}


def place(source: str) -> tuple[int, str]:
    """Layer and group."""
    for layer, groups in enumerate(LAYERS):
        for group, patterns in groups.items():
            if any(fnmatch(source, pattern) for pattern in patterns):
                return layer, group
    raise AssertionError(f"{source} belongs to no layer")


def includes(source: str) -> list[str]:
    return re.findall(r'^#include "(.+)"', (EMU / source).read_text(), re.MULTILINE)


@pytest.mark.parametrize("source", SOURCES)
def test_includes_go_downwards(source: str) -> None:
    layer, group = place(source)
    for included in includes(source):
        assert included in SOURCES, f"{source} includes {included}, which is not there"
        below, other = place(included)
        assert below < layer or other == group, f"{source} ({group}) includes {included} ({other})"


def test_only_one_file_includes_rooms() -> None:
    """A room is a template body; instances.cpp is the one translation unit made of them."""
    rooms = [source for source in SOURCES if fnmatch(source, "cpu/transition/*.cpp")]
    including = {source for source in SOURCES for included in includes(source) if included.endswith(".cpp")}
    assert including == {"cpu/transition/instances.cpp"}
    assert sorted(includes("cpu/transition/instances.cpp")) == sorted(set(rooms) - including)


@pytest.mark.parametrize("source", [source for source in SOURCES if not source.startswith("bind/")])
def test_the_core_throws_nothing(source: str) -> None:
    """Compiled without exceptions and run-time types; nothing in it may ask for them."""
    code = re.sub(r"//.*", "", (EMU / source).read_text())
    assert not re.findall(r"\b(throw|catch|dynamic_cast|typeid|virtual|abort)\b(?=[ (;{])", code)


@pytest.mark.parametrize("source", [source for source in SOURCES if source.endswith(".hpp")])
def test_headers_begin_with_a_sentence(source: str) -> None:
    first, *rest = (EMU / source).read_text().splitlines()
    assert first.startswith("// ")
    assert "#pragma once" in rest


def test_files_are_short() -> None:
    python = [path.relative_to(EMU).as_posix() for path in EMU.rglob("*.py")]
    long = {name for name in SOURCES + python if len((EMU / name).read_text().splitlines()) > LONGEST}
    assert long <= MAY_BE_LONG.keys()


# --- the catalogue ---------------------------------------------------------------------------------------------------


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(check["name"] for check in CHECKS).items() if count > 1] == []


@pytest.mark.parametrize("check", CHECKS, ids=[check["name"] for check in CHECKS])
def test_a_check_says_what_must_hold_and_where(check: dict[str, object]) -> None:
    assert re.fullmatch(r"[a-z][a-z_0-9]*\.[a-z][a-z_0-9]*", str(check["name"]))
    says, sdm = str(check["says"]), str(check["sdm"])
    assert len(says) > 15
    assert not says.endswith(".")
    assert len(sdm) > 3, "no citation"
    operands = check["operands"]
    assert isinstance(operands, list)
    assert operands
    assert all(operands)


# Interrupt vectors that push an error code (vol. 3, Protected-Mode Exceptions and Interrupts).
WITH_ERROR_CODE = {8, 10, 11, 12, 13, 14, 17, 21}


@pytest.mark.parametrize("check", CHECKS, ids=[check["name"] for check in CHECKS])
def test_the_error_code_fits_the_vector(check: dict[str, object]) -> None:
    vector, names = check["vector"], check["names"]
    assert (names == "no_code") == (vector not in WITH_ERROR_CODE)
    assert (names == "page") == (vector == 14)
    if vector == 17:  # "an error code of 0 is pushed"
        assert names == "nothing"


def test_every_check_that_is_written_is_catalogued() -> None:
    written = {
        name
        for source in SOURCES
        if source.startswith("checks/")
        for name in re.findall(r'\.name = "(.+)"', (EMU / source).read_text())
    }
    assert written - {check["name"] for check in CHECKS} == set()


def test_rooms_require_by_name() -> None:
    """No room raises a fault by itself: that would be a check without a name."""
    for source in SOURCES:
        if fnmatch(source, "cpu/transition/*") and source != "cpu/transition/exception.cpp":
            assert "Fault{" not in (EMU / source).read_text(), source
