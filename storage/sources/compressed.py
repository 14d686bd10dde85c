"""Opening source files that may be compressed, and the exceptions that damaged compressed data
raises.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa

from koco_stream.errors import WrongInput

READ_BYTES = 1 << 16
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, OSError)


class ConcatenatedStreams(io.RawIOBase):
    """Content of a .bz2 or .xz file of one or several streams; `new` makes decompressors.

    Python's own readers take what is no start of a stream for padding, and end there: one wrong
    byte would drop the rest of the file.
    """

    def __init__(self, raw: BinaryIO, new: Callable[[], Any]) -> None:
        self.raw, self.new = raw, new
        self.decompressor = new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        text = b""
        while not text:
            data = b""
            if self.decompressor.eof:
                data = self._next()
                if not data:
                    break
                self.decompressor = self.new()
            elif self.decompressor.needs_input:
                data = self.raw.read(READ_BYTES)
                if not data:
                    raise EOFError("it ends within its compressed text")
            text = self.decompressor.decompress(data, len(buffer))
        buffer[: len(text)] = text
        return len(text)

    def _next(self) -> bytes:
        """Start of the next stream, after the padding; empty at the end of the file."""
        data: bytes = self.decompressor.unused_data.lstrip(b"\0")
        while not data and (read := self.raw.read(READ_BYTES)):
            data = read.lstrip(b"\0")
        return data


OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": gzip.open,
    ".bz2": lambda raw: io.BufferedReader(ConcatenatedStreams(raw, bz2.BZ2Decompressor)),
    ".xz": lambda raw: io.BufferedReader(ConcatenatedStreams(raw, lzma.LZMADecompressor)),
    ".zst": lambda raw: io.BufferedReader(pa.CompressedInputStream(raw, "zstd")),
}


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Any]]:
    """The raw file, and a reader of its decompressed content, which may be the same object."""
    with path.open("rb") as raw, OPENERS.get(path.suffix, nullcontext)(raw) as text:
        yield raw, text


def refuse_damage(path: Path, after: str, error: Exception) -> NoReturn:
    """An error of the operating system, which has a number, is raised unchanged."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    remedy = (
        f"name it {path.stem} if it is not compressed, or fetch it again"
        if after == "line 0"
        else "fetch the file again"
    )
    raise WrongInput(f"{path}: cut short or damaged after {after} ({error}); {remedy}") from None
