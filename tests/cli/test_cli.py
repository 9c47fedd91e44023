"""The command line, as a user meets it: statuses, JSON, one sentence for bad input, the autopsy last."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from emu.cli import main

if TYPE_CHECKING:
    from click.testing import Result

BROKEN = Path(__file__).parents[2] / "guests/broken"


def emu(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


def program(folder: Path, name: str, code: str) -> Path:
    """A boot sector from a few lines of NASM."""
    path = folder / name
    path.write_text(f"bits 16\norg 0x7c00\n{code}\ntimes 510 - ($ - $$) db 0\ndw 0xAA55\n")
    return path


def test_a_guest_gives_its_own_status(tmp_path: Path) -> None:
    assert emu("run", program(tmp_path, "seven.asm", "mov al, 7\nout 0xF4, al")).exit_code == 7


def test_statuses_by_the_reason_of_the_stop(tmp_path: Path) -> None:
    assert emu("run", program(tmp_path, "loop.asm", "jmp $"), "--budget", "1000").exit_code == 124
    assert emu("run", program(tmp_path, "reset.asm", "mov al, 0xFE\nout 0x64, al")).exit_code == 0
    assert emu("run", program(tmp_path, "halt.asm", "cli\nhlt")).exit_code == 0
    assert emu("run", program(tmp_path, "fpu.asm", "fninit")).exit_code == 126
    assert emu("run", BROKEN / "iret_cs_dpl0.asm").exit_code == 125


def test_what_is_not_modelled_is_named(tmp_path: Path) -> None:
    assert "x87" in emu("run", program(tmp_path, "fpu.asm", "fninit")).output


def test_json_of_a_run() -> None:
    result = emu("run", "int_gate_64", "--json", "--trace", "transitions")
    report = json.loads(result.output)
    assert {"stop", "instructions", "cycles", "output", "transitions"} <= set(report)
    assert report["output"] == "ok\n"
    assert len(report["transitions"]) > 2 * 16


def test_the_last_lines_say_why_it_shut_down() -> None:
    lines = emu("run", BROKEN / "iret_cs_dpl0.asm").output.strip().splitlines()
    story = lines[-5:]
    assert any("iret" in line for line in story)
    assert any("DPL" in line and "RPL" in line for line in story)
    assert any("#GP(0x0008)" in line for line in story)
    assert "shut" in lines[-1]


def test_a_fault_that_the_guest_took_is_named_if_the_run_ends_badly() -> None:
    lines = emu("run", BROKEN / "error_code_not_popped.asm").output.strip().splitlines()
    assert lines[-1].startswith("last fault: #GP")
    assert "last fault" not in emu("run", "page_fault_64").output


def test_help_has_the_table_of_statuses() -> None:
    assert "  124  the instruction budget is used up\n" in emu("run", "--help").output


def test_trace_shows_checks_with_their_values() -> None:
    output = emu("run", "int_gate_64", "--trace", "checks").output
    assert "idt.gate_dpl_permits" in output
    assert "CPL=3, DPL=3" in output


def test_compare_json_has_a_row_per_mechanism() -> None:
    rows = json.loads(emu("compare", "--json").output)
    by_guest = {row["guest"]: row for row in rows}
    for row in rows:
        assert {"mechanism", "bits", "instructions", "checks", "cycles", "parts", "published"} <= set(row)
    assert by_guest["int_gate_64"]["published"] == 614
    assert by_guest["syscall_64"]["reads"] == 0  # no descriptor is read: that is what makes it fast


def test_compare_writes_both_charts(tmp_path: Path) -> None:
    result = emu("compare", "--output", tmp_path)
    assert result.exit_code == 0
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "compare.svg").read_text()
    assert "614" in result.output


@pytest.mark.parametrize("columns", [79, 160])
def test_compare_is_legible_in_narrow_and_wide_terminals(tmp_path: Path, columns: int) -> None:
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(main, ["compare", "--output", str(tmp_path)])
    assert "call gate, 2 parameters" in result.output
    assert "segment_refill 254" in result.output
    assert "614 +0.0%" in result.output
    assert "…" not in result.output


def test_compare_that_cannot_write_its_chart(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    result = emu("compare", "--output", tmp_path / "file/folder")
    assert result.exit_code == 2
    assert "cannot write the chart" in result.output.splitlines()[-1]


def test_doc() -> None:
    assert "CPL <= DPL" in emu("doc", "idt.gate_dpl_permits").output
    entries = json.loads(emu("doc", "--json").output)
    assert {"name", "mechanism", "sentence", "citation", "fault"} <= set(entries[0])
    assert "idt.gate_present" in emu("doc", "idt.gate_pre").output  # a near miss is told the name


def test_guests_are_listed_with_their_questions() -> None:
    output = emu("guests").output
    assert "syscall_64" in output
    assert "?" in output


def test_explain_one_transition() -> None:
    assert "syscall.enabled" in emu("explain", "syscall_64").output
    first = emu("explain", "syscall_64", "--transition", "1").output
    assert first.startswith("far JMP 0x0008")  # out of the reset code, into the first protected-mode segment
    assert "syscall.enabled" not in first
    refused = emu("explain", "syscall_64", "--transition", "100000")
    assert refused.exit_code == 2
    assert "there is no transition 100000" in refused.output


BAD: list[tuple[list[str], str]] = [
    (["run", "no_such_guest"], "there is no guest"),
    (["run", "/no/such/file.elf"], "file.elf"),
    (["run", "/no/such/kernel"], "there is no file"),
    (["run", "syscall_64", "--cpu", "i8008"], "i8008"),
    (["run", "syscall_64", "--memory", "5"], "4096"),
    (["run", "syscall_64", "--append", "root=/dev/null"], "built-in guest"),
    (["run", "syscall_64", "--at", "0x7C00"], "built-in guest"),
    (["compare", "--cpu", "no.toml"], "no.toml"),
    (["doc", "nonsense.check"], "there is no check"),
]


@pytest.mark.parametrize(("arguments", "fragment"), BAD)
def test_bad_input_is_one_sentence_and_a_status(arguments: list[str], fragment: str) -> None:
    result = emu(*arguments)
    assert result.exit_code == 2
    assert fragment in result.output
    assert len(result.output.strip().splitlines()) == 1


@pytest.mark.parametrize("option", [("--memory", "1T"), ("--memory", "²"), ("--budget", "ten"), ("--at", "")])
def test_bad_numbers_are_usage_errors(option: tuple[str, str]) -> None:
    result = emu("run", "syscall_64", *option)
    assert result.exit_code == 2
    assert f"Invalid value for '{option[0]}'" in result.output


def test_nasm_errors_come_as_nasm_gives_them(tmp_path: Path) -> None:
    source = tmp_path / "wrong.asm"
    source.write_text("bits 64\nnop\nmov eax, nowhere_to_be_found\n")
    result = emu("run", source)
    assert result.exit_code == 2
    assert "wrong.asm:3:" in result.output
    assert "nowhere_to_be_found" in result.output


def test_as_a_process_without_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from emu.cli import main; main()", "run", "/no/such/file"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
