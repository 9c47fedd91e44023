"""Every kind of image loads, finds the state it was promised, and runs."""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING

import pytest

from emu import Machine, Segment, loaders

from . import images
from .images import EXIT_7, LOAD

if TYPE_CHECKING:
    from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30
RAM = 4 * MIB
FLAT_CODE_32 = Segment(0x08, 0, 0xFFFFFFFF, 0xC09B)
FLAT_DATA = Segment(0x10, 0, 0xFFFFFFFF, 0xC093)

# Reload every segment register from the GDT, use the stack, exit with 7.
RELOAD_32 = b"\x66\xb8\x10\x00\x8e\xd8\x8e\xd0\x6a\x07\x58\xea" + struct.pack("<IH", LOAD + 18, 8) + b"\xe6\xf4"
RELOAD_64 = b"\x66\xb8\x10\x00\x8e\xd8\x8e\xd0\x6a\x08\x48\x8d\x05\x03\x00\x00\x00\x50\x48\xcb\xb0\x07\xe6\xf4"

GOOD: dict[str, tuple[str, str, int, bytes]] = {
    "rom": ("rom", "real", 0xFFFFFFF0, images.rom()),
    "boot sector": ("boot sector", "real", 0x7C00, images.boot_sector()),
    "boot sector and more": ("boot sector", "real", 0x7C00, images.boot_sector() + bytes(7 * 512)),
    "elf32": ("elf32", "protected", LOAD, images.elf(32, images.Segment(RELOAD_32))),
    "elf64": ("elf64", "64-bit", LOAD, images.elf(64, images.Segment(RELOAD_64))),
    "elf64 linked high": (
        "elf64", "64-bit", LOAD + 4,
        images.elf(64, images.Segment(bytes(4) + EXIT_7, linear=(1 << 64) - 0x80000000), entry=(1 << 64) - 0x7FFFFFFC),
    ),
    "elf32 without physical addresses": (
        "elf32", "protected", LOAD, images.elf(32, images.Segment(RELOAD_32, physical=0, linear=LOAD)),
    ),
    "multiboot elf32": ("multiboot", "protected", LOAD + 12, images.multiboot_elf(32)),
    "multiboot elf64": ("multiboot", "protected", LOAD + 12, images.multiboot_elf(64)),
    "multiboot wishes for video": ("multiboot", "protected", LOAD + 12, images.multiboot_elf(flags=7 | 1 << 20)),
    "multiboot flat": ("multiboot", "protected", LOAD + 32, images.multiboot_flat()),
    "multiboot flat, not from its start": (
        "multiboot", "protected", LOAD + 36,
        images.multiboot_flat(header=LOAD + 4, entry=LOAD + 36, before=bytes(8), bss_end=LOAD + 0x2000),
    ),
}  # fmt: skip


def put(folder: Path, data: bytes, name: str = "image") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def words(machine: Machine, at: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}I", machine.memory.read(at, 4 * count))


def text(machine: Machine, at: int) -> bytes:
    return machine.memory.read(at, 64).split(b"\0")[0]


@pytest.mark.parametrize(("kind", "mode", "entry", "data"), GOOD.values(), ids=GOOD)
def test_loads_and_runs(tmp_path: Path, kind: str, mode: str, entry: int, data: bytes) -> None:
    machine = Machine(memory=RAM)
    image = loaders.load(machine, str(put(tmp_path, data)))
    assert (image.kind, image.entry, image.size, machine.mode) == (kind, entry, len(data), mode)
    run = machine.run(budget=100)
    assert (run.stop.reason, run.status) == ("exit", 7)


@pytest.mark.parametrize(("at", "mode"), [(0x7C05, "real"), (0x20000, "real"), (2 * MIB, "protected")])
def test_flat_binary(tmp_path: Path, at: int, mode: str) -> None:
    machine = Machine(memory=RAM)
    image = loaders.load(machine, put(tmp_path, EXIT_7), at=at)
    assert (image.kind, image.entry, machine.mode) == ("flat", at, mode)
    if mode == "real":
        assert (machine.segment("cs").selector, machine.registers.rip) == (at >> 4, at & 15)
    assert machine.run(budget=100).status == 7


