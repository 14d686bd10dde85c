"""Blocks: what each learner comes to on each dataset and order, with its best configuration."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flows.comparing.counted import ALL, ERROR, FIRST_HALF, LOSS
from flows.comparing.halves import Points, halves_of, points_of
from flows.tables.data_seeds import DATA_SEED, data_seeds_together
from flows.tables.rungs import STREAM
from flows.tables.tables import CONSTANT, dataset_text, grouped, lists_of, rows_of, stream_text
from koco_stream.io.paths import AnyPath
from koco_stream.metrics import METRICS
from koco_stream.types import Array

Row = dict[str, Any]
Repeat = tuple[Any, Any, Any]  # data, order seed, learner seed


@dataclass(frozen=True)
class Block:
    """What the learners came to on a dataset in one kind of order.

    Attributes
    ----------
    title : str
        The dataset and how it is read.
    source : str
        The dataset without what it was made with, such as `sea` of `sea,n_rows=100`.
    metric : str
        What is compared.
    scores : array (n_repeats, k)
        The metric of each learner's chosen configuration in each repeat; lower is better (metrics
        of which more is better are negated), and infinity is a learner that failed.
    params : list of str
        The chosen configurations, as JSON.
    failed : list of bool
        Whether every configuration of the learner failed or diverged in some repeat, or the chosen
        one did after the half by which it was chosen.
    seconds : list of (float or None)
        Seconds a round of each learner's chosen configuration, the mean over repeats.
    beats_constant : list of (bool or None)
        Whether it is better than `Constant` on the same streams; None where that is not known.
    losses : list of str
        The losses by which the chosen configurations are measured.
    choices : int
        From how many configurations a learner's was chosen, at most.
    """

    title: str
    source: str
    metric: str
    scores: Array
    params: list[str]
    failed: list[bool]
    seconds: list[float | None]
    beats_constant: list[bool | None]
    losses: list[str]
    choices: int


@dataclass(frozen=True)
class Blocks:
    """The learners that are compared, their blocks, and sentences on what was left out."""

    learners: list[str]
    blocks: list[Block]
    left_out: list[str]


@dataclass(frozen=True)
class Scored:
    """A run with the value by which its configuration is chosen, and its score."""

    row: Row
    chosen_by: float
    score: float


def blocks_of(store: AnyPath, runs: pa.Table, select: str, metric: str | None) -> Blocks:
    """The blocks of runs with the columns `COLUMNS`, as `with_predictions` leaves them.

    A block of which a learner has no runs is left out. `Constant` is one of the learners if it has
    run wherever all others have.
    """
    together = data_seeds_together(runs, sorted(set(runs.column("dataset").to_pylist())))
    others = [name for name in METRICS if name != metric and name in together.column_names]
    streams = _by_stream(together.drop_columns(others))
    learners = {name for found in streams for name in _learners(found)}
    whole = [found for found in streams if _learners(found) | {CONSTANT} >= learners]
    if any(CONSTANT not in _learners(found) for found in whole):
        learners -= {CONSTANT}
    points: Points | None = None
    if select == FIRST_HALF:
        rounds = [_stream_rounds(list(rows_of(found))) for found in whole]
        points = points_of(store, {run_id: n for one in rounds for run_id, n in one.items()})
    blocks, left_out = list[Block](), list[str]()
    for found in streams:
        rows = [row for row in rows_of(found) if row["learner"] in learners]
        made = _block(rows, sorted(learners), metric, points) if rows else "only Constant has run"
        if isinstance(made, Block):
            blocks.append(made)
        else:
            left_out.append(f"{_title_of(found)} is left out: {made}")
    return Blocks(sorted(learners), blocks, left_out)


def _by_stream(runs: pa.Table) -> list[pa.Table]:
    """The runs of each stream, sorted by title. Only one stream's are made rows at a time."""
    keys = list(zip(*lists_of(runs, [*STREAM, "max_rows"]), strict=True))
    places = grouped(range(runs.num_rows), lambda place: keys[place])
    return sorted((runs.take(found) for found in places.values()), key=_title_of)


def _learners(runs: pa.Table) -> set[str]:
    """The learners of some runs."""
    return set(pc.unique(runs.column("learner")).to_pylist())


def _title_of(runs: pa.Table) -> str:
    """The title of a stream's runs."""
    return _title(next(rows_of(runs.slice(0, 1))))


def _title(row: Row) -> str:
    """A stream's dataset and how it is read."""
    name = dataset_text(row["dataset"], row["positive_class"], row["multiclass"])
    return stream_text(name, row["order"], row["window_rows"], row["max_rows"])


def _block(
    rows: Sequence[Row], learners: Sequence[str], metric: str | None, points: Points | None
) -> Block | str:
    """The block of a stream's runs, or why there is none. `points` are those of halves."""
    by_learner = grouped(rows, lambda row: row["learner"])
    missing = [name for name in learners if name not in by_learner]
    if missing:
        return f"it has no runs of {', '.join(missing)}"
    metric = metric or _usual_metric(rows)
    repeats = common_repeats(list(by_learner.values()))
    scored = partial(_scored, rounds=_stream_rounds(rows), metric=metric, points=points)
    chosen, choices = dict[str, tuple[str, list[Scored]]](), 0
    for learner in learners:
        complete = list[tuple[str, list[Scored]]]()
        configurations = grouped(
            by_learner[learner], lambda row: (row["params"], row["learner_code"] or "")
        )
        for (params, _), found in sorted(configurations.items()):
            of_repeats = _in_repeats(found, repeats, metric)
            if of_repeats is not None:
                complete.append((params, list(map(scored, of_repeats))))
        if not repeats or not complete:
            return f"no configuration of {learner} has {metric} in each order of all learners"
        choices = max(choices, len(complete))
        chosen[learner] = min(complete, key=lambda one: _mean(run.chosen_by for run in one[1]))
    return _made(rows[0], metric, chosen, choices, points is None)


