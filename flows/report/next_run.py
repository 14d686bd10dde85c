"""What to run next: which best values are at the edge of their grid, and how to widen it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from flows.report.sections import Sections
from flows.tables.tables import grouped
from koco_stream.errors import WrongInput
from koco_stream.learners import LEARNERS

FEWEST = 3  # least number of values of a grid that has inner ones
MOST = 4  # most grids that are named


def what_to_run_next(sections: Sections) -> str:
    """A line on the grids whose best value is at an edge; empty if there are none."""
    rows = sections.views.rows("FROM as_good")
    as_good = grouped(rows, lambda row: (row["stream"], row["learner"]))
    counts = Counter(
        words
        for (_, learner), found in as_good.items()
        for words in _at_edges(
            learner, sections.varied[learner], [json.loads(one["params"]) for one in found]
        )
    )
    n, in_turn = len(sections.streams), sorted(counts, key=lambda one: (-counts[one], one))
    on = f" on {{}} of {n:,} streams" if n > 1 else ""
    named = "; ".join(words + on.format(counts[words]) for words in in_turn[:MOST])
    more = f"; and {len(counts) - MOST:,} more" if len(counts) > MOST else ""
    words = f"the best value is the last one tried, so that the optimum may lie beyond: {named}"
    return f"{words}{more}." if counts else ""


def _at_edges(
    learner: str, tried: Mapping[str, Sequence[Any]], as_good: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield each best value at an edge of its grid, with the next one that the learner allows.

    If a value inside the grid is as good, there is none. Values whose runs failed belong to the
    grid too.
    """
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
    """Whether a learner allows a value; of other libraries, all are."""
    declared = {p.name: p for p in LEARNERS[learner].parameters} if learner in LEARNERS else {}
    with suppress(WrongInput):
        return name not in declared or declared[name].check(value) is not None
    return False
