"""Blocks: what each learner comes to on each dataset and order, with its best configuration."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flows.comparing.counted import ALL, ERROR, FIRST_HALF, LOSS, Points, halves_of, points_of
from flows.scores.constant import CONSTANT, JUDGED, beats_constant
from flows.scores.means import known_of, mean, means
from flows.tables.data_seeds import DATA_SEED, data_seeds_together
from flows.tables.decisions import STREAM
from flows.tables.parameters import sort_key
from flows.tables.tables import dataset_text, grouped, lists_of, rows_of, stream_text
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
    failed : list of str
        Why a learner has no result: what its chosen configuration, or every one, came to in some
        repeats; empty if it has one.
    seconds : list of (float or None)
        Seconds a round of each learner's chosen configuration, the mean over repeats.
    beats_constant : list of (bool or None)
        Whether it is better than `Constant` on the same streams, as a whole; None where that is not
        known.
    losses : list of str
        The losses by which the chosen configurations are measured.
    choices : int
        From how many configurations a learner's was chosen, at most.
    lacking : str
        Which of the learners' repeats are left out, and why; empty if none are.
    """

    title: str
    source: str
    metric: str
    scores: Array
    params: list[str]
    failed: list[str]
    seconds: list[float | None]
    beats_constant: list[bool | None]
    losses: list[str]
    choices: int
    lacking: str = ""


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


def blocks_of(
    store: AnyPath, runs: pa.Table, select: str, metric: str | None, datasets: Iterable[str] = ()
) -> Blocks:
    """The blocks of runs with the columns `COLUMNS`, as `with_predictions` leaves them.

    A block of which a learner has no runs is left out, and so is one of the `datasets` that has
    none at all. `Constant` is one of the learners if it has run wherever all others have.
    """
    there = set(runs.column("dataset").to_pylist())
    together = data_seeds_together(runs, sorted(there))
    others = [name for name in METRICS if name != metric and name in together.column_names]
    together = together.drop_columns(others)
    keys = list(zip(*lists_of(together, [*STREAM, "max_rows"]), strict=True))
    places = grouped(range(together.num_rows), lambda place: keys[place])
    # only one stream's are made rows at a time; those that have one title by their key
    streams = sorted((together.take(places[key]) for key in sorted(places, key=str)), key=_title_of)
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
    left_out += [
        f"{name} is left out: it has no runs of the learners"
        for name in sorted({*datasets} - there)
    ]
    return Blocks(sorted(learners), blocks, left_out)


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
    well = [row for row in rows if row["status"] == "ok"]
    has_errors = bool(well) and all(row[ERROR] is not None for row in well)
    metric = metric or (ERROR if has_errors else LOSS)
    repeats, lacking = common_repeats(by_learner)
    scored = partial(_scored, rounds=_stream_rounds(rows), metric=metric, points=points)
    chosen, choices = dict[str, tuple[str, list[Scored]]](), 0
    for learner in learners:
        configurations = grouped(
            by_learner[learner], lambda row: (row["params"], row["learner_code"] or "")
        )
        complete = [
            (params, list(map(scored, of_repeats)))
            for params, code in sorted(configurations)
            if (of_repeats := _in_repeats(configurations[params, code], repeats, metric))
        ]
        if not complete:
            why = f" ({lacking})" if lacking else ""
            return f"no configuration of {learner} has {metric} in each repeat{why}"
        choices = max(choices, len(complete))
        merits = means([run.chosen_by for run in runs] for _, runs in complete)
        chosen[learner] = complete[int(merits.argmin())]  # of equal ones the first, by its text
    return _made(rows[0], metric, chosen, choices, lacking)


def _made(
    row: Row,
    metric: str,
    chosen: Mapping[str, tuple[str, list[Scored]]],
    choices: int,
    lacking: str,
) -> Block:
    """The block of the chosen configurations."""
    runs_of = [runs for _, runs in chosen.values()]
    scores = np.array([[one.score for one in runs] for runs in runs_of]).T
    failed = [_why(runs) for runs in runs_of]
    scores[:, [bool(why) for why in failed]] = np.inf
    beats = [
        beats_constant(name, *_judged(runs)) for name, runs in zip(chosen, runs_of, strict=True)
    ]
    if any(one is not None for one in beats):
        beats = [False if why else one for why, one in zip(failed, beats, strict=True)]
    return Block(
        _title(row),
        DATA_SEED.sub("", str(row["dataset"])).split(",")[0],
        metric,
        scores,
        [params for params, _ in chosen.values()],
        failed,
        [_seconds_a_round(one.row for one in runs) for runs in runs_of],
        beats,
        sorted({str(one.row["loss"]) for runs in runs_of for one in runs}),
        choices,
        lacking,
    )


