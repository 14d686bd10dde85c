"""Array files: named arrays with a JSON header, for saved learners and checkpoints."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.io.files import canonical_json
from koco_stream.io.paths import StorePath
from koco_stream.io.table_file import opened, write_tables
from koco_stream.types import Array

PIECE = 16 << 20  # bytes
SCHEMA = pa.schema([("piece", pa.binary())])
HEADER, ARRAYS = b"koco_header", b"koco_arrays"


def write_arrays(file: StorePath, header: dict[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write named arrays and a header, atomically; an array with several names is written once."""
    once = {id(array): array for array in arrays.values()}
    ends = np.cumsum([0, *(array.nbytes for array in once.values())])
    places = dict(zip(once, ends.tolist(), strict=False))
    entries = [[name, a.dtype.str, a.shape, places[id(a)]] for name, a in arrays.items()]
    texts = {HEADER: canonical_json(header, allow_nan=True), ARRAYS: canonical_json(entries)}
    pieces = (pa.table([[piece]], SCHEMA) for piece in _pieces(once.values()))
    write_tables(pieces, file, texts)


def _pieces(arrays: Iterable[Array]) -> Iterator[bytearray]:
    piece = bytearray()
    for array in arrays:
        # An array that is not contiguous is copied when its turn comes: all copies might not fit
        # the memory.
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        while content:
            room = PIECE - len(piece)
            piece += content[:room]
            content = content[room:]
            if len(piece) == PIECE:
                yield piece
                piece = bytearray()
    yield piece


def read_header(file: StorePath) -> dict[str, Any]:
    """An array file's header; other bytes are not checked."""
    return opened(file, lambda parquet, _: _in_footer(parquet, HEADER))


def _in_footer(parquet: pq.ParquetFile, key: bytes) -> Any:
    return json.loads((parquet.metadata.metadata or {}).get(key, b"{}"))


@contextmanager
def opened_arrays(file: StorePath) -> Iterator[tuple[dict[str, Any], "Arrays"]]:
    """Give an array file's header and arrays, whose bytes are all checked."""
    with file.local() as path:
        opened(StorePath(str(path)), lambda _, hashes: hashes.check(0, hashes.end))
        with pq.ParquetFile(path) as parquet:
            yield _in_footer(parquet, HEADER), Arrays(parquet)


class Arrays(Mapping[str, Array]):
    """The arrays of an opened file, by name, each read on access."""

    def __init__(self, parquet: pq.ParquetFile) -> None:
        self.places = {name: place for name, *place in _in_footer(parquet, ARRAYS)}
        self.piece = lru_cache(maxsize=1)(partial(_piece, parquet))

    def __getitem__(self, name: str) -> Array:
        dtype, shape, first = self.places[name]
        last = first + math.prod(shape) * np.dtype(dtype).itemsize
        content = bytearray()
        for number in range(first // PIECE, -(-last // PIECE)):
            start = number * PIECE
            content += self.piece(number)[max(first - start, 0) : last - start]
        return np.ndarray(shape, dtype, content)

    def place(self, name: str) -> int:
        """Where an array begins; names of one array share it."""
        return int(self.places[name][2])

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def _piece(parquet: pq.ParquetFile, number: int) -> memoryview:
    return memoryview(parquet.read_row_group(number).column("piece")[0].as_buffer())
