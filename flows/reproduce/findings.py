"""What the benchmark says, in about ten sentences, from the comparisons of its parts."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from flows.comparing.comparison import Comparison
from flows.comparing.conclusion import is_better, listed
from flows.reproduce.benchmark import PARTS
from flows.scores.constant import CONSTANT
from flows.tables.tables import rows_of
from flows.tables.text import number_text

FIRST_ORDER = ("OGD", "AdaGrad", "NAG", "FTRLProximal", "NORMA", "FOGD", "NOGD", "DualSGD")
TEXT = "benchmark-text"
Row = dict[str, Any]


def findings(parts: Mapping[str, Comparison]) -> list[str]:
    """Sentences on which learner is best where, how sure that is, and what it costs."""
    if not parts:
        return []
    found = [f"{PARTS[part].title}: {one.conclusion}" for part, one in parts.items()]
    if TEXT in parts:
        found.append(f"{PARTS[TEXT].title}, one by one: {_best_on_each(parts[TEXT])}.")
    found += [
        f"{PARTS[part].title}: {_first_order(one)}" for part, one in parts.items() if part != TEXT
    ]
    found.append(f"Time a round: {'; '.join(_times(part, one) for part, one in parts.items())}.")
    return found


def at_a_glance(parts: Mapping[str, Comparison]) -> list[tuple[str, str]]:
    """Each part's title, and in a line who is best, how sure that is, and what it costs."""
    return [
        (PARTS[part].title, f"{_best_learners(part, one)}; {_how_sure(one)}; {_cost(one)} a round.")
        for part, one in parts.items()
    ]


def _best_learners(part: str, one: Comparison) -> str:
    """The learner with the least mean rank; of texts, the best one on each dataset too."""
    first = f"{one.learners[0]} (mean rank {_number(one.ranks[one.learners[0]])})"
    if part != TEXT:
        return first
    each = [f"{row['learner']} on {dataset_of(row)}" for row in map(best_of, by_block(one))]
    return f"{first}; {', '.join(each)}"


def _how_sure(one: Comparison) -> str:
    """From which learners the best one cannot be told apart by any test."""
    if one.critical_difference is None:
        return f"no test: {one.n_datasets} datasets are too few"
    best = one.learners[0]
    signs = [row["other"] for row in rows_of(one.pairs) if row["learner"] == best]
    better = {
        row["other"]
        for row in rows_of(one.pairs)
        if row["learner"] == best and is_better(row, one.alpha)
    }
    close = [
        name
        for name in signs
        if name not in better and one.ranks[name] - one.ranks[best] < one.critical_difference
    ]
    others = f"; not told apart from {listed(close)}" if close else ""
    return f"better than {len(signs) - len(close)} of {len(signs)} others{others}"


def _cost(one: Comparison) -> str:
    """Time a round of the best learner."""
    times = {row["learner"]: row["microseconds"] for row in rows_of(one.summary)}
    known = times[one.learners[0]]
    return "an unknown time" if known is None else f"{_number(known)} µs"


def by_block(one: Comparison) -> list[list[Row]]:
    """The rows of a comparison's blocks, each with the learners by mean rank."""
    rows = groupby(rows_of(one.blocks), lambda row: row["block"])
    return [list(found) for _, found in rows]


def dataset_of(row: Row) -> str:
    """The dataset of a block, without how it is read and scaled."""
    return str(row["block"]).split(",")[0].split(":")[0]


def best_of(rows: list[Row]) -> Row:
    """The row of the best learner on a block; of equal ones, the one with the least mean rank."""
    return min(rows, key=lambda row: row["rank"])


def _best_on_each(one: Comparison) -> str:
    """On each block, who is best and the runner-up, with their numbers."""
    sentences = []
    for rows in by_block(one):
        first, second = sorted(rows, key=lambda row: row["rank"])[:2]
        sentences.append(f"on {dataset_of(first)} {_with_score(first)}, then {_with_score(second)}")
    return "; ".join(sentences)


def _with_score(row: Row) -> str:
    return f"{row['learner']} ({_number(row['score'])})"


def _first_order(one: Comparison) -> str:
    """Where a first-order learner is best."""
    best = [best_of(rows) for rows in by_block(one)]
    won = [f"{dataset_of(row)} ({row['learner']})" for row in best if row["learner"] in FIRST_ORDER]
    where = f": {listed(won)}" if won else ""
    return f"first-order learners are best on {len(won)} of {len(best)} datasets{where}."


def _times(part: str, one: Comparison) -> str:
    """The cheapest and the dearest learner of a part, and those on the Pareto front."""
    rows = [row for row in rows_of(one.summary) if row["microseconds"] is not None]
    rows = sorted((row for row in rows if row["learner"] != CONSTANT), key=_microseconds)
    if not rows:
        return f"{PARTS[part].title.lower()}, not known"
    best = next(row for row in rows if row["learner"] == _first(one))
    ends = [rows[0], best, rows[-1]]
    words = [
        f"{row['learner']} {_number(row['microseconds'])} µs"
        for k, row in enumerate(ends)
        if row not in ends[:k]
    ]
    return f"{PARTS[part].title.lower()}, {listed(words)}"


def _first(one: Comparison) -> str:
    return next(name for name in one.learners if name != CONSTANT)


def _microseconds(row: Row) -> float:
    return float(row["microseconds"])


def _number(value: float | None) -> str:
    return "failed" if value is None else number_text(value, 3)
