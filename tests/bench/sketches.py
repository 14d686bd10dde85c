"""The learners whose sketch has known eigenvectors, beside FD-SON with as many kept rows: passes
over the same rows from the start, in turn.

Rounds without a gradient leave the sketch alone. FD-SON at a bound of 1 predicts exactly the label
in two fifths of the rounds, so the bound on predictions is wide: all learn in every round.
"""

from functools import partial

from tests.bench.data import Stream, first
from tests.bench.measure import Time, in_turn, show
from tests.bench.ours import Ours

BASE, CLIP = "FDSON", 10.0
TUNED = {BASE: {"alpha": 1.0}, "RFDSON": {"alpha": 1.0}, "SAdaGrad": {"step_size": 0.1}} | {
    "AdaFD": {"step_size": 0.1}
}
SIZES = (10, 64)
ROWS = 10_000  # of a stream, at the most


def sketches(stream: Stream, repetitions: int) -> dict[int, dict[str, Time]]:
    """The times by the sketch's size m and the learner; printed with their ratios to FD-SON's."""
    stream, found = first(stream, ROWS), {}
    for m in SIZES:
        learners = {name: Ours(name, sketch_size=m, clip=CLIP) for name in TUNED}
        times = found[m] = in_turn(
            {name: partial(ours.scan_us, stream, **TUNED[name]) for name, ours in learners.items()},
            repetitions,
        )
        show(
            f"Sketches with m = {m} on {stream.name}: medians of {repetitions}, in turn",
            ["learner", "µs/round", "least to greatest", f"it / {BASE}"],
            [[name, *t.columns, t.us / times[BASE].us] for name, t in times.items()],
        )
    return found
