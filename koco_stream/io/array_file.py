"""A file format for named arrays with a JSON header, without pickle and verified by a checksum.
Saved learners and checkpoints of cohorts use it.

Layout: the line `KOCO\\n`, the header's length (8 bytes, little endian), the header (JSON, with a
`format` and the arrays' names, types and shapes), the arrays as raw bytes in that order, and the
SHA-256 (32 bytes) of everything before it.
"""

import hashlib
import json
import math
import mmap
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from koco_stream.io.files import canonical_json
from koco_stream.types import Array

MAGIC = b"KOCO\n"
PIECE = 64 << 20  # bytes that are read at a time for the checksum; whole pages
# what a header with values of other types than ours leads to
MALFORMED = (
    TypeError,
    ValueError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)


class Unreadable(ValueError):
    """An array file is truncated, altered, of another kind or too new; the message says which."""


def write_arrays(path: Path, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write named arrays and a header to an array file.

    The header may contain NumPy scalars and infinities; the entry `arrays` is added to it.
    """
    arrays = {name: np.asarray(a) for name, a in arrays.items()}
    entries = [{"name": n, "dtype": a.dtype.str, "shape": list(a.shape)} for n, a in arrays.items()]
    text = canonical_json(_plain({**header, "arrays": entries})).encode()
    digest = hashlib.sha256()
    with path.open("wb") as handle:
        # An array that is not contiguous is copied when its turn comes: all copies at once might
        # not fit the memory.
        raw = (_bytes(a) for a in arrays.values() if a.size)
        for piece in chain((MAGIC, len(text).to_bytes(8, "little"), text), raw):
            digest.update(piece)
            handle.write(piece)
        handle.write(digest.digest())


def _bytes(array: Array) -> Any:
    """The bytes of an array in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def read_header(data: bytes | mmap.mmap) -> tuple[dict[str, Any], int]:
    """The header of an array file from its bytes, and where its arrays begin.

    The checksum is not verified. Raises `Unreadable` if the header cannot be read.
    """
    start = len(MAGIC) + 8
    if len(data) < start + 32 or data[: len(MAGIC)] != MAGIC:
        raise Unreadable("it does not begin with a whole header; use another copy")
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    try:
        header = json.loads(data[start:end], object_hook=_special)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise Unreadable("its header cannot be read; use another copy")
    return header, end


def read_arrays(data: bytes | mmap.mmap, newest: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of an array file from its bytes; the arrays are read-only views.

    Raises `Unreadable` also if its format is above `newest`.
    """
    header, start = read_header(data)
    if _checksum(data) != data[-32:]:
        raise Unreadable(
            "its checksum does not match: it was cut short or altered; use another copy"
        )
    if not isinstance(header.get("format"), int):
        raise Unreadable("its header has no format; use another copy")
    if header["format"] > newest:
        raise Unreadable(
            f"it has format {header['format']} of version {header.get('version')}, and this version"
            f" reads up to format {newest}; upgrade koco-stream"
        )
    arrays = {}
    try:
        for entry in header.pop("arrays"):
            dtype, count = np.dtype(entry["dtype"]), math.prod(entry["shape"])
            array = np.frombuffer(data, dtype, count, start).reshape(entry["shape"])
            arrays[str(entry["name"])] = array
            start += count * dtype.itemsize
    except MALFORMED as error:
        raise Unreadable(
            f"its header does not fit its arrays ({error}); use another copy"
        ) from None
    return header, arrays


def forget_pages(data: bytes | mmap.mmap, start: int = 0, length: int | None = None) -> None:
    """Give back the memory of pages of a mapped file that have been read; they can be read again.

    Otherwise a process seems to hold the whole file, and may be ended for it.
    """
    if isinstance(data, mmap.mmap):
        data.madvise(mmap.MADV_DONTNEED, start, len(data) - start if length is None else length)


def _checksum(data: bytes | mmap.mmap) -> bytes:
    """The checksum that belongs at the end of an array file."""
    digest, view = hashlib.sha256(), memoryview(data)[:-32]
    for start in range(0, len(view), PIECE):
        piece = view[start : start + PIECE]
        digest.update(piece)
        forget_pages(data, start, len(piece))
    return digest.digest()


def _plain(value: Any) -> Any:
    """A header value, also nested, with NumPy scalars as Python's and infinities as text."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": str(value)}
    return value


def _special(entries: dict[str, Any]) -> Any:
    """The inverse of `_plain` for a JSON object: a float if it stands for one, else itself."""
    return float(entries["float"]) if entries.keys() == {"float"} else entries
