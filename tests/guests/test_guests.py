"""Every guest does what its header says: on emu, and unmodified on QEMU where that is installed.

The self-checks inside the guests are the expectations; QEMU running the same ROM shows that they are not ours alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from emu import _core

ROOT = Path(__file__).parents[2]
GUESTS = sorted((ROOT / "guests").glob("*.asm"))
BROKEN = sorted((ROOT / "guests/broken").glob("*.asm"))
QEMU = shutil.which("qemu-system-x86_64")
CHECK_NAMES = [str(check["name"]) for check in _core.checks()]
FAULT = _core.record_kinds().index("fault")
VECTORS = {"#UD": 6, "#TS": 10, "#NP": 11, "#SS": 12, "#GP": 13, "#PF": 14}

# The check that notices each classic bug first, with the error code it names (from the headers' explanations).
CULPRITS = {
    "error_code_not_popped": ("return_target.selector_in_table", 0x1238),
    "gdt_reload_bad_limit": ("far_target.selector_in_table", 0x08),
    "idt_missing": ("idt.entry_within_limit", 0x402),
    "int_gate_dpl0": ("idt.gate_dpl_permits", 0x402),
    "iret_cs_dpl0": ("return_target.dpl_equals_rpl", 0x08),
    "iret_ss_rpl0": ("stack_return.rpl_equals_cpl", 0x20),
    "iretd_for_iretq": ("return_target.selector_not_null", 0),
    "ltr_busy": ("task_load.is_available_tss", 0x38),
    "noncanonical_sysret": ("sysret.pointer_canonical", 0),
    "tss_rsp0_unset": ("paging.present", 2),
    "user_page_supervisor": ("paging.user_allowed", 5),
}
# A guest whose subject is how an exception is handled raises that one first.
PROVOKED = {"error_code_not_popped": 1}


def header(path: Path) -> dict[str, str]:
    lines = re.findall(r"^; ([a-z-]+): +(.*)$", path.read_text(), re.MULTILINE)
    return dict(lines)


def image(path: Path, folder: Path, rounds: int | None = None) -> Path:
    if shutil.which("nasm") is None:
        pytest.skip("nasm is not installed")
    out = folder / f"{path.stem}.bin"
    options = [f"-DROUNDS={rounds}"] if rounds else []
    command = ["nasm", "-f", "bin", "-Werror", "-I", f"{ROOT}/guests/", *options, "-o", str(out), str(path)]
    subprocess.run(command, check=True)
    return out


def run(rom: Path, level: str = "off", model: dict[str, object] | None = None) -> tuple[_core.Machine, _core.RunEnd]:
    machine = _core.Machine(16 << 20)
    if model:
        machine.set_model(model)
    machine.load_rom(rom.read_bytes())
    return machine, machine.run(2_000_000, level, 1 << 16)


@pytest.mark.parametrize("path", GUESTS, ids=lambda p: p.stem)
def test_guest_ends_as_its_header_says(path: Path, tmp_path: Path) -> None:
    _, end = run(image(path, tmp_path))
    assert (end.reason, end.detail, end.output) == ("exit", int(header(path)["exit"]), b"ok\n")


@pytest.mark.peer
@pytest.mark.skipif(QEMU is None, reason="qemu-system-x86_64 is not installed")
@pytest.mark.parametrize("path", GUESTS, ids=lambda p: p.stem)
def test_qemu_agrees(path: Path, tmp_path: Path) -> None:
    assert QEMU is not None
    rom = image(path, tmp_path)
    command = [QEMU, "-bios", str(rom), "-m", "16", "-display", "none", "-debugcon", "stdio"]
    command += ["-cpu", "max,vendor=GenuineIntel", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (int(header(path)["exit"]) * 2 + 1, b"ok\n")


@pytest.mark.parametrize("path", BROKEN, ids=lambda p: p.stem)
def test_broken_guest_fails_at_the_check_that_names_its_bug(path: Path, tmp_path: Path) -> None:
    _, end = run(image(path, tmp_path))
    expected = header(path)["exit"]
    faults = end.records[end.records["kind"] == FAULT][PROVOKED.get(path.stem, 0) :]
    if expected == "0":
        assert (end.reason, end.detail) == ("exit", 0)
        assert len(faults) == 0
        return
    check, code = CULPRITS[path.stem]
    assert (CHECK_NAMES[faults[0]["id"]], int(faults[0]["b"])) == (check, code)
    if expected == "shutdown":
        assert end.reason == "shutdown"
    else:
        named = re.fullmatch(r"(#[A-Z]{2})\((0x[0-9A-Fa-f]+)\)", expected)
        assert named is not None
        assert (VECTORS[named[1]], int(named[2], 16)) == (int(faults[0]["a"]), code)
        assert (end.reason, end.detail) == ("exit", 0x40 + VECTORS[named[1]])


def test_sysret_bug_sleeps_on_intel_and_bites_on_amd(tmp_path: Path) -> None:
    rom = image(ROOT / "guests/broken/sysret_star_rpl.asm", tmp_path)
    assert run(rom)[1].detail == 0
    _, end = run(rom, model={"vendor": "amd", "physical_address_bits": 48})
    fault = end.records[end.records["kind"] == FAULT][0]
    assert (int(fault["a"]), int(fault["b"])) == (13, 0x20)
    assert CHECK_NAMES[fault["id"]] == "stack_return.rpl_equals_cpl"


@pytest.mark.parametrize("path", GUESTS, ids=lambda p: p.stem)
def test_tracing_changes_neither_state_nor_counts(path: Path, tmp_path: Path) -> None:
    rom = image(path, tmp_path)
    silent, recorded = run(rom, "off"), run(rom, "checks")
    assert (silent[1].counts == recorded[1].counts).all()
    assert silent[1].instructions == recorded[1].instructions
    for name in silent[0].register_names():
        assert silent[0].get(name) == recorded[0].get(name), name
