"""From NASM source to the bytes of an image."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import emu

from .source import ImageError, Source

SUFFIX = ".asm"
TIMEOUT = 60
"""Seconds. A source may contain an endless %rep."""
LARGEST_OUTPUT = 256 << 20
"""Bytes. Larger output is a mistake in TIMES or RESB."""


def assemble(path: Path, rounds: int | None = None) -> Source:
    """`nasm -f bin`. `rounds` defines ROUNDS. Includes: the file's folder, the guests' folders.

    ImageError with what NASM says, file and line first, if it does not accept the source or is not there.
    """
    nasm = shutil.which("nasm")
    if nasm is None:
        raise ImageError(
            f"{path.name}: assembling it needs nasm, which is not installed; "
            "install it with `apt install nasm` or `brew install nasm`"
        )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "image.bin"
        options = [f"-I{include}/" for include in _include_folders(path)]
        options += [] if rounds is None else [f"-DROUNDS={rounds}"]
        source = str(path) if path.is_absolute() else f"./{path}"  # a name may begin with a minus
        command = [nasm, "-f", "bin", *options, "-o", str(out), source]
        try:
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as error:
            raise ImageError(f"{path.name}: nasm has not ended after {TIMEOUT} s; look for an endless %rep") from error
        except OSError as error:
            raise ImageError(f"{path.name}: {nasm} cannot be started ({error.strerror}); install nasm again") from error
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != 0 or not out.exists():
            raise ImageError(f"{path.name}: nasm does not accept it:\n{said or f'it ended with {done.returncode}'}")
        size = out.stat().st_size
        if not 0 < size <= LARGEST_OUTPUT:
            raise ImageError(
                f"{path.name}: nasm makes {size} bytes of it, not 1 to {LARGEST_OUTPUT}; correct the source"
            )
        return Source.of_bytes(path.name, out.read_bytes())


def _include_folders(path: Path) -> list[Path]:
    """The file's folder, the nearest one above it that has lib/*.inc, and the guests that came with emu."""
    folder = path.absolute().parent
    above = next((up for up in (folder, *folder.parents) if any(up.glob("lib/*.inc"))), folder)
    packages = [Path(place) for place in emu.__path__]
    ours = [place.parents[2] / "guests" for place in packages if len(place.parents) > 2]
    ours += [place / "guests_data" for place in packages]
    return [*dict.fromkeys([folder, above]), *(place for place in ours if any(place.glob("lib/*.inc")))]
