"""Reading of Parquet files in pieces of bounded size."""

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
from storage.sources.source import PIECE_BYTES, Source

GROUP_BYTES = 4 * PIECE_BYTES  # row groups up to this size in memory are read as one slice
ROW_BYTES = 64  # bytes that a row adds to the progress, whatever its size


class Slice(NamedTuple):
    """Consecutive rows of one row group, counted from 0."""

    path: Path
    group: int
    first: int
    n_rows: int
    file: Path | None = None

    @property
    def n_bytes(self) -> int:
        return self.n_rows * ROW_BYTES

    def at(self, row: int) -> str:
        return f"{self.path}, row group {self.group + 1}, row {self.first + int(row) + 1}"


@contextmanager
def opened(path: Path, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Errors of Arrow inside the context are raised as `WrongInput` with the file's path."""
    # raises the system's own error, such as a missing permission, before Arrow rewords it
    path.open("rb").close()
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
            f"{path}: not a Parquet file, or damaged or cut short ({said}); fetch or write it again"
        ) from None


def batches_of(
    file: pq.ParquetFile, group: int, columns: Sequence[str], at_once: int
) -> Iterator[pa.RecordBatch]:
    """Batches are fully validated: in a damaged file Arrow reads beyond a dictionary's end."""
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


@dataclass(kw_only=True)
class ParquetRows(Source):
    """Base of the Parquet sources; `texts` are read as dictionaries."""

    rule: LabelRule
    texts: tuple[str, ...]

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns that are read."""

    @abstractmethod
    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """Estimated memory in bytes of a row group after decoding."""

    def pieces(self, scratch: Path) -> Iterator[Slice]:
        for path in self.paths:
            first = 0
            with opened(path, self.texts) as file:
                for group in range(file.num_row_groups):
                    whole = Slice(path, group, first, file.metadata.row_group(group).num_rows)
                    first += whole.n_rows
                    size = self.decoded_bytes(file, group) if whole.n_rows else 0
                    if size > GROUP_BYTES:
                        at_once = max(whole.n_rows * GROUP_BYTES // size, 1)
                        yield from self._split(file, whole, at_once, scratch)
                    elif whole.n_rows:
                        yield whole

    def _split(
        self, file: pq.ParquetFile, whole: Slice, at_once: int, scratch: Path
    ) -> Iterator[Slice]:
        first = whole.first
        for batch in batches_of(file, whole.group, self.columns, at_once):
            target = scratch / f"slice-{self.paths.index(whole.path)}-{first}.arrow"
            with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as out:
                out.write_batch(batch)
            yield Slice(whole.path, whole.group, first, batch.num_rows, target)
            first += batch.num_rows

    def decoded(self, piece: Slice) -> pa.RecordBatch:
        if piece.file is not None:
            with pa.OSFile(str(piece.file), "rb") as handle:
                return pa.ipc.open_file(handle).get_batch(0)
        with opened(piece.path, self.texts) as file:
            batches = batches_of(file, piece.group, self.columns, piece.n_rows)
            return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]

    def release(self, piece: Slice) -> None:
        if piece.file is not None:
            piece.file.unlink(missing_ok=True)
