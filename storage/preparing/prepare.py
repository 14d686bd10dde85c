"""Preparation of a dataset: source, chunks, statistics, shards and manifest."""

import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count, pairwise, tee
from pathlib import Path
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.cache import private_folder
from koco_stream.io.files import NO_ROOM, sync
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.streams.manifest import Manifest, dataset_path
from storage.preparing.facts import known_rows, with_facts, without_missing
from storage.preparing.files import (
    MOST_DISTINCT,
    Chunk,
    Chunks,
    Cover,
    Written,
    block_end,
    identity_of,
    is_narrow,
    ranges_of,
    store_piece,
    write_shard,
)
from storage.preparing.transform import Shape, Transformation, check_choices, fits_dense
from storage.sources.reading import source_of
from storage.sources.source import ParallelMap, Reading, Source
from storage.store import LOCK, check_store, open_store, staging_folder

VALUES_PER_SHARD = 4_000_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,=-]{0,199}\Z")
# tasks submitted per worker: enough to keep it busy, few enough to limit the scratch files
IN_FLIGHT = 3
TABLES = ("csv", "space", "arff", "parquet")  # formats whose sources have columns
REAL_FROM = 20  # with more distinct values, the target column of a table is taken as real-valued

# called with the step's name, bytes done, bytes in total, and rows so far
Progress = Callable[[str, int, int, int], object]


@dataclass(frozen=True)
class Preparing:
    """Options of the preparation, besides those for reading the source."""

    layout: str | None = None
    scale: str = "none"
    scale_rows: int | None = None
    hash_bits: int | None = None
    task: str | None = None
    values_per_shard: int = VALUES_PER_SHARD
    parallel_map: ParallelMap = map
    progress: Progress = lambda *_: None


def prepare_file(
    store: AnyPath, name: str, source: Path | Sequence[Path], **options: Any
) -> Manifest:
    check_store(store)
    check_name(name)
    how = {one.name: options.pop(one.name) for one in fields(Preparing) if one.name in options}
    paths = [source] if isinstance(source, Path) else list(source)
    return prepare_source(store, name, source_of(paths, Reading(**options)), Preparing(**how))


def check_name(name: str) -> None:
    if not NAME.match(name):
        raise WrongInput(
            f"{name!r} cannot be a dataset's name; use up to 200 letters, digits and . _ - = , and"
            " begin with a letter or digit"
        )


def prepare_source(
    store: AnyPath, name: str, source: Source, how: Preparing | None = None
) -> Manifest:
    how = how or Preparing()
    check = partial(
        check_choices,
        layout=how.layout,
        scale=how.scale,
        bits=how.hash_bits,
        scale_rows=how.scale_rows,
        missing=source.missing,
    )
    check(source.layout)
    root = store_path(store)
    scratch_root = root.path if root.is_local else private_folder("preparing")
    try:
        with staging_folder(scratch_root) as staging:
            scratch = staging / "scratch"
            shards = staging / "shards"
            scratch.mkdir()
            shards.mkdir()
            source = source.surveyed(how.parallel_map, scratch)
            check(source.layout)
            chunks = Chunks(read_chunks(source, scratch, how))
            known = known_rows(pairwise(chunks.firsts), chunks.n_rows, how.scale_rows)
            source, chunks = without_missing(source, chunks, known, how.parallel_map)
            return publish(
                root, shards, write_shards(name, source, chunks, how, shards), how.parallel_map
            )
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise OSError(
            error.errno,
            f"no disk space to prepare {name} in {scratch_root} ({os.strerror(error.errno)}): it"
            " needs 12 bytes per value in addition to the dataset; free some space there, or"
            " choose another --store",
        ) from None


def read_chunks(source: Source, scratch: Path, how: Preparing) -> Iterator[Chunk]:
    done = rows = 0
    to_read, to_release = tee(source.pieces(scratch))
    paths = (scratch / f"chunk-{number:07d}.arrow" for number in count())
    stored = how.parallel_map(partial(store_piece, source), zip(to_read, paths, strict=False))
    for chunk, piece in zip(stored, to_release, strict=True):
        source.release(piece)
        done = done + chunk.n_bytes
        rows = rows + chunk.n_rows
        how.progress("reading", done, source.n_bytes, rows)
        yield chunk


def write_shards(
    name: str, source: Source, chunks: Chunks, how: Preparing, folder: Path
) -> Manifest:
    transformation = transformation_for(source, chunks, how)
    ranges = list(ranges_of(chunks, transformation, how.values_per_shard))
    transformation = with_facts(
        transformation,
        chunks,
        known_rows(ranges, chunks.n_rows, how.scale_rows),
        how.parallel_map,
        folder.parent / "facts.npy",
    )
    check = partial(is_narrow, transformation=transformation)
    covers = (chunks.cover(*rows) for rows in ranges)
    single = all(chunk.single for chunk in chunks.chunks)
    if transformation.scale != "none" or transformation.bits is not None:
        # usually the first range decides, and the others need not be read
        single = check(next(covers)) and all(how.parallel_map(check, covers))
    write = partial(write_shard, folder=folder, transformation=transformation, single=single)
    written = list(written_shards(write, chunks, ranges, how))
    sums = np.vstack([one.sums for one in written])
    label_min, label_max = transformation.label_range
    classes = (chunks.labels or []) if transformation.task == "classification" else []
    shape: dict[str, Any] = {
        "n_rows": chunks.n_rows,
        "n_features": transformation.n_features,
        "layout": transformation.kept,
        "value_type": "float32" if single else "float64",
    }
    names = source.class_names
    return Manifest(
        **shape,
        name=name,
        n_values=sum(one.shard.n_values for one in written),
        task=transformation.task,
        classes=classes,
        dataset_hash=identity_of((one.digests for one in written), **shape),
        shards=[one.shard for one in written],
        source=source.origin,
        transformations=[*source.done, *transformation.done],
        statistics={
            "label_min": label_min,
            "label_max": label_max,
            "label_mean": math.fsum(sums[:, 0].tolist()) / chunks.n_rows,
            "mean_square_norm": math.fsum(sums[:, 1].tolist()) / chunks.n_rows,
            "empty_rows": sum(one.empty_rows for one in written),
        },
        feature_names=source.feature_names if transformation.bits is None else [],
        changes=tuple(source.changes),
        class_names=[names[label] for label in classes] if names else [],
    )


