"""The planner's cost model: the time and memory that runs take.

What a learner states is multiplied by a factor measured before the sweep or on earlier runs.
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from koco_stream.learners import (
    AnyLearner,
    Cost,
    Growth,
    Public,
    Sampling,
    StreamSize,
    learner_named,
)
from koco_stream.metrics import measurement_bytes
from koco_stream.runs.run import NO_RUNGS, Run, Rungs, Seen
from koco_stream.runs.schemas import curve_points
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.shard_cache import copy_bytes
from koco_stream.streams.stream import AS_STORED, IN_WINDOWS, SHUFFLED, Stream
from koco_stream.theory.baselines import HELD_BYTES

WORKER_BYTES = 300 << 20  # resident: a worker process with its libraries loaded, without data
RUN_SECONDS = 1e-4  # the fixed cost of a run: creating its state, writing its row and curve
COMMIT_SECONDS = 0.02  # writing, syncing and renaming a cohort's result file
READ_NS = 2.5  # reading one stored value: dropping zeros, or gathering rows
SAVED_BYTES_PER_SECOND = 2e8  # hashing, writing and syncing a checkpoint
MEASURED_NS = 40.0  # metrics of a round and of a score, the AUC's sorting included
GATHERED_BYTES = 24 << 20  # the longest block of shuffled rows for runs over all classes
# Of a learner that cannot say it; a run is then planned with all of a worker's memory.
UNKNOWN = Cost(0, 1e4)
TRUSTED = (0.02, 50.0)  # correction factors outside of this range are measurement errors


@dataclass(frozen=True)
class DataSize:
    """A dataset's counts, and the bytes of its largest shard's copy (0 if unknown).

    `dictionary_sample.with_growths` estimates `growths` and the rows' `median_distance`.
    """

    n_rows: int
    n_features: int
    n_values: int
    shard_bytes: int = 0
    n_classes: int = 0
    growths: dict[tuple[Sampling, int], Growth] = field(default_factory=dict, compare=False)
    median_distance: float = math.nan

    @staticmethod
    def of(manifest: Manifest) -> "DataSize":
        """The size of a prepared dataset."""
        shard_bytes = max((copy_bytes(manifest, shard) for shard in manifest.shards), default=0)
        counts = manifest.n_rows, manifest.n_features, manifest.n_values
        return DataSize(*counts, shard_bytes, len(manifest.classes))

    def rounds(self, stream: Stream) -> int:
        """The rounds in a stream of this dataset."""
        return min(self.n_rows, stream.max_rows or self.n_rows)

    def measured_bytes(self, run: Run, rounds: int) -> int:
        """The bytes for a run's metrics and predictions."""
        measured = run.measured
        classes = tuple(map(float, range(self.n_classes)))
        seen = Seen(self.n_features, rounds, task="classification", classes=classes)
        kept = 8 * rounds if measured.keep_predictions else 0
        asked = measured.metrics or measured.window
        return kept + (measurement_bytes(run.metered(seen)) if asked else 0)

    def seen_by(self, run: Run) -> StreamSize:
        """The size of a run's stream, with its intercept."""
        d = self.n_features + run.adds_intercept
        rounds = self.rounds(run.stream)
        sampling = run.learner_class.sampling(run.params)
        growth = None if sampling is None else self.growths.get((sampling, rounds))
        return StreamSize(rounds, d, self.n_values / max(self.n_rows, 1), growth)


class RunCost(NamedTuple):
    """A run's cost; a cohort pays the shared part once for each `key`."""

    seconds: float
    bytes: int
    key: tuple[object, ...] = ()
    shared_seconds: float = 0.0
    shared_bytes: int = 0


