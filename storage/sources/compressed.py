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
    """Decompressed content of a .bz2 or .xz file that may consist of several concatenated streams.

    Each stream is decompressed by a fresh decompressor from `new`. Zero bytes between streams are
    padding and are skipped.

    Python's own readers treat anything that is not the start of a stream as padding and
    stop there without an error. Parallel compressors write many streams, so one wrong byte would
    silently drop the rest of the file. This reader raises the decompressor's error for a damaged
    stream and `EOFError` for a truncated one.
    """

    def __init__(self, raw: BinaryIO, new: Callable[[], Any]) -> None:
        self.raw, self.new = raw, new
        self.decompressor = new()

    def readable(self) -> bool:
        """Report that the file can be read, as `io.RawIOBase` requires: always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Decompress into `buffer`; return the number of bytes, 0 at the end of the file."""
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
        """Start of the next stream, without the padding before it; empty at the end of the file."""
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
    """Open a file and yield (the raw file, a reader of its decompressed content).

    For a file without compression, both are the same object.
    """
    with path.open("rb") as raw, OPENERS.get(path.suffix, nullcontext)(raw) as text:
        yield raw, text


def refuse_damage(path: Path, after: str, error: Exception) -> NoReturn:
    """Raise `WrongInput` for damage (an exception of `DAMAGE`) met after some line or file.

    An error of the operating system, which has a number, is raised unchanged.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    remedy = (
        f"name it {path.stem} if it is not compressed, or fetch it again"
        if after == "line 0"
        else "fetch the file again"
    )
    raise WrongInput(f"{path}: cut short or damaged after {after} ({error}); {remedy}") from None
