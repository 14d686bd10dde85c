"""Preparing a dataset: source → parts → facts → shards and manifest, out of core, all or nothing.

Every step works on pieces of bounded size, so the memory of a process is bounded whatever the
source's size: a piece is at most 8 MB of text or one line, a shard at most 4 million values or one
row, and each is held a few times over while it changes form. Nothing that the store shows changes
before the manifest is renamed into place.
"""

import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.cache import private_folder
from koco_stream.io.files import NO_ROOM
from koco_stream.io.paths import AnyPath, LocalPath, StorePath, store_path
from koco_stream.streams.manifest import Manifest
from storage.preparing.facts import facts_for
from storage.preparing.parallel import OnDask, Serially
from storage.preparing.parts import MOST_DISTINCT, Part, Parts, store_piece
from storage.preparing.publish import publish
from storage.preparing.shards import (
    BLOCK,
    ShardTask,
    Written,
    identity_of,
    is_narrow,
    ranges_of,
    whole_blocks,
    write_shard,
)
from storage.preparing.transform import Facts, Shape, Transformation, check_choices, save_facts
from storage.sources.reading import Reading, source_of
from storage.sources.source import Source
from storage.store import check_store, staging_folder

VALUES_PER_SHARD = 4_000_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,=-]{0,199}\Z")
REAL_FROM = 20  # distinct values from which the target of columns is taken for real numbers

Progress = Callable[[str, int, int, int], None]


def no_progress(what: str, done: int, total: int, rows: int) -> None:
    """Say nothing: what is being done, how much of it is done and how much there is (bytes), rows
    so far.
    """


@dataclass(frozen=True)
class Preparing:
    """How a dataset is prepared, besides how its source is read.

    layout, scale, hash_bits: see `transform`. task: "classification", "regression", or seen from
    the labels if None (`task_of`). worker: where the work is done. progress: is told of it.
    """

    layout: str | None = None
    scale: str = "none"
    hash_bits: int | None = None
    task: str | None = None
    values_per_shard: int = VALUES_PER_SHARD
    worker: Serially | OnDask = field(default_factory=Serially)
    progress: Progress = no_progress


def prepare_file(
    store: AnyPath,
    name: str,
    source: Path | Sequence[Path],
    *,
    layout: str | None = None,
    scale: str = "none",
    hash_bits: int | None = None,
    task: str | None = None,
    values_per_shard: int = VALUES_PER_SHARD,
    worker: Serially | OnDask | None = None,
    progress: Progress = no_progress,
    **reading: Any,
) -> Manifest:
    """Prepare the file `source`, or several of them in order, as dataset `name` of the store.
    `reading` are the fields of `Reading`, the others those of `Preparing`.

    Raises `WrongInput` naming the place and the remedy; the store is then as it was.
    """
    check_store(store)
    check_name(name)
    how = Preparing(
        layout, scale, hash_bits, task, values_per_shard, worker or Serially(), progress
    )
    return prepare_source(
        store,
        name,
        source_of([source] if isinstance(source, Path) else list(source), Reading(**reading)),
        how,
    )


def check_name(name: str) -> None:
    """Refuse a name that could not be a folder's."""
    if not NAME.match(name):
        raise WrongInput(
            f"{name!r} cannot be a dataset's name; use up to 200 letters, digits and . _ - = , and"
            " begin with a letter or digit"
        )


def prepare_source(
    store: AnyPath, name: str, source: Source, how: Preparing | None = None
) -> Manifest:
    """Prepare a source as dataset `name`. Raises `WrongInput` for what is wrong with it; the store
    is then as it was.
    """
    how = how or Preparing()
    check_choices(source.layout, how.layout, how.scale, how.hash_bits)
    root = store_path(store)
    scratch_root = root.path if isinstance(root, LocalPath) else private_folder("preparing")
    try:
        with staging_folder(scratch_root) as staging:
            return prepared_in(staging, root, name, source, how)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise OSError(
            error.errno,
            f"no room for preparing {name} in {scratch_root} ({os.strerror(error.errno)}): it needs"
            " 12 bytes a value besides the dataset; make room there, or choose another --store",
        ) from None


def prepared_in(
    staging: Path, root: StorePath, name: str, source: Source, how: Preparing
) -> Manifest:
    """Prepare a source in the folder `staging`, and publish it."""
    scratch = staging / "scratch"
    scratch.mkdir()
    source = source.surveyed(how.worker.each, scratch)
    parts = Parts(list(read_parts(source, scratch, how)))
    task = how.task or task_of(source, parts.parts)
    transformation = transformation_for(source, parts, how, task)
    ranges = list(ranges_of(parts, transformation, how.values_per_shard))
    facts = facts_for(transformation, parts, whole_blocks(ranges), how.worker.compute)
    saved = save_facts(facts, staging / "facts")
    single = is_single_throughout(transformation, saved, parts, ranges, how)
    written = list(written_shards(transformation, saved, parts, ranges, single, staging, how))
    manifest = manifest_of(name, source, transformation, facts, task, parts, written, single)
    return publish(root, staging / "shards", manifest, how.worker)


def read_parts(source: Source, scratch: Path, how: Preparing) -> Iterator[Part]:
    """Read all pieces of the source, each into a file of its own. Raises `WrongInput` as the source
    does.
    """
    done = rows = 0
    under_way: deque[Any] = deque()

    def tasks() -> Iterator[tuple[Any, Path]]:
        for number, piece in enumerate(source.pieces(scratch)):
            under_way.append(piece)
            yield piece, scratch / f"part-{number:07d}.arrow"

    for part in how.worker.each(partial(_store, source), tasks()):
        source.release(under_way.popleft())
        done, rows = done + part.n_bytes, rows + part.n_rows
        how.progress("reading", done, source.n_bytes, rows)
        yield part