def transformation_for(source: Source, chunks: Chunks, how: Preparing) -> Transformation:
    every = chunks.chunks
    labels = chunks.labels
    task = how.task
    of_columns = source.format in TABLES
    if task is None:
        many = (labels is None or len(labels) > REAL_FROM) and not source.class_names
        real = (of_columns and many) or not all(chunk.whole for chunk in every)
        task = "regression" if real else "classification"
    if task == "classification" and labels is None:
        raise WrongInput(
            f"there are more than {MOST_DISTINCT} distinct labels; for real targets add --task"
            " regression"
        )
    shape = Shape(
        n_rows=chunks.n_rows,
        n_features=source.n_features or max(chunk.n_features for chunk in every),
        n_values=chunks.n_values,
        layout=source.layout,
        least=min(chunk.least for chunk in every),
        label_min=min(chunk.label_min for chunk in every),
        label_max=max(chunk.label_max for chunk in every),
    )
    layout = how.layout
    if of_columns and layout is None and how.scale == "minmax" and shape.least < 0:
        # else no row would stay sparse, and the table is none of a sparse source
        layout = "dense" if how.hash_bits is None and fits_dense(shape) else None
    return Transformation(shape, layout, how.scale, how.hash_bits, task, how.scale_rows)


def written_shards(
    write: Callable[[Any], Written],
    chunks: Chunks,
    ranges: Sequence[tuple[int, int]],
    how: Preparing,
) -> Iterator[Written]:
    def tasks() -> Iterator[tuple[str, int, Cover, Cover]]:
        for number, (start, stop) in enumerate(ranges):
            first_block = block_end(start, chunks.n_rows)
            end = block_end(stop, chunks.n_rows)
            beyond = chunks.cover(stop, end) if first_block < stop < end else []
            yield f"{number:05d}.parquet", start, chunks.cover(start, stop), beyond

    values = rows = 0
    for written in how.parallel_map(write, tasks()):
        values = values + written.shard.n_values
        rows = rows + written.shard.n_rows
        how.progress("writing", 12 * values, 12 * chunks.n_values, rows)
        yield written


def publish(
    root: StorePath, written: Path, manifest: Manifest, parallel_map: ParallelMap
) -> Manifest:
    """Publish the files in `written`: writing the manifest makes them visible atomically."""
    open_store(root)
    folder = dataset_path(root, manifest.name)
    with (root / LOCK).locked():
        target = put_files(written, folder, manifest, parallel_map)
        shards = [replace(shard, path=f"{target}/{shard.path}") for shard in manifest.shards]
        manifest = replace(manifest, shards=shards)
        (folder / "manifest.json").write_text(manifest.to_json())
        for name in folder.names():
            if name not in (target, "manifest.json"):
                # those of an earlier version, or files of a terminated process
                left = folder / name
                left.remove() if left.is_file() else left.remove_tree()
    return manifest


def put_files(
    written: Path, folder: StorePath, manifest: Manifest, parallel_map: ParallelMap
) -> str:
    """Add the files in `written` to the dataset's `folder`; returns the name of their subfolder."""
    name = manifest.dataset_hash[:16]
    number = 1
    target = folder / name
    names = sorted(shard.path for shard in manifest.shards)
    while there := target.names():
        if there == names and all(
            (target / shard.path).sha256() == shard.sha256 for shard in manifest.shards
        ):
            return target.name
        number += 1
        target = folder / f"{name}-{number}"
    if target.is_local:
        target.path.parent.mkdir(parents=True, exist_ok=True)
        written.replace(target.path)
        sync(target.path.parent)
    else:
        list(parallel_map(lambda name: (target / name).put(written / name), names))
    return target.name


def map_on_dask(client: Any, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Apply a function to items on the workers of a Dask cluster, like `map`."""
    at_once = IN_FLIGHT * max(1, len(client.nthreads()))
    under_way: deque[Any] = deque()
    try:
        for item in items:
            under_way.append(client.submit(function, item, pure=False))
            if len(under_way) >= at_once:
                yield _result(client, under_way.popleft())
        while under_way:
            yield _result(client, under_way.popleft())
    finally:
        if under_way:
            client.cancel(list(under_way), force=True)


def _result(client: Any, future: Any) -> Any:
    """Wait for the task first: waiting for its result would print errors when interrupted."""
    from distributed import KilledWorker, as_completed

    try:
        return next(as_completed([future], loop=client.loop)).result()
    except KilledWorker as error:
        raise OSError(
            "several worker processes in a row were killed at the same chunk; free some memory,"
            " or use --workers 0"
        ) from error
