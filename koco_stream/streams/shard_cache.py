"""Cached copies of dataset shards: uncompressed Arrow files, memory-mapped by all processes.

The first process that needs a copy makes it under the shard's lock. `KOCO_CACHE_BYTES` limits all
copies, by default to half of the disk's free space. The least recently used ones make room, and
stay readable where they are mapped.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from koco_stream.io.cache import cache_folder, private_folder
from koco_stream.io.files import file_hash, locked, written_atomically
from koco_stream.io.fingerprint import free_bytes
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import Manifest, Shard, dataset_path

LIMIT = "KOCO_CACHE_BYTES"
FOLDER = "datasets"
FRAME_BYTES = 1 << 13  # an upper bound on an Arrow file's size besides its columns


def read_shard(store: AnyPath, manifest: Manifest, shard: Shard) -> pa.Table:
    """Read a shard and verify its hash; each column is one contiguous array."""
    source = dataset_path(store, manifest.name) / shard.path
    try:
        with source.local() as file:  # downloads once from an object store
            if file_hash(file) != shard.sha256:
                raise WrongInput(
                    f"{source} is not the file that was prepared: it was altered or damaged;"
                    " prepare the dataset again"
                )
            table = pq.ParquetFile(file, memory_map=True).read().combine_chunks()
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise WrongInput(f"{source}: {error}; prepare the dataset again") from None
    if wrong := _difference(table, manifest, shard):
        raise WrongInput(f"{source} has {wrong} in the manifest; prepare the dataset again")
    return table


def _difference(table: pa.Table, manifest: Manifest, shard: Shard) -> str | None:
    """What a shard has unlike the manifest, which compiled code trusts."""
    value = pa.float32() if manifest.value_type == "float32" else pa.float64()
    kinds = {"label": pa.float64(), "values": pa.list_(value, manifest.n_features)}
    if manifest.layout == "sparse":
        kinds |= {"values": pa.list_(value), "indices": pa.list_(pa.int32())}
    found = {name: table.schema.field(name).type for name in kinds if name in table.column_names}
    if found != kinds:
        return f"columns {found}, and {kinds} would be those"
    if table.num_rows != shard.n_rows:
        return f"{table.num_rows} rows, and {shard.n_rows}"
    if manifest.layout == "sparse":
        indices = pc.list_flatten(table.column("indices"))
        if len(indices) != shard.n_values:
            return f"{len(indices)} values, and {shard.n_values}"
        ends = pc.min_max(indices).as_py()
        if len(indices) and not 0 <= ends["min"] <= ends["max"] < manifest.n_features:
            return f"feature {ends['max']}, and {manifest.n_features} features from 0 on"
    return None


def open_copy(store: AnyPath, manifest: Manifest, number: int) -> pa.RecordBatch:
    """A shard as a view of its copy, which is made if needed."""
    shard = manifest.shards[number]
    path = (
        private_folder(FOLDER, manifest.dataset_hash[:32])
        / f"{number:05d}-{shard.sha256[:16]}.arrow"
    )
    batch = _mapped(path, shard)
    if batch is None:
        with locked(_lock(path)):
            if _mapped(path, shard) is None:  # another process may have made it meanwhile
                _make(path, read_shard(store, manifest, shard))
                pa.default_memory_pool().release_unused()
            batch = _mapped(path, shard)
    assert batch is not None  # no process removes a copy whose lock is held
    return batch


def check_room(manifest: Manifest) -> None:
    """Raise `WrongInput` if the copies of all shards exceed the cache limit."""
    needed, limit = sum(copy_bytes(manifest, shard) for shard in manifest.shards), cache_limit()
    if needed > limit:
        raise WrongInput(
            f"dataset {manifest.name!r}: a full shuffle needs all of its shards at once, {needed:,}"
            f" bytes in the cache folder {cache_folder()}, whose limit is {limit:,}; use"
            f' order = "shuffled-in-windows" in the sweep file, or set {LIMIT} to a larger limit,'
            " or KOCO_CACHE to a folder on a larger disk"
        )


def cache_limit() -> int:
    """The most bytes of all shard copies."""
    given = os.environ.get(LIMIT)
    if given is not None:
        if not given.isascii() or not given.isdigit() or int(given) == 0:
            raise WrongInput(
                f"{LIMIT} is {given!r}; give a positive whole number of bytes, such as 20000000000,"
                " or unset it"
            )
        return int(given)
    folder = cache_folder() / FOLDER
    return ((free_bytes(folder) or 0) + sum(size for _, _, size in _files(folder))) // 2


def copy_bytes(manifest: Manifest, shard: Shard) -> int:
    """An upper bound on a copy's bytes."""
    value = 4 if manifest.value_type == "float32" else 8
    a_row, a_value = (8, value) if manifest.layout == "dense" else (16, 4 + value)
    return a_row * shard.n_rows + a_value * shard.n_values + FRAME_BYTES


def copies_of(manifest: Manifest) -> list[Path]:
    """The copies of a dataset's shards, finished or not."""
    folder = cache_folder() / FOLDER
    return [file for _, file, _ in _files(folder) if file.parent.name == manifest.dataset_hash[:32]]


def remove_copies(manifest: Manifest) -> None:
    """Remove a dataset's copies that no process is making."""
    for path in copies_of(manifest):
        _removed(path)


def _mapped(path: Path, shard: Shard) -> pa.RecordBatch | None:
    """Open a copy, if it is whole, and mark it as used."""
    try:
        # The views keep the memory map alive; closing the source releases the file handle.
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            batch = reader.get_batch(0) if reader.num_record_batches == 1 else None
        os.utime(path, ns=(time.time_ns(),) * 2)  # the file system's own clock is too coarse
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    return batch if batch is not None and batch.num_rows == shard.n_rows else None


def _make(path: Path, table: pa.Table) -> None:
    for left in path.parent.glob(f".{path.name}.*"):  # by a process that has ended
        left.unlink()
    remedy = "free some space on its disk, or set KOCO_CACHE to a folder on another disk"
    with written_atomically(path, remedy) as unfinished, unfinished.open("wb") as handle:
        _reserve(handle.fileno(), table.nbytes + FRAME_BYTES, path)
        with pa.ipc.new_file(handle, table.schema) as writer:
            writer.write_table(table)
        handle.truncate()


def _reserve(handle: int, needed: int, path: Path) -> None:
    """Make room for a copy and extend its file, so that others count it."""
    root = private_folder(FOLDER)
    with locked(root / "room.lock"):
        others = [
            (file, size) for _, file, size in sorted(_files(root)) if _lock(file) != _lock(path)
        ]
        limit, used = cache_limit(), needed + sum(size for _, size in others)
        for file, size in others:
            # An unfinished copy whose lock is free was left by a process that has ended.
            if (used > limit or file.suffix == ".tmp") and _removed(file):
                used -= size
        os.ftruncate(handle, needed)


def _lock(path: Path) -> Path:
    """The lock of a copy, finished or not."""
    return path.with_name(f"{path.name.lstrip('.').partition('.')[0]}.lock")


def _removed(path: Path) -> bool:
    with suppress(BlockingIOError), locked(_lock(path), wait=False):
        path.unlink(missing_ok=True)
        return True
    return False


def _files(root: Path) -> Iterator[tuple[int, Path, int]]:
    """Each copy's last use (0 if the clock was ahead), path and bytes."""
    now = time.time_ns()
    for path in root.glob("*/*"):
        if path.suffix in (".arrow", ".tmp"):
            with suppress(FileNotFoundError):
                state = path.stat()
                used = state.st_mtime_ns
                yield used if used <= now else 0, path, state.st_size
