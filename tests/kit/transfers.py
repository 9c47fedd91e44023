"""Far transfers of control: pointers in memory for CALL and JMP, frames on the stack for RET and IRET."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scene import Scene, Step

POINTER = 0x9000
SIZES = {16: "word", 32: "dword", 64: "qword"}
IRET = {16: "iretw", 32: "iretd", 64: "iretq"}


def far(scene: Scene, mnemonic: str, selector: int, offset: int, width: int = 32) -> Step:
    """CALL or JMP with a far pointer of that width in memory."""
    scene.write(POINTER, offset.to_bytes(width // 8, "little") + selector.to_bytes(2, "little"))
    absolute = "abs " if scene.mode == "long" else ""
    return scene.step(f"{mnemonic} far {SIZES[width]} [{absolute}{POINTER:#x}]")


def back(scene: Scene, mnemonic: str, width: int, release: int = 0) -> Step:
    """RETF or IRET with that operand size."""
    if mnemonic == "iret":
        return scene.step(IRET[width])
    return scene.step(f"o{width} retf {release}" if release else f"o{width} retf")


def push_frame(
    scene: Scene,
    mnemonic: str,
    width: int,
    *,
    cs: int,
    rip: int,
    flags: int = 2,
    stack: tuple[int, int] | None = None,
    parameters: tuple[int, ...] = (),
) -> None:
    """What RETF or IRET pops; `stack` is SS and RSP of the outer level. Parameters lie between the two parts."""
    if stack is not None:
        scene.push(*stack, width=width)
    scene.push(*parameters, width=width)
    if mnemonic == "iret":
        scene.push(flags, width=width)
    scene.push(cs, rip, width=width)
