"""Profiles: complete, sourced, and refused with one sentence if they are not."""

from __future__ import annotations

import pytest

from emu import Machine, profile
from emu.profile import ProfileError

GOOD = (profile._packaged() / "80386.toml").read_text("utf-8")  # the text itself, to break it


@pytest.mark.parametrize("name", profile.names())
def test_every_event_is_priced_with_a_source_or_free_with_a_reason(name: str) -> None:
    loaded = profile.load(name)
    for event in profile.event_names():
        assert (event in loaded.prices) != (event in loaded.free), event
    for event, price in loaded.prices.items():
        assert price.source.strip(), event
        assert price.method in profile.METHODS, event
    assert all(reason.strip() for reason in loaded.free.values())


BAD = [
    (GOOD.replace("interrupt_real =", "interrupt_unreal ="), "interrupt_unreal"),
    (GOOD.replace("cycles = 37", "cycles = -37"), "negative"),
    (GOOD.replace("cycles = 37", "cycles = 37.00001"), "three decimals"),
    (GOOD.replace("cycles = 37", "cycles = nan"), "not a number"),
    (GOOD.replace("cycles = 37", "cycles = 1e300"), "a million"),
    (GOOD.replace('"documented"', '"guessed"', 1), "guessed"),
    (GOOD.replace('source = "manual"', 'source = "hearsay"', 1), "hearsay"),
    (GOOD.replace('vendor = "intel"', 'vendor = "cyrix"'), "cyrix"),
    (GOOD.replace("physical_address_bits = 32", "physical_address_bits = 99"), "physical_address_bits"),
    (GOOD.replace("features = []", 'features = ["mmx"]'), "mmx"),
    (GOOD.replace("[model]", "[modal]"), "modal"),
    ("this is no TOML", "not TOML"),
    ("", "[prices] is missing"),
]


@pytest.mark.parametrize(("text", "fragment"), BAD)
def test_bad_profile_is_one_sentence(text: str, fragment: str) -> None:
    assert text != GOOD
    with pytest.raises(ProfileError) as caught:
        profile.parse(text, "mine.toml")
    message = str(caught.value)
    assert "mine.toml" in message
    assert fragment in message


def test_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(ProfileError, match="80386"):
        Machine(profile="i8008")
