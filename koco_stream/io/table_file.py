"""Table files: Parquet files with hashes of all their bytes, which are checked as they are read.

Parquet's checksums cover no footer and no page header. So two hashes stand before the footer, where
no reader of Parquet looks: that of the rows, and that of the first hash and the footer.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

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
            about = {FORMAT_KEY: str(FORMAT), VERSION_KEY: __version__}
            writer.add_key_value_metadata({**about, **(texts or {})})
            for table in chain([first], each):
                if table.num_rows:
                    writer.write_table(table)
        _add_hashes(temporary)


def _add_hashes(path: Path) -> None:
    with path.open("r+b") as file:
        end = file.seek(-8, os.SEEK_END) - int.from_bytes(file.read(4), "little")
        file.seek(end)
        footer = file.read()
        with pa.OSFile(str(path)) as handle:
            rows = _hash_until(handle, end)
        file.seek(end)
        file.write(rows + hashlib.sha256(rows + footer).digest() + footer)


def _hash_until(handle: pa.NativeFile, end: int) -> bytes:
    digest = hashlib.sha256()
    for start in range(0, end, BLOCK):
        digest.update(handle.read_at(min(BLOCK, end - start), start))
    return digest.digest()


def _check_hashes(file: StorePath, handle: pa.NativeFile, rows: bool) -> None:
    """Check the hash of the footer, and that of the rows if they will be read."""
    size = handle.size()
    n_footer = int.from_bytes(handle.read_at(4, max(size - 8, 0)), "little") + 8
    end = size - n_footer - 2 * HASH
    tail = handle.read_at(size - end, end) if end > 0 else b""
    of_rows, of_footer, footer = tail[:HASH], tail[HASH : 2 * HASH], tail[2 * HASH :]
    if hashlib.sha256(of_rows + footer).digest() != of_footer:
        raise Damaged(refusal(file, "the hash of its footer does not match"))
    if rows and _hash_until(handle, end) != of_rows:
        raise Damaged(refusal(file, "the hash of its rows does not match"))


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
    return REMEDIES.get(folder, "remove it").format(name=name.removesuffix(".parquet"))


def opened(
    file: StorePath, read: Callable[[pq.ParquetFile, pa.NativeFile], T], rows: bool = True
) -> T:
    """The result of `read` on a table file, whose hashes are checked; its rows', with `rows`."""

    def checked(handle: pa.NativeFile) -> T:
        if handle.size() <= BLOCK:  # an object is then fetched once
            handle = pa.BufferReader(handle.read_buffer())
        _check_hashes(file, handle, rows)
        with pq.ParquetFile(handle) as parquet:
            texts = parquet.metadata.metadata or {}
            found = texts.get(FORMAT_KEY, b"unknown").decode()
            if found != str(FORMAT):
                wrote = texts.get(VERSION_KEY, b"").decode()
                raise Unreadable(f"{file} {other_format(found, FORMAT, remedy_for(file), wrote)}")
            return read(parquet, handle)

    with named(file):
        return file.reading(checked)


def read_table(
    file: StorePath, columns: Sequence[str] | None = None, run_ids: Iterable[str] | None = None
) -> pa.Table:
    """Read these columns and these runs' rows, by default all."""

    def read(parquet: pq.ParquetFile, handle: pa.NativeFile) -> pa.Table:
        known = parquet.schema_arrow.names
        names = list(columns or known)
        if missing := [name for name in names if name not in known]:
            raise pa.ArrowInvalid(f"it has no column {missing[0]}")
        if run_ids is None:
            return parquet.read(names).select(names)
        wanted = pc.field("run_id").isin(pa.array(sorted(run_ids), pa.string()))
        return pq.read_table(handle, columns=names, filters=wanted).select(names)

    return opened(file, read)


def first_runs(file: StorePath) -> list[str]:
    """The least run_id of each row group of a table file."""

    def read(parquet: pq.ParquetFile, _: pa.NativeFile) -> list[str]:
        groups = map(parquet.metadata.row_group, range(parquet.num_row_groups))
        return [group.column(0).statistics.min for group in groups]

    return opened(file, read, rows=False)


def check(file: StorePath) -> None:
    """Check all bytes of a table file."""
    opened(file, lambda *_: None)
