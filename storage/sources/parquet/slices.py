"""Common base of the Parquet sources: reading of selected columns in slices of bounded size.

A small row group is one slice. A row group can only be decoded from its beginning, so a large one
is decoded once, while slices are listed, and each of its slices is written to a scratch folder.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule
from storage.sources.source import PIECE_BYTES, Piece, Source

GROUP_BYTES = 4 * PIECE_BYTES  # row groups up to this size in memory are read as one slice


class Slice(NamedTuple):
    """Consecutive rows of one row group.

    Attributes
    ----------
    path : Path
        Source file.
    group : int
        Number of the row group, from 0.
    first : int
        Number of the first row in the file, from 0.
    n_rows : int
        Number of rows.
    n_bytes : int
        Share of the file's size, for the progress.
    file : Path, optional
        Scratch file with the decoded rows, if the row group was split.
    """

    path: Path
    group: int
    first: int
    n_rows: int
    n_bytes: int
    file: Path | None = None

    def at(self, row: int) -> str:
        """Position of row `row` (from 0) of the slice as text for messages, which count from 1."""
        return f"{self.path}, row group {self.group + 1}, row {self.first + int(row) + 1}"


@contextmanager
def opened(path: Path, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; the columns `texts` are read as dictionaries.

    Errors of Arrow inside the context are raised as `WrongInput` with the file's path. Raises
    `OSError` for a file that cannot be read.
    """
    # raises the system's own error, such as a missing permission, before Arrow rewords it
    with path.open("rb"):
        pass
    try:
        with pq.ParquetFile(
            path,
            read_dictionary=list(texts),
            pre_buffer=False,
            buffer_size=1 << 16,
            page_checksum_verification=True,
        ) as file:
            # fails for column names that are not valid UTF-8
            file.schema_arrow.to_string(show_schema_metadata=False)
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            raise
        said = str(error).split("\n")[0]
        raise WrongInput(
            f"{path}: no Parquet file, or damaged or cut short ({said}); fetch or write it again"
        ) from None


def groups_of(file: pq.ParquetFile, path: Path) -> Iterator[Slice]:
    """Non-empty row groups of an open file, each as one slice.

    The file's size is divided among them in proportion to their rows.
    """
    size, all_rows, first = path.stat().st_size, file.metadata.num_rows, 0
    for group in range(file.num_row_groups):
        n_rows = file.metadata.row_group(group).num_rows
        if n_rows:
            yield Slice(path, group, first, n_rows, _share(size, all_rows, first, n_rows))
        first += n_rows


def batches_of(
    file: pq.ParquetFile, group: int, columns: Sequence[str], at_once: int
) -> Iterator[pa.RecordBatch]:
    """Decode a row group in batches of `at_once` rows.

    Every batch is fully validated, because for a damaged file Arrow reads beyond a dictionary's
    end.
    """
    n_rows = 0
    for batch in file.iter_batches(
        at_once, row_groups=[group], columns=list(columns), use_threads=False
    ):
        batch.validate(full=True)
        n_rows += batch.num_rows
        yield batch
    if n_rows != file.metadata.row_group(group).num_rows:
        raise pa.ArrowInvalid(
            f"row group {group + 1} has {n_rows} rows, and its metadata say otherwise"
        )


def values_in(file: pq.ParquetFile, group: int, column: str) -> int:
    """Number of list items of a column in a non-empty row group."""
    # for a damaged column chunk, pyarrow's metadata access terminates the process; reading one
    # batch first raises a Python exception instead
    next(file.iter_batches(1, row_groups=[group], columns=[column], use_threads=False), None)
    chunk = file.metadata.row_group(group).column(file.schema_arrow.names.index(column))
    return int(chunk.num_values)


@dataclass(kw_only=True)
class ParquetRows(Source):
    """Base class of the Parquet sources; the rows of several files are concatenated in order.

    Attributes
    ----------
    rule : LabelRule
        Mapping from label texts to numbers.
    columns : tuple of str
        Columns that are read.
    texts : tuple of str
        Columns that are read as dictionaries.
    """

    rule: LabelRule
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    format: str = "parquet"

    @abstractmethod
    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """Estimated memory in bytes of a Parquet row group after decoding to a piece."""

    @abstractmethod
    def piece(self, rows: pa.RecordBatch, source: Slice) -> Piece:
        """Convert the decoded columns of a slice to rows.

        Raises `WrongInput` with the position of an error.
        """

    def groups(self) -> Iterator[tuple[pq.ParquetFile, Slice]]:
        """Non-empty row groups of all files, each with its open file."""
        for path in self.paths:
            with opened(path, self.texts) as file:
                for group in groups_of(file, path):
                    yield file, group

    def pieces(self, scratch: Path) -> Iterator[Slice]:
        """Slices of all files; those of large row groups are written to `scratch`.

        Raises `WrongInput` for a damaged file.
        """
        for file, whole in self.groups():
            size = self.decoded_bytes(file, whole.group)
            if size <= GROUP_BYTES:
                yield whole
            else:
                at_once = max(whole.n_rows * PIECE_BYTES // size, 1)
                prefix = scratch / f"slice-{self.paths.index(whole.path)}-{whole.group}"
                yield from _split_group(file, whole, self.columns, at_once, prefix)

    def read(self, piece: Slice) -> Piece:
        """Read the rows of a slice.

        Raises `WrongInput` with the file, row group, row and column of an error.
        """
        if piece.file is not None:
            with pa.OSFile(str(piece.file), "rb") as handle:
                return self.piece(pa.ipc.open_file(handle).get_batch(0), piece)
        with opened(piece.path, self.texts) as file:
            batches = batches_of(file, piece.group, self.columns, piece.n_rows)
            rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
        return self.piece(rows, piece)

    def release(self, piece: Slice) -> None:
        """Delete the scratch file of a slice, if there is one."""
        if piece.file is not None:
            piece.file.unlink(missing_ok=True)


def _share(size: int, all_rows: int, first: int, n_rows: int) -> int:
    """Share of `size` bytes that belongs to `n_rows` of `all_rows` rows, starting at row `first`.

    The rounding is such that the shares of all rows add up to `size`.
    """
    return size * (first + n_rows) // all_rows - size * first // all_rows


def _split_group(
    file: pq.ParquetFile, whole: Slice, columns: Sequence[str], at_once: int, prefix: Path
) -> Iterator[Slice]:
    """Split a large row group into slices of `at_once` rows, each written to its own file.

    The file names begin with `prefix`.
    """
    done = 0
    for batch in batches_of(file, whole.group, columns, at_once):
        target = Path(f"{prefix}-{done}.arrow")
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        n_bytes = _share(whole.n_bytes, whole.n_rows, done, batch.num_rows)
        yield Slice(whole.path, whole.group, whole.first + done, batch.num_rows, n_bytes, target)
        done += batch.num_rows
