"""The floor under AdaGrad and OGD: plain loops that only gather and scatter the same numbers of the
same rows.
"""

import numpy as np

from koco_stream.numerics.compiler import jit
from tests.bench.data import Stream
from tests.bench.measure import in_turn, seconds, show
from tests.bench.ours import Ours

FLOOR = {"AdaGrad": "gather and scatter, (d, 2)", "OGD": "gather and scatter, (d,)"}


@jit
def pairs(table, indptr, indices, stride, values):
    """Every round: z ← Σ x_j table[j, 0], then both numbers of each j += c·x_j."""
    total = 0.0
    for t in range(indptr.size - 1):
        n, first, lo = indptr[t + 1] - indptr[t], indptr[t] * stride, indptr[t]
        z = 0.0
        for i in range(n):
            z += table[indices[first + i], 0] * values[lo + i]
        total += z
        c = 1e-9 * z + 1e-12
        for i in range(n):
            v, j = c * values[lo + i], indices[first + i]
            table[j, 0] += v
            table[j, 1] += v
    return total


@jit
def numbers(w, indptr, indices, stride, values):
    """The same of a vector."""
    total = 0.0
    for t in range(indptr.size - 1):
        n, first, lo = indptr[t + 1] - indptr[t], indptr[t] * stride, indptr[t]
        z = 0.0
        for i in range(n):
            z += w[indices[first + i]] * values[lo + i]
        total += z
        c = 1e-9 * z + 1e-12
        for i in range(n):
            w[indices[first + i]] += c * values[lo + i]
    return total


def floors(stream: Stream, repetitions: int) -> dict[str, float]:
    """Measure both learners in turn with their floors, print, and return the ratios."""
    rows = stream.rows
    # Without a sign, numba does not ask whether an index counts from the end.
    indices = rows.indices.view(np.uint32)
    learners = {name: Ours(name, step_size=0.1) for name in FLOOR}

    def floor(loop, *shape) -> float:
        table = np.full(shape, 1e-3)
        work = table, rows.indptr, indices, rows.index_stride, rows.values
        return 1e6 / stream.n * seconds(lambda: loop(*work))

    times = in_turn(
        {
            "AdaGrad": lambda: learners["AdaGrad"].scan_us(stream),
            FLOOR["AdaGrad"]: lambda: floor(pairs, stream.d, 2),
            "OGD": lambda: learners["OGD"].scan_us(stream),
            FLOOR["OGD"]: lambda: floor(numbers, stream.d),
        },
        repetitions,
    )
    show(
        f"First order on {stream.name}: medians of {repetitions}, in turn",
        ["loop", "µs/round", "least to greatest"],
        [[name, t.us, f"{t.least:.3g} to {t.greatest:.3g}"] for name, t in times.items()],
    )
    return {name: times[name].us / times[FLOOR[name]].us for name in FLOOR}
