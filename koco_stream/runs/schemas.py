"""The columns of the result tables, from which schemas and documentation are made."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import numpy as np
import pyarrow as pa

from koco_stream.learners import LEARNERS
from koco_stream.metrics import METRICS
from koco_stream.types import Array

ARROW_TYPES = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class Column:
    """A column of a result table; executions may differ if it is `measured`."""

    name: str
    kind: type
    meaning: str
    unit: str = ""
    measured: bool = False

    @property
    def type(self) -> pa.DataType:
        """Its Arrow type."""
        return ARROW_TYPES[self.kind]


Columns = tuple[Column, ...]
ASKED = tuple(METRICS.values())


_PARAMETERS = {q.name: q for learner in LEARNERS.values() for q in learner.parameters}
PARAMETER_COLUMNS = [
    # A parameter that may be true, false or a word is stored as text.
    Column(name, str if q.choices else q.kind, f"parameter: {q.meaning}")
    for name, q in sorted(_PARAMETERS.items())
    if q.kind in ARROW_TYPES
]

RUNS: Columns = (
    Column("run_id", str, "content hash of everything that can change the run's numbers"),
    Column("computed_by", str, "the sweep that computed it first", measured=True),
    Column("dataset", str, "the dataset's name"),
    Column("dataset_hash", str, "the dataset's identity"),
    Column(
        "positive_class",
        float,
        "the label read as +1, all others as -1; null if labels are read as they are",
    ),
    Column(
        "multiclass",
        str,
        "one-vs-rest: every class is learnt against the rest, and the largest score wins; null if"
        " two classes or real labels are learnt",
    ),
    Column("order", str, "as-stored, shuffled or shuffled-in-windows"),
    Column("order_seed", int, "the shuffle's seed; null if as stored"),
    Column(
        "window_rows",
        int,
        "rows in a window of the shuffle in windows; null for other orders",
        "rows",
    ),
    Column(
        "sharding",
        str,
        "hash of the shards' numbers of rows, which the shuffle in windows depends on; null for"
        " other orders",
    ),
    Column(
        "max_rows", int, "the stream ends after this many rows; null if all rows are read", "rows"
    ),
    Column("learner", str, "the learner's name"),
    Column(
        "learner_code",
        str,
        "hash of a learner's file, or distribution and version of a package's; null for the"
        " library's",
    ),
    Column(
        "numbers",
        str,
        "own: the same bit for bit in any cohort or process, and after any interruption; foreign: a"
        " learner that promises less",
    ),
    Column("params", str, "the parameters that matter, as canonical JSON"),
    *PARAMETER_COLUMNS,
    Column(
        "numbers_version",
        int,
        "version of the learner's numbers: raised when a change to its code changes them",
    ),
    Column("learner_seed", int, "seed of the learner's random numbers; null if it has none"),
    Column("status", str, "ok, diverged, failed, or stopped by time_limit"),
    Column(
        "doubtful_rounds",
        int,
        "rounds for six digits of whose predictions double precision cannot vouch, because steps"
        " were so large",
        "rounds",
    ),
    Column("error", str, "why the run is not ok; null if it is"),
    Column("rounds", int, "rounds done", "rounds"),
    Column(
        "mean_loss",
        float,
        "progressive loss: the mean over the rounds done, and over the classes if all are learnt",
    ),
    Column("error_rate", float, "progressive error: mistakes over rounds; null for real targets"),
    *(Column(q.name, float, f"metric: {q.meaning}; null if not asked for") for q in ASKED),
    Column("window", int, "rounds of the windows in `windows`; null without any", "rounds"),
    Column(
        "kept_predictions",
        int,
        "rounds whose predictions are in `predictions`; null if they are not kept",
        "rounds",
    ),
    Column(
        "constant_mean_loss",
        float,
        "mean_loss of the trivial learner Constant on the whole stream, with the same loss; null if"
        " the run could not start",
    ),
    Column(
        "constant_error_rate",
        float,
        "error_rate of the trivial learner Constant on the whole stream, with the same loss; null"
        " for real targets",
    ),
    Column(
        "regret",
        float,
        "cumulative squared loss above that of the best linear predictor in hindsight; null for"
        " other losses, and if finding that predictor takes too many passes",
    ),
    Column(
        "comparator_largest",
        float,
        "that predictor's largest |prediction|: it does not respect the clip",
    ),
    Column(
        "dictionary_size",
        int,
        "points in the dictionary at the end, of all classes; null if the learner has none",
        "points",
    ),
    Column(
        "seconds",
        float,
        "time of the run's own computing, without compilation, reading and waiting; for a foreign"
        " learner, the time of its process for the rounds, with the conversion of rows",
        "s",
        measured=True,
    ),
    Column("rounds_per_second", float, "rounds over seconds", "1/s", measured=True),
    Column("cohort_size", int, "runs that shared the pass", "runs", measured=True),
    Column("host", str, "the machine and its processor", measured=True),
    Column("version", str, "koco_stream, numpy, numba and Python versions", measured=True),
    Column("finished_at", datetime, "when the run's cohort ended", measured=True),
)

WINDOWS: Columns = (
    Column("run_id", str, "the run"),
    Column("first", int, "the first round of the window, counted from 1", "rounds"),
    Column("last", int, "the last round of the window", "rounds"),
    Column("mean_loss", float, "mean loss of the rounds of the window"),
    Column("error_rate", float, "mistakes over rounds; null for real targets"),
    *(Column(q.name, float, f"metric: {q.meaning}; null if not asked for") for q in ASKED),
)

PREDICTIONS: Columns = (
    Column("run_id", str, "the run"),
    Column("t", int, "the round, from 1", "rounds"),
    Column(
        "prediction",
        float,
        "the prediction made before the label was seen; in a run over all classes, the class",
    ),
)

CURVES: Columns = (
    Column("run_id", str, "the run"),
    Column("t", int, "rounds done", "rounds"),
    Column("cumulative_loss", float, "sum of the losses of rounds 1 to t"),
    Column("mistakes", int, "mistakes in rounds 1 to t; null for real targets", "rounds"),
    Column(
        "dictionary_size", int, "points in the dictionary; null if the learner has none", "points"
    ),
)


def schema(columns: Columns) -> pa.Schema:
    """A table's Arrow schema, with meanings and units as metadata."""
    return pa.schema(
        [
            pa.field(
                c.name,
                c.type,
                metadata=(
                    {"meaning": c.meaning, "unit": c.unit} if c.unit else {"meaning": c.meaning}
                ),
            )
            for c in columns
        ]
    )


def typed(**columns: type) -> pa.Schema:
    """An Arrow schema from Python's types."""
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns.items()])


@cache
def result_schema() -> pa.Schema:
    """The schema of a result file: `runs` with nested curves."""
    curve = pa.list_(pa.struct([(c.name, c.type) for c in CURVES if c.name != "run_id"]))
    return schema(RUNS).append(pa.field("curve", curve))


@cache
def curve_points(n_rounds: int) -> Array:
    """The rounds (k,) at which loss curves have points, increasing, as float64."""
    if n_rounds < 1:
        return np.zeros(0)
    points = np.rint(10.0 ** (np.arange(0, np.log10(n_rounds) * 8 + 1) / 8))
    ends = [float(n) for n in (n_rounds // 2, n_rounds) if n]
    return np.unique([*points[points <= n_rounds], *ends])


def points_until(n_rounds: int, later: Sequence[int]) -> Array:
    """The points of the curves of a run and of those that go on to `later`."""
    return np.unique(np.concatenate([curve_points(n) for n in (n_rounds, *later)]))
