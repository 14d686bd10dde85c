"""The first screen of the page: which learner is best where, whether that is sure, and its cost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flows.comparing.comparison import LEVEL
from flows.comparing.conclusion import MIN_BLOCKS, is_better, listed
from flows.comparing.figures import pairs_table
from flows.comparing.statistics import Difference, bootstrap, least_p, mean_ranks
from flows.exploring.best import BestOnStream, without_constant
from flows.tables.tables import CONSTANT, grouped
from flows.tables.text import with_minus
from koco_stream.streams.manifest import Manifest
from koco_stream.types import Array

MOST_SWEEPS = 6
MOST_DATASETS = 40
MOST_NAMED = 3  # learners from which the best one cannot be told apart
SPARSE, MANY = 0.01, 1000  # share of features that are not 0, and features, of sparse texts
TEXTS = "Sparse, as texts are"
OTHERS = "Other datasets"
Row = dict[str, Any]


def sweep_rows(streams: Sequence[BestOnStream], seconds: Mapping[str, float]) -> list[Row]:
    """A row for each sweep with what its learners come to over all its datasets.

    `seconds` has those of all runs of each sweep. There are `MOST_SWEEPS` rows at most, those of
    most datasets.
    """
    by_sweep = grouped(streams, lambda one: one.part)
    rows = [_over_datasets(name, found, seconds.get(name)) for name, found in by_sweep.items()]
    rows = sorted(rows, key=lambda row: (-row["blocks"], row["title"]))
    return rows[:MOST_SWEEPS]


def _over_datasets(sweep: str, streams: Sequence[BestOnStream], seconds: float | None) -> Row:
    every = {name for one in streams for name in one.learners}
    whole = [one for one in streams if {*one.learners, CONSTANT} >= every]
    names = sorted(every if all(every == {*one.learners} for one in whole) else every - {CONSTANT})
    about = f"{_counted(len(whole), 'dataset')}, {_counted(len(names), 'learner')}"
    about += f"; {len(streams) - len(whole)} left out" if len(whole) < len(streams) else ""
    total = "" if seconds is None else f"all runs {_seconds(seconds)}"
    row = {"title": sweep, "blocks": len(whole), "about": _joined(about, total), "group": ""}
    if not whole or len(names) < 2:
        why = "Only one learner." if whole else "No dataset has runs of all learners."
        return {**row, "best": None, "second": None, "verdict": why}
    # rounded, so that equal errors are ties whatever the order in which they are added
    scores = np.array([_of_learners(one, names).mean(axis=0).round(12) for one in whole])
    ranks = mean_ranks(scores)
    order = sorted(range(len(names)), key=lambda k: (ranks[k], names[k]))
    ordered = [names[k] for k in order]
    first, second = ordered[:2]
    times = [_of(one, one.microseconds, first) for one in whole]
    said = {
        name: f"mean rank {with_minus(float(ranks[k]), 3)}"
        for name, k in zip(ordered, order, strict=True)
    }
    verdict = _tested(ordered, scores[:, order])
    if len(whole) < MIN_BLOCKS:
        verdict = f"No test: {_counted(len(whole), 'dataset')}, and one needs {MIN_BLOCKS}."
    best = {"learner": first, "measure": said[first], "cost": _a_round(_geometric(times))}
    return {
        **row,
        "best": best,
        "second": {"learner": second, "measure": said[second]},
        "verdict": verdict,
    }


def _tested(learners: Sequence[str], scores: Array) -> str:
    """Which learners the first one is better than, by Wilcoxon's test with Holm's correction."""
    pairs = pairs_table(learners, scores, False, True).slice(0, len(learners) - 1).to_pylist()
    apart = [str(pair["other"]) for pair in pairs if is_better(pair, LEVEL)]
    close = [name for name in learners[1:] if name not in apart]
    if not close:
        all_others = f"all {len(pairs)} others" if len(pairs) > 1 else learners[1]
        return f"Real: {learners[0]} is better than {all_others}."
    more = len(close) - MOST_NAMED
    shown = close if more < 2 else [*close[:MOST_NAMED], f"{more} more"]
    if not apart:
        return f"Not told apart from {listed(shown)}."
    return f"Better than {len(apart)} of {len(pairs)} others; not told apart from {listed(shown)}."


def dataset_rows(
    streams: Sequence[BestOnStream], manifest: Callable[[str, str], Manifest | None]
) -> list[Row]:
    """A row for each dataset with its best learner and the runner-up, the sparsest first.

    `manifest` finds a dataset's by name and hash. There are `MOST_DATASETS` rows at most.
    """
    known = [(one, manifest(one.dataset, one.dataset_hash)) for one in streams]
    known.sort(key=lambda pair: (_density(pair[1]), pair[0].title, pair[0].order))
    rows = [_on_dataset(one, found) for one, found in known[:MOST_DATASETS]]
    groups = {row["group"] for row in rows}
    return rows if TEXTS in groups else [{**row, "group": ""} for row in rows]


def _on_dataset(one: BestOnStream, manifest: Manifest | None) -> Row:
    order = without_constant(one)
    rounds = f"{_counted(one.rounds, 'round')}, {one.order}"
    row = {
        "title": one.title,
        "about": _joined(_sparsity(manifest), rounds),
        "group": TEXTS if _is_sparse(manifest) else OTHERS,
    }
    measure = "error" if one.has_errors else "loss"
    means = one.scores.mean(axis=0)
    if not order or np.isinf(means[order[0]]):
        why = "Every learner failed or diverged." if order else "Only Constant has run."
        return {**row, "best": None, "second": None, "verdict": why}
    first, *others = order
    said = {k: f"{measure} {with_minus(float(means[k]), 3)}" for k in order}
    seconds = one.seconds[first]
    cost = _joined(_a_round(one.microseconds[first]), "" if seconds is None else _seconds(seconds))
    best = {"learner": one.learners[first], "measure": said[first], "cost": cost}
    if not others:
        return {**row, "best": best, "second": None, "verdict": "No other learner has run."}
    second = others[0]
    if np.isinf(means[second]):
        failed = {"learner": one.learners[second], "measure": "failed or diverged"}
        return {**row, "best": best, "second": failed, "verdict": ""}
    [_, difference] = bootstrap([one.scores[:, [first, second]]], 0, False, LEVEL)
    wins = int((one.scores[:, first] < one.scores[:, second]).sum())
    return {
        **row,
        "best": best,
        "second": {"learner": one.learners[second], "measure": said[second]},
        "verdict": _paired(difference, wins, len(one.scores)),
    }


def _paired(difference: Difference, wins: int, n: int) -> str:
    """Whether a difference over so many orders, in which the best one wins some, is real.

    All orders have to agree, and be so many that chance would seldom make them agree.
    """
    mean, low, high = difference
    if mean == 0:
        return "Equal."
    if low is None or high is None:
        return "Too few orders to tell: 1."
    between = f"{with_minus(low, 2)} to {with_minus(high, 2)}"
    if low <= 0 or wins == 0:
        return f"Not told apart: worse by {between}."
    if least_p(n) > LEVEL:
        return f"Worse by {between} in {wins} of {n} orders, too few to be sure."
    return f"Real: worse by {between}."


def _of_learners(one: BestOnStream, names: Sequence[str]) -> Array:
    scores = one.scores[:, [one.learners.index(name) for name in names]]
    return np.where(np.isinf(scores).any(axis=0), np.inf, scores)


def _of(one: BestOnStream, values: Sequence[float | None], name: str) -> float | None:
    return values[one.learners.index(name)]


def _geometric(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value]
    return float(np.exp(np.log(known).mean())) if known and len(known) == len(values) else None


def _density(manifest: Manifest | None) -> float:
    """The share of features that are not 0; 2 where it is not known."""
    cells = manifest.n_rows * manifest.n_features if manifest else 0
    return manifest.n_values / cells if manifest and cells else 2.0


def _is_sparse(manifest: Manifest | None) -> bool:
    return manifest is not None and manifest.n_features >= MANY and _density(manifest) < SPARSE


def _sparsity(manifest: Manifest | None) -> str:
    if manifest is None:
        return ""
    features = _counted(manifest.n_features, "feature")
    density = _density(manifest)
    share = with_minus(100 * density, 2)
    return f"{share} % of {features} not 0" if density < 0.5 else features


def _a_round(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{with_minus(microseconds, 3)} µs a round"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{with_minus(seconds, 2)} s"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _joined(*texts: str) -> str:
    return "; ".join(text for text in texts if text)
