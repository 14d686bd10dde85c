"""The first screen of a report: what happened on these data, and how sure that is."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from flows.charts import Chart, is_wide
from flows.comparing.comparison import LEVEL
from flows.comparing.conclusion import listed
from flows.report.content import Flag, merged_flags
from flows.report.sections import Row, Sections, has_errors, judged
from flows.scores.constant import JUDGED, not_better_words
from flows.scores.statistics import bootstrap, least_p
from flows.tables.tables import grouped
from flows.tables.text import with_minus
from koco_stream.streams.orders import AS_STORED

MOST_NAMED = 3  # most learners that the sentence names
COLUMNS = ("dataset", "best", "{}", "µs a round", "runner-up", "its {}", "is it sure", "Constant")


def _outcome(sections: Sections) -> tuple[list[list[Row]], list[Row], Counter[str]]:
    """The best of each stream, those of one that is named, and how often each learner is first.

    The named one is where the learner that is most often first is the furthest before another one.
    """
    found = [rows for title in sections.streams if (rows := judged(sections.best.get(title, ())))]
    wins = Counter(rows[0]["learner"] for rows in found)
    leader = min(wins, key=lambda name: (-wins[name], name), default="")
    of_leader = [rows for rows in found if rows[0]["learner"] == leader]
    return found, max(of_leader, key=_gap, default=[]), wins


def sentence_of(sections: Sections) -> str:
    """What happened, in a sentence, with numbers that the figure has."""
    found, shown, wins = _outcome(sections)
    if not shown:
        return "No run has ended well yet."
    known = [row["beats_constant"] for rows in found for row in rows]
    nobody = "No learner is better than Constant on any stream. " * ({*known} - {None} == {False})
    leader, rates = shown[0], has_errors(shown[0])
    names = {row["learner"] for rows in found for row in rows}
    others = [(row["learner"], row["merit"]) for row in shown[1:2]]
    told = [*others, ("Constant", _constant(leader))]
    verb = " errs on" if rates else " has the mean loss"
    score = f"{leader['learner']}{verb} {_number(leader['merit'], rates)}"
    rest = "".join(f", {n} {_number(value, rates)}" for n, value in told if value is not None)
    example = f"on {leader['stream']} {score}{rest}."
    if len(names) == 1:
        better = f", better than Constant on {known.count(True)} of {len(found)}"
        return f"{nobody}{leader['learner']} alone was run{better * any(known)}: {example}"
    if len(found) == 1:
        return f"{nobody}{example[0].upper()}{example[1:]}"
    often = [item for item in wins.most_common() if item[0] != leader["learner"]]
    also = "".join(f", {name} on {count}" for name, count in often[:MOST_NAMED])
    return (
        f"{nobody}{leader['learner']} is the best of {len(names)} learners on"
        f" {wins[leader['learner']]} of {len(found)} datasets{also}: {example}"
    )


def _gap(rows: Sequence[Row]) -> float:
    """How many times as large the runner-up's error is."""
    return rows[1]["merit"] / rows[0]["merit"] if len(rows) > 1 and rows[0]["merit"] > 0 else 0.0


def _number(value: float, is_rate: bool) -> str:
    return f"{with_minus(100 * value, 3)} %" if is_rate else with_minus(value, 3)


def _constant(row: Row) -> Any:
    """What `Constant` comes to in the same runs; None if that is not known."""
    return row[f"constant_{'error_rate' if has_errors(row) else 'mean_loss'}_mean"]


