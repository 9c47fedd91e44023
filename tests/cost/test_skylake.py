"""The Skylake profile: what its composition script makes of priors and measurements, and what that reproduces."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from emu import compare, profile
from emu.published import figures

if TYPE_CHECKING:
    from types import ModuleType

TOOL = Path(__file__).parents[2] / "tools/skylake_profile.py"
FIGURES = [figure for figure in figures() if figure.cpu == "skylake"]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("skylake_profile", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.guest)
def test_published_round_trips_within_half_a_percent(figure: object) -> None:
    row = compare.measure(figure.guest, profile.load("skylake"))  # type: ignore[attr-defined]
    assert row.difference is not None
    assert abs(row.difference) < 0.005


@pytest.mark.skipif(shutil.which("nasm") is None, reason="nasm is not installed")
def test_profile_is_what_the_script_writes(tool: ModuleType) -> None:
    assert tool.toml() == tool.OUT.read_text()


def test_no_act_is_moved_further_from_its_prior_than_three_deviations(tool: ModuleType) -> None:
    prices = profile.load("skylake").prices
    for event, (prior, deviation, _) in tool.PRIORS.items():
        assert abs(prices[event].cycles - prior) <= 3 * deviation, event


def test_parts_add_up() -> None:
    for row in compare.compare(profile.load("skylake")):
        assert sum(row.parts.values()) == pytest.approx(row.cycles, abs=0.001)


def test_a_figure_that_took_no_part_in_the_fit() -> None:
    """cordes-farcall: far call and return at the same privilege took 220 cycles on a Core i7-6700K."""
    price = profile.load("skylake").price
    acts = {"microcode_entry": 2, "descriptor_fetch": 2, "segment_refill": 2, "push": 2, "pop": 2, "pipeline_refill": 2}
    checks = 18
    cycles = sum(n * price(act) for act, n in acts.items()) + checks * price("comparison")
    assert cycles == pytest.approx(220, rel=0.20)
