"""What to run next: which best values are at the edge of their grid, and how to widen it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from flows.report.sections.lines import Configuration, Line, StreamResults, is_number
from koco_stream.errors import WrongInput
from koco_stream.learners import LEARNERS

FEWEST = 3  # least number of values of a grid that has inner ones
MOST = 4  # most grids that are named


def what_to_run_next(streams: Sequence[StreamResults]) -> str:
    """A sentence or two on the grids whose best value is at an edge; empty if there are none."""
    counts = Counter(
        words
        for stream in streams
        for words in {words for pair in stream.best_lines for words in _at_edges(*pair)}
    )
    if not counts:
        return ""
    on = f" on {{}} of {len(streams):,} streams" if len(streams) > 1 else ""
    in_turn = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST]
    named = "; ".join(words + on.format(count) for words, count in in_turn)
    more = f"; and {len(counts) - MOST:,} more" if len(counts) > MOST else ""
    return (
        "The best value is the largest or the smallest tried, so that the optimum may lie beyond:"
        f" {named}{more}. Add such values to the sweep file and start it again: what is"
        " done is not computed twice."
    )


def _at_edges(line: Line, best: Configuration) -> Iterator[str]:
    """Yield each best value at an edge of its grid, with the next one that the learner allows.

    If a value inside the grid is as good, there is none. Values whose runs failed belong to the
    grid too.
    """
    as_good = [one.params for one in line.configurations if one.merit == best.merit]
    for name, values in line.tried.items():
        if len(values) < FEWEST or not all(map(is_number, values)):
            continue
        for last, before in ((values[-1], values[-2]), (values[0], values[1])):
            if {params[name] for params in as_good if name in params} == {last}:
                beyond = last * last / before if last * before > 0 else 2 * last - before
                beyond = round(beyond) if isinstance(last, int) else float(f"{beyond:.3g}")
                if beyond not in values and _is_allowed(line.learner, name, beyond):
                    yield f"{line.learner} {name} {last:g} (next: {beyond:g})"


def _is_allowed(learner: str, name: str, value: float) -> bool:
    """Whether a learner allows a value; of other libraries, all are."""
    declared = {p.name: p for p in LEARNERS[learner].parameters} if learner in LEARNERS else {}
    with suppress(WrongInput):
        return name not in declared or declared[name].check(value) is not None
    return False
