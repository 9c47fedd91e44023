"""Where the bytes of an image come from: a file or the assembler, read piece by piece and never past the end."""

from __future__ import annotations

import io
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from emu.errors import EmuError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class ImageError(EmuError):
    """An image that cannot be loaded; the message says what is wrong with it, and what to do."""


@dataclass(frozen=True)
class Source:
    """Bytes under a name. Offsets and sizes in bytes."""

    name: str
    stream: BinaryIO
    size: int

    @staticmethod
    def of_bytes(name: str, data: bytes) -> Source:
        return Source(name, io.BytesIO(data), len(data))

    def read(self, offset: int, size: int) -> bytes:
        """ImageError if there are not that many bytes from there."""
        if offset < 0 or offset + size > self.size:
            raise self.error(f"{size} bytes from offset {offset:#x} are needed, but it has {self.size} bytes")
        try:
            self.stream.seek(offset)
            data = self.stream.read(size)
        except OSError as error:
            raise self.error(f"it cannot be read ({error.strerror}); check the file") from error
        if len(data) != size:
            raise self.error("it became shorter while it was read; load it again when it is complete")
        return data

    def error(self, text: str) -> ImageError:
        """To be raised: `text` about this source."""
        return ImageError(f"{self.name}: {text}")


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """The file, open for as long as the context lasts. ImageError unless it is a file with something in it."""
    name = path.name or str(path)
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise ImageError(f"there is no file {str(path)!r}; check its name and folder") from error
    except (OSError, ValueError) as error:
        raise ImageError(f"{str(path)!r} cannot be looked up ({error}); check the name") from error
    if stat.S_ISDIR(status.st_mode):
        raise ImageError(f"{name}: it is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise ImageError(f"{name}: it is a device or a pipe; copy what it gives to a file, and load that")
    if status.st_size == 0:
        raise ImageError(f"{name}: it is empty; build it again")
    try:
        stream = path.open("rb")
    except OSError as error:
        raise ImageError(f"{name}: it cannot be read ({error.strerror}); check its permissions") from error
    with stream:
        yield Source(name, stream, status.st_size)
