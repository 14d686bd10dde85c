"""The first screen of a report: what was compared, who won and how sure that is, what failed.

It ends with what to run next (`next_run`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flows.comparing.comparison import Comparison
from flows.comparing.conclusion import listed
from flows.report.drawing import Drawing, Flag, merged_flags
from flows.report.sections.lines import Configuration, StreamResults
from flows.report.sections.next_run import what_to_run_next
from flows.scores.constant import CONSTANT
from flows.tables.tables import grouped, lists_of, rows_of
from flows.tables.text import with_minus
from koco_stream.streams.orders import AS_STORED

MOST_ROWS = 8  # most learners or streams in the table
MICROSECONDS = "µs a round"
MOST_NAMED = 8  # most streams whose best learner is named


@dataclass(frozen=True)
class Overview:
    """What the first screen of a report says.

    Attributes
    ----------
    facts : list of str
        What was compared: numbers of learners, datasets, orders, seeds and runs.
    conclusion : str
        Who won, and how sure that is.
    columns, rows : list
        A row for each learner, the best first; without a comparison a row for each stream.
    notes : list of str
        On which streams a learner is the best, and what the table leaves out.
    chosen : str
        How configurations were chosen, and whom that favours; empty if there was no choice.
    other_choice : str
        The command that chooses them otherwise; empty if nothing is compared.
    picture : Drawing or None
        The critical-difference diagram.
    warnings : list of Flag
        What failed, or is no better than `Constant`.
    next_run : str
        What to run next; empty if no best value is at the edge of its grid.
    """

    facts: list[str]
    conclusion: str
    columns: list[str]
    rows: list[list[Any]]
    notes: list[str]
    chosen: str
    other_choice: str
    picture: Drawing | None
    warnings: list[Flag]
    next_run: str


def overview_of(
    sweep: str,
    note: Mapping[str, Any],
    runs: pa.Table,
    streams: Sequence[StreamResults],
    found: Comparison | None,
) -> Overview:
    """The first screen of a sweep, from its note in the store, its runs, and their results.

    `found` is the comparison of its learners; None if there is nothing to compare.
    """
    missing = max(0, len(note["run_ids"]) - runs.num_rows)
    ended, there = (runs.column(name).to_pylist() for name in ("status", "dataset"))
    statuses = Counter(sorted(ended))
    columns, rows, notes = _learners(found) if found else _streams(streams)
    picture = None
    if found and found.critical_difference is not None:
        picture = Drawing(found.diagram.narrow, found.diagram.alt)
    if runs.num_rows == 0:
        streams = []
    return Overview(
        facts_of(runs, missing, statuses),
        conclusion_of(streams, found),
        columns,
        rows,
        notes,
        *how_chosen(sweep, streams, found),
        picture,
        warnings_of(streams, runs, missing, statuses, {*note["datasets"].values()} - {*there}),
        what_to_run_next(streams),
    )


def how_chosen(
    sweep: str, streams: Sequence[StreamResults], found: Comparison | None
) -> tuple[str, str]:
    """How configurations were chosen, in a sentence, and the command that chooses otherwise."""
    if all(len(line.configurations) < 2 for stream in streams for line in stream.lines):
        return "", ""
    if found is None:
        return "Configurations are chosen by the same rounds on which they are judged here.", ""
    words = (
        "Configurations are chosen by the same rounds on which they are judged here, which favours"
        " learners with larger grids. To choose by the first half of each stream and judge on the"
        " second:"
    )
    return words, f"koco compare {sweep} --select first-half"


def facts_of(runs: pa.Table, missing: int, statuses: Mapping[str, int]) -> list[str]:
    """What was run, in a few words each: learners, datasets, orders, seeds, runs, seconds."""
    learners, datasets, seeds, orders = (
        set(found)
        for found in (
            *lists_of(runs, ["learner", "dataset", "learner_seed"]),
            zip(*lists_of(runs, ["order", "order_seed"]), strict=True),
        )
    )
    kinds = Counter(order for order, _ in sorted(orders, key=str))
    facts = [_counted(len(learners), "learner"), _counted(len(datasets), "dataset")]
    facts += [
        "rows as stored" if order == AS_STORED else _counted(count, f"{order} order")
        for order, count in kinds.items()
    ]
    if seeds := seeds - {None}:
        facts.append(_counted(len(seeds), "seed"))
    ended = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
    well = len(statuses) == 1 and "ok" in statuses
    of = f" of {runs.num_rows + missing:,}" if missing else ""
    ended = ", all ok" if well else f": {ended}" if ended else ""
    facts.append(_counted(runs.num_rows, "run", of) + ended)
    seconds = sum(value or 0.0 for value in runs.column("seconds").to_pylist())
    return [*facts, f"{seconds:,.{0 if seconds >= 100 else 1}f} s of computing"]


def _counted(count: int, what: str, of: str = "") -> str:
    """A number of things."""
    return f"{count:,}{of} {what}{'s' * (count != 1 or bool(of))}"


def conclusion_of(streams: Sequence[StreamResults], found: Comparison | None) -> str:
    """Who won, and how sure that is; a sentence is put before it if nobody beats `Constant`."""
    judged = [one for stream in streams for one in _judged(stream).values()]
    better = sum(judged)
    nobody = "No learner is better than Constant on any stream. " if judged and not better else ""
    if found is not None:
        return nobody + found.conclusion
    learners = sorted({line.learner for stream in streams for line, _ in stream.best_lines})
    if not learners:
        return "No run has ended well yet."
    if len(learners) > 1:
        return (
            f"{nobody}There is no dataset and order with runs of all {len(learners)} learners, so"
            " they are not compared. The table has the best of each stream."
        )
    words = f"{learners[0]} alone was run, so there is nothing to compare."
    if len(streams) < 2 or not judged:
        how = "better" if better else "no better"
        return f"{words} It is {how} than Constant." if judged else words
    unknown = f", {n:,} not known" if (n := len(streams) - len(judged)) else ""
    return f"{words} It is better than Constant on {better:,} of {len(judged):,} streams{unknown}."


def _judged(stream: StreamResults) -> dict[str, bool]:
    """Whether the best configuration of each learner beats `Constant`, where that is known."""
    found = dict[str, Configuration]()
    for line, best in stream.best_lines:
        found.setdefault(line.learner, best)  # the best of its sketch sizes comes first
    return {
        name: best.beats_constant for name, best in found.items() if best.beats_constant is not None
    }


def _learners(found: Comparison) -> tuple[list[str], list[list[Any]], list[str]]:
    """Columns and rows of the table of learners, and what is said below it."""
    blocks, [metric] = list(rows_of(found.blocks)), found.metrics[:1]
    alone = found.n_blocks == 1
    scores = {row["learner"]: row["score"] for row in blocks}
    kind = "relative difference to best" if found.relative else "difference to best"
    measure = metric.replace("_", " ") if alone else "mean rank"
    rows = [
        [
            row["learner"],
            scores[row["learner"]] if alone else row["mean_rank"],
            row["microseconds"],
            row["difference"],
            _interval(row),
            *([] if alone else [row["first"]]),
            row["beats_constant"],
        ]
        for row in rows_of(found.summary)
    ]
    notes = [] if alone else _winners(blocks)
    if len(rows) > MOST_ROWS:
        notes.append(f"The table has the best {MOST_ROWS} of {len(rows)} learners.")
    level = f"{100 * (1 - found.alpha):g} %"
    first = [] if alone else ["first on"]
    columns = ["learner", measure, MICROSECONDS, kind, f"{level} interval", *first]
    columns.append("beats Constant")
    return columns, rows[:MOST_ROWS], notes


def _interval(row: Mapping[str, Any]) -> str | None:
    """The interval of a difference, such as `0.011 to 0.04`."""
    if row["low"] is None or row["high"] is None:
        return None
    low, high = (with_minus(row[name], 2) for name in ("low", "high"))
    return f"{low} to {high}"


def _winners(blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who is the best where, in a sentence; none if there are many blocks."""
    best = {
        block: [row["learner"] for row in found if row["rank"] == min(one["rank"] for one in found)]
        for block, found in grouped(blocks, lambda row: str(row["block"])).items()
    }
    if len(winners := {listed(one) for one in best.values()}) == 1:
        return [f"{winners.pop()} is the best on all {len(best)}."]
    if len(best) > MOST_NAMED:
        return []
    endings = {block.partition(", ")[2] for block in best}
    named = {block: block.partition(", ")[0] if len(endings) == 1 else block for block in best}
    where = grouped(best, lambda block: listed(best[block]))
    ordered = sorted(where.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        "Best on each: "
        + "; ".join(f"{who} on {listed([named[one] for one in found])}" for who, found in ordered)
        + "."
    ]


