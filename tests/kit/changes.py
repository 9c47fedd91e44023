"""The one thing that a test changes in a good machine, as a value for a table."""

from __future__ import annotations

from collections.abc import Callable

from .scene import FREE, Scene

Change = Callable[[Scene], None]


def nothing(scene: Scene) -> None:
    """The machine stays good: what is named is wrong."""


def no_ldt(scene: Scene) -> None:
    scene.machine.set_segment("ldtr", 0, 0, 0, 0)


def describes(data: bytes, selector: int = FREE, *, ldt: bool = False) -> Change:
    return lambda scene: scene.descriptor(selector, data, ldt=ldt)


def register(name: str, value: int) -> Change:
    return lambda scene: scene.machine.set(name, value)


def segment_register(name: str, selector: int, base: int, limit: int, attributes: int) -> Change:
    return lambda scene: scene.machine.set_segment(name, selector, base, limit, attributes)


def changes(*several: Change) -> Change:
    def change(scene: Scene) -> None:
        for one in several:
            one(scene)

    return change
