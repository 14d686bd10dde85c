"""The best configuration of each learner on each stream of the chosen runs, found in the database.

A stream here is a dataset in one kind of order. Of streams that differ in their length alone, such
as the rungs of halving, the longest counts. Data seeds of one generator are repeats of a stream.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flows.comparing.counted import WITHOUT_PREDICTIONS
from flows.tables.data_seeds import DATA_SEED
from flows.tables.tables import CONSTANT, dataset_text, grouped
from koco_stream.types import Array

Row = dict[str, Any]
Ask = Callable[[str, Sequence[Any]], list[Row]]
# Columns that are computed once for all answers: streams and configurations are known by hashes,
# which compare fast, and where NULL is a value. Streams of different lengths have one hash, and so
# have datasets that have the same rows under two names.
KEYS = f"""
SELECT hash(run_id) AS run_key, hash(params, learner_code) AS configuration,
  CASE WHEN contains(dataset, 'data_seed') THEN regexp_replace(dataset, '{DATA_SEED.pattern}', '')
    ELSE dataset END AS family,
  hash(CASE WHEN family = dataset THEN coalesce(dataset_hash, dataset) ELSE family END,
    positive_class, multiclass, "order", window_rows) AS stream_key
FROM runs
"""
EACH_SWEEP = "picked JOIN members USING (run_key)"
TOGETHER = "picked"
# A run that ended well without what is compared does not count; one that failed or diverged is
# infinitely bad.
SQL = """
WITH picked AS (
  SELECT run_key, stream_key, configuration, family, dataset, dataset_hash, positive_class,
    multiclass, "order", window_rows, coalesce(max_rows, 9000000000000000000) AS length, order_seed,
    learner_seed, learner, coalesce(numbers_version, 0) AS version, status = 'ok' AS well, seconds,
    rounds, error_rate, mean_loss
  FROM runs WHERE ({holds}) AND learner NOT IN (SELECT unnest(?))
),
chosen AS (SELECT picked.*, {part} AS part, hash(stream_key, part) AS stream FROM {runs}),
streams AS (
  SELECT stream, length, max(rounds) AS n, any_value(part) AS part, min(family) AS family,
    any_value(positive_class) AS positive_class, any_value(multiclass) AS multiclass,
    any_value("order") AS "order", any_value(window_rows) AS window_rows,
    min(dataset) AS dataset, min(dataset_hash) AS dataset_hash,
    coalesce(bool_and(error_rate IS NOT NULL) FILTER (well), false) AS classes
  FROM chosen GROUP BY stream, length
  QUALIFY row_number() OVER (PARTITION BY stream ORDER BY n DESC NULLS LAST, length DESC) = 1
),
measured AS (
  SELECT stream, learner, configuration, version, chosen.dataset_hash AS data, order_seed,
    learner_seed, seconds, rounds,
    CASE WHEN NOT well THEN 'inf'::DOUBLE WHEN classes THEN error_rate ELSE mean_loss END AS score
  FROM chosen JOIN streams USING (stream, length) WHERE score IS NOT NULL
),
best AS (
  SELECT stream, learner, configuration, version, avg(score) AS mean,
    count(*) AS repeats
  FROM measured GROUP BY stream, learner, configuration, version
  QUALIFY row_number() OVER (PARTITION BY stream, learner
    ORDER BY repeats DESC, mean, configuration, version DESC) = 1
),
scored AS (
  SELECT stream, learner, data, order_seed, avg(score) AS score, avg(seconds) AS seconds,
    avg(seconds / rounds) FILTER (rounds > 0) AS seconds_a_round
  FROM measured JOIN best USING (stream, learner, configuration, version)
  GROUP BY stream, learner, data, order_seed
)
SELECT streams.*, learner, data, order_seed, score, seconds, seconds_a_round
FROM scored JOIN streams USING (stream)
ORDER BY part, family, stream, learner, data, order_seed
"""


@dataclass(frozen=True)
class BestOnStream:
    """What each learner's best configuration came to on a stream.

    Attributes
    ----------
    part : str
        The sweep, or nothing where sweeps are taken together.
    dataset, dataset_hash : str
        A dataset of the stream, as the store has it.
    title : str
        The dataset with what is learnt of its classes.
    order : str
        The kind of order, with its window.
    rounds : int
        Rounds of the stream.
    has_errors : bool
        Whether error rates are compared, and not mean losses.
    learners : list of str
        By name; `Constant` is one of them if it has run.
    scores : array (n_orders, k)
        The measure in each order that all of them have, the mean over learner seeds; lower is
        better, and infinity is a run that failed or diverged.
    microseconds, seconds : list of (float or None)
        Cost of each learner's best configuration: a round, and the mean of its runs.
    """

    part: str
    dataset: str
    dataset_hash: str
    title: str
    order: str
    rounds: int
    has_errors: bool
    learners: list[str]
    scores: Array
    microseconds: list[float | None]
    seconds: list[float | None]


def best_on_streams(
    ask: Ask, holds: str, values: Sequence[Any], each_sweep: bool
) -> list[BestOnStream]:
    """The best configurations on each stream of the runs for which a condition holds.

    With `each_sweep` they are those of each sweep that asked for the runs, and otherwise those of
    all runs together. Streams of which no order is common to the learners are left out.
    """
    part, runs = ("members.sweep", EACH_SWEEP) if each_sweep else ("''", TOGETHER)
    sql = SQL.format(holds=holds, part=part, runs=runs)
    rows = ask(sql, [*values, list(WITHOUT_PREDICTIONS)])
    found = [_of_stream(some) for some in grouped(rows, lambda row: str(row["stream"])).values()]
    return [one for one in found if one is not None]


def _of_stream(rows: Sequence[Row]) -> BestOnStream | None:
    by_learner = grouped(rows, lambda row: str(row["learner"]))
    learners, row = sorted(by_learner), rows[0]
    scores = [
        {(one["data"], one["order_seed"]): one["score"] for one in by_learner[name]}
        for name in learners
    ]
    orders = [order for order in scores[0] if all(order in mine for mine in scores)]
    if not orders:
        return None
    window = f" of {row['window_rows']:,} rows" if row["window_rows"] else ""
    return BestOnStream(
        row["part"],
        row["dataset"],
        row["dataset_hash"],
        dataset_text(row["family"], row["positive_class"], row["multiclass"]),
        f"{row['order']}{window}",
        row["n"] or 0,
        row["classes"],
        learners,
        np.array([[mine[order] for mine in scores] for order in orders]),
        [
            _mean(1e6 * one["seconds_a_round"] for one in by_learner[n] if one["seconds_a_round"])
            for n in learners
        ],
        [
            _mean(one["seconds"] for one in by_learner[n] if one["seconds"] is not None)
            for n in learners
        ],
    )


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None


def without_constant(one: BestOnStream) -> list[int]:
    """The places of a stream's learners by score, the best first, without `Constant`."""
    means = one.scores.mean(axis=0)
    order = sorted(range(len(one.learners)), key=lambda k: (means[k], one.learners[k]))
    return [k for k in order if one.learners[k] != CONSTANT]
