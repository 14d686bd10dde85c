"""The floor under OjaSON at m = 10: a loop that only gathers and scatters the same rows in a table
of the same layout.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from koco_stream.numerics.compiler import jit
from koco_stream.numerics.instructions.feature_rows import (
    aligned_zeros,
    gather,
    row_at,
    scatter,
    shape_for,
)
from tests.bench.data import Stream
from tests.bench.measure import Time, in_turn, seconds, show
from tests.bench.ours import Ours

PACKAGE = "gather and scatter of koco_stream.numerics.instructions.feature_rows"
PLAIN = "gather and scatter, a line at a time"


@jit
def with_package(table, shape, indptr, indices, stride, values, a):
    """Every round: z ← tableᵀx, then table += x·coefᵀ; z lies at a[0], coef at a[width]."""
    width = len(shape)
    total = 0.0
    for t in range(indptr.size - 1):
        lo, hi = indptr[t], indptr[t + 1]
        idx, val = indices[lo * stride : lo * stride + hi - lo], values[lo:hi]
        gather(table, shape, idx, val, a)
        for k in range(width):
            a[width + k] = 1e-9 * a[k] + 1e-12
        scatter(table, shape, idx, val, row_at(a, 1, shape))
        total += a[0]
    return total


@jit
def line_at_a_time(table, indptr, indices, stride, values, coef):
    """The same as plain loops over twelve columns."""
    total = 0.0
    for t in range(indptr.size - 1):
        lo, hi = indptr[t], indptr[t + 1]
        first = lo * stride
        coef[:12] = 0.0
        for i in range(hi - lo):
            for k in range(12):
                coef[k] += table[indices[first + i], k] * values[lo + i]
        total += coef[0]
        for k in range(12):
            coef[k] = 1e-9 * coef[k] + 1e-12
        for i in range(hi - lo):
            for k in range(12):
                table[indices[first + i], k] += coef[k] * values[lo + i]
    return total


def roofline(stream: Stream, repetitions: int) -> dict[str, Time]:
    """Measure in turn with OjaSON m = 10, print, return the times; the floor is the faster loop's,
    under 'floor'.
    """
    shape, rows = shape_for(11), stream.rows  # ten lines of the sketch, and the weights
    assert len(shape) == 12
    start = np.random.default_rng(0).standard_normal((stream.d, 12))
    oja = Ours("OjaSON", sketch_size=10)

    def timed(loop: Callable[..., float], *given: Any) -> float:
        table, a = aligned_zeros(stream.d, 12), aligned_zeros(2, 12).reshape(-1)
        table[:] = start
        arrays = rows.indptr, rows.indices, rows.index_stride, rows.values, a
        return 1e6 / stream.n * seconds(lambda: loop(table, *given, *arrays))

    times = in_turn(
        {
            "OjaSON m=10": lambda: oja.scan_us(stream),
            PACKAGE: partial(timed, with_package, shape),
            PLAIN: partial(timed, line_at_a_time),
        },
        repetitions,
    )
    show(
        f"Roofline on {stream.name}: medians of {repetitions}, in turn",
        ["loop", "µs/round", "least to greatest", "OjaSON m=10 / it"],
        [[name, *t.columns, times["OjaSON m=10"].us / t.us] for name, t in times.items()],
        "Only the table's traffic: no sketch update, no projection. The claim is against the faster"
        " of the two loops.",
    )
    return {**times, "floor": min(times[PACKAGE], times[PLAIN])}
