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
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from storage.sources.members import members


def _zst(raw: BinaryIO) -> Any:
    return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))


OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": gzip.open,
    ".bz2": partial(members, new=bz2.BZ2Decompressor),
    ".xz": partial(members, new=lzma.LZMADecompressor),
    ".zst": _zst,
}
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, OSError)


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