def _streams(streams: Sequence[StreamResults]) -> tuple[list[str], list[list[Any]], list[str]]:
    """Columns and rows of a table of streams with their best learner, and what is said below it."""
    shown = [stream for stream in streams if stream.best_lines]
    measure = "error rate" if all(stream.has_errors for stream in shown) else "error or mean loss"
    if not any(stream.has_errors for stream in shown):
        measure = "mean loss"
    rows = [_best_row(stream) for stream in shown[:MOST_ROWS]]
    left, nothing = len(shown) - len(rows), [one.title for one in streams if not one.best_lines]
    notes = [f"The table has the first {MOST_ROWS} of {len(shown)} streams."] if left else []
    of = f"{len(nothing)} of {len(streams)} streams: {'; '.join(nothing)}"
    notes += [f"No run has ended well on {of}."] * bool(nothing)
    names = ["stream", "best learner", measure, MICROSECONDS, "± std", "Constant", "beats Constant"]
    return names, rows, notes


def _best_row(stream: StreamResults) -> list[Any]:
    """A stream's best learner, with its measure and that of `Constant`."""
    name = "error_rate" if stream.has_errors else "mean_loss"
    line, best = next(
        (pair for pair in stream.best_lines if pair[0].learner != CONSTANT), stream.best_lines[0]
    )
    constant, seconds = best.means[f"constant_{name}"], best.means["seconds"]
    return [
        stream.title,
        line.name,
        best.merit,
        1e6 * seconds / stream.rounds if seconds and stream.rounds else None,
        best.deviations[name],
        constant,
        best.beats_constant,
    ]


