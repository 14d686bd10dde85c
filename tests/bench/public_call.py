"""What the public call adds to the compiled loop: `progressive` over the bare scan."""

from collections.abc import Callable
from statistics import median

import numpy as np

import koco_stream
from koco_stream.streams.rows import frozen
from tests.bench.data import Stream
from tests.bench.measure import seconds, show
from tests.bench.ours import Ours, scan

LEARNERS = (
    Ours("OjaSON", sketch_size=10),
    Ours("OjaSON", sketch_size=0),
    Ours("AdaGrad"),
    Ours("OGD"),
)
OTHER_DATA = 12_000_000  # numbers, more than fit into a processor's caches
FEW = 3  # rows

Work = Callable[[], object]


def public_call(stream: Stream, repetitions: int) -> dict[str, float]:
    """Measure the calls in turn and print the table; returns `progressive` / the scan.

    A ratio is the median of those of neighbours in time, which are disturbed alike. Before each
    call other data is read, so that all find neither the rows nor the state in a cache; then a few
    rows are learnt by another learner, so that the call's own instructions are in one, as they are
    for who calls again and again.
    """
    found, lines = dict[str, float](), []
    others = np.ones(OTHER_DATA)
    few = stream.X[:FEW].copy(), stream.y[:FEW].copy()
    for ours in LEARNERS:
        small = getattr(koco_stream, ours.learner)(**ours.given).partial_fit(*few)
        taken: list[dict[str, float]] = []
        for _ in range(repetitions + 1):
            taken.append({})
            for name, work in calls(ours, stream).items():
                others.sum()
                small.partial_fit(*few)
                taken[-1][name] = 1e6 / stream.n * seconds(work)
        del taken[0]  # it compiles
        found[ours.name] = median(one["progressive"] / one["scan"] for one in taken)
        lines.append([ours.name, median(one["scan"] for one in taken), found[ours.name]])
    show(
        f"{stream.name}: public calls, medians of {repetitions}, in turn",
        ["learner", "µs/round, scan", "progressive/scan"],
        lines,
        "scan: from a fresh state that is in memory, on rows in canonical form; progressive: from"
        " such a state, on the user's matrix.",
    )
    return found


def calls(ours: Ours, stream: Stream) -> dict[str, Work]:
    """The calls to be timed, each with a state of its own; the bare loop on `stream.rows`."""
    params, state = ours.fresh(stream.d)
    out, labels = np.empty(stream.n), frozen(stream.y, np.float64)
    started = ours.started(stream)
    return {
        "scan": lambda: scan(ours.learner, params, state, stream.rows, labels, out),
        "progressive": lambda: started.progressive(stream.X, stream.y),
    }