def _store(source: Source, task: tuple[Any, Path]) -> Part:
    return store_piece(source, *task)


def task_of(source: Source, parts: Sequence[Part]) -> str:
    """Regression if a label is not a whole number, or the target of columns takes more than 20
    values that --labels did not name; else classification.
    """
    distinct = distinct_labels(parts)
    many = (distinct is None or len(distinct) > REAL_FROM) and "labels" not in source.origin
    if not all(part.whole for part in parts) or (
        source.format in ("csv", "space", "parquet") and many
    ):
        return "regression"
    return "classification"


def distinct_labels(parts: Sequence[Part]) -> list[float] | None:
    """The distinct labels, sorted, or None if there are more than `MOST_DISTINCT`."""
    found: set[float] = set()
    for part in parts:
        if part.labels is None:
            return None
        found.update(part.labels)
    return sorted(found) if len(found) <= MOST_DISTINCT else None


def transformation_for(source: Source, parts: Parts, how: Preparing, task: str) -> Transformation:
    """What is done to the rows. Raises `WrongInput` for what does not fit them."""
    seen = max((part.n_features for part in parts.parts), default=0)
    shape = Shape(
        parts.n_rows,
        source.n_features if source.n_features is not None else seen,
        sum(part.n_values for part in parts.parts),
        source.layout,
        min(part.least for part in parts.parts),
        min(part.label_min for part in parts.parts),
        max(part.label_max for part in parts.parts),
    )
    if task == "classification" and distinct_labels(parts.parts) is None:
        raise WrongInput(
            f"the labels take more than {MOST_DISTINCT} values; for real targets add --task"
            " regression"
        )
    return Transformation(shape, how.layout, how.scale, how.hash_bits, task)


def is_single_throughout(
    transformation: Transformation,
    facts: Path,
    parts: Parts,
    ranges: Sequence[tuple[int, int]],
    how: Preparing,
) -> bool:
    """Whether float32 holds every value of the dataset exactly."""
    if transformation.nothing:
        return all(part.single for part in parts.parts)
    check = partial(is_narrow, transformation=transformation, facts=facts)
    if not check(parts.cover(*ranges[0])):  # as a rule; then the others need not be looked at
        return False
    return all(how.worker.each(check, (parts.cover(lo, hi) for lo, hi in ranges[1:])))


def written_shards(
    transformation: Transformation,
    facts: Path,
    parts: Parts,
    ranges: Sequence[tuple[int, int]],
    single: bool,
    staging: Path,
    how: Preparing,
) -> Iterator[Written]:
    """Write every shard; a part goes when the shards that need it are there."""
    folder = staging / "shards"
    folder.mkdir()

    def tasks() -> Iterator[ShardTask]:
        for number, (lo, hi) in enumerate(ranges):
            first_block, end = -(-lo // BLOCK) * BLOCK, min(-(-hi // BLOCK) * BLOCK, parts.n_rows)
            beyond = parts.cover(hi, end) if first_block < hi < end else []
            yield ShardTask(
                parts.cover(lo, hi), beyond, lo, f"{number:05d}.parquet", str(folder), single
            )

    gone = values = rows = 0
    total = sum(part.n_values for part in parts.parts)
    for written in how.worker.each(
        partial(write_shard, transformation=transformation, facts=facts), tasks()
    ):
        values, rows = values + written.shard.n_values, rows + written.shard.n_rows
        how.progress("writing", 12 * values, 12 * total, rows)
        while gone < len(parts.parts) and parts.firsts[gone + 1] <= rows - BLOCK:
            Path(parts.parts[gone].path).unlink()
            gone += 1
        yield written


def manifest_of(
    name: str,
    source: Source,
    transformation: Transformation,
    facts: Facts,
    task: str,
    parts: Parts,
    written: Sequence[Written],
    single: bool,
) -> Manifest:
    """The manifest of the written shards, their place not known yet."""
    sums = np.vstack([one.sums for one in written])
    value_type = "float32" if single else "float64"
    n, d, layout = parts.n_rows, transformation.n_features, transformation.kept
    labels = transformation_of_labels(transformation)
    distinct = distinct_labels(parts.parts) if task == "classification" else None
    return Manifest(
        name=name,
        n_rows=n,
        n_features=d,
        n_values=sum(one.shard.n_values for one in written),
        layout=layout,
        value_type=value_type,
        task=task,
        classes=distinct or [],
        dataset_hash=identity_of((one.digests for one in written), n, d, layout, value_type),
        shards=[one.shard for one in written],
        source=source.origin,
        transformations=[*source.done, *transformation.done(facts)],
        statistics={
            "label_min": labels[0],
            "label_max": labels[1],
            "label_mean": math.fsum(sums[:, 0].tolist()) / n,
            "mean_square_norm": math.fsum(sums[:, 1].tolist()) / n,
            "empty_rows": sum(one.empty_rows for one in written),
        },
        feature_names=source.feature_names if transformation.bits is None else [],
    )


def transformation_of_labels(transformation: Transformation) -> tuple[float, float]:
    """The least and the largest label of the dataset."""
    low, high = transformation.shape.label_min, transformation.shape.label_max
    if transformation.scale == "minmax" and transformation.task == "regression":
        return 0.0, 1.0 if high > low else 0.0
    return low, high
