"""Table files: Parquet files with hashes of all their bytes, which are checked as they are read.

Parquet's own checksums cover no footer and no page header, and a bit there can take rows away. So
the SHA-256 of each block of the rows, and that of these hashes and the footer, stand between the
rows and the footer, where no reader of Parquet looks. They come and go with their file, in one
rename. A read checks the footer, and the blocks that it needs before they are parsed.
"""

import hashlib
import io
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.errors import Damaged, StoreUnavailable, WrongInput
from koco_stream.io.local import StorePath

BLOCK = 8 << 20  # bytes
HASH = 32
AGAIN = "and the sweeps will compute its runs again"
REMEDIES = {  # by the folder of the file
    "parts": "start its sweep again, which computes its runs again",
    "runs": f"remove it, {AGAIN}",
    "curves": f"remove it and the file of its name in the table runs, {AGAIN}",
    "windows": "remove it, and koco sweep --retry-failed will compute its runs again",
    "predictions": "remove it, and koco sweep --retry-failed will compute its runs again",
    "halving": "start the sweep again, which writes it anew",
    "history": "move it away, and the next nightly run begins a new history",
    "accepted": "accept a night whose numbers are right: koco nightly accept {name}",
}
T = TypeVar("T")


def write_tables(tables: Iterable[pa.Table], file: StorePath) -> None:
    """Write tables with one schema to one file, atomically, with one table in memory at a time."""
    each = iter(tables)
    first = next(each)
    with file.written() as temporary:
        with pq.ParquetWriter(
            temporary, first.schema, compression="zstd", write_page_checksum=True
        ) as writer:
            for table in chain([first], each):
                if table.num_rows:
                    writer.write_table(table)
        _add_hashes(temporary)


def _add_hashes(path: Path) -> None:
    with path.open("r+b") as file:
        end = file.seek(-8, os.SEEK_END) - int.from_bytes(file.read(4), "little")
        file.seek(0)
        hashes = b"".join(hash_of(file.read(min(BLOCK, end - at))) for at in range(0, end, BLOCK))
        footer = file.read()
        file.seek(end)
        file.write(hashes + hash_of(hashes + footer) + footer)


def hash_of(content: bytes) -> bytes:
    """The SHA-256 of some bytes."""
    return hashlib.sha256(content).digest()


class Checked(io.RawIOBase):
    """The bytes of an opened table file, each of which is checked before it is given.

    Raises `Damaged` if a hash does not match.
    """

    def __init__(self, file: StorePath, handle: pa.NativeFile) -> None:
        super().__init__()
        self.file, self.handle, self.size, self.place = file, handle, handle.size(), 0
        footer = int.from_bytes(handle.read_at(4, max(self.size - 8, 0)), "little") + 8
        left = self.size - footer - HASH  # of the rows and their hashes
        self.blocks = -(-left // (BLOCK + HASH))
        self.end = left - HASH * self.blocks
        tail = handle.read_at(self.size - self.end, self.end) if self.end > 0 else b""
        before, after = HASH * self.blocks, HASH * (self.blocks + 1)
        if hash_of(tail[:before] + tail[after:]) != tail[before:after]:
            raise Damaged(refusal(file, "the hash of its footer does not match"))
        self._tail, self._block = tail, (-1, b"")

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    seekable = readable

    def block(self, number: int) -> bytes:
        """A block of the rows."""
        if self._block[0] != number:
            start = number * BLOCK
            found = self.handle.read_at(min(BLOCK, self.end - start), start)
            if hash_of(found) != self._tail[HASH * number : HASH * (number + 1)]:
                raise Damaged(refusal(self.file, "the hash of its rows does not match"))
            self._block = number, found
        return self._block[1]

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        stop = self.size if size < 0 else min(self.place + size, self.size)
        found = []
        while self.place < stop:
            start, some = self.end, self._tail
            if self.place < self.end:
                start, some = self.place // BLOCK * BLOCK, self.block(self.place // BLOCK)
            found.append(some[self.place - start : stop - start])
            self.place += len(found[-1])
        return b"".join(found)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self.place = offset + (0, self.place, self.size)[whence]
        return self.place

    def tell(self) -> int:
        """The place of the next byte."""
        return self.place


@contextmanager
def named(file: StorePath) -> Iterator[None]:
    """Context in which a table file is read and looked at.

    Raises `WrongInput`, with the file and the remedy, whatever is raised of what it contains.
    """
    try:
        yield
    except (FileNotFoundError, StoreUnavailable, WrongInput, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # of the disk
            raise OSError(error.errno, f"{file}: {os.strerror(error.errno)}") from error
        raise WrongInput(refusal(file, str(error))) from error


def refusal(file: StorePath, why: str) -> str:
    """The message that a table file is refused, with the remedy."""
    *_, folder, name = str(file).split("/")
    remedy = REMEDIES.get(folder, "remove it").format(name=name.removesuffix(".parquet"))
    return f"{file} cannot be read ({why}); {remedy}"


def opened(file: StorePath, read: Callable[[pq.ParquetFile], T]) -> T:
    """What `read` gives of a table file. Raises `WrongInput` if it cannot be read."""

    def checked(handle: pa.NativeFile) -> T:
        with pq.ParquetFile(Checked(file, handle)) as parquet:
            return read(parquet)

    with named(file):
        return file.reading(checked)


def read_table(
    file: StorePath, columns: Sequence[str] | None = None, run_ids: Iterable[str] | None = None
) -> pa.Table:
    """Read a table file: these columns, by default all, and the rows of these runs, by default all.

    Columns that it has not are left out. Raises `WrongInput` if it cannot be read.
    """

    def read(parquet: pq.ParquetFile) -> pa.Table:
        there = parquet.schema_arrow
        names = [name for name in columns or there.names if name in there.names]
        if run_ids is None:
            return parquet.read(names).select(names)
        wanted = sorted(run_ids)
        found = [pa.Table.from_batches([], pa.schema([there.field(name) for name in names]))]
        for number in range(parquet.num_row_groups):
            first, last = _ends(parquet.metadata.row_group(number))
            at = bisect_left(wanted, first)
            if at < len(wanted) and wanted[at] <= last:
                rows = parquet.read_row_group(number, [*names, "run_id"])
                if first != last:
                    mine = pc.is_in(rows.column("run_id"), pa.array(wanted, pa.string()))
                    rows = rows.filter(mine)
                found.append(rows.select(names))
        return pa.concat_tables(found)

    return opened(file, read)


def _ends(group: pq.RowGroupMetaData) -> tuple[str, str]:
    """The first and the last run_id in a row group."""
    about = group.column(0).statistics
    return about.min, about.max


def run_groups(file: StorePath) -> list[tuple[str, int]]:
    """The run and the bytes of each row group of a file that has one or more of each run.

    Raises `WrongInput` if it cannot be read.
    """

    def read(parquet: pq.ParquetFile) -> list[tuple[str, int]]:
        groups = map(parquet.metadata.row_group, range(parquet.num_row_groups))
        return [
            (
                _ends(group)[0],
                sum(group.column(k).total_compressed_size for k in range(group.num_columns)),
            )
            for group in groups
        ]

    return opened(file, read)


def check(file: StorePath) -> None:
    """Check all bytes of a table file. Raises `WrongInput` if it cannot be read."""

    def blocks(handle: pa.NativeFile) -> None:
        checked = Checked(file, handle)
        for number in range(checked.blocks):
            checked.block(number)

    with named(file):
        file.reading(blocks)
