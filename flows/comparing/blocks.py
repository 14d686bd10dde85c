"""Blocks: which runs are compared, and the best configurations on each dataset and order."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flows.charts import Row
from flows.scores import ranks_of
from flows.tables.text import grouped
from flows.views.answer import named
from flows.views.views import Views, table_of
from koco_stream.errors import nearest, refuse_first
from koco_stream.io.paths import AnyPath
from koco_stream.learners import LEARNERS
from koco_stream.metrics import METRICS
from koco_stream.types import Array

ALL = "all"
FIRST_HALF = "first-half"
LOSS = "mean_loss"
ERROR = "error_rate"
CONSTANT = "Constant"  # the trivial learner
LEVEL = 0.05
MEASURES = (LOSS, ERROR, *METRICS)
WITHOUT_PREDICTIONS = {name for name, one in LEARNERS.items() if not one.predicts}
KEYS = ("stream", "dataset_hash", "sharding")  # of a block
# a row a stream and learner: what it has run, its best configuration, and the runs of that
TRIED = """
WITH tried AS (
    SELECT stream, dataset_hash, sharding, learner, count(*) FILTER (WHERE whole) AS choices,
           sum(repeats)::INT AS runs, sum(diverged)::INT AS diverged, sum(failed)::INT AS failed,
           sum(stopped)::INT AS stopped, sum(infinite)::INT AS "came to no number"
    FROM configurations WHERE NOT rung GROUP BY ALL
), chosen AS (
    SELECT b.* EXCLUDE (run_id),
           list({'dataset': m.dataset, 'data': m.dataset_hash, 'order_seed': m.order_seed,
                 'learner_seed': m.learner_seed, 'score': m.score} ORDER BY run_id) AS found
    FROM (SELECT stream, dataset_hash, sharding, learner, params, loss, error_rate_mean,
                 microseconds_mean, beats_constant, unnest(run_ids) AS run_id FROM best) b
    JOIN measured m USING (run_id) GROUP BY ALL
)
SELECT t.*, c.* EXCLUDE (stream, dataset_hash, sharding, learner)
FROM tried t LEFT JOIN chosen c ON c.stream = t.stream AND c.learner = t.learner
    AND c.dataset_hash IS NOT DISTINCT FROM t.dataset_hash
    AND c.sharding IS NOT DISTINCT FROM t.sharding
