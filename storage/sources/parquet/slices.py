"""What the sources of Parquet files have in common: their files are cut into slices of bounded
size, of which some columns are read.

A slice is a row group as it is, or, if it is large, cut up by the process that names the slices. A
row group can only be decoded from its beginning, so the slices of a large one are written to a
scratch folder as they are decoded.
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

GROUP_BYTES = 4 * PIECE_BYTES  # a row group whose rows take no more in memory is read at once


class Slice(NamedTuple):
    """Rows of one row group: `first` is the number of the first in the file, `group` that of the
    group, both from 0; `n_bytes` is what they count for of the file; `file` has them, if they were
    cut out.
    """

    path: Path
    group: int
    first: int
    n_rows: int
    n_bytes: int
    file: Path | None = None

    def at(self, row: int) -> str:
        """The place of the slice's row `row`, from 0, in words; there it is counted from 1."""
        return f"{self.path}, row group {self.group + 1}, row {self.first + int(row) + 1}"


@contextmanager
def opened(path: Path, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """The file, its columns `texts` to be read as dictionaries. Within, what Arrow finds wrong is
    raised as `WrongInput` naming the file.

    Raises `OSError` for a file that cannot be read.
    """
    with path.open("rb"):  # what the system has against it, in its own words
        pass
    try:
        with pq.ParquetFile(
            path,
            read_dictionary=list(texts),
            pre_buffer=False,
            buffer_size=1 << 16,
            page_checksum_verification=True,
        ) as file:
            # fails for names that are no text
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
    """The row groups of an open file that have rows, each as one slice; they count for the file's
    bytes by their rows.
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
    """The rows of a row group, `at_once` at a time. Checked in full, because Arrow reads places
    beyond a dictionary from damaged files.
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
    """How many items the lists of a column have in a row group that has rows."""
    # pyarrow ends the process where its view of a damaged column chunk throws; reading from the
    # chunk first throws as it should
    next(file.iter_batches(1, row_groups=[group], columns=[column], use_threads=False), None)
    chunk = file.metadata.row_group(group).column(file.schema_arrow.names.index(column))
    return int(chunk.num_values)


@dataclass(kw_only=True)
class ParquetRows(Source):
    """A `Source` of Parquet files, one after the other, of which `columns` are read, those in
    `texts` as dictionaries.
    """

    rule: LabelRule
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    format: str = "parquet"

    @abstractmethod
    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """What the rows of a row group take in memory as a piece, at most or about."""

    @abstractmethod
    def piece(self, rows: pa.RecordBatch, source: Slice) -> Piece:
        """The rows of a slice as the source gives them. Raises `WrongInput` naming the place."""

    def groups(self) -> Iterator[tuple[pq.ParquetFile, Slice]]:
        """The row groups of all files, each with the open file."""
        for path in self.paths:
            with opened(path, self.texts) as file:
                for group in groups_of(file, path):
                    yield file, group

    def pieces(self, scratch: Path) -> Iterator[Slice]:
        """The slices of all files; those of a large row group are written to `scratch`. Raises
        `WrongInput` for a damaged file.
        """
        for file, whole in self.groups():
            size = self.decoded_bytes(file, whole.group)
            if size <= GROUP_BYTES:
                yield whole
            else:
                at_once = max(whole.n_rows * PIECE_BYTES // size, 1)
                prefix = scratch / f"slice-{self.paths.index(whole.path)}-{whole.group}"
                yield from _cut(file, whole, self.columns, at_once, prefix)

    def read(self, piece: Slice) -> Piece:
        """The rows of a slice. Raises `WrongInput` naming file, row group, row and column."""
        if piece.file is not None:
            with pa.OSFile(str(piece.file), "rb") as handle:
                return self.piece(pa.ipc.open_file(handle).get_batch(0), piece)
        with opened(piece.path, self.texts) as file:
            batches = batches_of(file, piece.group, self.columns, piece.n_rows)
            rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
        return self.piece(rows, piece)

    def release(self, piece: Slice) -> None:
        """Remove the file that was written for the slice, if there is one."""
        if piece.file is not None:
            piece.file.unlink(missing_ok=True)


def _share(size: int, all_rows: int, first: int, n_rows: int) -> int:
    """What rows count for of `size` bytes, so that all together make up the whole."""
    return size * (first + n_rows) // all_rows - size * first // all_rows


def _cut(
    file: pq.ParquetFile, whole: Slice, columns: Sequence[str], at_once: int, prefix: Path
) -> Iterator[Slice]:
    """The slices of a large row group, each in a file whose name begins with `prefix`."""
    done = 0
    for batch in batches_of(file, whole.group, columns, at_once):
        target = Path(f"{prefix}-{done}.arrow")
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        n_bytes = _share(whole.n_bytes, whole.n_rows, done, batch.num_rows)
        yield Slice(whole.path, whole.group, whole.first + done, batch.num_rows, n_bytes, target)
        done += batch.num_rows
