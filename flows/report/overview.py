"""The first screen of a report: what happened on these data, and how sure that is."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from flows.charts import Chart, Row
from flows.comparing.blocks import LEVEL
from flows.comparing.words import counted, listed
from flows.pages import Flag
from flows.report.sections import BEST, CURVES, Sections
from flows.scores.statistics import bootstrap, least_p
from flows.tables.tables import grouped
from flows.tables.text import with_minus
from flows.views.answer import not_better
from koco_stream.streams.orders import AS_STORED

MOST_NAMED = 3  # most learners that the sentence names


def _outcome(sections: Sections) -> tuple[list[Row], Counter[str]]:
    """The learners on the stream that is named, and how often each learner is the first.

    It is where the learner that is most often first is the furthest before another one.
    """
    wins = Counter(rows[0]["learner"] for rows in sections.best.values())
    leader = min(wins, key=lambda name: (-wins[name], name), default="")
    of_leader = [rows for rows in sections.best.values() if rows[0]["learner"] == leader]
    return max(of_leader, key=_gap, default=[]), wins


def _gap(rows: Sequence[Row]) -> float:
    """How many times as large the runner-up's error is."""
    return rows[1]["merit"] / rows[0]["merit"] if len(rows) > 1 and rows[0]["merit"] > 0 else 0.0


def sentence_of(sections: Sections) -> str:
    """What happened, in a sentence, with numbers that the figure has."""
    shown, wins = _outcome(sections)
    if not shown:
        return "No run has ended well yet."
    every = [row for rows in sections.best.values() for row in rows]
    names, known = {row["learner"] for row in every}, [row["beats_constant"] for row in every]
    nobody = "No learner is better than Constant on any stream. " * ({*known} - {None} == {False})
    leader, n = shown[0], len(sections.best)
    is_rate = leader["error_rate_mean"] is not None
    verb = "errs on" if is_rate else "has the mean loss"
    told = [(f"{leader['learner']} {verb}", leader["merit"])]
    told += [(row["learner"], row["merit"]) for row in shown[1:2]]
    told += [("Constant", leader["constant"])] * (leader["constant"] is not None)
    example = ", ".join(f"{name} {_number(value, is_rate)}" for name, value in told)
    example = f"on {leader['stream']} {example}."
    if len(names) == 1:
        better = f", better than Constant on {known.count(True)} of {n}" * any(known)
        return f"{nobody}{leader['learner']} alone was run{better}: {example}"
    if n == 1:
        return f"{nobody}{example[0].upper()}{example[1:]}"
    often = [item for item in wins.most_common() if item[0] != leader["learner"]]
    also = "".join(f", {name} on {count}" for name, count in often[:MOST_NAMED])
    return (
        f"{nobody}{leader['learner']} is the best of {len(names)} learners on"
        f" {wins[leader['learner']]} of {n} datasets{also}: {example}"
    )


def _number(value: float, is_rate: bool) -> str:
    return f"{with_minus(100 * value, 3)} %" if is_rate else with_minus(value, 3)


def first_chart(sections: Sections) -> Chart | None:
    """The figure of the first screen, which has the numbers of the sentence.

    It is every learner's best on each dataset, or, of one dataset and where losses are compared,
    which have other sizes on each, the curves of the dataset that the sentence names.
    """
    if len(sections.streams) > 1 and sections.measure == "error rate":
        return next(sections.charts(BEST), None)
    shown, _ = _outcome(sections)
    return next(sections.charts(CURVES, shown[0]["stream"] if shown else ""), None)


def lines_of(sections: Sections) -> list[Row]:
    """A line a dataset: the best and its cost, the runner-up, and is it sure."""
    runs = grouped(sections.views.rows("FROM best_runs"), lambda row: row["stream"])
    lines = []
    for title in sections.streams:
        first, second, *_ = [*sections.best.get(title, []), {}, {}]
        pair = first.get("learner", ""), second.get("learner", "")
        lines.append(
            {
                "dataset": title,
                "best": first.get("name", "no run has ended well"),
                sections.measure: first.get("merit"),
                "µs a round": first.get("microseconds_mean"),
                "runner-up": second.get("name"),
                f"its {sections.measure}": second.get("merit"),
                "is it sure": is_sure(runs[title], *pair) if second else None,
                "Constant": first.get("constant"),
            }
        )
    return lines


