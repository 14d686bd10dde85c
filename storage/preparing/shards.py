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
from storage.preparing.chunks import Chunks, Cover, is_single, read_rows, rows_of
from storage.preparing.transform import Transformation, saved_facts, square_norms
from storage.sources.source import Piece, concatenated

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
    chunks: Chunks, transformation: Transformation, values_per_shard: int
) -> Iterator[tuple[int, int]]:
    """The rows of each shard: at most so many values, as stored in the chunks, and as many rows, of
    which many may be empty; one row at least. Whatever the chunks are, these are the same.
    """
    start = row = 0  # the first row of the present shard, and of the present chunk
    value = from_value = 0  # values before the present chunk, and before the present shard
    for chunk in chunks.chunks:
        if transformation.kept == "dense":
            ends = value + np.arange(1, chunk.n_rows + 1) * transformation.shape.n_features
        else:
            ends = value + read_rows(chunk.path).indptr[1:]
        while (
            fit := min(
                int(np.searchsorted(ends, from_value + values_per_shard, side="right")),
                start + values_per_shard - row,
            )
        ) < chunk.n_rows:
            stop = max(row + fit, start + 1)  # a row larger than a shard is one
            yield start, stop
            start, from_value = stop, int(ends[stop - row - 1]) if stop > row else value
        row += chunk.n_rows
        value = int(ends[-1]) if chunk.n_rows else value
    if start < row:
        yield start, row


def whole_blocks(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges with their ends moved on to the next whole number of blocks; those that this
    leaves empty are dropped.
    """
    n_rows = max(stop for _, stop in ranges)
    moved = [(block_end(start, n_rows), block_end(stop, n_rows)) for start, stop in ranges]
    return [(start, stop) for start, stop in moved if start < stop]


def block_end(row: int, n_rows: int) -> int:
    """The row, or the first after it, at which a block ends."""
    return min(-(-row // BLOCK) * BLOCK, n_rows)


def is_narrow(cover: Cover, transformation: Transformation, facts: Path) -> bool:
    """Whether float32 holds every value of these rows exactly, after the transformation."""
    return is_single(transformation(rows_of(cover), saved_facts(facts)).values)


def write_shard(
    task: tuple[str, int, Cover, Cover],
    folder: Path,
    transformation: Transformation,
    facts: Path,
    single: bool,
) -> Written:
    """Write a shard to `folder`, hash and sum its blocks. The task is its name, the number of its
    first row, its rows, and those after them that complete its last block; `facts` is where these
    were saved.

    Raises `WrongInput` naming the row for a value that is not finite.
    """
    name, first, cover, beyond = task
    transformed = partial(transformation, facts=saved_facts(facts))
    rows = transformed(rows_of(cover))
    check_finite(rows, first, transformation.scale)
    rows = narrowed(rows, single)
    d, layout = transformation.n_features, transformation.kept
    write_parquet(rows, folder / name, d, layout)
    shard = Shard(name, rows.n_rows, int(rows.values.size), file_hash(folder / name))
    own = min(-first % BLOCK, rows.n_rows)  # rows of a block that began in an earlier shard
    of_blocks = [rows.between(own, rows.n_rows)]
    if beyond:
        of_blocks.append(narrowed(transformed(rows_of(beyond)), single))
    digests, sums = digests_of(concatenated(of_blocks), layout)
    return Written(shard, digests, sums, int((np.diff(rows.indptr) == 0).sum()))


def narrowed(rows: Piece, single: bool) -> Piece:
    """The rows with values of the dataset's type, and no zero with a sign: -0 and 0 are equal, and
    equal rows have one identity.
    """
    values: Array = rows.values.astype(np.float32 if single else np.float64)
    return Piece(np.add(rows.labels, 0.0), rows.indptr, rows.indices, np.add(values, 0.0))


def digests_of(rows: Piece, layout: str) -> tuple[bytes, Array]:
    """The SHA-256 of each block of rows, one after the other, and each block's sums of labels and
    of square norms, (blocks, 2). The first row begins a block.
    """
    starts = np.arange(0, rows.n_rows, BLOCK)
    if not starts.size:
        return b"", np.zeros((0, 2))
    digests = []
    for start in starts.tolist():
        block = rows.between(start, min(start + BLOCK, rows.n_rows))
        digest = hashlib.sha256(block.labels.tobytes() + np.diff(block.indptr).tobytes())
        if layout == "sparse":
            digest.update(block.indices.data)
        digest.update(block.values.data)
        digests.append(digest.digest())
    sums = np.column_stack([rows.labels, square_norms(rows)])
    return b"".join(digests), np.add.reduceat(sums, starts, axis=0)


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
    for what, numbers in (("label", rows.labels), ("value", rows.values)):
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            row = int(wrong[0])
            if what == "value":
                row = int(np.searchsorted(rows.indptr, row, side="right")) - 1
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
    value = "values.list.element"
    encodings = {} if rows.values.dtype == np.float32 else {value: "BYTE_STREAM_SPLIT"}
    if layout == "sparse":
        encodings["indices.list.element"] = "DELTA_BINARY_PACKED"
    pq.write_table(
        arrow_rows(rows, n_features, layout),
        path,
        compression="zstd",
        compression_level=3,
        row_group_size=1 << 20,
        column_encoding=encodings or None,
        use_dictionary=[name for name in ("label", value) if name not in encodings],
    )
    sync_file(path)


def arrow_rows(rows: Piece, n_features: int, layout: str) -> pa.Table:
    """Prepared rows: `label`, then `indices` and `values`, or `values` of fixed size."""
    columns = {"label": pa.array(rows.labels)}
    if layout == "dense":
        columns["values"] = pa.FixedSizeListArray.from_arrays(pa.array(rows.values), n_features)
    else:
        offsets = pa.array(rows.indptr.astype(np.int32))
        columns["indices"] = pa.ListArray.from_arrays(offsets, pa.array(rows.indices))
        columns["values"] = pa.ListArray.from_arrays(offsets, pa.array(rows.values))
    return pa.table(columns, metadata={"n_features": str(n_features), "label": LABEL})