@dataclass(frozen=True)
class Costs:
    """Estimates the costs of runs on datasets of these sizes, by dataset hash.

    `factors` are ratios of measured to stated seconds, by learner. A dictionary that may need more
    than `worker_bytes` is planned with all of it.
    """

    sizes: dict[str, DataSize]
    factors: dict[str, float] = field(default_factory=dict)
    worker_bytes: int = 1 << 62
    rungs: Rungs = NO_RUNGS

    def of(self, run: Run) -> RunCost:
        """A run's cost on one core, from where it begins."""
        whole = self._from_the_first_row(run)
        begun = self.rungs.pause(run).rounds
        if not begun:
            return whole
        rounds = self.sizes[run.stream.dataset_hash].rounds(run.stream)
        rest = 1.0 - self.work_done(run, begun / rounds)
        return whole._replace(
            seconds=rest * whole.seconds, shared_seconds=rest * whole.shared_seconds
        )

    def _from_the_first_row(self, run: Run) -> RunCost:
        learner = run.learner_class
        size = self.sizes[run.stream.dataset_hash]
        stream = size.seen_by(run)
        factor = self.factors.get(run.learner, 1.0)
        cost = cost_of(learner, run.params, stream)
        states = run.stream.n_states(size.n_classes)
        n_bytes = 8 * (states * cost.floats + 4096 + 3 * curve_points(size.n_rows).size) + 4096
        n_bytes += size.measured_bytes(run, self.rungs.last(run.stream, size.rounds(run.stream)))
        if run.stream.multiclass is not None:
            n_bytes += 2 * GATHERED_BYTES  # the block, and its copy with an intercept
        nanoseconds = states * (
            factor * cost.nanoseconds + MEASURED_NS * bool(run.measured.metrics)
        )
        if stream.growth is not None or cost is UNKNOWN:
            passing = sum(pass_bytes(run.stream, size).values()) + 8 * cost.shared.floats
            room = max(self.worker_bytes - passing, 0)
            n_bytes = room if cost is UNKNOWN else min(n_bytes, room)
        seconds = RUN_SECONDS + stream.rounds * nanoseconds * 1e-9
        key, nanoseconds, floats = cost.shared
        return RunCost(
            seconds, n_bytes, key, factor * stream.rounds * nanoseconds * 1e-9, 8 * floats
        )

    def work_done(self, run: Run, share: float) -> float:
        """The share of a run's work that is done after a share of its rounds."""
        stream = self.sizes[run.stream.dataset_hash].seen_by(run)
        some = stream.first(min(math.ceil(share * stream.rounds), stream.rounds))
        done = cost_of(run.learner_class, run.params, some).seconds(some.rounds)
        total = cost_of(run.learner_class, run.params, stream).seconds(stream.rounds)
        return done / total if total else share

    def reading(self, stream: Stream, begun: int = 0) -> float:
        """The seconds to read a stream after `begun` rows, and to write a result file."""
        size = self.sizes[stream.dataset_hash]
        rounds = size.rounds(stream) - begun
        reading = READ_NS * 1e-9 * size.n_values * rounds / max(size.n_rows, 1)
        return COMMIT_SECONDS + reading


def cost_of(learner: AnyLearner, params: Public, stream: StreamSize) -> Cost:
    """The cost that a learner states, or `UNKNOWN` with a warning."""
    try:
        cost = learner.cost(params, stream)
        if math.isfinite(cost.floats + cost.nanoseconds):
            return cost
        why = str(cost)
    except Exception as error:  # a user's learner may raise anything; it can run nevertheless
        why = f"{type(error).__name__}: {error}"
    warnings.warn(
        f"the cost of {learner.__name__} cannot be estimated ({why}); each run is planned with all"
        " of a worker's memory",
        stacklevel=2,
    )
    return UNKNOWN


class Timing(NamedTuple):
    """A measured scan of one run."""

    learner: str
    params: Public
    stream: StreamSize
    seconds: float


def factors_of(timings: Iterable[Timing]) -> dict[str, float]:
    """Each learner's median of measured to stated seconds."""
    ratios: dict[str, list[float]] = {}
    for timing in timings:
        cost = cost_of(learner_named(timing.learner), timing.params, timing.stream)
        ns = cost.nanoseconds + cost.shared.nanoseconds
        if timing.stream.rounds > 0 and ns > 0:
            ratios.setdefault(timing.learner, []).append(
                timing.seconds / (timing.stream.rounds * ns * 1e-9)
            )
    return {
        learner: min(max(median(found), TRUSTED[0]), TRUSTED[1])
        for learner, found in sorted(ratios.items())
    }


def pass_bytes(stream: Stream, size: DataSize) -> dict[str, int]:
    """A worker's memory besides its runs' states and memory-mapped copies, in bytes by term."""
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
        # Measured: the columns, their encoded source, and what Arrow's allocator keeps.
        * size.shard_bytes,
        "block": (1 + gathered) * block,
        "order": 8 * numbers,
        "comparator": 48 * (size.n_features + 1)
        + (max(block, HELD_BYTES) if gathered and stream.max_rows else 4096 * 16),
    }
