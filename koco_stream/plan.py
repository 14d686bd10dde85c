"""The plan: runs → cohorts. Pure arithmetic, no I/O; the same input gives the same plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from koco_stream.copies import copy_bytes
from koco_stream.learners import StreamSize, learner_named
from koco_stream.manifest import Manifest
from koco_stream.orders import AS_STORED, IN_WINDOWS, SHUFFLED
from koco_stream.records import curve_points
from koco_stream.runs import Cohort, Run, Stream

WORKER_BYTES = 180 << 20  # a worker with its libraries loaded, before any data
COMMIT_SECONDS = 0.02  # a cohort's part: written, synced, renamed


@dataclass(frozen=True)
class DataSize:
    """What the plan needs to know of a dataset: rows, features, stored values in all, and the bytes of its largest shard's copy (0 while
    there are no shards)."""

    n_rows: int
    n_features: int
    n_values: int
    shard_bytes: int = 0

    @staticmethod
    def of(manifest: Manifest) -> DataSize:
        """The size of a prepared dataset."""
        shard_bytes = max((copy_bytes(manifest, shard) for shard in manifest.shards), default=0)
        return DataSize(manifest.n_rows, manifest.n_features, manifest.n_values, shard_bytes)


@dataclass(frozen=True)
class Limits:
    """What a plan must respect: workers, the memory of each in bytes, the longest cohort wished for, and how much of a longer one may be
    lost, both in seconds."""

    workers: int
    worker_bytes: int
    cohort_seconds: float = 20.0
    checkpoint_seconds: float = 60.0


@dataclass(frozen=True)
class Plan:
    """Cohorts, the longest first, and the most memory one of them needs on a worker, as named terms in bytes."""

    cohorts: tuple[Cohort, ...]
    memory: dict[str, int]

    @property
    def runs(self) -> list[Run]:
        """All runs of the plan."""
        return [run for cohort in self.cohorts for run in cohort.runs]

    @property
    def seconds(self) -> float:
        """The expected computing time of all cohorts together, on one core."""
        return sum(cohort.seconds for cohort in self.cohorts)


def stream_size(run: Run, size: DataSize) -> StreamSize:
    """What the run's stream is to its learner."""
    rounds = min(size.n_rows, run.stream.max_rows or size.n_rows)
    return StreamSize(rounds, size.n_features + int(bool(run.params["fit_intercept"])), size.n_values / max(size.n_rows, 1))


def run_seconds(run: Run, size: DataSize) -> float:
    """About how long the scan of `run` takes on one core."""
    stream = stream_size(run, size)
    return 2e-5 + stream.rounds * learner_named(run.learner).round_ns(run.params, stream) * 1e-9


def run_bytes(run: Run, size: DataSize) -> int:
    """Memory that one run of a cohort needs for itself: its state, its predictions and its curve."""
    state = learner_named(run.learner).state_floats(run.params, stream_size(run, size))
    return 8 * (state + 4096 + 3 * curve_points(size.n_rows).size) + 4096


def shared_work(run: Run, size: DataSize) -> tuple[tuple[object, ...], float, int]:
    """What runs of a cohort with the same first item do once: it, seconds, bytes. Nothing for learners that share nothing."""
    shared = learner_named(run.learner).shared
    if shared is None:
        return (), 0.0, 0
    stream = stream_size(run, size)
    found = shared(run.params, stream)
    return found.key, stream.rounds * found.ns * 1e-9, 8 * found.floats


def shared_bytes(stream: Stream, size: DataSize) -> dict[str, int]:
    """Memory that the runs of a cohort share, as named terms: the worker itself, the copy of a shard being made, a block of rows (with an
    intercept it is copied; in another order than stored, gathered before), the order's numbers, and the comparator of the regret (six
    vectors, and a gathered block if it may read only some rows). What is mapped of the copies, which all workers share, is apart."""
    block = 4096 * (16 + math.ceil(12 * size.n_values / max(size.n_rows, 1)))
    gathered = stream.order != AS_STORED
    numbers = {AS_STORED: 0, SHUFFLED: size.n_rows, IN_WINDOWS: min(stream.window_rows or 0, size.n_rows)}[stream.order]
    return {
        "worker": WORKER_BYTES,
        "copy of a shard": 4 * size.shard_bytes,  # measured: the columns, what they are decoded from, and what Arrow's allocator keeps
        "block": (1 + gathered) * block,
        "order": 8 * numbers,
        "comparator": 48 * (size.n_features + 1) + (block if gathered and stream.max_rows else 4096 * 16),
    }


