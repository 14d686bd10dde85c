"""Best values at the edge of what was tried: the optimum may lie beyond."""

from collections.abc import Sequence

from flows.report.drawing import Flag, merged_flags
from flows.report.sections.lines import Line, StreamResults, is_number

FEWEST = 3  # least number of values of a grid that has inner ones


def edges_of(line: Line) -> dict[str, str]:
    """Parameters whose best value is at an edge of its grid: "smallest" or "largest", by name.

    If a value inside the grid is as good, it counts as the best. Values whose runs failed belong to
    the grid too.
    """
    if line.best is None:
        return {}
    found = {}
    as_good = [one.params for one in line.configurations if one.merit == line.best.merit]
    for name, values in line.tried.items():
        if len(values) >= FEWEST and all(map(is_number, values)):
            best = {params[name] for params in as_good if name in params}
            if best in ({values[0]}, {values[-1]}):
                found[name] = "smallest" if best == {values[0]} else "largest"
    return found


def edge_words(line: Line, which: str) -> list[str]:
    """Sentences on a learner's best values at one edge of their grid, "smallest" or "largest"."""
    best = line.best.params if line.best else {}
    return [
        f"{line.name}: the best {name}, {best[name]:g}, is the {end} tried"
        f" ({line.tried[name][0]:g} to {line.tried[name][-1]:g}): the optimum may lie outside"
        for name, end in edges_of(line).items()
        if end == which
    ]


def edge_flags(streams: Sequence[StreamResults]) -> list[Flag]:
    """Warnings on the best values that are at the edge of their grid, one for each end."""
    several = len(streams) > 1
    n_grids = sum(
        len(values) >= FEWEST and all(map(is_number, values))
        for stream in streams
        for line, _ in stream.best_lines
        for values in line.tried.values()
    )
    flags = []
    for end in ("largest", "smallest"):
        words = [
            f"{stream.title}: {words}" if several else words
            for stream in streams
            for line in stream.lines
            for words in edge_words(line, end)
        ]
        flags += merged_flags(
            f"{len(words)} of {n_grids} best values are the {end} tried: the optimum may lie"
            " outside",
            words,
        )
    return flags
