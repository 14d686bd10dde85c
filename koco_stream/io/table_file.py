"""Table files: Parquet files with hashes of all their bytes, which are checked as they are read.

Parquet's checksums cover no footer and no page header. So hashes stand before the footer, where no
reader of Parquet looks.
"""

import hashlib
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.errors import Damaged, StoreUnavailable, Unreadable, other_format
from koco_stream.io.paths import StorePath, T
from koco_stream.version import __version__

FORMAT = 1  # of what is in the file, as its footer says
FORMAT_KEY, VERSION_KEY = b"koco_format", b"koco_version"
BLOCK = 8 << 20  # bytes
HASH = 32
AGAIN = "and the sweeps will compute its runs again"
REMEDIES = {  # by the folder of the file
    "parts": f"start its sweep again, or remove it, {AGAIN}",
    "runs": f"remove it, {AGAIN}",
    "curves": f"remove it and the file of its name in the table runs, {AGAIN}",
    "windows": "remove it, and koco sweep --retry-failed will compute its runs again",
    "predictions": "remove it, and koco sweep --retry-failed will compute its runs again",
    "halving": "start the sweep again, which writes it anew",
    "history": "move it away, and the next nightly run begins a new history",
    "accepted": "accept a night whose numbers are right: koco nightly accept {name}",
}
COLUMNS: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
# Bytes that are large and all different: a dictionary and extremes would take most of the time.
PIECES = {"compression": "lz4", "use_dictionary": False, "write_statistics": False}


def write_tables(
    tables: Iterable[pa.Table], file: StorePath, texts: Mapping[bytes, str] | None = None
) -> None:
    """Write tables with one schema to one file, atomically, with `texts` in its footer."""
    each = iter(tables)
    first = next(each)
    options = PIECES if pa.binary() in first.schema.types else COLUMNS
    with file.written() as temporary:
        with pq.ParquetWriter(temporary, first.schema, **options) as writer:
            writer.add_key_value_metadata(
                {FORMAT_KEY: str(FORMAT), VERSION_KEY: __version__, **(texts or {})}
            )
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
    """A SHA-256."""
    return hashlib.sha256(content).digest()


class Hashes:
    """The hashes in an opened table file, whose footer is checked."""

    def __init__(self, file: StorePath, handle: pa.NativeFile) -> None:
        self.file, self.handle, size = file, handle, handle.size()
        footer = int.from_bytes(handle.read_at(4, max(size - 8, 0)), "little") + 8
        left = size - footer - HASH  # of the rows and their hashes
        blocks = -(-left // (BLOCK + HASH))
        self.end = left - HASH * blocks  # of the rows
        self.tail = handle.read_at(size - self.end, self.end) if self.end > 0 else b""
        before, after = HASH * blocks, HASH * (blocks + 1)
        if hash_of(self.tail[:before] + self.tail[after:]) != self.tail[before:after]:
            raise Damaged(refusal(file, "the hash of its footer does not match"))

    def check(self, first: int, last: int) -> None:
        """Check the blocks of the rows between two places."""
        for start in range(first // BLOCK * BLOCK, min(last, self.end), BLOCK):
            at = HASH * (start // BLOCK)
            found = self.handle.read_at(min(BLOCK, self.end - start), start)
            if hash_of(found) != self.tail[at : at + HASH]:
                raise Damaged(refusal(self.file, "the hash of its rows does not match"))


@contextmanager
def named(file: StorePath) -> Iterator[None]:
    """Context in which errors in a table file become `Unreadable`."""
    try:
        yield
    except (FileNotFoundError, StoreUnavailable, Unreadable, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # of the disk
            raise OSError(error.errno, f"{file}: {os.strerror(error.errno)}") from error
        raise Unreadable(refusal(file, str(error))) from error


def refusal(file: StorePath, why: str) -> str:
    """The message that refuses a table file."""
    return f"{file} cannot be read ({why}); {remedy_for(file)}"


def remedy_for(file: StorePath) -> str:
    """What to do about a refused file."""
    *_, folder, name = str(file).split("/")
    if not name.endswith(".parquet"):
        return "let the learner learn again, or use another copy"
    return REMEDIES.get(folder, "use another copy, or write it again").format(
        name=name.removesuffix(".parquet")
    )


def opened(file: StorePath, read: Callable[[pq.ParquetFile, Hashes], T]) -> T:
    """The result of `read` on a table file and its hashes."""

    def checked(handle: pa.NativeFile) -> T:
        if handle.size() <= BLOCK:  # an object is then fetched once
            handle = pa.BufferReader(handle.read_buffer())
        hashes = Hashes(file, handle)
        with pq.ParquetFile(handle) as parquet:
            texts = parquet.metadata.metadata or {}
            found = texts.get(FORMAT_KEY, b"unknown").decode()
            if found != str(FORMAT):
                wrote = texts.get(VERSION_KEY, b"").decode()
                raise Unreadable(f"{file} {other_format(found, FORMAT, remedy_for(file), wrote)}")
            return read(parquet, hashes)

    with named(file):
        return file.reading(checked)


def read_table(
    file: StorePath, columns: Sequence[str] | None = None, run_ids: Iterable[str] | None = None
) -> pa.Table:
    """Read these columns and these runs' rows, by default all."""

    def read(parquet: pq.ParquetFile, hashes: Hashes) -> pa.Table:
        there, known = parquet.schema_arrow, parquet.schema_arrow.names
        names = list(columns or known)
        if missing := [name for name in names if name not in known]:
            raise pa.ArrowInvalid(f"it has no column {missing[0]}")
        if run_ids is None:
            hashes.check(0, hashes.end)
            return parquet.read(names).select(names)
        wanted = sorted(run_ids)
        found = [pa.Table.from_batches([], pa.schema([there.field(name) for name in names]))]
        for number in range(parquet.num_row_groups):
            group = Group.of(parquet.metadata.row_group(number))
            at = bisect_left(wanted, group.first)
            if at < len(wanted) and wanted[at] <= group.last:
                hashes.check(group.start, group.start + group.n_bytes)
                rows = parquet.read_row_group(number, [*names, "run_id"])
                mine = pc.is_in(rows.column("run_id"), pa.array(wanted, pa.string()))
                found.append(rows.filter(mine).select(names))
        return pa.concat_tables(found)

    return opened(file, read)


class Group(NamedTuple):
    """A row group: its first and last run_id, and where its bytes are."""

    first: str
    last: str
    start: int
    n_bytes: int

    @staticmethod
    def of(group: pq.RowGroupMetaData) -> "Group":
        """The group that a footer describes."""
        columns = [group.column(k) for k in range(group.num_columns)]
        ends = columns[0].statistics
        start = min(one.dictionary_page_offset or one.data_page_offset for one in columns)
        return Group(ends.min, ends.max, start, sum(one.total_compressed_size for one in columns))


def groups_of(file: StorePath) -> list[Group]:
    """The row groups of a table file."""

    def read(parquet: pq.ParquetFile, _: Hashes) -> list[Group]:
        return [Group.of(parquet.metadata.row_group(k)) for k in range(parquet.num_row_groups)]

    return opened(file, read)


def check(file: StorePath) -> None:
    """Check all bytes of a table file."""
    opened(file, lambda _, hashes: hashes.check(0, hashes.end))
