"""The first screen of a report: what happened, how sure that is, and what to run next."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from flows.charts import Chart, Row
from flows.comparing.blocks import CONSTANT, LEVEL
from flows.comparing.words import counted, listed
from flows.report.sections import BEST, CURVES, Sections
from flows.scores import bootstrap, wilcoxon
from flows.tables.text import grouped, with_minus
from koco_stream.errors import WrongInput
from koco_stream.learners import LEARNERS
from koco_stream.streams.stream import AS_STORED

MOST_NAMED = 3  # most learners that the sentence names
FEWEST = 3  # least number of values of a grid that has inner ones
MOST_GRIDS = 4  # most grids that are named
NO_BETTER = """
SELECT string_agg(format('{} on {} of {}', learner, worse, known), ', '
                  ORDER BY worse DESC, learner)
FROM (SELECT learner, count(*) FILTER (NOT beats_constant) AS worse, count(beats_constant) AS known
      FROM learners_in_turn GROUP BY learner HAVING worse > 0)"""


def outcome(sections: Sections) -> tuple[list[Row], Counter[str]]:
    """The learners on the stream that is named, and how often each learner is the first."""
    wins = Counter(rows[0]["learner"] for rows in sections.best.values())
    leader = min(wins, key=lambda name: (-wins[name], name), default="")
    of_leader = [rows for rows in sections.best.values() if rows[0]["learner"] == leader]
    return max(of_leader, key=lambda rows: rows[0]["ahead"] or 0.0, default=[]), wins


def sentence_of(sections: Sections) -> str:
    shown, wins = outcome(sections)
    if not shown:
        return "No configuration has ended well in all of its runs yet."
    every = [row for rows in sections.best.values() for row in rows]
    names = {row["learner"] for row in every}
    known = [row["beats_constant"] for row in every]
    leader = shown[0]
    n = len(sections.best)
    is_rate = leader["error_rate_mean"] is not None
    verb, scale, unit = ("errs on", 100, " %") if is_rate else ("has the mean loss", 1, "")
    told = [
        (f"{leader['learner']} {verb}", leader["merit"]),
        *((row["learner"], row["merit"]) for row in shown[1:2]),
        ("Constant", leader["constant"]),
    ]
    numbers = [
        f"{name} {with_minus(scale * value, 3)}{unit}" for name, value in told if value is not None
    ]
    example = f"on {leader['stream']}, {', '.join(numbers)}."
    begin = f"{example[0].upper()}{example[1:]}"
    if len(names) == 1:
        better = f", better than Constant on {known.count(True)} of {n}" * any(known)
        alone = "was run" if {*sections.varied} <= {*names, CONSTANT} else "ended well"
        begin = f"{leader['learner']} alone {alone}{better}: {example}"
    elif n > 1:
        most = wins[leader["learner"]]
        first = sorted(name for name, count in wins.items() if count == most)
        first[MOST_NAMED:] = [f"{len(first) - MOST_NAMED} more"] * (len(first) > MOST_NAMED)
        often = [item for item in wins.most_common() if item[1] < most]
        also = "".join(f", {name} on {count}" for name, count in often[:MOST_NAMED])
        begin = (
            f"{listed(first)} {'tie, each' if first[1:] else 'is'} the best of {len(names)}"
            f" learners on {most} of {n} datasets{also}: {example}"
        )
    nobody = "No learner is better than Constant on any stream. " * ({*known} - {None} == {False})
    return nobody + begin


def first_chart(sections: Sections) -> Chart | None:
    """The figure of the first screen: every learner's best on each dataset. Of one dataset, and
    where losses are compared, it is the curves of the dataset that the sentence names.
    """
    if len(sections.streams) > 1 and sections.measure == "error rate":
        return next(sections.charts(BEST), None)
    shown, _ = outcome(sections)
    return next(sections.charts(CURVES, shown[0]["stream"] if shown else ""), None)


def lines_of(sections: Sections) -> list[Row]:
    runs = grouped(sections.views.rows("FROM best_runs"), lambda row: row["stream"])
    return [
        {
            "dataset": title,
            "best": first.get("name", "no run has ended well"),
            sections.measure: first.get("merit"),
            "µs a round": first.get("microseconds_mean"),
            "runner-up": second.get("name"),
            f"its {sections.measure}": second.get("merit"),
            "is it sure": is_sure(runs[title], first["learner"], second["learner"])
            if second
            else None,
            "Constant": first.get("constant"),
        }
        for title in sections.streams
        for first, second in [[*sections.best.get(title, []), {}, {}][:2]]
    ]


def is_sure(runs: Sequence[Row], first: str, second: str) -> str:
    scores = [
        {(row["data"], row["order_seed"]): row["score"] for row in runs if row["learner"] == name}
        for name in (first, second)
    ]
    pairs = np.array([[mine[one] for mine in scores] for one in scores[0] if one in scores[1]])
    if len(pairs) < 2:
        return "one order: not known"
    [_, (mean, low, high)] = bootstrap([pairs], 0, False, LEVEL)
    if mean == 0 or low is None or high is None:
        return "equal"
    wins = int((pairs[:, 0] < pairs[:, 1]).sum())
    said = f"by {with_minus(low, 2)} to {with_minus(high, 2)}, best in {wins} of {len(pairs)}"
    if low <= 0 or wins == 0:
        return f"no: {said}"
    return (
        f"likely: {said}, too few to be sure"
        if wilcoxon(pairs[:, 1] - pairs[:, 0]) > LEVEL  # as with fewer than six
        else f"yes: {said}"
    )


def facts_of(sections: Sections) -> list[str]:
    [row] = sections.views.rows(
        "SELECT count(DISTINCT learner) AS learners, count(DISTINCT learner_seed) AS seeds,"
        " count(*) AS runs, coalesce(fsum(seconds), 0) AS seconds FROM runs"
    )
    orders = sections.views.rows(
        'SELECT "order", count(DISTINCT coalesce(order_seed, -1)) AS n FROM runs'
        ' GROUP BY "order" ORDER BY "order"'
    )
    of = f" of {row['runs'] + sections.missing:,}" if sections.missing else ""
    return [
        counted(row["learners"], "learner"),
        counted(len(sections.datasets), "dataset"),
        *(
            "rows as stored" if kind == AS_STORED else counted(n, f"{kind} order")
            for kind, n in map(dict.values, orders)
        ),
        *[counted(row["seeds"], "seed")] * (row["seeds"] > 0),
        counted(row["runs"], "run", of),
        f"{row['seconds']:,.{0 if row['seconds'] >= 100 else 1}f} s of computing",
    ]


def warnings_of(sections: Sections) -> list[str]:
    planned = sections.missing + sum(sections.statuses.values())
    without = listed(sorted({*sections.views.datasets.values()} - sections.datasets))
    none = f", and none on {without}" if without else ""
    ended = [(status, n) for status, n in sections.statuses.items() if status != "ok"]
    doubtful = sections.views.rows(
        "SELECT learner, count(*) AS n FROM runs WHERE doubtful_rounds > 0"
        " GROUP BY learner ORDER BY learner"
    )
    [no_better] = sections.views.column(NO_BETTER)
    said = {
        f"{sections.missing:,} of {planned:,} runs are not computed yet{none}": sections.missing
        > 0,
        **{f"{counted(n, 'run')} {status}": True for status, n in ended},
        "Double precision cannot vouch for all rounds of"
        f" {sum(row['n'] for row in doubtful):,} runs of"
        f" {listed([row['learner'] for row in doubtful])} (column doubtful_rounds): scale the"
        " features, or take a larger alpha": bool(doubtful),
        f"No better than Constant: {no_better} (see Best parameters)": bool(no_better),
    }
    return [words for words, holds in said.items() if holds]


def what_to_run_next(sections: Sections) -> str:
    counts = Counter(
        words
        for row in sections.views.rows(
            "SELECT learner, list(params) AS found FROM as_good GROUP BY stream, learner"
        )
        for words in _at_edges(
            row["learner"], sections.varied[row["learner"]], [*map(json.loads, row["found"])]
        )
    )
    n = len(sections.streams)
    in_turn = sorted(counts, key=lambda one: (-counts[one], one))
    on = f" on {{}} of {n:,} streams" if n > 1 else ""
    named = "; ".join(words + on.format(counts[words]) for words in in_turn[:MOST_GRIDS])
    more = f"; and {len(counts) - MOST_GRIDS:,} more" if len(counts) > MOST_GRIDS else ""
    return (
        f"the best value is the last one tried, so that the optimum may lie beyond: {named}{more}."
        if counts
        else ""
    )


def _at_edges(
    learner: str, tried: Mapping[str, Sequence[Any]], as_good: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield each best value at an edge of its grid, with the next one that the learner allows."""
    for name, values in tried.items():
        if len(values) < FEWEST or any(type(one) not in (int, float) for one in values):
            continue
        for last, before in ((values[-1], values[-2]), (values[0], values[1])):
            if {params[name] for params in as_good if name in params} == {last}:
                beyond = last * last / before if last * before > 0 else 2 * last - before
                beyond = round(beyond) if isinstance(last, int) else float(f"{beyond:.3g}")
                if beyond not in values and _is_allowed(learner, name, beyond):
                    yield f"{learner} {name} {last:g} (next: {beyond:g})"


def _is_allowed(learner: str, name: str, value: float) -> bool:
    declared = {p.name: p for p in LEARNERS[learner].parameters} if learner in LEARNERS else {}
    with suppress(WrongInput):
        return name not in declared or declared[name].check(value) is not None
    return False
