"""Blocks: what each learner's best configuration comes to on each dataset and order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flows.comparing.counted import ALL, ERROR, LOSS
from flows.scores.constant import CONSTANT
from flows.tables.tables import grouped
from flows.views.views import Views
from koco_stream.metrics import METRICS
from koco_stream.types import Array

Row = dict[str, Any]
Repeat = tuple[Any, ...]  # data, order seed, learner seed
KEYS = ("stream", "dataset_hash", "sharding")  # of a block
# what each learner has run on each stream
LEARNERS = """
    SELECT stream, dataset_hash, sharding, learner, count(*) FILTER (WHERE whole) AS choices,
           sum(repeats)::INT AS runs, sum(diverged)::INT AS diverged, sum(failed)::INT AS failed,
           sum(infinite)::INT AS "came to no number"
    FROM configurations WHERE NOT rung GROUP BY ALL ORDER BY ALL"""
# the runs of the best configurations
REPEATS = """
    SELECT b.stream, b.dataset_hash, b.sharding, b.learner, m.dataset, m.dataset_hash AS data,
           m.order_seed, m.learner_seed, m.score
    FROM (SELECT * EXCLUDE run_ids, unnest(run_ids) AS run_id FROM best) b
    JOIN measured m USING (run_id) ORDER BY run_id"""


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
        Why a learner has no result: what its runs came to; empty if it has one.
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


def blocks_of(views: Views, metric: str | None = None) -> Blocks:
    """The blocks of the runs that views have selected.

    A block of which a learner has no runs is left out, and so is a dataset of the sweeps that has
    none at all. `Constant` is one of the learners if it has run wherever all others have.
    """
    streams = grouped(views.rows(LEARNERS), _key)
    learners = {row["learner"] for rows in streams.values() for row in rows}
    whole = [names for rows in streams.values() if (names := _names(rows)) | {CONSTANT} >= learners]
    if any(CONSTANT not in names for names in whole):
        learners -= {CONSTANT}
    best, repeats = (grouped(views.rows(query), _key) for query in ("FROM best", REPEATS))
    blocks, left_out = list[Block](), list[str]()
    for key in sorted(streams, key=str):
        rows = {row["learner"]: row for row in streams[key] if row["learner"] in learners}
        chosen = {row["learner"]: row for row in best.get(key, [])}
        runs = grouped(repeats.get(key, []), lambda row: row["learner"])
        made = _block(sorted(learners), rows, chosen, runs, metric)
        if isinstance(made, Block):
            blocks.append(made)
        else:
            left_out.append(f"{key[0]} is left out: {made}")
    there = set(views.table("SELECT DISTINCT dataset FROM selected").column("dataset").to_pylist())
    left_out += [
        f"{name} is left out: it has no runs of the learners"
        for name in sorted({*views.datasets.values()} - there)
    ]
    return Blocks(sorted(learners), blocks, left_out)


def _key(row: Row) -> tuple[Any, ...]:
    """The stream of a row."""
    return tuple(row[name] for name in KEYS)


def _names(rows: Iterable[Row]) -> set[str]:
    """The learners of some rows."""
    return {row["learner"] for row in rows}


def _block(
    learners: Sequence[str],
    rows: Mapping[str, Row],
    best: Mapping[str, Row],
    runs: Mapping[str, Sequence[Row]],
    metric: str | None,
) -> Block | str:
    """The block of a stream, or why there is none.

    Of each learner there are its row of `LEARNERS`, its best configuration and the runs of it.
    """
    if not rows:
        return "only Constant has run"
    if missing := [name for name in learners if name not in rows]:
        return f"it has no runs of {', '.join(missing)}"
    classes = bool(best) and all(row["error_rate_mean"] is not None for row in best.values())
    metric = metric or (ERROR if classes else LOSS)
    failed = {name: "" if name in best else _why(rows[name]) for name in learners}
    for name in learners:
        if name not in best and not failed[name]:
            return f"no configuration of {name} has {metric} in each repeat"
    chosen = {name: found for name, found in runs.items() if name in learners}
    found, lacking = common_repeats(chosen)
    if chosen and not found[0].size:
        return f"the learners have no repeat in common ({lacking})"
    scores = np.full((len(found[0]) if found else 1, len(learners)), np.inf)
    for name, column in zip(chosen, found, strict=True):
        scores[:, learners.index(name)] = column
    beats = [best[name]["beats_constant"] if name in best else None for name in learners]
    if any(one is not None for one in beats):  # a learner without a result does not
        beats = [one if name in best else False for name, one in zip(learners, beats, strict=True)]
    microseconds = [best.get(name, {}).get("microseconds_mean") for name in learners]
    return Block(
        next(iter(rows.values()))["stream"],
        next((one["dataset"].split(",")[0] for found in runs.values() for one in found), ""),
        metric,
        scores,
        [best[name]["params"] if name in best else "{}" for name in learners],
        list(failed.values()),
        [None if one is None else one / 1e6 for one in microseconds],
        beats,
        sorted({str(row["loss"]) for row in best.values()}),
        max(row["choices"] for row in rows.values()),
        lacking,
    )


def _why(row: Row) -> str:
    """Why a learner has no result: `1 of 3 runs diverged`."""
    ends = {name: row[name] for name in ("diverged", "failed", "came to no number") if row[name]}
    return ", ".join(f"{n:,} of {row['runs']:,} runs {end}" for end, n in ends.items())


def common_repeats(runs: Mapping[str, Sequence[Row]]) -> tuple[list[Array], str]:
    """The scores of each learner in the repeats that all have, and a sentence on the others.

    A run that draws nothing is the same for all learner seeds.
    """
    seeds = {row["learner_seed"] for found in runs.values() for row in found} - {None} or {None}
    scores = [
        {
            (row["data"], row["order_seed"] or 0, seed): row["score"]
            for row in found
            for seed in (seeds if row["learner_seed"] is None else [row["learner_seed"]])
        }
        for found in runs.values()
    ]
    every = set[Repeat]().union(*scores)
    common = sorted(every.intersection(*scores))
    lacking = "; ".join(
        f"{name} has no runs in {len(every) - len(found):,}"
        for name, found in zip(runs, scores, strict=True)
        if len(found) < len(every)
    )
    left = f"{len(every) - len(common):,} of {len(every):,} repeats are left out: {lacking}"
    return [np.array([one[key] for key in common]) for one in scores], left if lacking else ""


def sign_of(metric: str) -> int:
    """−1 for a metric of which more is better, whose values are negated, and else 1."""
    return -1 if metric in METRICS and METRICS[metric].better == "higher" else 1


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