def with_checkpoints(cohort: Cohort, size: DataSize, limits: Limits) -> Cohort:
    """The cohort with checkpoints every `checkpoint_seconds`, if it takes longer."""
    if cohort.seconds <= limits.checkpoint_seconds:
        return cohort
    rounds = min(size.n_rows, cohort.stream.max_rows or size.n_rows)
    return replace(cohort, checkpoint_rounds=max(1, int(rounds * limits.checkpoint_seconds / cohort.seconds)))


def begun_cohorts(runs: Sequence[Run], sizes: dict[str, DataSize], begun: Sequence[Sequence[str]]) -> list[Cohort]:
    """The cohorts that `begun` names by their run_ids, if all their runs are among these."""
    by_id = {run.run_id: run for run in runs}
    cohorts = []
    for ids in begun:
        if all(run_id in by_id for run_id in ids):
            members = tuple(by_id.pop(run_id) for run_id in ids)
            size = sizes[members[0].stream.dataset_hash]
            once = {key: seconds for key, seconds, _ in (shared_work(run, size) for run in members)}
            cohorts.append(Cohort(members[0].stream, members, sum(once.values()) + sum(run_seconds(run, size) for run in members)))
    return cohorts


def plan(runs: Sequence[Run], sizes: dict[str, DataSize], limits: Limits, begun: Sequence[Sequence[str]] = ()) -> Plan:
    """Group runs into cohorts: few passes, all workers busy to the end, memory within the limit.

    `sizes` is by dataset hash. Cohorts that were begun and left a checkpoint, named by their run_ids, stay as they were.

    Raises `MemoryError` with the sum if a single run does not fit a worker.
    """
    cohorts = begun_cohorts(runs, sizes, begun)
    kept = {run.run_id for cohort in cohorts for run in cohort.runs}
    runs = [run for run in runs if run.run_id not in kept]
    streams: dict[Stream, list[Run]] = {}
    for run in runs:
        streams.setdefault(run.stream, []).append(run)
    total = sum(run_seconds(run, sizes[run.stream.dataset_hash]) for run in runs)
    target = min(limits.cohort_seconds, max(0.25, total / (12 * max(limits.workers, 1))))
    memory: dict[str, int] = {}
    for stream, members in streams.items():
        size = sizes[stream.dataset_hash]
        shared = shared_bytes(stream, size)
        batch: list[Run] = []
        together: set[tuple[object, ...]] = set()  # what runs of this cohort share already
        seconds, used = 0.0, sum(shared.values())
        own: dict[str, float] = {}
        for run in members:
            own[str(shared_work(run, size)[0])] = own.get(str(shared_work(run, size)[0]), 0.0) + run_seconds(run, size)
        for run in sorted(members, key=lambda run: str(shared_work(run, size)[0])):
            key, once_seconds, once_bytes = shared_work(run, size)
            # Runs that share much stay together until their own work outweighs it, if that leaves something for every worker.
            longest = max(target, once_seconds + min(3 * once_seconds, own[str(key)] / max(limits.workers, 1)))
            more = run_bytes(run, size) + (0 if key in together else once_bytes)
            if sum(shared.values()) + more > limits.worker_bytes:
                raise MemoryError(
                    f"{run.learner} on {stream.dataset} needs {(sum(shared.values()) + more) >> 20} MiB on a worker, and a worker has "
                    f"{limits.worker_bytes >> 20} MiB; use fewer workers, a smaller sketch or a machine with more memory"
                )
            if batch and (seconds >= longest or used + more > limits.worker_bytes):
                cohorts.append(Cohort(stream, tuple(batch), seconds + COMMIT_SECONDS))
                batch, seconds, used = [], 0.0, sum(shared.values())
                together.clear()
                more = run_bytes(run, size) + once_bytes
            batch.append(run)
            seconds += run_seconds(run, size) + (0.0 if key in together else once_seconds)
            together.add(key)
            used += more
            if used > sum(memory.values()):
                memory = {**shared, "states of a cohort": used - sum(shared.values())}
        cohorts.append(Cohort(stream, tuple(batch), seconds + COMMIT_SECONDS))
    cohorts = [with_checkpoints(cohort, sizes[cohort.stream.dataset_hash], limits) for cohort in cohorts]
    cohorts.sort(key=lambda cohort: (-cohort.seconds, cohort.cohort_id))
    return Plan(tuple(cohorts), memory)