def _made(
    row: Row, metric: str, chosen: Mapping[str, tuple[str, list[Scored]]], choices: int, whole: bool
) -> Block:
    """The block of the chosen configurations; with `whole`, they are scored on whole streams."""
    scores = np.array([[one.score for one in runs] for _, runs in chosen.values()]).T
    failed = np.isinf(scores).any(axis=0)
    scores[:, failed] = np.inf
    constants = [
        [one.row.get(f"constant_{metric}") if whole else None for one in runs]
        for _, runs in chosen.values()
    ]
    beats = [
        None if name == CONSTANT or any(value is None for value in known) else bool(mine < limit)
        for name, known, mine, limit in zip(
            chosen,
            constants,
            scores.mean(axis=0),
            [_mean(value or 0.0 for value in known) for known in constants],
            strict=True,
        )
    ]
    return Block(
        _title(row),
        DATA_SEED.sub("", str(row["dataset"])).split(",")[0],
        metric,
        scores,
        [params for params, _ in chosen.values()],
        [bool(one) for one in failed],
        [_seconds_a_round(one.row for one in runs) for _, runs in chosen.values()],
        beats,
        sorted({str(one.row["loss"]) for _, runs in chosen.values() for one in runs}),
        choices,
    )


def common_repeats(of_learners: Sequence[Sequence[Row]]) -> list[Repeat]:
    """The orders that all learners have, with the learner seeds that all have that have some."""
    orders = [{(row["data"], row["order_seed"]) for row in rows} for rows in of_learners]
    seeds = [{row["learner_seed"] for row in rows} - {None} for rows in of_learners]
    common = set.intersection(*orders)
    drawn = [one for one in seeds if one]
    with_seeds = set.intersection(*drawn) if drawn else {None}
    return sorted(
        ((data, order, seed) for data, order in common for seed in with_seeds),
        key=lambda repeat: [
            (value is not None, value or 0) for value in (str(repeat[0]), *repeat[1:])
        ],
    )


def _in_repeats(rows: Sequence[Row], repeats: Sequence[Repeat], metric: str) -> list[Row] | None:
    """A configuration's run in each repeat, or None if one is missing.

    A run of a learner that draws nothing is the same for all learner seeds. A run that ended well
    but was not asked for the metric is missing.
    """
    by_repeat = dict[Repeat, Row]()
    for row in rows:
        if row["status"] != "ok" or row[metric] is not None:
            by_repeat[row["data"], row["order_seed"], row["learner_seed"]] = row
    found = [
        by_repeat.get((data, order, seed), by_repeat.get((data, order, None)))
        for data, order, seed in repeats
    ]
    there = [row for row in found if row is not None]
    return there if len(there) == len(repeats) else None


def _scored(row: Row, rounds: Mapping[str, int], metric: str, points: Points | None) -> Scored:
    """A run's values: of the whole stream, or of its halves if there are `points`."""
    well = row["status"] == "ok"
    if points is None:
        higher = metric in METRICS and METRICS[metric].better == "higher"
        value = row[metric] if well else math.inf
        score = -value if higher and well else value
        return Scored(row, score, score)
    n_rounds = rounds[row["run_id"]]
    halves = halves_of(points, row["run_id"], n_rounds, metric, well, _title(row))
    first, second = (math.inf if value is None else value for value in halves)
    return Scored(row, first, second if well else math.inf)


def _stream_rounds(rows: Sequence[Row]) -> dict[str, int]:
    """The rounds of each run's stream, by run_id: those of the longest run on the same data."""
    longest = {
        data: max(row["rounds"] or 0 for row in found)
        for data, found in grouped(rows, lambda row: row["data"]).items()
    }
    return {row["run_id"]: longest[row["data"]] for row in rows}


def _usual_metric(rows: Sequence[Row]) -> str:
    """The error rate where there are classes, else the mean loss."""
    well = [row for row in rows if row["status"] == "ok"]
    return ERROR if well and all(row[ERROR] is not None for row in well) else LOSS


def _seconds_a_round(rows: Iterable[Row]) -> float | None:
    """Mean seconds a round, or None if they are not known."""
    known = [row["seconds"] / row["rounds"] for row in rows if row["seconds"] and row["rounds"]]
    return _mean(known) if known else None


def _mean(values: Iterable[float]) -> float:
    """Mean; infinite if one of the values is."""
    every = list(values)
    return math.fsum(every) / len(every)


def how_chosen(select: str, choices: int, halved: bool = False) -> str:
    """Sentences on how configurations were chosen, from at most so many of a learner.

    `halved` says whether halving has stopped some configurations early.
    """
    early = (
        " Halving had stopped other configurations, by their mean loss on the first rounds of the"
        " same streams."
        if halved
        else ""
    )
    if choices == 1:
        nothing = "" if halved else ", so nothing was chosen"
        return f"Each learner has one configuration on each block{nothing}.{early}"
    if select == ALL:
        return (
            f"For each learner and block, of up to {choices:,} configurations the one with the best"
            " mean over its repeats was chosen, by the same numbers that are compared: the more"
            " configurations a learner has, the more that favours it. The selection first-half does"
            f" not choose by what it compares.{early}"
        )
    return (
        f"For each learner and block, of up to {choices:,} configurations the one with the best"
        " mean on the first half of the stream was chosen; the second half alone is compared."
        f"{early}"
    )
