"""Cost against error: time and memory of each configuration, with the Pareto front."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Series, Style, plot
from flows.report.sections.lines import Configuration, Line, StreamResults
from flows.tables.parameters import params_text
from flows.tables.tables import grouped
from koco_stream.learners import LEARNERS, StreamSize
from koco_stream.streams.manifest import Manifest

MOST_POINTS = 16  # most points of a learner, not counting the front
FRONT = "Pareto front"
STYLE: Style = ("grey", "", "--")
# kinds of cost, with the label of their axis
KINDS = {
    "time": "µs a round",
    "dictionary size": "points in the dictionary",
    "memory": "bytes of the learner's state",
}


@dataclass(frozen=True, eq=False)
class Point:
    """A configuration: its error rate or mean loss, and its costs by kind; None if it has none."""

    line: str
    parameters: str
    merit: float
    costs: dict[str, float | None]


def front_of(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the Pareto-optimal points (cost, error), by increasing cost."""
    found: list[int] = []
    for k in sorted(range(len(points)), key=lambda k: points[k]):
        if not found or points[k][1] < points[found[-1]][1]:
            found.append(k)
    return found


def cost_against_error(
    stream: StreamResults, manifest: Manifest | None, styles: Mapping[str, Style]
) -> Figure | None:
    """Figure of a stream: time a round, dictionary size and state size against error.

    The state's size needs the manifest. None if fewer than two configurations can be compared.
    """
    points = [
        _point(stream, line, one, one.merit, manifest)
        for line in stream.lines
        for one in line.configurations
        if one.merit is not None and one.means["seconds"] is not None and one.rounds
    ]
    drawings, fronts, drawn = [], dict[str, set[Point]](), set[Point]()
    for kind in KINDS:
        costs = {point: value for point in points if (value := point.costs[kind] or 0.0) > 0}
        if len(set(costs.values())) > 1:
            every = list(costs)
            front = front_of([(costs[point], point.merit) for point in every])
            fronts[kind] = {every[number] for number in front}
            kept = fronts[kind] | _selection(every)
            drawn |= kept
            drawings.append(
                _plot(
                    stream,
                    kind,
                    {point: costs[point] for point in every if point in kept},
                    fronts[kind],
                    styles,
                )
            )
    if not drawings:
        return None
    note = (
        f" Of {len(points):,} configurations, {len(drawn):,} are drawn: the fronts, and some of"
        " each line."
    )
    return Figure(
        f"Time and memory against {stream.measure}",
        drawings,
        [],
        [
            *("line", "parameters", "µs a round", "dictionary", "state bytes"),
            *(stream.measure, "on the front of"),
        ],
        [
            [
                *(point.line, point.parameters or "–", *point.costs.values(), point.merit),
                ", ".join(kind for kind, front in fronts.items() if point in front) or "–",
            ]
            for point in sorted(points, key=lambda point: point.merit)
            if point in drawn
        ],
        "A point is a configuration, averaged over orders and seeds. Points with rings, joined by"
        " a line, are the Pareto front: no other configuration is better in both. Time is the"
        " computing time of a run, without reading, on the machines named below; other runs may"
        " have shared its pass and its machine. Memory is the planned size of the learner's"
        f" state.{note if len(drawn) < len(points) else ''}",
    )


def _point(
    stream: StreamResults, line: Line, one: Configuration, merit: float, manifest: Manifest | None
) -> Point:
    """Costs and error of a configuration that has runs with status ok."""
    size, n_bytes = one.means["dictionary_size"], None
    # a report runs no code but the library's
    if manifest is not None and size is None and line.learner in LEARNERS:
        learner = LEARNERS[line.learner]
        size_of_stream = StreamSize(
            stream.rounds,
            manifest.n_features + bool(one.params.get("fit_intercept")),
            manifest.n_values / manifest.n_rows,
        )
        states = len(manifest.classes) if stream.how["multiclass"] else 1
        n_bytes = 8.0 * states * learner.cost(learner.refilled(one.params), size_of_stream).floats
    costs = dict(
        zip(KINDS, (1e6 * (one.means["seconds"] or 0.0) / one.rounds, size, n_bytes), strict=True)
    )
    return Point(line.name, params_text(one.params, list(line.tried)), merit, costs)


def _selection(points: Sequence[Point]) -> set[Point]:
    """At most `MOST_POINTS` points of each learner: its best, and others spread over its errors."""
    by_merit = sorted(points, key=lambda point: point.merit)
    kept: set[Point] = set()
    for found in grouped(by_merit, lambda point: point.line).values():
        every = max(1.0, (len(found) - 1) / (MOST_POINTS - 1))
        kept |= {
            found[min(round(n * every), len(found) - 1)]
            for n in range(min(len(found), MOST_POINTS))
        }
    return kept


def _plot(
    stream: StreamResults,
    kind: str,
    costs: Mapping[Point, float],
    front: set[Point],
    styles: Mapping[str, Style],
) -> Drawing:
    """Plot of one kind of cost against error, with the Pareto front."""
    joined = sorted(front, key=lambda point: (costs[point], point.merit))
    by_line = {FRONT: joined, **grouped(costs, lambda point: point.line)}
    series = [
        Series(
            name,
            [costs[point] for point in found],
            [point.merit for point in found],
            ringed=[k for k, point in enumerate(found) if point in front and name != FRONT],
        )
        for name, found in by_line.items()
    ]
    mine: dict[str, Style] = {
        name: STYLE if name == FRONT else (styles[name][0], styles[name][1], "") for name in by_line
    }
    merits = [point.merit for point in costs]
    log = min(merits) > 0 and max(merits) > 20.0 * min(merits)
    front_text = "; ".join(f"{one.line} {costs[one]:.3g} at {one.merit:.4g}" for one in joined)
    alt = (
        f"{kind.capitalize()} against {stream.measure} on {stream.title}. The Pareto front, by"
        f" increasing {KINDS[kind]}: {front_text}."
    )
    return plot(
        series,
        mine,
        Axis(KINDS[kind], log=True),
        Axis(stream.measure, log, None if log else 0.0).zoomed(merits),
        alt,
    )
