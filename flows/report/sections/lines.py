"""A sweep's results as a report needs them: streams, their lines, and the lines' configurations.

A stream here is a dataset read in one way, over all order seeds; generated datasets that differ in
their data seed only are one stream. A line is a learner, separate for each sketch size if these are
few; a plot shows it as one line. A configuration is a line's parameters, averaged over order seeds
and learner seeds.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flows.report.drawing import Style, style_of
from flows.scores.constant import JUDGED, beats_constant, not_better_words
from flows.scores.means import deviations, exact_means, known_of, means, with_means
from flows.tables.data_seeds import data_seeds_together
from flows.tables.parameters import sort_key, varied
from flows.tables.tables import STREAM_AND_CONFIGURATION, grouped, of_newest_code, rows_of
from koco_stream.metrics import METRICS
from koco_stream.streams.orders import AS_STORED

READ = (
    *STREAM_AND_CONFIGURATION,
    *(
        "run_id",
        "computed_by",
        "order_seed",
        "learner_seed",
        "sketch_size",
        "numbers_version",
        "status",
    ),
    "doubtful_rounds",
    *("error", "rounds", "mean_loss", "error_rate", "regret", "comparator_largest"),
    *("dictionary_size", "seconds", "host", "version", "finished_at"),
    *("loss", "constant_mean_loss", "constant_error_rate", "numbers"),
    *METRICS,
)
MOST_SIZES = 6  # sketch sizes of a learner that have lines of their own
KEYS = (
    *(
        "dataset",
        "positive_class",
        "multiclass",
        "dataset_hash",
        "order",
        "window_rows",
        "sharding",
    ),
    "max_rows",
)
CONSTANTS = JUDGED[2:]
AVERAGED = (*JUDGED, "dictionary_size", "seconds", "regret")
SPREAD = ("mean_loss", "error_rate", "dictionary_size", "regret")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Parameters of a learner and the averages of its runs with them.

    Attributes
    ----------
    params : dict
        The parameters.
    n_runs, planned : int
        Number of runs with status ok, and of all runs.
    merit : float or None
        Mean error rate, or mean loss where there is no error rate; None without ok runs.
    least, largest : float
        Range of that measure over the runs.
    means, deviations : dict of str to (float or None)
        Mean and sample standard deviation of each measure; the latter is None for one run.
    beats_constant : bool or None
        Whether the runs are better than the trivial learner `Constant` on the same streams.
    comparator_largest : float or None
        Largest absolute prediction of the best linear predictor in hindsight.
    rounds : int
        Rounds of the longest run.
    run_ids : list of str
        The runs with status ok.
    """

    params: dict[str, Any]
    n_runs: int
    planned: int
    merit: float | None
    least: float
    largest: float
    means: dict[str, float | None]
    deviations: dict[str, float | None]
    beats_constant: bool | None
    comparator_largest: float | None
    rounds: int
    run_ids: list[str]


@dataclass(frozen=True, slots=True)
class TrivialResults:
    """Results of the trivial learner `Constant` on a stream, over its orders.

    `loss` is None where only learners of other libraries have it. `means` and `deviations` have
    `mean_loss` and `error_rate`.
    """

    loss: str | None
    means: dict[str, float | None]
    deviations: dict[str, float | None]


@dataclass(frozen=True)
class Line:
    """A learner on one stream, separate for each of few sketch sizes, with its configurations."""

    name: str
    learner: str
    configurations: list[Configuration]

    @cached_property
    def best(self) -> Configuration | None:
        """The configuration with the least error."""
        return best_of(self.configurations)

    @cached_property
    def tried(self) -> dict[str, list[Any]]:
        """Values of each parameter that the sweep varies, in the learner's order of parameters."""
        return varied(self.learner, (one.params for one in self.configurations))

    @cached_property
    def step(self) -> str | None:
        """Name of the step parameter: a varied alpha or step_size, else the first varied number."""
        numbers = [name for name, values in self.tried.items() if all(map(is_number, values))]
        return next((name for name in ("alpha", "step_size", *numbers) if name in numbers), None)


def best_of(configurations: Iterable[Configuration]) -> Configuration | None:
    """The configuration with the least error; None if no run has status ok.

    Of equal ones it is the first: a line has its configurations by the text of their parameters.
    """
    found = [(one.merit, one) for one in configurations if one.merit is not None]
    return min(found, key=lambda pair: pair[0], default=(None, None))[1]


def is_number(value: object) -> bool:
    """Whether a parameter's value is a number and not a boolean."""
    return isinstance(value, float | int) and not isinstance(value, bool)


