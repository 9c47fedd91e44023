"""Bad images are refused with one sentence that says what is wrong, and the machine stays as it was."""

from __future__ import annotations

import os
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu import EmuError, Machine, loaders
from emu.loaders import ImageError

from . import images
from .images import EXIT_7, LOAD, Segment

MIB, GIB = 1 << 20, 1 << 30
RAM = 2 * MIB
OBJECT, SHARED, CORE = 1, 3, 4
ARM = 40
INTERP, NOTE = 3, 4


def elf(*segments: Segment, bits: int = 32, **fields: int) -> bytes:
    return images.elf(bits, *(segments or (Segment(),)), **fields)


def kludge(**fields: Any) -> bytes:
    return images.multiboot_flat(**fields)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "nothing known": (b"hello", "its 5 bytes are no ELF file, no Multiboot kernel"),
    "only the ELF magic": (b"\x7fELF", "its ELF class is 0"),
    "ELF class": (elf(elfclass=3), "its ELF class is 3"),
    "ELF header cut off": (elf()[:40], "it has 40 bytes, but the ELF header alone has 52"),
    "ELF64 header cut off": (elf(bits=64)[:60], "it has 60 bytes, but the ELF header alone has 64"),
    "big-endian": (elf(order=2), "byte order is 2, but x86 is little-endian"),
    "ARM": (elf(machine=ARM), "for machine EM_ARM, but 32-bit code must be for EM_386"),
    "unknown machine": (elf(machine=0xFFFE), "for machine 65534"),
    "x86-64 in ELF32": (elf(machine=62), "32-bit ELF file for machine EM_X86_64"),
    "object file": (elf(type=OBJECT), "of type ET_REL, an object file; link it first"),
    "position-independent": (elf(type=SHARED), "-no-pie"),
    "core dump": (elf(type=CORE), "a core dump"),
    "odd type": (elf(type=77), "of type 77, not an executable"),
    "no program headers": (elf(phnum=0), "it has no program headers"),
    "too many program headers": (elf(phnum=0xFFFF), "it has 65535 program headers"),
    "size of program headers": (elf(phentsize=8), "have 8 bytes, but must have 32"),
    "program headers past the end": (elf(phoff=0xFFFFFFF0), "lie at offset 0xfffffff0-0x10000000f, but it has 0x58"),
    "program headers far past the end": (elf(bits=64, phoff=(1 << 64) - 1), "the file is truncated"),
    "nothing to load": (elf(Segment(kind=NOTE)), "no PT_LOAD segment"),
    "empty segment": (elf(Segment(b"")), "no PT_LOAD segment"),
    "dynamic linker": (elf(Segment(), Segment(b"/lib/ld.so\0", kind=INTERP)), "needs a dynamic linker"),
    "more in file than in memory": (elf(Segment(memory_size=2)), "has 0x4 bytes in the file, but only 0x2 in memory"),
    "contents past the end": (elf(Segment(offset=0x5000)), "has 0x4 bytes from offset 0x5000 on, but the file has"),
    "contents far past the end": (elf(Segment(offset=(1 << 64) - 1), bits=64), "segment 0 has 0x4 bytes from offset"),
    "huge contents": (elf(Segment(file_size=0xFFFFFFFF)), "0xffffffff bytes from offset"),
    "huge memory": (elf(Segment(memory_size=0xFFFFFFFF)), "segment 0 is to lie at 0x100000-0x1000ffffe, but RAM"),
    "huge memory, 64 bits": (elf(Segment(memory_size=(1 << 64) - 1), bits=64), "but RAM is at 0x0-0x1fffff"),
    "outside RAM": (elf(Segment(physical=0x40000000), entry=0x40000000), "is to lie at 0x40000000-0x40000003"),
    "overlap": (
        elf(Segment(memory_size=0x1001), Segment(physical=LOAD + 0x1000)),
        "ELF segment 1 is to lie at 0x101000-0x101003, but ELF segment 0 lies at 0x100000-0x101000",
    ),
    "entry outside": (elf(entry=0x300000), "its entry 0x300000 is in none of its segments (0x100000-0x100003)"),
    "entry just behind": (elf(entry=LOAD + 4), "its entry 0x100004 is in none"),
    "entry above 4 GiB": (elf(Segment(physical=4 * GIB), bits=64, entry=4 * GIB), "0x100000000, above 4 GiB"),
    "no room for page tables": (
        elf(Segment(physical=4096, memory_size=RAM - 3 * 4096), bits=64, entry=4096), "are free for the page tables",
    ),
    "no room for a stack": (elf(Segment(physical=4096, memory_size=RAM - 8192), entry=4096), "are free for the stack"),
    "Multiboot checksum": (
        images.multiboot_header(checksum=1) + EXIT_7,
        "its Multiboot header at offset 0x0 has checksum 0x1, but with flags 0x0 it must be 0xe4524ffe",
    ),
    "Multiboot checksum in ELF": (elf(Segment(images.multiboot_header(3, checksum=5))), "has checksum 0x5"),
    "Multiboot header cut off": (images.multiboot_header()[:8], "goes on past the first 8 bytes"),
    "Multiboot addresses cut off": (images.multiboot_header(1 << 16, 1, 2), "has addresses (flag 16), which go on"),
    "Multiboot without addresses": (images.multiboot_header() + EXIT_7, "no addresses (flag 16 is clear)"),
    "Multiboot demands": (images.multiboot_elf(flags=0x8001), "of which 0x8000 are unknown"),
    "Multiboot 2": (
        elf(Segment(bytes(4) + struct.pack("<4I", 0xE85250D6, 0, 16, -(0xE85250D6 + 16) & 0xFFFFFFFF))),
        "it is a Multiboot 2 kernel",
    ),
    "load above header": (kludge(load=LOAD + 4), "load_addr 0x100004 is above header_addr 0x100000"),
    "load before file": (kludge(load=LOAD - 4), "is 0x4 bytes before header_addr 0x100000, but the header"),
    "load end below load": (kludge(load_end=LOAD - 8), "load_end_addr 0xffff8 is not above load_addr"),
    "load end past file": (kludge(load_end=LOAD + 0x1000), "asks for 0x1000 bytes from offset 0x0, but the file"),
    "bss end below load end": (kludge(bss_end=LOAD + 8), "bss_end_addr 0x100008 is below"),
    "huge bss": (kludge(bss_end=0xFFFFFFFF), "the kernel is to lie at 0x100000-0xfffffffe, but RAM"),
    "Multiboot entry outside": (kludge(entry=LOAD - 1), "entry_addr 0xfffff is outside what is loaded"),
    "Multiboot outside RAM": (kludge(header=3 * GIB, load=3 * GIB, entry=3 * GIB + 32), "but RAM is at 0x0-0x1fffff"),
    "Multiboot ELF entry": (images.multiboot_elf(entry=0), "its entry 0x0 is in none"),
    "disk image": (images.boot_sector() + bytes(1474560 - 512), "a disk image of 1474560 bytes"),
    "ROM too large": (bytes(16 * MIB + 4096), "its 16781312 bytes are no ELF file"),
}  # fmt: skip


