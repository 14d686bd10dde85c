"""Files that may be compressed: their text to read from, and what reading raises for a damaged
one.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

READ_BYTES = 1 << 16
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, OSError)


class Members(io.RawIOBase):
    """The text of all members of the .bz2 or .xz file `raw`, one after the other; `new` makes a
    decompressor for each. Zeros between members are padding.

    Python's own readers take whatever does not begin as a member should for padding, and end there
    in silence: of a file of many members (as the parallel compressors write them) one wrong byte
    would lose all the rest. Here reading raises what the decompressor does for a member that is
    damaged, and `EOFError` for one that is cut short.
    """

    def __init__(self, raw: BinaryIO, new: Callable[[], Any]) -> None:
        self.raw, self.new = raw, new
        self.member = new()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read on; 0 at the end."""
        while True:
            data = b""
            if self.member.eof:
                data = self._next()
                if not data:
                    return 0
                self.member = self.new()
            elif self.member.needs_input:
                data = self.raw.read(READ_BYTES)
                if not data:
                    raise EOFError("it ends within its compressed text")
            text = self.member.decompress(data, len(buffer))
            if text:
                buffer[: len(text)] = text
                return len(text)

    def _next(self) -> bytes:
        """What comes after the present member, from where it is not padding; nothing at the file's
        end.
        """
        data: bytes = self.member.unused_data.lstrip(b"\0")
        while not data and (read := self.raw.read(READ_BYTES)):
            data = read.lstrip(b"\0")
        return data


OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": gzip.open,
    ".bz2": lambda raw: io.BufferedReader(Members(raw, bz2.BZ2Decompressor)),
    ".xz": lambda raw: io.BufferedReader(Members(raw, lzma.LZMADecompressor)),
    ".zst": lambda raw: io.BufferedReader(pa.CompressedInputStream(raw, "zstd")),
}


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Any]]:
    """The file itself, and its text to read from: two names for one file if it is not
    compressed.
    """
    with path.open("rb") as raw:
        if path.suffix not in OPENERS:
            yield raw, raw
            return
        with OPENERS[path.suffix](raw) as text:
            yield raw, text