@dataclass(frozen=True, eq=False)
class StreamResults:
    """Results on one stream: how it is read (`how`), and its lines, the best first.

    `anchor` is its id in a page. `identities` are the hashes of its datasets: several where only
    the data seed differs. `trivial` is what `Constant` comes to, for each loss that is measured; it
    is empty where no run knows it.
    """

    how: dict[str, Any]
    lines: list[Line]
    anchor: str
    identities: list[str]
    trivial: list[TrivialResults]

    @property
    def title(self) -> str:
        """Name of the dataset and how it is read."""
        how = self.how
        positive, rows = how["positive_class"], how["max_rows"]
        return (
            str(how["dataset"])
            + ("" if positive is None else f", {positive:g} against the rest")
            + (", all classes" if how["multiclass"] else "")
            + ("" if how["order"] == AS_STORED else f", {how['order']}")
            + (f" of {how['window_rows']:,} rows" if how["window_rows"] else "")
            + (f", the first {rows:,} rows" if rows else "")
        )

    @cached_property
    def best_lines(self) -> list[tuple[Line, Configuration]]:
        """Lines with a run of status ok, each with its best configuration."""
        return [(line, line.best) for line in self.lines if line.best is not None]

    @cached_property
    def not_better(self) -> list[str]:
        """Sentences on the learners whose best configuration does not beat `Constant`."""
        best = dict[str, Configuration]()
        for line, one in self.best_lines:
            best.setdefault(line.learner, one)  # the best of its sketch sizes comes first
        return [
            not_better_words(learner, self.title, *(one.means[name] for name in JUDGED))
            for learner, one in best.items()
            if one.beats_constant is False
        ]

    @cached_property
    def other_by_loss(self) -> str | None:
        """A sentence if the best line by error rate is not the best one by mean loss."""
        if not self.has_errors:
            return None
        losses = [
            (one.means["mean_loss"], line.name)
            for line in self.lines
            for one in line.configurations
            if one.means["mean_loss"] is not None
        ]
        least, lowest = min(losses, default=(None, ""))[0], self.best_lines[0][1].merit
        by_loss = {name for loss, name in losses if loss == least}
        by_error = {line.name for line, one in self.best_lines if one.merit == lowest}
        if not by_loss or by_loss & by_error:
            return None
        return (
            f"{self.title}: the best by error rate is {min(by_error)}, by mean loss {min(by_loss)}"
        )

    @cached_property
    def rounds(self) -> int:
        """Number of rounds of the longest run."""
        return max((c.rounds for line in self.lines for c in line.configurations), default=0)

    @cached_property
    def has_errors(self) -> bool:
        """Whether configurations are compared by error rate; otherwise by mean loss."""
        return any(best.means["error_rate"] is not None for _, best in self.best_lines)

    @property
    def measure(self) -> str:
        """Name of the measure by which configurations are compared."""
        return "error rate" if self.has_errors else "mean loss"


@dataclass(frozen=True)
class Results:
    """The streams of a sweep, the plot style of each line by its name, and the datasets.

    `datasets` has the hashes of each by its name.
    """

    streams: list[StreamResults]
    styles: dict[str, Style]
    datasets: dict[str, list[str]]


def results_of(runs: pa.Table) -> Results:
    """Group runs (with the columns of `READ`) by stream, line and configuration."""
    datasets = grouped(
        rows_of(runs.group_by(["dataset", "dataset_hash"], use_threads=False).aggregate([])),
        lambda row: str(row["dataset"]),
    )
    runs = data_seeds_together(of_newest_code(runs), datasets)
    identities = {
        key: [row["data"] for row in found]
        for key, found in grouped(
            rows_of(runs.group_by([*KEYS, "data"], use_threads=False).aggregate([])),
            lambda row: tuple(row[key] for key in KEYS),
        ).items()
    }
    rows = list(_configurations(runs))
    every = {(row["learner"], row["sketch_size"]) for row in rows}
    sizes = Counter(learner for learner, _ in every)
    for row in rows:
        if sizes[row["learner"]] > MOST_SIZES:  # it was drawn, and is a parameter like others
            row["sketch_size"] = None
    every = {(row["learner"], row["sketch_size"]) for row in rows}
    in_turn = sorted(every, key=lambda which: (which[0], which[1] is not None, which[1] or 0))
    several = Counter(learner for learner, _ in every)
    names = {
        (learner, size): learner
        if size is None or several[learner] == 1
        else f"{learner} m = {size}"
        for learner, size in in_turn
    }
    streams, trivial = [], trivial_results(runs)
    in_order = sorted(
        grouped(rows, lambda row: tuple(row[key] for key in KEYS)).items(),
        key=lambda item: [sort_key(value) for value in item[0]],
    )
    for number, (key, of_stream) in enumerate(in_order, 1):
        lines = [
            Line(names[which], which[0], [_configuration(row) for row in found])
            for which, found in grouped(
                of_stream, lambda row: (row["learner"], row["sketch_size"])
            ).items()
        ]
        lines.sort(
            key=lambda line: (line.best is None, line.best.merit if line.best else 0.0, line.name)
        )
        how = dict(zip(KEYS, key, strict=True))
        streams.append(
            StreamResults(how, lines, f"stream-{number}", identities[key], trivial.get(key, []))
        )
    styles = {name: style_of(number) for number, name in enumerate(names.values())}
    hashes = {
        name: [row["dataset_hash"] for row in found]
        for name, found in sorted(datasets.items(), key=lambda item: sort_key(item[0]))
    }
    return Results(streams, styles, hashes)


