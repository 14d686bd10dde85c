"""Files of rows: the chunks of a source while it is prepared, and the shards of a dataset."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash, sync
from koco_stream.streams.manifest import Shard
from koco_stream.types import Array
from storage.preparing.transform import Transformation, square_norms
from storage.sources.source import Piece, Source, concatenated, dense_piece

MOST_DISTINCT = 200  # limit up to which distinct labels are counted
# rows per block, which are hashed and summed as one; blocks count from the dataset's first row,
# and changing the size changes the identity of every dataset
BLOCK = 64
LABEL = "the target as in the source, after the transformations"

# consecutive rows as ranges of chunks: (chunk file, first row, end row)
Cover = Sequence[tuple[str, int, int]]


@dataclass(frozen=True)
class Chunk:
    """Summary of a piece that was written to the file `path`."""

    path: str
    n_rows: int
    n_values: int
    n_features: int  # largest feature number plus one; 0 for dense rows
    n_bytes: int  # what the piece adds to the progress
    labels: frozenset[float]  # the distinct ones, at most `MOST_DISTINCT` + 1
    label_min: float
    label_max: float
    whole: bool  # whether all labels are integers
    least: float  # smallest value, at most 0
    largest: float  # largest absolute value
    single: bool  # whether float32 represents every value exactly
    n_dropped: int  # rows that were left out for their missing values


def store_piece(source: Source, task: tuple[Any, Path]) -> Chunk:
    piece, path = task
    return store_rows(source.read(piece), path, source.piece_bytes(piece))


def store_rows(rows: Piece, path: Path, n_bytes: int) -> Chunk:
    write_rows(rows, path)
    distinct = np.unique(rows.labels + 0.0)  # adding 0 turns -0 into 0
    return Chunk(
        path=str(path),
        n_rows=rows.n_rows,
        n_values=int(rows.values.size),
        n_features=int(rows.indices.max(initial=-1)) + 1,
        n_bytes=n_bytes,
        labels=frozenset(distinct[: MOST_DISTINCT + 1].tolist()),
        label_min=float(distinct.min(initial=np.inf)),
        label_max=float(distinct.max(initial=-np.inf)),
        whole=bool((distinct == np.rint(distinct)).all()),
        least=float(rows.values.min(initial=0.0)),
        largest=float(np.abs(rows.values).max(initial=0.0)),
        single=is_single(rows.values),
        n_dropped=rows.n_dropped,
    )


def is_single(values: Array) -> bool:
    """Whether float32 represents every value exactly."""
    with np.errstate(over="ignore"):
        return values.dtype == np.float32 or bool((values.astype(np.float32) == values).all())


def write_rows(rows: Piece, path: Path) -> None:
    batch = batch_of(rows)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def read_rows(path: str | Path) -> Piece:
    with pa.memory_map(str(path)) as source:
        return rows_of_batch(pa.ipc.open_stream(source).read_next_batch())


def batch_of(rows: Piece) -> pa.RecordBatch:
    """Columns `label`, `indices` and `values`; dense rows have only lists of one size, `values`."""
    columns = {"label": pa.array(rows.labels)}
    if rows.values.size and not rows.indices.size:
        columns["values"] = pa.FixedSizeListArray.from_arrays(
            pa.array(rows.values), int(rows.indptr[1])
        )
    else:
        offsets = pa.array(rows.indptr.astype(np.int32))
        columns["indices"] = pa.ListArray.from_arrays(offsets, pa.array(rows.indices))
        columns["values"] = pa.ListArray.from_arrays(offsets, pa.array(rows.values))
    return pa.record_batch(columns)


def rows_of_batch(batch: pa.RecordBatch) -> Piece:
    """Raises `KeyError` if a column is missing."""
    labels = batch.column("label").to_numpy()
    values = batch.column("values")
    flat = values.flatten().to_numpy()
    if pa.types.is_fixed_size_list(values.type):
        return dense_piece(labels, flat.reshape(labels.size, values.type.list_size))
    offsets = values.offsets.to_numpy().astype(np.int64)
    return Piece(labels, offsets - offsets[0], batch.column("indices").flatten().to_numpy(), flat)


class Chunks:
    """The chunks of a source in row order; `firsts` has the first row of each."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = list(chunks)
        self.firsts = list(accumulate((chunk.n_rows for chunk in self.chunks), initial=0))
        self.n_rows = self.firsts[-1]
        self.n_values = sum(chunk.n_values for chunk in self.chunks)
        labels: frozenset[float] = frozenset().union(*(chunk.labels for chunk in self.chunks))
        self.labels = sorted(labels) if len(labels) <= MOST_DISTINCT else None

    def cover(self, start: int, stop: int) -> Cover:
        found = []
        for k in range(bisect_right(self.firsts, start) - 1, bisect_right(self.firsts, stop - 1)):
            first = self.firsts[k]
            a = max(start - first, 0)
            b = min(stop - first, self.chunks[k].n_rows)
            if a < b:
                found.append((self.chunks[k].path, a, b))
        return found


