"""A file format for named arrays with a JSON header, without pickle and verified by a checksum.
Saved learners are such files. Checkpoints of cohorts consist of several, one after the other.

Layout: the line `KOCO\\n`, the header's length (8 bytes, little endian), the header (JSON, with
`format`, `version` and the arrays' names, types and shapes), the arrays as raw bytes in that order,
and the SHA-256 (32 bytes) of everything before it.
"""

import hashlib
import json
import math
import mmap
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from koco_stream.errors import other_format
from koco_stream.io.files import canonical_json
from koco_stream.types import Array
from koco_stream.version import __version__

FORMAT = 1  # of the file and of what is in it
MAGIC = b"KOCO\n"
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
    """An array file is truncated, altered, of another kind or format; the message says which."""


Bytes = bytes | mmap.mmap | memoryview


def write_arrays(handle: BinaryIO, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write named arrays and a header as an array file.

    The header may contain NumPy scalars and infinities; `format`, `version` and `arrays` are added.
    """
    arrays = {name: np.asarray(a) for name, a in arrays.items()}
    entries = [{"name": n, "dtype": a.dtype.str, "shape": list(a.shape)} for n, a in arrays.items()]
    added = {"format": FORMAT, "version": __version__, "arrays": entries}
    text = canonical_json(_plain({**header, **added})).encode()
    digest = hashlib.sha256()
    # An array that is not contiguous is copied when its turn comes: all copies might not fit
    # the memory.
    flat = (np.ascontiguousarray(a).reshape(-1) for a in arrays.values() if a.size)
    pieces: chain[Any] = chain(
        (MAGIC, len(text).to_bytes(8, "little"), text), (a.view(np.uint8).data for a in flat)
    )
    for piece in pieces:
        digest.update(piece)
        handle.write(piece)
    handle.write(digest.digest())


def read_header(data: Bytes) -> tuple[dict[str, Any], int]:
    """The header of an array file from its bytes, and where its arrays begin.

    The checksum is not verified. Raises `Unreadable` if the header cannot be read.
    """
    start = len(MAGIC) + 8
    if len(data) < start + 32 or data[: len(MAGIC)] != MAGIC:
        raise Unreadable("it does not begin with a whole header; use another copy")
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    try:
        header = json.loads(
            bytes(data[start:end]),
            # the inverse of `_plain`
            object_hook=lambda one: float(one["float"]) if one.keys() == {"float"} else one,
        )
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise Unreadable("its header cannot be read; use another copy")
    return header, end


def read_arrays(data: Bytes, more: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of an array file from its bytes; the arrays are read-only views.

    With `more`, other bytes may follow. Raises `Unreadable` also if it has another format.
    """
    header, start = read_header(data)
    if (found := header.get("format", "unknown")) != FORMAT:
        remedy = "let the learner learn again"
        raise Unreadable(f"it {other_format(found, FORMAT, remedy, header.get('version'))}")
    end = _end(header, start) if more else len(data)
    view = memoryview(data)[:end]
    if hashlib.sha256(view[:-32]).digest() != view[-32:]:
        raise Unreadable(
            "its checksum does not match: it was cut short or altered; use another copy"
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


def _end(header: dict[str, Any], start: int) -> int:
    """Where an array file whose arrays begin at `start` ends, by its header."""
    try:
        sizes = [
            np.dtype(entry["dtype"]).itemsize * math.prod(entry["shape"])
            for entry in header["arrays"]
        ]
        return max(start + sum(sizes) + 32, 0)
    except MALFORMED:
        raise Unreadable("its header cannot be read; use another copy") from None


def forget_pages(data: mmap.mmap) -> None:
    """Give back the memory of a mapped file's pages that have been read; they can be read again.

    Otherwise a process seems to hold the whole file, and may be ended for it.
    """
    data.madvise(mmap.MADV_DONTNEED)


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
