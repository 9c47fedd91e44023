"""Counts, over the whole suite, which checks of the catalogue were seen to hold and to fail in real runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the test kit: `from kit.scene import Scene`

from emu import _core

CHECKS = [str(check["name"]) for check in _core.checks()]
KIND_CHECK = _core.record_kinds().index("check")
SEEN = pytest.StashKey[set[tuple[str, bool]]]()
_seen: set[tuple[str, bool]] = set()


def _watch() -> None:
    """Every run of every machine in the suite reports the checks in its trace."""
    plain_run = _core.Machine.run

    def run(self: _core.Machine, *args: object, **options: object) -> _core.RunEnd:
        end = plain_run(self, *args, **options)  # type: ignore[arg-type]
        records = end.records
        made = records[records["kind"] == KIND_CHECK]
        for pair in {(int(i), bool(h)) for i, h in zip(made["id"], made["held"], strict=True)}:
            _seen.add((CHECKS[pair[0]], pair[1]))
        return end

    _core.Machine.run = run  # type: ignore[method-assign]


_watch()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SEEN] = set()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    worker = getattr(session.config, "workeroutput", None)
    if worker is not None:  # pytest-xdist: hand what this worker saw to the controller
        worker["checks_seen"] = sorted(_seen)
        return
    session.config.stash[SEEN] |= _seen
    # A run of selected tests says nothing about the catalogue: only the whole suite must see every check both ways.
    whole = session.config.args == [str(Path(__file__).parent)] or session.config.args == ["tests"]
    if whole and not session.config.option.keyword and session.exitstatus == 0 and _missing(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)  # a hook of pytest-xdist
def pytest_testnodedown(node: object, error: object) -> None:
    output = getattr(node, "workeroutput", {})
    config: pytest.Config = node.config  # type: ignore[attr-defined]
    config.stash[SEEN] |= {(str(name), bool(held)) for name, held in output.get("checks_seen", [])}


def _missing(config: pytest.Config) -> list[str]:
    seen = config.stash[SEEN]
    return [
        f"{name} was never seen to {'hold' if held else 'fail'}"
        for name in CHECKS
        for held in (True, False)
        if (name, held) not in seen
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seen = config.stash[SEEN]
    both = sum((name, True) in seen and (name, False) in seen for name in CHECKS)
    missing = _missing(config)
    if (missing and config.option.verbose > 0) or 0 < len(missing) <= 40:
        for line in missing:
            terminalreporter.write_line(line)
    terminalreporter.write_line(f"checks seen both ways: {both} of {len(CHECKS)}")