def rows_of(cover: Cover) -> Piece:
    return concatenated([read_rows(path).between(start, stop) for path, start, stop in cover])


@dataclass(frozen=True)
class Written:
    shard: Shard
    digests: bytes
    sums: Array
    empty_rows: int


def ranges_of(
    chunks: Chunks, transformation: Transformation, values_per_shard: int
) -> Iterator[tuple[int, int]]:
    """Rows (first, end) of each shard, whatever the chunks."""
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
    return min(-(-row // BLOCK) * BLOCK, n_rows)


def is_narrow(cover: Cover, transformation: Transformation) -> bool:
    return is_single(transformation(rows_of(cover)).values)


def write_shard(
    task: tuple[str, int, Cover, Cover], folder: Path, transformation: Transformation, single: bool
) -> Written:
    name, first, cover, beyond = task
    rows = transformation(rows_of(cover))
    check_finite(rows, first, transformation.scale)
    rows = narrowed(rows, single)
    layout = transformation.kept
    write_parquet(rows, folder / name, transformation.n_features, layout)
    shard = Shard(name, rows.n_rows, int(rows.values.size), file_hash(folder / name))
    own = min(-first % BLOCK, rows.n_rows)  # leading rows of a block that began in an earlier shard
    rest = [narrowed(transformation(rows_of(beyond)), single)] if beyond else []
    digests, sums = digests_of(concatenated([rows.between(own, rows.n_rows), *rest]), layout)
    return Written(shard, digests, sums, int((np.diff(rows.indptr) == 0).sum()))


def narrowed(rows: Piece, single: bool) -> Piece:
    """Values of the dataset's type, with 0 for -0, so that equal rows have equal hashes."""
    values: Array = rows.values.astype(np.float32 if single else np.float64)
    return Piece(np.add(rows.labels, 0.0), rows.indptr, rows.indices, np.add(values, 0.0))


def digests_of(rows: Piece, layout: str) -> tuple[bytes, Array]:
    """Hashes and sums as `Written` has them; the first row begins a block."""
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
    about = f"koco-stream rows 2|{n_rows}|{n_features}|{layout}|{value_type}"
    return hashlib.sha256(b"".join([about.encode(), *digests])).hexdigest()


def check_finite(rows: Piece, first: int, scale: str) -> None:
    after = "" if scale == "none" else f" after --scale {scale}"
    of_labels = np.arange(rows.n_rows + 1)
    for what, numbers, starts in (
        ("label", rows.labels, of_labels),
        ("value", rows.values, rows.indptr),
    ):
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            row = int(np.searchsorted(starts, wrong[0], side="right")) - 1
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
    """Values that fit float32 are often counts, for which a dictionary is efficient; others are
    split by bytes.
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
