"""Shards, the Parquet files of a dataset; and its identity hash, which is the same for any
sharding.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash, sync
from koco_stream.streams.manifest import Shard
from koco_stream.types import Array
from storage.preparing.chunks import Chunks, Cover, batch_of, is_single, read_rows, rows_of
from storage.preparing.transform import Transformation, square_norms
from storage.sources.source import Piece, concatenated

# rows per block, which are hashed and summed as one; blocks count from the dataset's first row,
# and changing the size changes the identity of every dataset
BLOCK = 64
LABEL = "the target as in the source, after the transformations"


@dataclass(frozen=True)
class Written:
    """Result of writing one shard.

    Attributes
    ----------
    shard : Shard
        Manifest entry of the shard.
    digests : bytes
        Concatenated SHA-256 of the blocks that begin in the shard.
    sums : Array (blocks, 2)
        Sum of labels and sum of square norms in each of these blocks.
    empty_rows : int
        Number of the shard's rows without values.
    """

    shard: Shard
    digests: bytes
    sums: Array
    empty_rows: int


def ranges_of(
    chunks: Chunks, transformation: Transformation, values_per_shard: int
) -> Iterator[tuple[int, int]]:
    """Rows (first, end) of each shard.

    A shard has at most `values_per_shard` values, counted before the transformation, and at most as
    many rows, but always at least one row. The result does not depend on how rows are split into
    chunks.
    """
    start = row = 0  # first row of the current shard, and of the current chunk
    value = from_value = 0  # values before the current chunk, and before the current shard
    for chunk in chunks.chunks:
        ends = value + (
            np.arange(1, chunk.n_rows + 1) * transformation.shape.n_features
            if transformation.kept == "dense"
            else read_rows(chunk.path).indptr[1:]
        )
        while (
            fit := min(
                int(np.searchsorted(ends, from_value + values_per_shard, side="right")),
                start + values_per_shard - row,
            )
        ) < chunk.n_rows:
            stop = max(row + fit, start + 1)  # a row beyond the limit is a shard of its own
            yield start, stop
            start = stop
            from_value = int(ends[stop - row - 1]) if stop > row else value
        row += chunk.n_rows
        value = int(ends[-1]) if chunk.n_rows else value
    if start < row:
        yield start, row


def block_end(row: int, n_rows: int) -> int:
    """First block boundary at or after `row`; the last block ends at `n_rows`."""
    return min(-(-row // BLOCK) * BLOCK, n_rows)


def is_narrow(cover: Cover, transformation: Transformation) -> bool:
    """Whether float32 represents every value of these rows exactly after the transformation."""
    return is_single(transformation(rows_of(cover)).values)


def write_shard(
    task: tuple[str, int, Cover, Cover], folder: Path, transformation: Transformation, single: bool
) -> Written:
    """Write one shard to `folder`, and compute the hashes and sums of its blocks.

    `task` has the file name, the number of the first row, the rows of the shard, and the following
    rows that complete its last block. With `single`, values are stored as float32. Raises
    `WrongInput` with the row, for a value that is not finite.
    """
    name, first, cover, beyond = task
    rows = transformation(rows_of(cover))
    check_finite(rows, first, transformation.scale)
    rows = narrowed(rows, single)
    d = transformation.n_features
    layout = transformation.kept
    write_parquet(rows, folder / name, d, layout)
    shard = Shard(name, rows.n_rows, int(rows.values.size), file_hash(folder / name))
    own = min(-first % BLOCK, rows.n_rows)  # leading rows of a block that began in an earlier shard
    rest = [narrowed(transformation(rows_of(beyond)), single)] if beyond else []
    digests, sums = digests_of(concatenated([rows.between(own, rows.n_rows), *rest]), layout)
    return Written(shard, digests, sums, int((np.diff(rows.indptr) == 0).sum()))


def narrowed(rows: Piece, single: bool) -> Piece:
    """Convert values to the dataset's type, and -0 to 0, so that equal rows have equal hashes."""
    values: Array = rows.values.astype(np.float32 if single else np.float64)
    return Piece(np.add(rows.labels, 0.0), rows.indptr, rows.indices, np.add(values, 0.0))


def digests_of(rows: Piece, layout: str) -> tuple[bytes, Array]:
    """Hashes and sums of the blocks of rows; the first row begins a block.

    Returns
    -------
    tuple of (bytes, Array (blocks, 2))
        Concatenated SHA-256 of the blocks; sum of labels and sum of square norms of each.
    """
    starts = np.arange(0, rows.n_rows, BLOCK)
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
    """Identity hash of a dataset: SHA-256 of its schema and its block hashes.

    It does not depend on sharding or compression.
    """
    about = f"koco-stream rows 2|{n_rows}|{n_features}|{layout}|{value_type}"
    return hashlib.sha256(b"".join([about.encode(), *digests])).hexdigest()


def check_finite(rows: Piece, first: int, scale: str) -> None:
    """Raise `WrongInput` for a label, value or square norm that is not finite.

    `first` is the number of the first row, from 0; `scale` is named in the message.
    """
    after = "" if scale == "none" else f" after --scale {scale}"
    for what, numbers in (("label", rows.labels), ("value", rows.values)):
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            row = int(wrong[0])
            if what == "value":
                row = int(np.searchsorted(rows.indptr, row, side="right")) - 1
            raise WrongInput(
                f"row {first + row + 1} has a {what} that is not a finite number{after}; the"
                " numbers of the source are too large: divide them"
            )
    with np.errstate(over="ignore"):
        if not np.isfinite(np.sum(rows.values**2)) or not np.isfinite(rows.labels.sum()):
            raise WrongInput(
                f"the largest value is {np.abs(rows.values).max(initial=0.0):g} and the largest"
                f" label {np.abs(rows.labels).max():g}{after}: their squares or sums overflow;"
                " divide them, for example with --scale unit-rows"
            )


def write_parquet(rows: Piece, path: Path, n_features: int, layout: str) -> None:
    """Write prepared rows to a Parquet file and sync it to disk.

    Feature numbers are delta-encoded. Values that fit float32 are often counts, for which a
    dictionary is efficient. Other values are split by bytes: smaller than plain encoding, and
    faster than a dictionary because no lookup is needed.
    """
    about = {"n_features": str(n_features), "label": LABEL}
    value = "values.list.element"
    encodings = {} if rows.values.dtype == np.float32 else {value: "BYTE_STREAM_SPLIT"}
    if layout == "sparse":
        encodings["indices.list.element"] = "DELTA_BINARY_PACKED"
    pq.write_table(
        pa.Table.from_batches([batch_of(rows)]).replace_schema_metadata(about),
        path,
        compression="zstd",
        compression_level=3,
        row_group_size=1 << 20,
        column_encoding=encodings or None,
        use_dictionary=[name for name in ("label", value) if name not in encodings],
    )
    sync(path)
