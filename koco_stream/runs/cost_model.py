"""What runs cost, as the planner sees it: seconds and bytes, from what each learner declares,
corrected by what was measured.

A learner declares about how long a round takes on some machine. On this machine, with these data,
it may be twice that or half: what was timed, just now on a few rows or earlier on whole runs, gives
each learner a factor.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from koco_stream.learners import Public, StreamSize, learner_named
from koco_stream.runs.run import Run
from koco_stream.runs.schemas import curve_points
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.orders import AS_STORED, IN_WINDOWS, SHUFFLED
from koco_stream.streams.shard_cache import copy_bytes
from koco_stream.streams.stream import Stream

WORKER_BYTES = 180 << 20  # a worker with its libraries loaded, before any data
RUN_SECONDS = 1e-4  # of a run whatever its rounds: its state made, its row and curve written
COMMIT_SECONDS = 0.02  # a cohort's result file: written, synced, renamed
READ_NS = 2.5  # a stored value of a block: dropped if it is zero, or gathered
SAVED_BYTES_PER_SECOND = 2e8  # a checkpoint: hashed, written, synced
TRUSTED = (0.02, 50.0)  # a factor beyond these is a mistake of the clock, not of the declaration


@dataclass(frozen=True)
class DataSize:
    """What the plan needs to know of a dataset: rows, features, stored values in all, and the bytes
    of its largest shard's copy (0 while there are no shards).
    """

    n_rows: int
    n_features: int
    n_values: int
    shard_bytes: int = 0

    @staticmethod
    def of(manifest: Manifest) -> "DataSize":
        """The size of a prepared dataset."""
        shard_bytes = max((copy_bytes(manifest, shard) for shard in manifest.shards), default=0)
        return DataSize(manifest.n_rows, manifest.n_features, manifest.n_values, shard_bytes)

    def rounds(self, stream: Stream) -> int:
        """Rounds of a stream of it."""
        return min(self.n_rows, stream.max_rows or self.n_rows)

    def seen_by(self, run: Run) -> StreamSize:
        """What the run's stream is to its learner."""
        d = self.n_features + int(bool(run.params["fit_intercept"]))
        return StreamSize(self.rounds(run.stream), d, self.n_values / max(self.n_rows, 1))


class RunCost(NamedTuple):
    """What a run costs by itself, in seconds and bytes, and what it does once with all runs of its
    cohort that have the same `key`.
    """

    seconds: float
    bytes: int
    key: tuple[object, ...] = ()
    shared_seconds: float = 0.0
    shared_bytes: int = 0


@dataclass(frozen=True)
class Costs:
    """The costs of runs on datasets of these `sizes` (by dataset hash). `factors` are measured over
    declared seconds, by learner.
    """

    sizes: dict[str, DataSize]
    factors: dict[str, float] = field(default_factory=dict)

    def of(self, run: Run) -> RunCost:
        """What `run` costs on one core."""
        learner, size = learner_named(run.learner), self.sizes[run.stream.dataset_hash]
        stream, factor = size.seen_by(run), self.factors.get(run.learner, 1.0)
        cost = learner.cost(run.params, stream)
        n_bytes = 8 * (cost.floats + 4096 + 3 * curve_points(size.n_rows).size) + 4096
        seconds = RUN_SECONDS + factor * stream.rounds * cost.nanoseconds * 1e-9
        if cost.shared is None:
            return RunCost(seconds, n_bytes)
        key, nanoseconds, floats = cost.shared
        return RunCost(
            seconds, n_bytes, key, factor * stream.rounds * nanoseconds * 1e-9, 8 * floats
        )

    def reading(self, stream: Stream) -> float:
        """Seconds of a pass over the stream with nobody learning from it."""
        size = self.sizes[stream.dataset_hash]
        reading = READ_NS * 1e-9 * size.n_values * size.rounds(stream) / max(size.n_rows, 1)
        return COMMIT_SECONDS + reading


class Timing(NamedTuple):
    """What was measured of a learner: `seconds` of its scan on a stream of that size, sharing its
    cohort with others.
    """

    learner: str
    params: Public
    stream: StreamSize
    seconds: float
    cohort_size: int = 1


def factors_of(timings: Iterable[Timing]) -> dict[str, float]:
    """By learner, the median of measured seconds over those that it declares."""
    ratios: dict[str, list[float]] = {}
    for timing in timings:
        cost = learner_named(timing.learner).cost(timing.params, timing.stream)
        ns = cost.nanoseconds
        if cost.shared is not None:
            ns += cost.shared.nanoseconds / timing.cohort_size
        if timing.stream.rounds > 0 and ns > 0:
            ratios.setdefault(timing.learner, []).append(
                timing.seconds / (timing.stream.rounds * ns * 1e-9)
            )
    return {
        learner: min(max(median(found), TRUSTED[0]), TRUSTED[1])
        for learner, found in sorted(ratios.items())
    }


def pass_bytes(stream: Stream, size: DataSize) -> dict[str, int]:
    """Memory that the runs of a cohort share, as named terms: the worker itself, the copy of a
    shard being made, a block of rows (with an intercept it is copied; in another order than stored,
    gathered before), the order's numbers, and the comparator of the regret (six vectors, and a
    gathered block if it may read only some rows). What is mapped of the copies, which all workers
    share, is apart.
    """
    block = 4096 * (16 + math.ceil(12 * size.n_values / max(size.n_rows, 1)))
    gathered = stream.order != AS_STORED
    numbers = {
        AS_STORED: 0,
        SHUFFLED: size.n_rows,
        IN_WINDOWS: min(stream.window_rows or 0, size.n_rows),
    }[stream.order]
    return {
        "worker": WORKER_BYTES,
        "copy of a shard": 4
        # measured: the columns, what they are decoded from, and what Arrow's allocator keeps
        * size.shard_bytes,
        "block": (1 + gathered) * block,
        "order": 8 * numbers,
        "comparator": 48 * (size.n_features + 1)
        + (block if gathered and stream.max_rows else 4096 * 16),
    }