def put(folder: Path, data: bytes, name: str = "image") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refusal(path: Path, machine: Machine | None = None, **options: Any) -> str:
    with pytest.raises(ImageError) as caught:
        loaders.load(machine or Machine(memory=RAM), path, **options)
    return str(caught.value)


@pytest.mark.parametrize(("data", "fragment"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_image(tmp_path: Path, data: bytes, fragment: str) -> None:
    machine = Machine(memory=RAM)
    machine.memory.write(LOAD, b"as it was")
    machine.registers.rbx = 99
    said = refusal(put(tmp_path, data), machine)
    assert fragment in said
    assert re.fullmatch(r"image: [^\n]+[^.\n]", said)
    assert "; " in said  # what is wrong; what to do
    assert machine.memory.read(LOAD, 9) == b"as it was"
    assert (machine.registers.rbx, machine.mode) == (99, "real")


def test_what_is_no_file(tmp_path: Path) -> None:
    assert "there is no file" in refusal(tmp_path / "nothing")
    assert "it is a folder" in refusal(tmp_path)
    assert "cannot be looked up" in refusal(Path("nul\0"))
    assert "cannot be looked up" in refusal(tmp_path / ("x" * 5000))
    assert "cannot be looked up" in refusal(put(tmp_path, b"x") / "inside")
    assert "a device or a pipe" in refusal(Path("/dev/zero"))
    os.mkfifo(tmp_path / "pipe")
    assert "a device or a pipe" in refusal(tmp_path / "pipe")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = put(tmp_path, b"secret")
    path.chmod(0)
    assert "cannot be read (Permission denied)" in refusal(path)


@pytest.mark.parametrize(
    ("at", "fragment"),
    [
        (-1, "cannot go to address -0x1"),
        (4 * GIB, "a flat binary starts below 4 GiB"),
        (RAM - 2, "the image is to lie at 0x1ffffe-0x200001"),
        (3 * GIB, "but RAM is at"),
    ],
)
def test_flat_binary_to_a_bad_address(tmp_path: Path, at: int, fragment: str) -> None:
    assert fragment in refusal(put(tmp_path, EXIT_7), at=at)


def test_options_that_do_not_belong(tmp_path: Path) -> None:
    module = put(tmp_path, b"x", "module")
    assert "says itself where it goes" in refusal(put(tmp_path, elf()), at=0x1000)
    assert "says itself where it goes" in refusal(put(tmp_path, kludge()), at=0x1000)
    assert "are for Multiboot kernels" in refusal(put(tmp_path, images.rom()), modules=[module])
    assert "are for Multiboot kernels" in refusal(put(tmp_path, elf()), command_line="quiet")
    assert "rounds are for .asm files" in refusal(put(tmp_path, elf()), rounds=3)
    assert "rounds must be from 1" in refusal(put(tmp_path, b"nop", "x.asm"), rounds=0)


def test_modules_that_cannot_be_had(tmp_path: Path) -> None:
    kernel = put(tmp_path, images.multiboot_elf())
    assert "there is no file" in refusal(kernel, modules=[tmp_path / "none"])
    large = put(tmp_path, bytes(RAM), "large")
    assert "no 2097152 bytes are free for module large" in refusal(kernel, modules=[large])
    assert "zero character" in refusal(kernel, command_line="a\0b")
    loaders.load(Machine(memory=RAM), kernel, command_line="lone surrogate \ud800")
    assert "are free for the Multiboot information" in refusal(kernel, command_line="a" * MIB)


def test_small_ram(tmp_path: Path) -> None:
    for data in (images.boot_sector(), elf(), elf(bits=64), kludge()):
        assert "RAM is at 0x0-0xfff" in refusal(put(tmp_path, data), Machine(memory=4096))
    loaders.load(Machine(memory=4096), put(tmp_path, images.rom()))


def test_processor_without_64_bit_mode(tmp_path: Path) -> None:
    machine = Machine(memory=RAM, profile="80386")
    assert "has no 64-bit mode" in refusal(put(tmp_path, elf(bits=64)), machine)


@pytest.mark.skipif(shutil.which("nasm") is None, reason="nasm is not installed")
def test_nasm_errors_come_with_file_and_line(tmp_path: Path) -> None:
    path = put(tmp_path, b"bits 16\nmov al, 7\nfrobnicate ax\n", "typo.asm")
    assert f"{path}:3: error:" in refusal(path)
    assert "lib/none.inc" in refusal(put(tmp_path, b'%include "lib/none.inc"\n', "missing.asm"))
    assert "makes 0 bytes" in refusal(put(tmp_path, b"; nothing\n", "nothing.asm"))


def test_nasm_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refusal(put(tmp_path, b"nop\n", "x.asm"))
    assert "`apt install nasm` or `brew install nasm`" in said


# --- mutants ---------------------------------------------------------------------------------------------------------

SEEDS = [
    elf(Segment(), Segment(bytes(64), physical=LOAD + 0x1000, memory_size=0x2000)),
    elf(Segment(), Segment(bytes(64), physical=LOAD + 0x1000, memory_size=0x2000), bits=64),
    images.multiboot_elf(32),
    images.multiboot_elf(64),
    kludge(load_end=LOAD + 36, bss_end=LOAD + 0x1000),
]
EXTREMES = [0, 1, 2, 4, 0x1F, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1, LOAD, RAM - 1, RAM, 3 * GIB]
PATCH = st.tuples(
    st.integers(0, 200),
    st.sampled_from([1, 2, 4, 8]),
    st.one_of(st.sampled_from(EXTREMES), st.integers(0, (1 << 64) - 1)),
)
MACHINE = Machine(memory=RAM)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.sampled_from(SEEDS), patches=st.lists(PATCH, min_size=1, max_size=4), cut=st.integers(0, 400))
def test_mutants_are_loaded_or_refused(
    tmp_path: Path, seed: bytes, patches: list[tuple[int, int, int]], cut: int
) -> None:
    data = bytearray(seed)
    for offset, width, value in patches:
        at = offset % len(data) // width * width
        data[at : at + width] = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    path = put(tmp_path, bytes(data[: cut or None] if cut < 200 else data))
    try:
        image = loaders.load(MACHINE, path)
    except EmuError as error:
        said = str(error)
    else:
        said = f"image: {image.kind}"
        assert all(0 <= taken.start < taken.end <= RAM for taken in image.ranges)
        MACHINE.run(budget=10)
    assert re.fullmatch(r"image: [^\n]+", said)
