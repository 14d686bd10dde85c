"""Preparing a dataset: source → transformations → shards and manifest, all or nothing."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from koco_stream.files import file_hash, locked, sync_file, sync_folder, write_text
from koco_stream.linalg import Array
from koco_stream.manifest import Manifest, Shard, datasets_folder
from storage.sources import Reading, read_sources
from storage.store import LOCK, check_store, open_store, staging_folder
from storage.table import Table
from storage.transform import transform

VALUES_PER_SHARD = 4_000_000
MOST_CLASSES = 200
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,=-]*\Z")


def prepare_file(
    store: str | Path,
    name: str,
    source: Path | Sequence[Path],
    *,
    scale: str = "none",
    task: str | None = None,
    values_per_shard: int = VALUES_PER_SHARD,
    **reading: Any,
) -> Manifest:
    """Prepare the file `source`, or several of them in order, as dataset `name` of the store. `reading` are the fields of `Reading`.

    `task` is "classification" or "regression"; if None, a CSV file whose target takes more than 20 values, or any label that is not a whole
    number, is taken for regression. Raises `WrongInput` naming the place and the remedy; the store is then as it was.
    """
    check_store(Path(store).expanduser().absolute())
    check_name(name)
    sources = [source] if isinstance(source, Path) else list(source)
    how = Reading(**reading)
    table = read_sources(sources, how)
    files = [{"file": path.name, "sha256": file_hash(path)} for path in sources]
    origin = {**how.given(), "files": files, "format": table.format}
    return publish(store, name, table, origin, scale=scale, task=task, values_per_shard=values_per_shard)


def check_name(name: str) -> None:
    """Refuse a name that could not be a folder's."""
    if not NAME.match(name):
        raise WrongInput(f"{name!r} cannot be a dataset's name; use letters, digits and . _ - = , and begin with a letter or digit")


def publish(
    store: str | Path,
    name: str,
    table: Table,
    origin: dict[str, Any],
    *,
    scale: str = "none",
    task: str | None = None,
    values_per_shard: int = VALUES_PER_SHARD,
) -> Manifest:
    """Write `table` as dataset `name`: shards first, then the manifest, whose rename makes it visible."""
    kind = task or guess_task(table)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused next
        table, done = transform(table, scale, kind)
        check_finite(table, scale)
        values = narrowed(table.values)
    table = replace(table, values=values)
    identity = dataset_hash(table)
    distinct = np.unique(table.labels) if kind == "classification" else np.zeros(0)
    if distinct.size > MOST_CLASSES:
        raise WrongInput(f"the labels take {distinct.size} values; for real targets add --task regression")
    root = Path(store).expanduser().absolute()
    with staging_folder(root) as staging:
        shards = write_shards(table, staging, identity[:16], values_per_shard)
        n2 = np.add.reduceat(np.append(values.astype(np.float64) ** 2, 0.0), table.indptr[:-1]) if values.size else np.zeros(1)
        n2 = np.where(np.diff(table.indptr) > 0, n2, 0.0)
        manifest = Manifest(
            name=name,
            n_rows=table.labels.size,
            n_features=table.n_features,
            n_values=int(values.size),
            layout=table.layout,
            value_type=str(values.dtype),
            task=kind,
            classes=[float(c) for c in distinct],
            dataset_hash=identity,
            shards=shards,
            source=origin,
            transformations=[*table.done, *done],
            statistics={
                "label_min": float(table.labels.min()),
                "label_max": float(table.labels.max()),
                "label_mean": float(table.labels.mean()),
                "mean_square_norm": float(n2.mean()),
                "empty_rows": int((np.diff(table.indptr) == 0).sum()),
            },
            feature_names=table.feature_names,
        )
        open_store(root)
        folder = datasets_folder(root) / name
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / identity[:16]
        with locked(root / LOCK):
            manifest, target = place_shards(staging, folder, manifest)
            write_text(folder / "manifest.json", manifest.to_json())
            for old in folder.iterdir():
                if old.is_dir() and old != target:
                    shutil.rmtree(old, ignore_errors=True)
    return manifest


