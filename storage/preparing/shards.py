"""Shards: ranges of a dataset's rows as Parquet files, and the dataset's identity, which does not
depend on how it is cut.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash, sync_file
from koco_stream.streams.manifest import Shard
from koco_stream.types import Array
from storage.preparing.parts import Parts, is_single, read_rows, rows_of
from storage.preparing.transform import Transformation, saved_facts, square_norms
from storage.sources.source import Piece

# rows that are hashed and summed together, counted from the dataset's first: part of what the
# identity means
BLOCK = 64
LABEL = "the target as in the source, after the transformations"


@dataclass(frozen=True)
class Written:
    """A shard that was written, with what it adds to the dataset: the hashes of the blocks that
    begin in it, as one text of bytes, their sums of labels and of square norms (blocks, 2), and its
    rows without any value.
    """

    shard: Shard
    digests: bytes
    sums: Array
    empty_rows: int


def ranges_of(
    parts: Parts, transformation: Transformation, values_a_shard: int
) -> Iterator[tuple[int, int]]:
    """The rows of each shard: at most so many values, as stored in the parts, and as many rows, of
    which many may be empty; one row at least. Whatever the parts are, these are the same.
    """
    lo = row = 0  # the first row of the present shard, and of the present part
    value = from_value = 0  # values before the present part, and before the present shard
    for part in parts.parts:
        if transformation.kept == "dense":
            ends = value + np.arange(1, part.n_rows + 1) * transformation.shape.n_features
        else:
            ends = value + read_rows(part.path).indptr[1:]
        while (
            fit := min(
                int(np.searchsorted(ends, from_value + values_a_shard, side="right")),
                lo + values_a_shard - row,
            )
        ) < part.n_rows:
            stop = max(row + fit, lo + 1)  # a row larger than a shard is one
            yield lo, stop
            lo, from_value = stop, int(ends[stop - row - 1]) if stop > row else value
        row += part.n_rows
        value = int(ends[-1]) if part.n_rows else value
    if lo < row:
        yield lo, row


def whole_blocks(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges with their ends moved on to the next whole number of blocks; those that this
    leaves empty are dropped.
    """
    ends = [(-(-lo // BLOCK) * BLOCK, hi) for lo, hi in ranges]
    last = ends[-1][1]
    moved = [(lo, min(-(-hi // BLOCK) * BLOCK, last)) for lo, hi in ends]
    return [(lo, hi) for lo, hi in moved if lo < hi]


def is_narrow(
    cover: Sequence[tuple[str, int, int]], transformation: Transformation, facts: Path
) -> bool:
    """Whether float32 holds every value of these rows exactly, after the transformation."""
    return is_single(transformation(rows_of(cover), saved_facts(facts)).values)


@dataclass(frozen=True)
class ShardTask:
    """One shard to write: its rows as `cover` names them, `first` the number of the first one, and
    the rows after it that complete its last block.
    """

    cover: list[tuple[str, int, int]]
    beyond: list[tuple[str, int, int]]
    first: int
    name: str
    folder: str
    single: bool


def write_shard(task: ShardTask, transformation: Transformation, facts: Path) -> Written:
    """Write a shard, hash and sum its blocks; `facts` is where they were saved.

    Raises `WrongInput` naming the row for a value that is not finite.
    """
    transformed = partial(transformation, facts=saved_facts(facts))
    rows = transformed(rows_of(task.cover))
    check_finite(rows, task.first, transformation.scale)
    rows = narrowed(rows, task.single)
    d, layout = transformation.n_features, transformation.kept
    path = Path(task.folder) / task.name
    write_parquet(rows, path, d, layout)
    shard = Shard(task.name, rows.n_rows, int(rows.values.size), file_hash(path))
    own = min(-task.first % BLOCK, rows.n_rows)  # rows of a block that began in an earlier shard
    more = narrowed(transformed(rows_of(task.beyond)), task.single) if task.beyond else None
    digests, sums = digests_of(joined(tail(rows, own), more), layout)
    return Written(shard, digests, sums, int((np.diff(rows.indptr) == 0).sum()))


def narrowed(rows: Piece, single: bool) -> Piece:
    """The rows with values of the dataset's type, and no zero with a sign: -0 and 0 are equal, and
    equal rows have one identity.
    """
    values: Array = rows.values.astype(np.float32 if single else np.float64)
    return Piece(np.add(rows.labels, 0.0), rows.indptr, rows.indices, np.add(values, 0.0))


def tail(rows: Piece, start: int) -> Piece:
    """The rows from `start` on."""
    a = int(rows.indptr[start])
    return Piece(
        rows.labels[start:],
        rows.indptr[start:] - a,
        rows.indices[a:] if rows.indices.size else rows.indices,
        rows.values[a:],
    )


def joined(rows: Piece, more: Piece | None) -> Piece:
    """Rows, then more rows."""
    if more is None:
        return rows
    return Piece(
        np.concatenate([rows.labels, more.labels]),
        np.concatenate([rows.indptr, rows.indptr[-1] + more.indptr[1:]]),
        np.concatenate([rows.indices, more.indices]),
        np.concatenate([rows.values, more.values]),
    )


def digests_of(rows: Piece, layout: str) -> tuple[bytes, Array]:
    """The SHA-256 of each block of rows, one after the other, and each block's sums of labels and
    of square norms, (blocks, 2). The first row begins a block.
    """
    sizes = np.diff(rows.indptr)
    digests = []
    for lo in range(0, rows.n_rows, BLOCK):
        hi = min(lo + BLOCK, rows.n_rows)
        a, b = int(rows.indptr[lo]), int(rows.indptr[hi])
        digest = hashlib.sha256(rows.labels[lo:hi].tobytes())
        digest.update(sizes[lo:hi].tobytes())
        if layout == "sparse":
            digest.update(rows.indices[a:b].data)
        digest.update(rows.values[a:b].data)
        digests.append(digest.digest())
    starts = np.arange(0, rows.n_rows, BLOCK)
    if not starts.size:
        return b"", np.zeros((0, 2))
    return b"".join(digests), np.add.reduceat(
        np.column_stack([rows.labels, square_norms(rows)]), starts, axis=0
    )


def identity_of(
    digests: Iterable[bytes], n_rows: int, n_features: int, layout: str, value_type: str
) -> str:
    """The dataset's identity: SHA-256 over its schema and the hashes of its blocks of rows,
    whatever the sharding or compression.
    """
    digest = hashlib.sha256(
        f"koco-stream rows 2|{n_rows}|{n_features}|{layout}|{value_type}".encode()
    )
    for some in digests:
        digest.update(some)
    return digest.hexdigest()


def check_finite(rows: Piece, first: int, scale: str) -> None:
    """Refuse a label, a value or a row's square norm that is no finite number. `first` is the
    number of the first row, from 0.
    """
    after = "" if scale == "none" else f" after --scale {scale}"
    for what, bad in (("label", ~np.isfinite(rows.labels)), ("value", ~np.isfinite(rows.values))):
        if bad.any():
            place = int(np.flatnonzero(bad)[0])
            row = (
                place
                if what == "label"
                else int(np.searchsorted(rows.indptr, place, side="right")) - 1
            )
            raise WrongInput(
                f"row {first + row + 1} has a {what} that is no finite number{after}; the source's"
                " numbers are too large: divide them"
            )
    with np.errstate(over="ignore"):
        if not np.isfinite(np.sum(rows.values**2)) or not np.isfinite(rows.labels.sum()):
            raise WrongInput(
                f"the largest value is {np.abs(rows.values).max(initial=0.0):g} and the largest"
                f" label {np.abs(rows.labels).max():g}{after}: their squares or sums are beyond"
                " what a number can hold; divide them, for example with --scale unit-rows"
            )


def write_parquet(rows: Piece, path: Path, n_features: int, layout: str) -> None:
    """Prepared rows as a Parquet file, synced.

    Feature numbers are kept as differences. Values that float32 holds are often counts, which a
    dictionary serves; others are split by bytes, which is smaller than plain and, being no search,
    faster than a dictionary.
    """
    value, index = ("values.list.element", "indices.list.element")
    encodings = {} if rows.values.dtype == np.float32 else {value: "BYTE_STREAM_SPLIT"}
    if layout == "sparse":
        encodings[index] = "DELTA_BINARY_PACKED"
    options: dict[str, object] = {
        "compression": "zstd",
        "compression_level": 3,
        "row_group_size": 1 << 20,
        "column_encoding": encodings or None,
        "use_dictionary": [name for name in ("label", value) if name not in encodings],
    }
    pq.write_table(arrow_rows(rows, n_features, layout), path, **options)
    sync_file(path)


def arrow_rows(rows: Piece, n_features: int, layout: str) -> pa.Table:
    """Prepared rows: `label`, then `indices` and `values`, or `values` of fixed size."""
    metadata = {"n_features": str(n_features), "label": LABEL}
    if layout == "dense":
        values = pa.FixedSizeListArray.from_arrays(pa.array(rows.values), n_features)
        return pa.table({"label": rows.labels, "values": values}).replace_schema_metadata(metadata)
    offsets = pa.array(rows.indptr.astype(np.int32))
    return pa.table(
        {
            "label": rows.labels,
            "indices": pa.ListArray.from_arrays(offsets, pa.array(rows.indices)),
            "values": pa.ListArray.from_arrays(offsets, pa.array(rows.values)),
        }
    ).replace_schema_metadata(metadata)