def dataset_rows(sections: Sections) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of a line a dataset: the best and its cost, the runner-up, is it sure."""
    runs = grouped(sections.views.rows("FROM best_runs"), lambda row: row["stream"])
    rows = [_line(title, judged(sections.best.get(title, ())), runs) for title in sections.streams]
    return [name.format(sections.measure) for name in COLUMNS], rows


def _line(title: str, found: Sequence[Row], runs: Mapping[str, Sequence[Row]]) -> list[Any]:
    """A stream's row: what is best on it, of its learners' best configurations and their runs."""
    if not found:
        return [title, "no run has ended well", *(None,) * 6]
    first, second = found[0], found[1] if len(found) > 1 else None
    return [
        *(title, _named(first), first["merit"], first["microseconds_mean"]),
        *((_named(second), second["merit"]) if second else (None, None)),
        is_sure(runs[title], first["learner"], second["learner"]) if second else None,
        _constant(first),
    ]


def _named(row: Row) -> str:
    """A learner, with its sketch size."""
    size = row["sketch_size"]
    return row["learner"] if size is None else f"{row['learner']} m = {size}"


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


def first_chart(sections: Sections) -> Chart | None:
    """The figure of the first screen, which has the numbers of the sentence.

    It is every learner's best on each dataset, or, of one dataset and where losses are compared,
    which have other sizes on each, the curves of the dataset that the sentence names.
    """
    rows = sections.rows("drawn")
    if len(sections.streams) == 1 or not all(map(has_errors, rows)):
        _, shown, _ = _outcome(sections)
        return next(iter(sections.curves(shown[0]["stream"] if shown else "").charts), None)
    columns = {"dataset": "stream", "learner": "learner", "error rate": "merit"}
    return sections.chart(
        "The best of each learner",
        rows,
        {**columns, "µs a round": "microseconds_mean", "parameters": "parameters"},
        x="error rate",
        y="dataset",
        mark="point",
        log="x" * is_wide([row["merit"] for row in rows]),
        picks=(),
        alt="The error rate of each learner's best configuration on each dataset; the table has the"
        " best two.",
    )


def facts_of(runs: Sequence[Row], missing: int) -> list[str]:
    """What was run, in a few words each: learners, datasets, orders, seeds, runs, seconds."""

    def there(*names: str) -> set[Any]:
        return {tuple(row[name] for name in names) for row in runs}

    kinds = Counter(order for order, _ in sorted(there("order", "order_seed"), key=str))
    facts = [_counted(len(there("learner")), "learner"), _counted(len(there("dataset")), "dataset")]
    facts += [
        "rows as stored" if order == AS_STORED else _counted(count, f"{order} order")
        for order, count in kinds.items()
    ]
    if seeds := there("learner_seed") - {(None,)}:
        facts.append(_counted(len(seeds), "seed"))
    statuses = Counter(sorted(row["status"] for row in runs))
    ended = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
    of = f" of {len(runs) + missing:,}" if missing else ""
    ended = ", all ok" if [*statuses] == ["ok"] else f": {ended}" if ended else ""
    seconds = sum(row["seconds"] or 0.0 for row in runs)
    digits = 0 if seconds >= 100 else 1
    return [*facts, _counted(len(runs), "run", of) + ended, f"{seconds:,.{digits}f} s of computing"]


def _counted(count: int, what: str, of: str = "") -> str:
    """A number of things."""
    return f"{count:,}{of} {what}{'s' * (count != 1 or bool(of))}"


def warnings_of(
    sections: Sections, runs: Sequence[Row], missing: int, datasets: Iterable[str]
) -> list[Flag]:
    """What failed, whose digits are in doubt, what is no better than `Constant`, and bests by error
    but not by loss. `missing` runs are not computed yet, and all of those `datasets` without any.
    """
    without = listed(sorted({*datasets} - {row["dataset"] for row in runs}))
    none = f", and none on {without}" if without else ""
    said = [f"{missing:,} of {missing + len(runs):,} runs are not computed yet{none}"]
    ended = sorted(Counter(row["status"] for row in runs if row["status"] != "ok").items())
    said = said * (missing > 0) + [f"{n:,} run{'s' * (n != 1)} {status}" for status, n in ended]
    flags = [*map(Flag, said)]
    if doubtful := [row["learner"] for row in runs if (row["doubtful_rounds"] or 0) > 0]:
        flags.append(
            Flag(
                f"Double precision cannot vouch for all rounds of {len(doubtful):,} runs of"
                f" {listed(sorted(set(doubtful)))} (column doubtful_rounds): scale the features, or"
                " take a larger alpha"
            )
        )
    every = [row for title in sections.streams for row in sections.best.get(title, ())]
    known = Counter(row["learner"] for row in every if row["beats_constant"] is not None)
    worse = [row for row in every if row["beats_constant"] is False]
    of = Counter(row["learner"] for row in worse).most_common()
    flags += merged_flags(
        f"No better than Constant: {', '.join(f'{n} on {c} of {known[n]}' for n, c in of)}",
        [
            not_better_words(row["learner"], row["stream"], *(row[f"{n}_mean"] for n in JUDGED))
            for row in worse
        ],
    )
    differing = list(_other_by_loss(sections.best, sections.views.rows("FROM best_by_loss")))
    return flags + merged_flags(
        f"On {len(differing)} of {len(sections.streams)} streams, the best by error rate is not the"
        " best by mean loss",
        differing,
    )


def _other_by_loss(best: Mapping[str, Sequence[Row]], by_loss: Sequence[Row]) -> Iterable[str]:
    """Sentences on the streams where the best by error rate is not the best by mean loss."""
    for title, found in grouped(by_loss, lambda row: row["stream"]).items():
        rows = best.get(title, ())
        first = {row["learner"] for row in rows if row["merit"] == rows[0]["merit"]}
        losses = {row["learner"] for row in found}
        if rows and has_errors(rows[0]) and not first & losses:
            yield f"{title}: the best by error rate is {min(first)}, by mean loss {min(losses)}"
