"""Parquet files in slices of bounded size: a row group as it is, or, if it is large, cut up by the
process that names the slices.

A row group can only be decoded from its beginning, so the slices of a large one are written to a
scratch folder as they are decoded.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from storage.sources.source import PIECE_BYTES

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
    if not path.is_file():
        raise WrongInput(f"{path}: no such file; give Parquet files with --from")
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
            file.schema_arrow.to_string(
                show_schema_metadata=False
            )  # fails for names that are no text
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
    """How many items the lists of a column have in a row group."""
    # pyarrow ends the process where its view of a damaged column chunk throws; reading from the
    # chunk first throws as it should
    if (
        next(file.iter_batches(1, row_groups=[group], columns=[column], use_threads=False), None)
        is None
    ):
        return 0
    return int(
        file.metadata.row_group(group).column(file.schema_arrow.names.index(column)).num_values
    )


def _share(size: int, all_rows: int, first: int, n_rows: int) -> int:
    """What rows count for of `size` bytes, so that all together make up the whole."""
    return size * (first + n_rows) // all_rows - size * first // all_rows


def slices(
    path: Path,
    columns: Sequence[str],
    texts: Sequence[str],
    decoded_bytes: Callable[[pq.ParquetFile, int], int],
    cut_to: Path,
) -> Iterator[Slice]:
    """The slices of a file of which `columns` are wanted; `decoded_bytes` says what the rows of a
    row group, by number, take in memory. Those of a large one are written to files whose names
    begin with `cut_to`. Raises as `opened` does.
    """
    with opened(path, texts) as file:
        for whole in groups_of(file, path):
            size = decoded_bytes(file, whole.group)
            if size <= GROUP_BYTES:
                yield whole
            else:
                at_once = max(whole.n_rows * PIECE_BYTES // size, 1)
                yield from _cut(file, whole, columns, at_once, cut_to)


def _cut(
    file: pq.ParquetFile, whole: Slice, columns: Sequence[str], at_once: int, cut_to: Path
) -> Iterator[Slice]:
    done = 0
    for batch in batches_of(file, whole.group, columns, at_once):
        target = cut_to.with_name(f"{cut_to.name}-{whole.group}-{done}.arrow")
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        n_bytes = _share(whole.n_bytes, whole.n_rows, done, batch.num_rows)
        yield Slice(whole.path, whole.group, whole.first + done, batch.num_rows, n_bytes, target)
        done += batch.num_rows


def rows_of(part: Slice, columns: Sequence[str], texts: Sequence[str]) -> pa.RecordBatch:
    """The rows of a slice, `texts` as dictionaries. Raises as `opened` does."""
    if part.file is not None:
        with pa.OSFile(str(part.file), "rb") as handle:
            return pa.ipc.open_file(handle).get_batch(0)
    with opened(part.path, texts) as file:
        whole = pa.Table.from_batches(batches_of(file, part.group, columns, part.n_rows))
        return whole.combine_chunks().to_batches()[0]


def remove(part: Slice) -> None:
    """Remove the file that was written for the slice, if there is one."""
    if part.file is not None:
        part.file.unlink(missing_ok=True)
