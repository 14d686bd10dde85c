"""What runs cost: the memory that learners state, and the time that was measured of a few rows."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from koco_stream.io.files import content_hash
from koco_stream.learners import AnyLearner, Public, StreamSize
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
GATHERED_BYTES = 24 << 20  # the longest block of shuffled rows for runs over all classes


@dataclass(frozen=True)
class DataSize:
    """A dataset's counts, and the bytes of its largest shard's copy (0 if unknown)."""

    n_rows: int
    n_features: int
    n_values: int
    shard_bytes: int = 0
    n_classes: int = 0

    @staticmethod
    def of(manifest: Manifest) -> "DataSize":
        """The size of a prepared dataset."""
        return DataSize(
            manifest.n_rows,
            manifest.n_features,
            manifest.n_values,
            max((copy_bytes(manifest, shard) for shard in manifest.shards), default=0),
            len(manifest.classes),
        )

    def rounds(self, stream: Stream) -> int:
        """The rounds in a stream of this dataset."""
        return min(self.n_rows, stream.max_rows or self.n_rows)

    def measured_bytes(self, run: Run, rounds: int) -> int:
        """The bytes for a run's metrics and predictions."""
        classes = tuple(map(float, range(self.n_classes)))
        metered = run.metered(Seen(self.n_features, rounds, task="classification", classes=classes))
        measured = measurement_bytes(metered) if metered.names or metered.window else 0
        return 8 * rounds * run.measured.keep_predictions + measured

    def seen_by(self, run: Run) -> StreamSize:
        """The size of a run's stream, with its intercept."""
        return StreamSize(
            self.rounds(run.stream),
            self.n_features + run.adds_intercept,
            self.n_values / max(self.n_rows, 1),
        )


class Timing(NamedTuple):
    """The first rounds of a run took so many seconds; n rounds take in proportion to n^power."""

    rounds: int
    seconds: float
    power: float = 1.0

    def until(self, rounds: int) -> float:
        """The seconds that so many rounds take."""
        return self.seconds * (rounds / self.rounds) ** self.power


UNMEASURED = Timing(1, 1e-5)


def timing_key(run: Run) -> str:
    """The same for runs of which one is timed: their real parameters may differ."""
    choices = {name: q for name, q in run.params.items() if not isinstance(q, float)}
    return content_hash([run.stream.dataset_hash, run.stream.multiclass, run.learner, choices])


class RunCost(NamedTuple):
    """A run's seconds and bytes; a cohort holds the shared bytes once for each `key`."""

    seconds: float
    bytes: int
    key: tuple[object, ...] = ()
    shared_bytes: int = 0


@dataclass(frozen=True)
class Costs:
    """The costs of runs on datasets of these sizes, by hash, with measured timings by key."""

    sizes: Mapping[str, DataSize]
    timings: Mapping[str, Timing] = field(default_factory=dict)
    worker_bytes: int = 1 << 62
    rungs: Rungs = NO_RUNGS

    def of(self, run: Run) -> RunCost:
        """A run's cost on one core, from where it begins."""
        size = self.sizes[run.stream.dataset_hash]
        stream = size.seen_by(run)
        floats = floats_of(run.learner_class, run.params, stream)
        key, shared_floats = run.learner_class.shared(run.params, stream)
        room = max(self.worker_bytes - sum(pass_bytes(run.stream, size).values()), 0)
        own = size.measured_bytes(run, self.rungs.last(run.stream, stream.rounds)) + 4096
        if run.stream.multiclass is not None:
            own += 2 * GATHERED_BYTES  # the block, and its copy with an intercept
        states = run.stream.n_states(size.n_classes) * (floats or 0)
        n_bytes = own + 8 * (states + 4096 + 3 * curve_points(size.n_rows).size)
        if floats is None or run.open_ended:
            most = max(room - 8 * shared_floats, 0)
            n_bytes = most if floats is None else min(n_bytes, most)
        timing = self.timings.get(timing_key(run), UNMEASURED)
        paused = self.rungs.pause(run).rounds
        seconds = timing.until(stream.rounds) - (timing.until(paused) if paused else 0.0)
        return RunCost(RUN_SECONDS + seconds, n_bytes, key, 8 * shared_floats)

    def reading(self, stream: Stream, done: int = 0) -> float:
        """The seconds to read a stream after `done` rows, and to write a result file."""
        size = self.sizes[stream.dataset_hash]
        rounds = size.rounds(stream) - done
        return COMMIT_SECONDS + READ_NS * 1e-9 * size.n_values * rounds / max(size.n_rows, 1)


def floats_of(learner: AnyLearner, params: Public, stream: StreamSize) -> int | None:
    """The numbers that a learner states, or None with a warning."""
    try:
        floats = learner.floats(params, stream)
        if math.isfinite(floats):
            return floats
        why = str(floats)
    except Exception as error:  # a user's learner may raise anything; it can run nevertheless
        why = f"{type(error).__name__}: {error}"
    warnings.warn(
        f"the memory of {learner.__name__} cannot be estimated ({why}); each run is planned with"
        " all of a worker's memory",
        stacklevel=2,
    )
    return None


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
