"""Us and the peers on one stream: speed, progressive loss (the mean of (ŷ − y)²) and progressive
error.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.data import Stream
from tests.bench.measure import Time, in_turn, show
from tests.bench.ours import STEPS, contestants
from tests.bench.peers import River, ScikitLearn, vowpal_wabbits

US = "OjaSON m=10"


def side_by_side(
    stream: Stream, folder: Path, repetitions: int, quick: bool
) -> tuple[dict[str, Time], dict[str, float]]:
    """Tune, measure in turn and print. Returns the times and the losses by name."""
    nnz = stream.rows.indptr[-1] / stream.n
    print(
        f"\n== {stream.name}: {stream.n:,} rows, d = {stream.d:,}, {nnz:.1f} non-zeros a row",
        flush=True,
    )
    measured: dict[str, Callable[[], float]] = {}
    quality: dict[str, tuple[str, float, float, int]] = {}
    for ours in contestants(stream):
        tuned, quality[ours.name] = best(
            ours.grid(quick), lambda q, o=ours: o.predictions(stream, **q), stream.y
        )
        measured[ours.name] = lambda o=ours, q=tuned: o.scan_us(stream, **q)
        if ours.name == US:
            public = f"{US}, progressive"
            measured[public] = lambda o=ours, q=tuned: o.public_us(stream, **q)
            quality[public] = quality[ours.name]
    for vw in vowpal_wabbits(stream, folder):
        tuned, quality[vw.name] = best(vw.grid(quick), lambda q, v=vw: v.predictions(*q), stream.y)
        measured[vw.name] = lambda v=vw, q=tuned: v.marginal_us(*q)
    peers(stream, measured, quality, quick)
    times = in_turn(measured, repetitions)
    lines = []
    for name in measured:
        t, (tuned, loss, error, rows) = times[name], quality.get(name, ("", None, None, stream.n))
        lines.append(
            [
                name,
                t.per_second,
                t.us,
                f"{t.least:.3g} to {t.greatest:.3g}",
                t.us / times[US].us,
                loss,
                error,
                rows,
                tuned,
            ]
        )
    columns = [
        "learner",
        "rounds/s",
        "µs/round",
        "least to greatest",
        f"time/{US}",
        "loss",
        "error",
        "rows",
        "best of its grid",
    ]
    show(
        f"{stream.name}: medians of {repetitions}, in turn",
        columns,
        lines,
        "Ours: the compiled scan, from a fresh state; 'progressive' is the public call, with its"
        " checks.",
        "VW: the marginal pass over its cache.",
        "Loss: the mean of (ŷ − y)² with ŷ held within the labels, as VW's is. The SON family"
        " projects the weights so that |ŷ| ≤ clip.",
        "Loss and error are progressive, over the first 'rows' rows; whole-matrix partial_fit gives"
        " no predictions.",
    )
    return times, {name: found[1] for name, found in quality.items()}


def peers(stream: Stream, measured: dict[str, Any], quality: dict[str, Any], quick: bool) -> None:
    """River and scikit-learn, on fewer rows."""
    river = River(stream, 300 if quick else 4000)
    tuned, quality[river.name] = best(
        [{"step": s} for s in STEPS[::2]], lambda q: river.predictions(**q), river.stream.y
    )
    measured[river.name] = lambda q=tuned: river.us(**q)
    sk = ScikitLearn(stream, 100 if quick else 1000)
    tuned, quality[sk.name] = best(
        [{"step": s} for s in STEPS[::2]], lambda q: sk.predictions(**q), sk.stream.y
    )
    measured[sk.name] = lambda q=tuned: sk.us(**q)
    measured["scikit-learn SGD, whole matrix"] = lambda q=tuned: sk.whole_us(**q)


def best(
    grid: list[Any], predict: Callable[[Any], np.ndarray], y: np.ndarray
) -> tuple[Any, tuple[str, float, float, int]]:
    """The point of the grid with the least progressive loss, and (that point in words, loss, error,
    rows); "edge": the grid ends there.
    """
    found = []
    for point in grid:
        with np.errstate(all="ignore"):
            y_hat = predict(point)
            loss = float(
                np.mean((np.clip(y_hat, -1.0, 1.0) - y) ** 2)
            )  # held within the labels, as Vowpal Wabbit's are
        error = float(np.mean((y_hat >= 0) != (y >= 0)))
        found.append((loss if np.isfinite(loss) else np.inf, error, point))
    loss, error, point = min(found, key=lambda f: f[0])
    edge = (
        " (edge)" if number_of(point) in (f(number_of(p) for p in grid) for f in (min, max)) else ""
    )
    return point, (words(point) + edge, loss, error, int(y.size))


def number_of(point: Any) -> float:
    """The first number of a point of a grid: alpha or the step."""
    return next(iter(point.values())) if isinstance(point, dict) else float(point[1])


def words(point: Any) -> str:
    """A point of a grid in short."""
    if isinstance(point, dict):
        return " ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in point.items()
        )
    return " ".join(point)