def warnings_of(
    streams: Sequence[StreamResults],
    runs: pa.Table,
    missing: int,
    statuses: Mapping[str, int],
    without_runs: Iterable[str],
) -> list[Flag]:
    """What failed, whose digits are in doubt, what is no better than `Constant`, and bests by error
    but not by loss.

    `missing` runs are not computed yet, and all of the datasets `without_runs`.
    """
    flags = []
    if missing:
        planned = missing + sum(statuses.values())
        none = f", and none on {listed(sorted(without_runs))}" if without_runs else ""
        flags.append(Flag(f"{missing:,} of {planned:,} runs are not computed yet{none}"))
    flags += [
        Flag(f"{count:,} run{'s' * (count != 1)} {status}", link="not-ok")
        for status, count in statuses.items()
        if status != "ok"
    ]
    doubtful = runs.filter(pc.field("doubtful_rounds") > 0).column("learner").to_pylist()
    if doubtful:
        flags.append(
            Flag(
                f"Double precision cannot vouch for all rounds of {len(doubtful):,} runs of"
                f" {listed(sorted(set(doubtful)))} (column doubtful_rounds): scale the features, or"
                " take a larger alpha"
            )
        )
    worse = [words for stream in streams for words in stream.not_better]
    flags += merged_flags(f"No better than Constant: {_where_not_better(streams)}", worse, "best")
    differing = [words for stream in streams if (words := stream.other_by_loss)]
    flags += merged_flags(
        f"On {len(differing)} of {len(streams)} streams, the best by error rate is not the best by"
        " mean loss",
        differing,
        "best",
    )
    return flags


def _where_not_better(streams: Sequence[StreamResults]) -> str:
    """On how many streams each learner is no better than `Constant`: `OGD on 1 of 7 streams`."""
    judged = [pair for stream in streams for pair in _judged(stream).items()]
    worse = Counter(name for name, better in judged if not better)
    known = Counter(name for name, _ in judged)
    return ", ".join(f"{name} on {count} of {known[name]}" for name, count in worse.most_common())