def test_boot_sector_starts_as_from_a_bios(tmp_path: Path) -> None:
    machine = Machine(memory=RAM)
    loaders.load(machine, put(tmp_path, images.boot_sector()))
    assert machine.segment("cs") == Segment(0, 0, 0xFFFF, 0x93)
    assert (machine.registers.rip, machine.registers.rdx & 0xFF, machine.registers.cr0 & 1) == (0x7C00, 0x80, 0)


def test_address_turns_a_boot_sector_into_a_flat_binary(tmp_path: Path) -> None:
    image = loaders.load(Machine(memory=RAM), put(tmp_path, images.boot_sector()), at=0x8000)
    assert image.kind == "flat"


@pytest.mark.parametrize("memory", [4 * MIB, 5 * GIB], ids=["4 MiB", "5 GiB"])
def test_elf64_maps_ram_and_four_gib_one_to_one(tmp_path: Path, memory: int) -> None:
    machine = Machine(memory=memory)
    image = loaders.load(machine, put(tmp_path, images.elf(64, images.Segment())))
    last = 6 * GIB if memory > 4 * GIB else 4 * GIB
    for linear in (0, 0x1234, LOAD, 3 * GIB + 5, last - 1):
        assert machine.memory.translate(linear) == linear
    assert machine.memory.translate(last) is None
    made = {what.what for what in image.ranges}
    assert made == {"ELF segment 0", "the GDT", "the page tables", "the stack"}
    assert machine.registers.rsp in {taken.end for taken in image.ranges if taken.what == "the stack"}
    assert machine.registers.rsp > min(memory, 3 * GIB) - 64 * 1024


def test_bss_is_zeroed_where_an_earlier_image_left_something(tmp_path: Path) -> None:
    machine = Machine(memory=RAM)
    machine.memory.write(LOAD, b"\xff" * 0x3000)
    loaders.load(machine, put(tmp_path, images.elf(32, images.Segment(memory_size=0x2000))))
    assert machine.memory.read(LOAD, 0x2001) == EXIT_7 + bytes(0x2000 - len(EXIT_7)) + b"\xff"


def test_bss_of_gigabytes_takes_no_memory_of_the_host(tmp_path: Path) -> None:
    machine = Machine(memory=2 * GIB)
    loaders.load(machine, put(tmp_path, images.elf(32, images.Segment(memory_size=GIB))))
    assert machine.run(budget=100).status == 7


# --- Multiboot, word by word -----------------------------------------------------------------------------------------


def test_multiboot_machine_state(tmp_path: Path) -> None:
    """Multiboot Specification 0.6.96, "Machine state"."""
    machine = Machine(memory=RAM)
    machine.registers.rflags = 1 << 17 | 1 << 9
    image = loaders.load(machine, put(tmp_path, images.multiboot_elf()))
    registers = machine.registers
    assert registers.rax == 0x2BADB002
    assert registers.rbx == image.information
    assert machine.segment("cs") == FLAT_CODE_32
    for name in ("ds", "es", "fs", "gs", "ss"):
        assert machine.segment(name) == FLAT_DATA
    assert (registers.cr0 & 1, registers.cr0 >> 31) == (1, 0)
    assert (registers.rflags >> 17 & 1, registers.rflags >> 9 & 1) == (0, 0)
    assert registers.rip == image.entry
    assert registers.cpl == 0


def test_a20_is_on(tmp_path: Path) -> None:
    stores = struct.pack("<2sII2sII", b"\xc7\x05", 0x200, 7, b"\xc7\x05", 0x200 + 2 * MIB + MIB, 0)
    code = stores + b"\xa0" + struct.pack("<I", 0x200) + b"\xe6\xf4"  # mov al, [0x200]; out 0xF4, al
    machine = Machine(memory=RAM)
    loaders.load(machine, put(tmp_path, images.multiboot_elf(code=code)))
    assert machine.run(budget=10).status == 7