def _why(runs: Sequence[Scored]) -> str:
    """Why runs have no result, by how they ended: `1 of 3 repeats diverged`; empty if all have."""
    ends = Counter(
        "came to no number" if one.row["status"] == "ok" else str(one.row["status"])
        for one in runs
        if math.isinf(one.score)
    )
    return ", ".join(f"{n} of {len(runs)} repeats {end}" for end, n in sorted(ends.items()))


def _judged(runs: Sequence[Scored]) -> list[float | None]:
    """The means of the columns `JUDGED`, or None where one of the runs has none."""
    columns = ([one.row[name] for one in runs] for name in JUDGED)
    return known_of(means([] if None in values else values for values in columns))


def common_repeats(by_learner: Mapping[str, Sequence[Row]]) -> tuple[list[Repeat], str]:
    """The orders that all learners have, with the learner seeds that all have that have some.

    The second is a sentence on those that are left out, and why; empty if none are.
    """
    orders = {n: {(row["data"], row["order_seed"]) for row in by_learner[n]} for n in by_learner}
    seeds = {n: {row["learner_seed"] for row in by_learner[n]} - {None} for n in by_learner}
    seeds = {name: found for name, found in seeds.items() if found} or {"": {None}}
    repeats = sorted(
        (
            (data, order, seed)
            for data, order in set.intersection(*orders.values())
            for seed in set.intersection(*seeds.values())
        ),
        key=lambda repeat: [
            (value is not None, value or 0) for value in (str(repeat[0]), *repeat[1:])
        ],
    )
    every = {
        "order": (orders, set.union(*orders.values())),
        "learner seed": (seeds, set.union(*seeds.values())),
    }
    said = [
        f"{name} has no runs with {what} {', '.join(gone)}"
        for what, (of_learners, whole) in every.items()
        for name, found in of_learners.items()
        if (
            gone := sorted(
                {
                    # an order by its seed, or else by its data; a learner seed as it is
                    str(one if not isinstance(one, tuple) else one[one[1] is not None])[:12]
                    for one in whole - found
                },
                key=sort_key,
            )
        )
    ]
    total = math.prod(len(whole) for _, whole in every.values())
    left = f"{total - len(repeats)} of {total} repeats are left out: {'; '.join(said)}"
    return repeats, left if said else ""


def _in_repeats(rows: Sequence[Row], repeats: Sequence[Repeat], metric: str) -> list[Row] | None:
    """A configuration's run in each repeat, or None if one is missing.

    A run of a learner that draws nothing is the same for all learner seeds. A run that ended well
    but was not asked for the metric is missing.
    """
    by_repeat = {
        (row["data"], row["order_seed"], row["learner_seed"]): row
        for row in sorted(rows, key=lambda row: (row["status"] == "ok", row["run_id"]))
        if row["status"] != "ok" or row[metric] is not None
    }
    found = [
        by_repeat.get((data, order, seed), by_repeat.get((data, order, None)))
        for data, order, seed in repeats
    ]
    there = [row for row in found if row is not None]
    return there if len(there) == len(repeats) else None


def _scored(row: Row, rounds: Mapping[str, int], metric: str, points: Points | None) -> Scored:
    """A run's values: of the whole stream, or of its halves if there are `points`.

    They are infinite if the run did not end well, or came to no finite number.
    """
    well, run_id, sign = row["status"] == "ok", row["run_id"], 1
    if points is None:
        sign, values = sign_of(metric), (row[metric] if well else None,) * 2
    else:
        first, second = halves_of(points, run_id, rounds[run_id], metric, _title(row))
        values = first, second if well else None
    finite = (sign * one if one is not None and math.isfinite(one) else math.inf for one in values)
    return Scored(row, *finite)


def sign_of(metric: str) -> int:
    """−1 for a metric of which more is better, whose values are negated, and else 1."""
    return -1 if metric in METRICS and METRICS[metric].better == "higher" else 1


def _stream_rounds(rows: Sequence[Row]) -> dict[str, int]:
    """The rounds of each run's stream, by run_id: those of the longest run on the same data."""
    longest = {
        data: max(row["rounds"] or 0 for row in found)
        for data, found in grouped(rows, lambda row: row["data"]).items()
    }
    return {row["run_id"]: longest[row["data"]] for row in rows}


def _seconds_a_round(rows: Iterable[Row]) -> float | None:
    """Mean seconds a round, or None if they are not known."""
    known = [row["seconds"] / row["rounds"] for row in rows if row["seconds"] and row["rounds"]]
    return mean(known) if known else None


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
