"""Our linear learners and Vowpal Wabbit on one stream: speed, progressive loss (the mean of (ŷ −
y)²) and progressive error.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.data import Stream
from tests.bench.measure import Time, in_turn, show
from tests.bench.ours import contestants
from tests.bench.peers import vowpal_wabbits

US = "OjaSON m=10"


def beside(
    stream: Stream, folder: Path, repetitions: int, quick: bool
) -> tuple[dict[str, Time], dict[str, float]]:
    """Tune, measure in turn and print. Returns the times and the losses by name."""
    measured: dict[str, Callable[[], float]] = {}
    quality: dict[str, tuple[float, float, str]] = {}
    for ours in contestants():
        tuned, quality[ours.name] = best(
            ours.grid(quick), lambda q, o=ours: o.predictions(stream, **q), stream.y
        )
        measured[ours.name] = lambda o=ours, q=tuned: o.scan_us(stream, **q)
    for vw in vowpal_wabbits(stream, folder):
        tuned, quality[vw.name] = best(vw.grid(quick), lambda q, v=vw: v.predictions(*q), stream.y)
        measured[vw.name] = lambda v=vw, q=tuned: v.marginal_us(*q)
    times = in_turn(measured, repetitions)
    show(
        f"{stream.name}: {stream.n:,} rows, d = {stream.d:,}; medians of {repetitions}, in turn",
        ["learner", "µs/round", "least to greatest", f"time/{US}", "loss", "error", "best of grid"],
        [[name, *t.columns, t.us / times[US].us, *quality[name]] for name, t in times.items()],
        "Ours: the compiled scan, from a fresh state. VW: the marginal pass over its cache.",
        "Loss: the mean of (ŷ − y)² with ŷ held within the labels, as VW's is. The SON family"
        " projects the weights so that |ŷ| ≤ clip.",
    )
    return times, {name: found[0] for name, found in quality.items()}


def best(
    grid: list[Any], predict: Callable[[Any], np.ndarray], y: np.ndarray
) -> tuple[Any, tuple[float, float, str]]:
    """The point of the grid with the least progressive loss; and loss, error and the point."""
    found = []
    for point in grid:
        with np.errstate(all="ignore"):
            y_hat = predict(point)
            loss = float(np.mean((np.clip(y_hat, -1.0, 1.0) - y) ** 2))
        error = float(np.mean((y_hat >= 0) != (y >= 0)))
        found.append((loss if np.isfinite(loss) else np.inf, error, point))
    loss, error, point = min(found, key=lambda one: one[0])
    return point, (loss, error, str(point))