ORDER BY t.learner"""


@dataclass(frozen=True)
class Blocks:
    """The learners that are compared, their blocks, and sentences on what was left out.

    A block is a dataset in one kind of order, with a row for each learner: `scores` has the
    `metric` in each repeat, infinity where it failed; `failed` and `lacking` say why; `source` is
    the dataset without what it was made with.
    """

    learners: list[str]
    blocks: list[list[Row]]
    left_out: list[str]


def check_choices(select: str, metric: str | None, alpha: float) -> None:
    known = metric or LOSS
    refuse_first(
        [
            (
                select not in (ALL, FIRST_HALF),
                f"select is {select!r}{nearest(select, [ALL, FIRST_HALF])}",
            ),
            (
                known not in MEASURES,
                f"no metric is called {known!r}{nearest(known, list(MEASURES))}",
            ),
            (
                select == FIRST_HALF and known not in (LOSS, ERROR),
                f"{known} is only known of whole streams, and select={FIRST_HALF!r} needs it of"
                f" their halves; take {LOSS} or {ERROR}, or select={ALL!r}",
            ),
            (
                not 0.0 < alpha < 0.5,
                f"alpha is {alpha:g}; it is a level such as {LEVEL}, between 0 and 0.5",
            ),
        ]
    )


def sign_of(metric: str) -> int:
    return -1 if metric in METRICS and METRICS[metric].better == "higher" else 1


def views_to_compare(
    store: AnyPath,
    sweeps: Sequence[str],
    select: str = ALL,
    metric: str | None = None,
    learners: Sequence[str] = (),
) -> Views:
    views = Views(store, sweeps)
    views.select(named(views, "learner", learners))
    if select == FIRST_HALF:
        of_halves = {LOSS: "{}_loss", ERROR: "{}_error"}
        by = of_halves.get(metric or "", "coalesce({0}_error, {0}_loss)")
        views.measure(by.format("first"), by.format("second"))
    elif metric is not None:
        measured = f"{metric} * {sign_of(metric)}"
        views.measure(measured, measured)
    return views


def unfinished(views: Views) -> list[str]:
    return [
        f"{row['missing']:,} of {row['planned']:,} runs of {row['sweep']} are not computed yet"
        for row in views.rows(
            "SELECT sweep, count(*) AS planned, count(*) FILTER (WHERE r.run_id IS NULL) AS missing"
            " FROM chosen LEFT JOIN stored_runs r USING (run_id) GROUP BY sweep"
            " HAVING missing > 0 ORDER BY sweep"
        )
    ]


def blocks_of(views: Views, metric: str | None = None) -> Blocks:
    """The blocks of the runs that views have selected."""
    tried = [row for row in views.rows(TRIED) if row["learner"] not in WITHOUT_PREDICTIONS]
    streams = grouped(tried, lambda row: tuple(row[name] for name in KEYS))
    names = [{row["learner"] for row in rows} for rows in streams.values()]
    stopped = {
        row["learner"]: row["stream"] for row in tried if row["stopped"] > 0 and not row["found"]
    }
    learners = set[str]().union(*names) - stopped.keys()
    runs = views.rows("SELECT DISTINCT dataset, learner FROM selected")
    there = {row["dataset"] for row in runs if row["learner"] in learners}
    if any(CONSTANT not in some for some in names if some | {CONSTANT} >= learners):
        learners -= {CONSTANT}
    blocks = list[list[Row]]()
    left_out = [
        f"{name} is left out: time_limit stopped runs of it on {stream}"
        for name, stream in stopped.items()
    ]
    for key in sorted(streams, key=str):
        rows = [row for row in streams[key] if row["learner"] in learners]
        made = _block(sorted(learners), rows, metric)
        if isinstance(made, str):
            left_out.append(f"{key[0]} is left out: {made}")
        else:
            blocks.append(made)
    missing = sorted({*views.datasets.values()} - there)
    left_out += [f"{name} is left out: it has no runs of the learners" for name in missing]
    return Blocks(sorted(learners), blocks, left_out)


def _block(learners: Sequence[str], rows: Sequence[Row], metric: str | None) -> list[Row] | str:
    if not rows:
        return "only Constant has run"
    if missing := sorted({*learners} - {row["learner"] for row in rows}):
        return f"it has no runs of {', '.join(missing)}"
    best = [row for row in rows if row["found"]]
    if metric is None:
        classes = best and all(row["error_rate_mean"] is not None for row in best)
        metric = ERROR if classes else LOSS
    failed = {row["learner"]: "" if row["found"] else _why(row) for row in rows}
    if unknown := [row["learner"] for row in rows if not (row["found"] or failed[row["learner"]])]:
        return f"no configuration of {unknown[0]} has {metric} in each repeat"
    scores, lacking = common_repeats({row["learner"]: row["found"] for row in best})
    if best and not all(scores.values()):
        return f"the learners have no repeat in common ({lacking})"
    n_repeats = len(next(iter(scores.values()), [math.inf]))
    sources = (one["dataset"].split(",")[0] for row in best for one in row["found"])
    shared = {
        "title": rows[0]["stream"],
        "source": next(sources, ""),
        "metric": metric,
        "losses": sorted({str(row["loss"]) for row in best}),
        "choices": max(row["choices"] for row in rows),
        "lacking": lacking,
    }
    # a learner without a result does not beat Constant
    without = False if any(row["beats_constant"] is not None for row in best) else None
    return [
        {
            **shared,
            "learner": row["learner"],
            "params": row["params"] or "{}",
            "scores": scores.get(row["learner"], [math.inf] * n_repeats),
            "failed": failed[row["learner"]],
            "beats_constant": row["beats_constant"] if row["found"] else without,
            "seconds": row["microseconds_mean"] and row["microseconds_mean"] / 1e6,
        }
        for row in rows
    ]


def _why(row: Row) -> str:
    return ", ".join(
        f"{row[end]:,} of {row['runs']:,} runs {end}"
        for end in ("diverged", "failed", "stopped", "came to no number")
        if row[end]
    )


def common_repeats(runs: Mapping[str, Sequence[Row]]) -> tuple[dict[str, list[float]], str]:
    """The scores in the repeats that all have; a run without a seed is in those of each seed."""
    seeds = {row["learner_seed"] for found in runs.values() for row in found} - {None} or {None}
    scores = {
        name: {
            (row["data"], row["order_seed"] or 0, seed): row["score"]
            for row in found
            for seed in (seeds if row["learner_seed"] is None else [row["learner_seed"]])
        }
        for name, found in runs.items()
    }
    every = set[tuple[Any, ...]]().union(*scores.values())
    common = sorted(every.intersection(*scores.values()))
    lacking = "; ".join(
        f"{name} has no runs in {len(every) - len(found):,}"
        for name, found in scores.items()
        if len(found) < len(every)
    )
    left = f"{len(every) - len(common):,} of {len(every):,} repeats are left out: {lacking}"
    of_all = {name: [one[key] for key in common] for name, one in scores.items()}
    return of_all, left if lacking else ""


def table_of_blocks(blocks: Sequence[Sequence[Row]], scores: Array) -> pa.Table:
    ranks = ranks_of(scores)
    return table_of(
        (
            (
                row["title"],
                row["metric"],
                row["learner"],
                row["params"],
                None if math.isinf(scores[b, k]) else sign_of(row["metric"]) * scores[b, k] + 0.0,
                ranks[b, k],
                len(row["scores"]),
                row["failed"] or None,
                row["seconds"] and 1e6 * row["seconds"],
            )
            for b, block in enumerate(blocks)
            for k, row in enumerate(block)
        ),
        block=str,
        metric=str,
        learner=str,
        params=str,
        score=float,
        rank=float,
        repeats=int,
        failed=str,
        microseconds=float,
    )
