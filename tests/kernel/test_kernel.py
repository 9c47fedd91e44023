"""The Multiboot kernel in C++, built here: the same image on emu and, where installed, on QEMU."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from emu import Machine, loaders

HERE = Path(__file__).parent
MECHANISMS = ["int_gate", "call_gate", "syscall", "sysenter"]
QEMU = shutil.which("qemu-system-x86_64")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("kernel") / "kernel.elf"
    subprocess.run(["sh", str(HERE / "build.sh"), str(out)], check=True, capture_output=True)
    return out


def rows(text: str) -> dict[str, dict[str, str]]:
    return {row["mechanism"]: row for row in csv.DictReader(io.StringIO(text))}


def test_measures_four_mechanisms_and_leaves_through_the_keyboard_controller(kernel: Path) -> None:
    machine = Machine(memory=64 << 20)
    loaders.load(machine, kernel)
    end = machine.run(budget=50_000_000)
    assert end.stop.reason == "reset"
    measured = rows(end.output.decode())
    assert list(measured) == MECHANISMS
    assert {row["rounds"] for row in measured.values()} == {str(128 * 1024)}


def test_measures_the_published_figures_under_the_skylake_profile(kernel: Path) -> None:
    """x86.lol's four figures, by the guest's own clock; its loop of DEC and JNZ is in the measurement."""
    machine = Machine(memory=64 << 20, profile="skylake")
    loaders.load(machine, kernel)
    measured = rows(machine.run(budget=50_000_000).output.decode())
    published = {"int_gate": 614, "call_gate": 456, "syscall": 76, "sysenter": 73}
    loop = 1.25
    for mechanism, cycles in published.items():
        assert float(measured[mechanism]["cycles_per_round"]) == pytest.approx(cycles + loop, rel=0.005)


@pytest.mark.peer
@pytest.mark.skipif(QEMU is None, reason="qemu-system-x86_64 is not installed")
def test_qemu_runs_the_same_image(kernel: Path) -> None:
    assert QEMU is not None
    command = [QEMU, "-kernel", str(kernel), "-display", "none", "-debugcon", "stdio", "-no-reboot"]
    command += ["-cpu", "max,vendor=GenuineIntel"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    measured = rows(done.stdout.decode())
    assert list(measured) == MECHANISMS
    assert {row["rounds"] for row in measured.values()} == {str(128 * 1024)}