def test_multiboot_information(tmp_path: Path) -> None:
    """Multiboot Specification 0.6.96, "Boot information format"."""
    modules = [put(tmp_path, b"one", "first"), put(tmp_path, b"2" * 5000, "second")]
    machine = Machine(memory=RAM)
    kernel = put(tmp_path, images.multiboot_elf())
    image = loaders.load(machine, kernel, modules=modules, command_line="root=none quiet")
    at = image.information
    assert at is not None
    assert at < 0xA0000
    info = words(machine, at, 30)
    assert info[0] == 1 << 0 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9
    assert info[1:3] == (640, (RAM - MIB) // 1024)
    assert info[3] == 0  # boot device: flag 1 is clear
    assert text(machine, info[4]) == b"root=none quiet"
    assert info[5] == 2
    first, second = words(machine, info[6], 4), words(machine, info[6] + 16, 4)
    assert info[7:11] == (0, 0, 0, 0)
    assert text(machine, info[16]) == b"emu"
    assert info[13:16] == (0, 0, 0)
    assert info[17:] == (0,) * 13

    for described, path in ((first, modules[0]), (second, modules[1])):
        start, end, string, reserved = described
        assert (start % 4096, reserved) == (0, 0)
        assert start >= LOAD + 16
        assert machine.memory.read(start, end - start) == path.read_bytes()
        assert text(machine, string) == path.name.encode()
    assert second[0] >= first[1]

    assert info[11] == 3 * 24
    ranges = [struct.unpack("<I2QI", machine.memory.read(info[12] + 24 * i, 24)) for i in range(3)]
    assert ranges == [
        (20, 0, 0xA0000, 1),
        (20, 0xA0000, MIB - 0xA0000, 2),
        (20, MIB, RAM - MIB, 1),
    ]


def test_memory_map_goes_on_above_four_gib(tmp_path: Path) -> None:
    machine = Machine(memory=5 * GIB)
    loaders.load(machine, put(tmp_path, images.multiboot_elf()))
    info = words(machine, machine.registers.rbx, 13)
    assert info[2] == (3 * GIB - MIB) // 1024
    assert struct.unpack("<I2QI", machine.memory.read(info[12] + 72, 24)) == (20, 4 * GIB, 2 * GIB, 1)


def test_information_stays_clear_of_a_low_kernel(tmp_path: Path) -> None:
    data = images.elf(
        32, images.Segment(images.multiboot_header() + EXIT_7, 0x80000, memory_size=0x20000), entry=0x8000C
    )
    machine = Machine(memory=RAM)
    image = loaders.load(machine, put(tmp_path, data))
    assert image.information is not None
    assert image.information < 0x80000
    assert machine.run(budget=100).status == 7


# --- NASM ------------------------------------------------------------------------------------------------------------

needs_nasm = pytest.mark.skipif(shutil.which("nasm") is None, reason="nasm is not installed")
MULTIBOOT_SOURCE = """
        org 0x100000
        bits 32
        align 4
header: dd 0x1BADB002, 1 << 16, -(0x1BADB002 + (1 << 16)), header, header, 0, 0, start
start:  mov al, 7
        out 0xF4, al
"""
SOURCES = {
    "boot sector": "org 0x7C00\nmov al, 7\nout 0xF4, al\ntimes 510 - ($ - $$) db 0\ndw 0xAA55\n",
    "rom": "times 4080 db 0\nbits 16\nmov al, 7\nout 0xF4, al\ntimes 4096 - ($ - $$) db 0\n",
    "multiboot": MULTIBOOT_SOURCE,
}


@needs_nasm
@pytest.mark.parametrize("kind", SOURCES)
def test_source_is_assembled_and_loaded_as_what_it_is(tmp_path: Path, kind: str) -> None:
    machine = Machine(memory=RAM)
    source = put(tmp_path, SOURCES[kind].encode(), "program.asm")
    image = loaders.load(machine, source)
    assert (image.kind, image.path) == (kind, source)
    assert machine.run(budget=100).status == 7


@needs_nasm
def test_source_goes_to_an_address(tmp_path: Path) -> None:
    machine = Machine(memory=RAM)
    loaders.load(machine, put(tmp_path, b"mov al, 7\nout 0xF4, al\n", "flat.asm"), at=0x1000)
    assert machine.run(budget=100).status == 7


@needs_nasm
def test_a_name_may_begin_with_a_minus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, SOURCES["rom"].encode(), "-v.asm")
    monkeypatch.chdir(tmp_path)
    assert loaders.load(Machine(memory=RAM), "-v.asm").kind == "rom"


@needs_nasm
def test_guest_includes_are_found_from_anywhere_and_rounds_arrive(tmp_path: Path) -> None:
    source = b'%include "lib/machine.inc"\nmov al, ROUNDS\nout EXIT_PORT, al\ntimes 510 - ($ - $$) db 0\ndw 0xAA55\n'
    machine = Machine(memory=RAM)
    loaders.load(machine, put(tmp_path, source, "mine.asm"), at=0x7C00, rounds=42)
    assert machine.run(budget=100).status == 42