def check_finite(table: Table, scale: str) -> None:
    """Refuse a table with a label, a value or a row's square norm that is no finite number. Raises `WrongInput` naming the row."""
    after = "" if scale == "none" else f" after --scale {scale}"
    for what, bad in (("label", ~np.isfinite(table.labels)), ("value", ~np.isfinite(table.values))):
        if bad.any():
            place = int(np.flatnonzero(bad)[0])
            row = place if what == "label" else int(np.searchsorted(table.indptr, place, side="right")) - 1
            raise WrongInput(f"row {row + 1} has a {what} that is no finite number{after}; the source's numbers are too large: divide them")
    if not np.isfinite(np.sum(table.values**2)) or not np.isfinite(table.labels.sum()):
        raise WrongInput(
            f"the largest value is {np.abs(table.values).max(initial=0.0):g} and the largest label {np.abs(table.labels).max():g}"
            f"{after}: their squares or sums are beyond what a number can hold; divide them, for example with --scale unit-rows"
        )


def place_shards(staging: Path, folder: Path, manifest: Manifest) -> tuple[Manifest, Path]:
    """Move the shards from `staging` into the dataset's `folder`; returns the manifest that has their place, and that place.

    Nothing there is replaced, because the present manifest may point to it: the same files stay, and others get a folder of their own.
    """
    name = Path(manifest.shards[0].path).parent.name
    target, number = folder / name, 1
    while target.exists():
        if all(_is_file(target / Path(shard.path).name, shard.sha256) for shard in manifest.shards):
            break
        number += 1
        target = folder / f"{name}-{number}"
    else:
        (staging / name).replace(target)
        sync_folder(folder)
    shards = [replace(shard, path=f"{target.name}/{Path(shard.path).name}") for shard in manifest.shards]
    return replace(manifest, shards=shards), target


def _is_file(path: Path, sha256: str) -> bool:
    return path.is_file() and file_hash(path) == sha256


def guess_task(table: Table) -> str:
    """Regression if a label is not a whole number, or a CSV or space-separated target takes more than 20 values; else classification."""
    distinct = np.unique(table.labels)
    if (distinct != np.rint(distinct)).any() or (table.format in ("csv", "space") and distinct.size > 20):
        return "regression"
    return "classification"


def narrowed(values: Array) -> Array:
    """The values as float32 if that loses nothing, else as they are: half the memory for counts and the like, the same numbers."""
    small = values.astype(np.float32)
    return small if (small.astype(np.float64) == values).all() else values


def dataset_hash(table: Table) -> str:
    """The dataset's identity: SHA-256 over its schema and its rows in canonical form, whatever the sharding or compression."""
    parts = (table.labels, np.diff(table.indptr).astype(np.int64), table.indices, table.values)
    digest = hashlib.sha256(f"koco-stream rows 1|{table.n_features}|{table.layout}|{table.values.dtype}".encode())
    for part in parts:
        digest.update(hashlib.sha256(np.ascontiguousarray(part).tobytes()).digest())
    return digest.hexdigest()


def write_shards(table: Table, staging: Path, folder: str, values_per_shard: int) -> list[Shard]:
    """Parquet files of consecutive rows, at most `values_per_shard` values each (one row at least)."""
    (staging / folder).mkdir()
    shards: list[Shard] = []
    lo = 0
    while lo < table.labels.size:
        hi = int(np.searchsorted(table.indptr, table.indptr[lo] + values_per_shard, side="right")) - 1
        hi = min(max(hi, lo + 1), table.labels.size)
        path = f"{folder}/{len(shards):05d}.parquet"
        pq.write_table(arrow_rows(table, lo, hi), staging / path, compression="zstd", compression_level=9, row_group_size=1 << 20)
        sync_file(staging / path)
        shards.append(Shard(path, hi - lo, int(table.indptr[hi] - table.indptr[lo]), file_hash(staging / path)))
        lo = hi
    return shards


def arrow_rows(table: Table, lo: int, hi: int) -> pa.Table:
    """Rows lo to hi as prepared rows: `label`, then `indices` and `values`, or `values` of fixed size."""
    a, b = table.indptr[lo], table.indptr[hi]
    metadata = {"n_features": str(table.n_features), "label": "the target as in the source, after the transformations"}
    if table.layout == "dense":
        values = pa.FixedSizeListArray.from_arrays(pa.array(table.values[a:b]), table.n_features)
        return pa.table({"label": table.labels[lo:hi], "values": values}).replace_schema_metadata(metadata)
    offsets = pa.array((table.indptr[lo : hi + 1] - a).astype(np.int32))
    return pa.table(
        {
            "label": table.labels[lo:hi],
            "indices": pa.ListArray.from_arrays(offsets, pa.array(table.indices[a:b])),
            "values": pa.ListArray.from_arrays(offsets, pa.array(table.values[a:b])),
        }
    ).replace_schema_metadata(metadata)