def is_sure(runs: Sequence[Row], first: str, second: str) -> str:
    """Whether a difference of two learners over the orders that both have is real.

    The interval of the paired differences has to be above 0, over so many orders that chance would
    seldom make them agree.
    """
    scores = [
        {(row["data"], row["order_seed"]): row["score"] for row in runs if row["learner"] == name}
        for name in (first, second)
    ]
    pairs = np.array([[mine[one] for mine in scores] for one in scores[0] if one in scores[1]])
    if len(pairs) < 2:
        return "one order: not known"
    [_, (mean, low, high)] = bootstrap([pairs], 0, False, LEVEL)
    wins, n = int((pairs[:, 0] < pairs[:, 1]).sum()), len(pairs)
    if mean == 0 or low is None or high is None:
        return "equal"
    between = f"by {with_minus(low, 2)} to {with_minus(high, 2)}"
    sure = "no" if low <= 0 or wins == 0 else "likely" if least_p(n) > LEVEL else "yes"
    few = ", too few to be sure" * (sure == "likely")
    return f"{sure}: {between}, best in {wins} of {n}{few}"


def facts_of(sections: Sections) -> list[str]:
    """What was run, in a few words each: learners, datasets, orders, seeds, runs, seconds."""
    [row] = sections.views.rows(
        "SELECT count(DISTINCT learner) AS learners, count(DISTINCT learner_seed) AS seeds,"
        " count(*) AS runs, coalesce(fsum(seconds), 0) AS seconds FROM runs"
    )
    orders = sections.views.rows(
        'SELECT "order", count(DISTINCT coalesce(order_seed, -1)) AS n FROM runs'
        ' GROUP BY "order" ORDER BY "order"'
    )
    facts = [counted(row["learners"], "learner"), counted(len(sections.datasets), "dataset")]
    facts += [
        "rows as stored"
        if one["order"] == AS_STORED
        else counted(one["n"], f"{one['order']} order")
        for one in orders
    ]
    facts += [counted(row["seeds"], "seed")] * (row["seeds"] > 0)
    ended = ", ".join(f"{n:,} {status}" for status, n in sections.statuses.items())
    ended = ", all ok" if [*sections.statuses] == ["ok"] else f": {ended}" if ended else ""
    of = f" of {row['runs'] + sections.missing:,}" if sections.missing else ""
    digits = 0 if row["seconds"] >= 100 else 1
    seconds = f"{row['seconds']:,.{digits}f} s of computing"
    return [*facts, counted(row["runs"], "run", of) + ended, seconds]


def warnings_of(sections: Sections) -> list[Flag]:
    """What is not computed yet, what failed, whose digits are in doubt, and what is no better than
    `Constant`.
    """
    words, missing = list[str](), sections.missing
    if missing:
        without = listed(sorted({*sections.views.datasets.values()} - sections.datasets))
        none = f", and none on {without}" if without else ""
        planned = missing + sum(sections.statuses.values())
        words.append(f"{missing:,} of {planned:,} runs are not computed yet{none}")
    ended = sections.statuses.items()
    words += [f"{counted(n, 'run')} {status}" for status, n in ended if status != "ok"]
    doubtful = sections.views.rows(
        "SELECT learner, count(*) AS n FROM runs WHERE doubtful_rounds > 0"
        " GROUP BY learner ORDER BY learner"
    )
    if doubtful:
        words.append(
            "Double precision cannot vouch for all rounds of"
            f" {sum(row['n'] for row in doubtful):,} runs of"
            f" {listed([row['learner'] for row in doubtful])} (column doubtful_rounds): scale the"
            " features, or take a larger alpha"
        )
    flags, details = [*map(Flag, words)], not_better(sections.views)
    if len(details) < 2:
        return [*flags, *map(Flag, details)]
    every = [row for rows in sections.best.values() for row in rows]
    known = Counter(row["learner"] for row in every if row["beats_constant"] is not None)
    worse = Counter(row["learner"] for row in every if row["beats_constant"] is False)
    named = ", ".join(f"{name} on {n} of {known[name]}" for name, n in worse.most_common())
    return [*flags, Flag(f"No better than Constant: {named}", details)]
