"""What the public calls add to the compiled loops: `progressive` over the bare scan, `predict` over
the loop of predictions.
"""

from collections.abc import Callable
from statistics import median

import koco_stream
from tests.bench.data import Stream
from tests.bench.measure import seconds, show
from tests.bench.ours import Ours

LEARNERS = (
    Ours("OjaSON", sketch_size=10),
    Ours("OjaSON", sketch_size=0),
    Ours("AdaGrad"),
    Ours("OGD"),
)


def public_call(stream: Stream, repetitions: int) -> dict[str, float]:
    """Measure each pair of calls in turn and print the table; returns `progressive` / the scan.

    A ratio is the median of those of neighbours in time, which are disturbed alike.
    """
    found, lines = dict[str, float](), []
    for ours in LEARNERS:
        calls: dict[str, Callable[[], float]] = {
            "scan": lambda o=ours: o.scan_us(stream),
            "progressive": lambda o=ours: o.public_us(stream),
            "first call": lambda o=ours: first_us(o, stream),
            **predictions(ours, stream),
        }
        taken = [{name: call() for name, call in calls.items()} for _ in range(repetitions + 1)]
        del taken[0]  # it compiles
        ratios = [
            median(one[call] / one[bare] for one in taken)
            for call, bare in (
                ("progressive", "scan"),
                ("first call", "scan"),
                ("predict", "loop of predict"),
            )
        ]
        found[ours.name] = ratios[0]
        lines.append([ours.name, median(one["scan"] for one in taken), *ratios])
    show(
        f"{stream.name}: public calls, medians of {repetitions}, in turn",
        ["learner", "µs/round, scan", "progressive/scan", "first call/scan", "predict/its loop"],
        lines,
        "scan: from a fresh state that is in memory, on rows in canonical form; progressive: from"
        " such a state, on the user's matrix.",
        "first call: progressive of a new learner; it also makes the state, whose memory the system"
        " gives page by page.",
    )
    return found


def first_us(ours: Ours, stream: Stream) -> float:
    """µs a round of `progressive` of a new learner."""
    model = getattr(koco_stream, ours.learner)(**ours.given)
    return 1e6 / stream.n * seconds(lambda: model.progressive(stream.X, stream.y))


def predictions(ours: Ours, stream: Stream) -> dict[str, Callable[[], float]]:
    """Contestants: `predict` of a learner that knows the stream, and its compiled loop alone."""
    model = getattr(koco_stream, ours.learner)(**ours.given).partial_fit(stream.X, stream.y)
    calls = {
        "loop of predict": lambda: model.expect(
            model._params, model._readable_state(), stream.rows
        ),
        "predict": lambda: model.predict(stream.X),
    }
    return {name: lambda call=call: 1e6 / stream.n * seconds(call) for name, call in calls.items()}
