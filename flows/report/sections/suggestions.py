"""What to run next, with the lines to paste into the sweep file or the command."""

import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from flows.comparing.comparison import Comparison
from flows.comparing.conclusion import MIN_BLOCKS
from flows.comparing.statistics import least_p
from flows.report.sections.edges import edges_of
from flows.report.sections.lines import StreamResults
from flows.report.sections.widening import toml_text, widened
from flows.tables.tables import CONSTANT

MOST = 3  # most suggestions; the others come when these are done
MOST_GRIDS = 4  # most grids that are widened in one suggestion
STEP = 'name = "{}"\nstep_size = {{ powers_of_ten = [-3, 1] }}'


@dataclass(frozen=True)
class Suggestion:
    """Something to run next: in words, and as a command or lines of a sweep file."""

    words: str
    code: str = ""


def suggestions_for(
    sweep: str,
    file: str,
    streams: Sequence[StreamResults],
    found: Comparison | None,
    missing: int,
    failed: int,
) -> list[Suggestion]:
    """What to run next, the most urgent first.

    `file` is the text of the sweep's file, `missing` and `failed` are numbers of runs, and `found`
    is the comparison of its learners, if there is one.
    """
    made, command = [], f"koco sweep {sweep}.toml"
    if failed:
        what = "Repeat the failed runs" + (", and compute the missing ones." if missing else ".")
        made.append(Suggestion(what, f"{command} --retry-failed"))
    elif missing:
        made.append(Suggestion("Compute the missing runs.", command))
    learners = {line.learner for stream in streams for line, _ in stream.best_lines}
    if len(learners - {CONSTANT}) == 1:
        other = "OGD" if "AdaGrad" in learners else "AdaGrad"
        code = f"[[learner]]\n{STEP.format(other)}"
        made.append(Suggestion("Add a learner to compare with.", code))
    made += wider_grids(file, streams)
    worse = any(stream.not_better for stream in streams)
    if worse and not any(one.beats_constant for s in streams for _, one in s.best_lines):
        words = "Check the labels and the scale of the features: nothing was learnt from them."
        made.append(Suggestion(words))
    made += more_data(streams, found)
    return made[:MOST]


def wider_grids(file: str, streams: Sequence[StreamResults]) -> list[Suggestion]:
    """Grids whose best value is at an edge, as wider ones, those of most streams first."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    tried: dict[tuple[str, str], list[Any]] = {}
    for stream in streams:
        for line, _ in stream.best_lines:
            for name, end in edges_of(line).items():
                ends = counts.setdefault((line.learner, name), {})
                ends[end] = ends.get(end, 0) + 1
                tried[line.learner, name] = line.tried[name]
    lines = []
    in_turn = sorted(counts.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    for (learner, name), ends in in_turn:
        grids = _grids(file, learner, name) or [tried[learner, name]]
        found = [widened(learner, name, grid, set(ends)) for grid in grids]
        wider = dict.fromkeys(toml_text(value) for value in found if value is not None)
        lines += [f"{name} = {text}  # {learner}" for text in wider]
    if not lines:
        return []
    what = "this grid" if len(lines) == 1 else "these grids"
    more = len(lines) - MOST_GRIDS
    words = f"Widen {what}: the best value is the largest or smallest tried."
    if more > 0:
        words += f" {more} more: see the table of best parameters."
    return [Suggestion(words, "\n".join(lines[:MOST_GRIDS]))]


def _grids(file: str, learner: str, name: str) -> list[Any]:
    """Values of a learner's parameter in the sweep file, one for each of the learner's tables."""
    with suppress(tomllib.TOMLDecodeError):
        tables = tomllib.loads(file).get("learner", [])
        return [
            table[name]
            for table in tables
            if isinstance(table, dict) and table.get("name") == learner and name in table
        ]
    return []


def more_data(streams: Sequence[StreamResults], found: Comparison | None) -> list[Suggestion]:
    """Datasets that a test lacks, and orders where each configuration has only one run."""
    made = []
    if found is not None:
        k = len(found.learners)
        needed = blocks_needed(k * (k - 1) // 2, found.alpha)
        lacking = needed - min(found.n_blocks, found.n_datasets)
        if lacking > 0:
            made.append(
                Suggestion(
                    f"Add {lacking} dataset{'s' * (lacking != 1)}: a test of {k} learners needs"
                    f" {needed} at least. This lists what there is:",
                    "koco datasets",
                )
            )
    if streams and all(best.planned == 1 for s in streams for _, best in s.best_lines):
        made.append(
            Suggestion(
                "Repeat each dataset in other orders, to see how much is chance.",
                'order = "shuffled"\norder_seeds = 3',
            )
        )
    return made


def blocks_needed(n_pairs: int, alpha: float) -> int:
    """The least number of blocks with which Wilcoxon's test can tell a pair of learners apart."""
    n = MIN_BLOCKS
    while n_pairs * least_p(n) > alpha:
        n += 1
    return n
