"""The guests that come with emu: small NASM programs, one mechanism each, with their assembled images.

In a checkout they are read from `guests/`, in an installed package from `emu/guests_data/`, where they lie assembled,
so that nasm is needed only to build one with another number of rounds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from emu.errors import EmuError

NASM_MISSING = "nasm is not installed, and it is needed to assemble {}: install it (Debian, Ubuntu: apt install nasm)"
_FIELD = re.compile(r"^; ([a-z-]+): +(.*)$")
_MORE = re.compile(r"^; {12}(\S.*)$")


class GuestError(EmuError):
    """A guest that does not exist or cannot be assembled."""


@dataclass(frozen=True)
class Guest:
    """A guest and what its header says; the fields are described in guests/README.md."""

    name: str
    source: Path
    header: dict[str, str]

    @property
    def question(self) -> str:
        return self.header.get("question", "")

    @property
    def mechanism(self) -> str:
        return self.header.get("mechanism", "")

    @property
    def bits(self) -> int:
        return int(self.header.get("bits", "0"))

    @property
    def published(self) -> str | None:
        """Id of the published figure that measures the same thing, if there is one."""
        return self.header.get("published")


def folder() -> Path:
    """Where the sources are: the checkout's `guests/`, or what the package carries."""
    checkout = Path(__file__).parents[3] / "guests"
    if (checkout / "lib").is_dir():
        return checkout
    return Path(str(resources.files("emu") / "guests_data"))


def names() -> list[str]:
    """The guests of the catalogue, without the broken ones."""
    return sorted(path.stem for path in folder().glob("*.asm"))


def find(name: str) -> Guest:
    """A guest by its name; "broken/NAME" and "bench/NAME" lie in folders of their own. GuestError if there is none."""
    source = folder() / f"{name}.asm"
    if not re.fullmatch(r"[a-z0-9_]+(/[a-z0-9_]+)?", name) or not source.is_file():
        raise GuestError(f"there is no guest {name!r}: `emu guests` lists them")
    return Guest(name, source, header(source))


def header(source: Path) -> dict[str, str]:
    """The fields of the comment that opens a guest; values that go on over several lines are joined."""
    fields: dict[str, str] = {}
    last = ""
    for line in source.read_text("utf-8").splitlines():
        if field := _FIELD.match(line):
            last = field[1]
            fields[last] = field[2].strip()
        elif (more := _MORE.match(line)) and last:
            fields[last] += " " + more[1].strip()
        elif not line.startswith(";"):
            break
        else:
            last = ""
    return fields


def build(name: str, rounds: int | None = None) -> bytes:
    """The ROM image of a guest, with another number of round trips if asked for. GuestError if that is impossible."""
    guest = find(name)
    packaged = Path(str(resources.files("emu") / "guests_data" / f"{name}.bin"))
    if rounds is None and shutil.which("nasm") is None and packaged.is_file():
        return packaged.read_bytes()
    options = () if rounds is None else (f"-DROUNDS={rounds}",)
    return assemble(guest.source, *options)


def assemble(source: Path, *options: str) -> bytes:
    """The flat binary that nasm makes of a source, which may include the guests' lib/*.inc.

    GuestError with nasm's own messages, file and line included, if it does not assemble.
    """
    nasm = shutil.which("nasm")
    if nasm is None:
        raise GuestError(NASM_MISSING.format(source.name))
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary, "out.bin")
        include = [f"-I{place}/" for place in (source.parent, folder())]
        command = [nasm, "-f", "bin", *include, *options, "-o", str(out), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
        except subprocess.TimeoutExpired as error:
            raise GuestError(
                f"nasm took more than a minute on {source.name}; look for a %rep that does not end"
            ) from error
        if done.returncode != 0 or not out.is_file():
            raise GuestError(f"nasm cannot assemble {source.name}:\n{done.stderr.strip()}")
        return out.read_bytes()