def trivial_results(runs: pa.Table) -> dict[tuple[Any, ...], list[TrivialResults]]:
    """What `Constant` comes to on each stream, by its values of `KEYS`, from the rows of runs.

    All runs of a stream, order seed and loss have the same numbers. The measured loss of learners
    of other libraries is not in the table: what only they have is told apart by its size.
    """
    known = runs.filter(pc.is_valid(runs.column("constant_mean_loss")))
    by = [*KEYS, "data", "order_seed", *CONSTANTS, "loss"]
    rows = known.group_by(by, use_threads=False).aggregate([])
    found: dict[tuple[Any, ...], list[TrivialResults]] = {}
    streams = grouped(rows_of(rows), lambda row: tuple(row[key] for key in KEYS))
    for key, of_stream in streams.items():
        named = {_numbers(row) for row in of_stream if row["loss"] is not None}
        of_stream = [row for row in of_stream if row["loss"] or _numbers(row) not in named]
        for loss, with_loss in sorted(
            grouped(of_stream, lambda row: row["loss"]).items(), key=lambda item: item[0] or "~"
        ):
            by_seed = grouped(
                sorted(with_loss, key=_numbers), lambda row: (row["data"], row["order_seed"])
            )
            for which in range(max(map(len, by_seed.values()))):
                same = [rows[which] for rows in by_seed.values() if len(rows) > which]
                found.setdefault(key, []).append(_averaged(loss, same))
    return found


def _numbers(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What `Constant` comes to in one order."""
    return row["constant_mean_loss"], row["constant_error_rate"], row["order_seed"]


def _averaged(loss: str | None, rows: Sequence[Mapping[str, Any]]) -> TrivialResults:
    """Mean and sample standard deviation over orders."""
    values = [[row[name] for row in rows if row[name] is not None] for name in CONSTANTS]
    mean_of, deviation_of = (
        dict(zip(JUDGED, known_of(found), strict=False))
        for found in (means(values), deviations(values, exact_means(values)))
    )
    return TrivialResults(loss, mean_of, deviation_of)


def _configurations(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield a row of averages for each stream and configuration, by the text of its parameters."""
    well = pc.and_(pc.equal(table.column("status"), "ok"), pc.is_valid(table.column("mean_loss")))
    metrics = [name for name in METRICS if table.column(name).null_count < table.num_rows]
    averaged = [*AVERAGED, *metrics]
    columns = {name: table.column(name) for name in table.column_names} | {
        "merit": pc.if_else(
            well, pc.coalesce(table.column("error_rate"), table.column("mean_loss")), None
        ),
        "well": pc.if_else(well, table.column("run_id"), None),
        **{
            name: pc.if_else(well, table.column(name).cast(pa.float64()), None) for name in averaged
        },
    }
    found = (
        pa.table(columns)
        .group_by([*KEYS, "learner", "params", "sketch_size"], use_threads=False)
        .aggregate(
            [
                ("run_id", "count"),
                *(("merit", kind) for kind in ("list", "min", "max")),
                *((name, "list") for name in averaged),
                (CONSTANTS[0], "count"),
                ("comparator_largest", "max"),
                ("rounds", "max"),
                ("well", "list"),
            ]
        )
    )
    return rows_of(with_means(found, ["merit", *averaged], SPREAD).sort_by("params"))


def _configuration(row: dict[str, Any]) -> Configuration:
    """Make a configuration from a row of averages."""
    ids = sorted(one for one in row["well_list"] if one is not None)
    known = {name: row[f"{name}_mean"] for name in AVERAGED}
    known |= {name: row[f"{name}_mean"] for name in METRICS if f"{name}_mean" in row}
    if row[f"{CONSTANTS[0]}_count"] < len(ids):  # the others would be averages of other streams
        known |= dict.fromkeys(CONSTANTS)
    return Configuration(
        json.loads(row["params"]),
        len(ids),
        row["run_id_count"],
        row["merit_mean"],
        row["merit_min"] or 0.0,
        row["merit_max"] or 0.0,
        known,
        {name: row[f"{name}_std"] for name in SPREAD},
        beats_constant(row["learner"], *(known[name] for name in JUDGED)),
        row["comparator_largest_max"],
        row["rounds_max"] or 0,
        ids,
    )
