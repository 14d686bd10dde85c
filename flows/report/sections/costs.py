"""Cost against error: time and memory of each configuration, with the Pareto front."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Series, Style, plot
from flows.report.sections.lines import Configuration, Line, StreamResults, params_text
from koco_stream.learners import StreamSize, learner_named
from koco_stream.streams.manifest import Manifest

MOST_POINTS = 16  # most points of a learner, not counting the front
FRONT = "Pareto front"
STYLE: Style = ("grey", "", "--")


@dataclass(frozen=True)
class Point:
    """Costs and error of a configuration.

    Attributes
    ----------
    line : Line
        The learner.
    configuration : Configuration
        Its parameters.
    micros : float
        Microseconds a round.
    size : float or None
        Mean number of points in the dictionary.
    n_bytes : float or None
        Size of the state of a learner without a dictionary.
    merit : float
        Error rate or mean loss.
    """

    line: Line
    configuration: Configuration
    micros: float
    size: float | None
    n_bytes: float | None
    merit: float


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
    every = [
        _point(line, one, manifest, stream.rounds)
        for line in stream.lines
        for one in line.configurations
    ]
    points = [point for point in every if point is not None]
    if len(points) < 2:
        return None
    kinds: list[tuple[str, str, Callable[[Point], float | None]]] = [
        ("time", "µs a round", lambda p: p.micros),
        ("dictionary size", "points in the dictionary", lambda p: p.size),
        ("memory", "bytes of the learner's state", lambda p: p.n_bytes),
    ]
    drawings, fronts, drawn = [], dict[str, set[int]](), set[int]()
    for kind, label, cost in kinds:
        costs = {k: value for k, point in enumerate(points) if (value := cost(point) or 0.0) > 0}
        if len(set(costs.values())) < 2:
            continue
        numbers = list(costs)
        front = front_of([(costs[k], points[k].merit) for k in numbers])
        fronts[kind] = {numbers[number] for number in front}
        kept = fronts[kind] | _selection(points, numbers)
        drawn |= kept
        chosen = [(k, costs[k]) for k in numbers if k in kept]
        drawings.append(_plot(stream, kind, label, points, chosen, fronts[kind], styles))
    if not drawings:
        return None
    rows = [
        [
            points[k].line.name,
            params_text(points[k].configuration.params, list(points[k].line.tried)) or "–",
            points[k].micros,
            points[k].size,
            points[k].n_bytes,
            points[k].merit,
            ", ".join(kind for kind in fronts if k in fronts[kind]) or "–",
        ]
        for k in sorted(drawn, key=lambda k: points[k].merit)
    ]
    note = (
        f" Of {len(points):,} configurations {len(drawn):,} are drawn: the fronts, and some of each"
        " line."
        if len(drawn) < len(points)
        else ""
    )
    return Figure(
        f"Time and memory against {stream.measure}",
        drawings,
        [],
        [
            "line",
            "parameters",
            "µs a round",
            "dictionary",
            "state bytes",
            stream.measure,
            "on the front of",
        ],
        rows,
        "A point is a configuration, averaged over orders and seeds; on the front (ringed, joined)"
        " is what nothing beats in both. Time is the scan's alone, on the machines named below,"
        " where other runs may have shared a pass and a machine. Memory is that of the learner's"
        f" state as it is planned.{note}",
    )


def _point(line: Line, one: Configuration, manifest: Manifest | None, rounds: int) -> Point | None:
    """Costs and error of a configuration; None without ok runs."""
    seconds, size = one.means["seconds"], one.means["dictionary_size"]
    if one.merit is None or seconds is None or not one.rounds:
        return None
    n_bytes = None
    if manifest is not None and size is None:
        learner = learner_named(line.learner)
        d = manifest.n_features + bool(one.params.get("fit_intercept"))
        size_of_stream = StreamSize(rounds, d, manifest.n_values / manifest.n_rows)
        n_bytes = 8.0 * learner.cost(learner.refilled(one.params), size_of_stream).floats
    return Point(line, one, 1e6 * seconds / one.rounds, size, n_bytes, one.merit)


def _selection(points: Sequence[Point], numbers: Sequence[int]) -> set[int]:
    """Indices of at most `MOST_POINTS` points of each learner.

    They are its best point and others spread over its errors.
    """
    by_line: dict[str, list[int]] = {}
    for k in sorted(numbers, key=lambda k: points[k].merit):
        by_line.setdefault(points[k].line.name, []).append(k)
    kept: set[int] = set()
    for found in by_line.values():
        every = max(1.0, (len(found) - 1) / (MOST_POINTS - 1))
        kept |= {
            found[min(round(n * every), len(found) - 1)]
            for n in range(min(len(found), MOST_POINTS))
        }
    return kept


def _plot(
    stream: StreamResults,
    kind: str,
    label: str,
    points: Sequence[Point],
    chosen: Sequence[tuple[int, float]],
    front: set[int],
    styles: Mapping[str, Style],
) -> Drawing:
    """Plot of one kind of cost against error, with the Pareto front."""
    by_line: dict[str, list[tuple[int, float]]] = {}
    for k, value in chosen:
        by_line.setdefault(points[k].line.name, []).append((k, value))
    ordered = sorted(
        ((value, points[k].merit, points[k]) for k, value in chosen if k in front),
        key=lambda entry: entry[:2],
    )
    series = [Series(FRONT, [value for value, *_ in ordered], [merit for _, merit, _ in ordered])]
    for name, found in by_line.items():
        rings = [number for number, (k, _) in enumerate(found) if k in front]
        series.append(
            Series(
                name,
                [value for _, value in found],
                [points[k].merit for k, _ in found],
                ringed=rings,
            )
        )
    mine: dict[str, Style] = {
        FRONT: STYLE,
        **{name: (styles[name][0], styles[name][1], "") for name in by_line},
    }
    merits = [points[k].merit for k, _ in chosen if points[k].merit > 0]
    log = len(merits) == len(chosen) and max(merits) > 20.0 * min(merits)
    front_text = "; ".join(
        f"{point.line.name} {value:.3g} at {merit:.4g}" for value, merit, point in ordered
    )
    alt = (
        f"{kind.capitalize()} against {stream.measure} on {stream.title}. The Pareto front, by"
        f" increasing {label}: {front_text}."
    )
    return plot(
        series, mine, Axis(label, log=True), Axis(stream.measure, log, None if log else 0.0), alt
    )
