"""How a round's time grows with s, m and d: random rows, uniform feature numbers, each repetition
on new rows. Learners with random features are timed over whole runs: what they do when they start
and when a feature occurs for the first time counts.
"""

from collections.abc import Callable

import numpy as np

from koco_stream.learners import learner_named
from koco_stream.numerics.instructions.feature_rows import aligned_zeros, shape_for
from koco_stream.streams.rows import Rows, sparse_rows
from tests.bench.measure import Time, in_turn, seconds, show
from tests.bench.ours import Ours, scan
from tests.bench.roofline import with_package

NON_ZEROS = 300_000  # gathered in one repetition
FREQUENCIES = 100
Key = tuple[str, int]


def rows_of(n: int, s: int, d: int, draw: np.random.Generator) -> Rows:
    """n rows of s non-zeros each, of norm 1."""
    indices = np.sort(draw.integers(0, d, (n, s)), axis=1)
    for t in np.flatnonzero((np.diff(indices, axis=1) == 0).any(axis=1)):
        indices[t] = np.sort(draw.choice(d, s, replace=False))
    values = draw.standard_normal((n, s))
    values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
    return sparse_rows(np.arange(0, (n + 1) * s, s), indices.ravel(), values.ravel(), d)


def drawn(n: int, s: int, d: int, draw: np.random.Generator) -> tuple[Rows, np.ndarray]:
    """Rows of `rows_of`, and labels."""
    labels = np.where(draw.random(n) < 0.5, -1.0, 1.0)
    labels.flags.writeable = False
    return rows_of(n, s, d, draw), labels


def whole_runs(ours: Ours, s: int, d: int) -> Callable[[], float]:
    """A contestant that starts anew on new rows at each repetition."""
    draw = np.random.default_rng([s, d])
    n, learner = NON_ZEROS // s, learner_named(ours.learner)
    params = learner.to_params(learner.complete(ours.given))
    out = np.empty(n)

    def once() -> float:
        rows, labels = drawn(n, s, d, draw)
        taken = seconds(
            lambda: learner.advance(params, learner.init(params, d, 0), rows, labels, out)
        )
        assert np.isfinite(out).all()
        return 1e6 / n * taken

    return once


def going_on(ours: Ours, s: int, d: int) -> Callable[[], float]:
    """A contestant that goes on with one state over new rows at each repetition (a second time over
    the same rows would find them in the processor's cache, however large d is).
    """
    draw = np.random.default_rng([s, d])
    n = max(NON_ZEROS // s, 300)
    params, state = ours.fresh(d)
    out = np.empty(n)

    def once() -> float:
        rows, labels = drawn(n, s, d, draw)
        taken = seconds(lambda: scan(ours.learner, params, state, rows, labels, out))
        assert np.isfinite(out).all()
        return 1e6 / n * taken

    return once


def floor(s: int, d: int) -> Callable[[], float]:
    """As `going_on`, of the loop that only gathers and scatters lines of OjaSON's length."""
    draw = np.random.default_rng([s, d])
    n, shape = max(NON_ZEROS // s, 300), shape_for(12)
    table, a = aligned_zeros(d, len(shape)), aligned_zeros(2, len(shape)).reshape(-1)
    table += draw.standard_normal(len(shape))

    def once() -> float:
        rows, _ = drawn(n, s, d, draw)
        numbers = rows.indptr, rows.indices, rows.index_stride, rows.values
        return 1e6 / n * seconds(lambda: with_package(table, shape, *numbers, a))

    return once


def growth(repetitions: int, quick: bool) -> dict[Key, dict[int, Time]]:
    """Measure and print the tables. Returns the times by (learner, the letter that grows), then by
    its value.
    """
    oja = Ours("OjaSON", sketch_size=10)
    ds = [10**k for k in range(3, 7 if quick else 8)]
    ss, ms = [10, 30, 100, 300, 1000], [1, 2, 5, 10, 20, 40, 64]
    tables = {
        ("OjaSON", "s"): {s: (oja, s, 100_000) for s in ss},
        ("OjaSON", "m"): {
            m: (Ours("OjaSON", sketch_size=m), 100, 100_000) for m in (ms[:-1] if quick else ms)
        },
        ("OjaSON", "d"): {d: (oja, 100, d) for d in ds},
    }
    for learner in ("RPSON", "FDSON"):
        tables[learner, "d"] = {d: (Ours(learner, sketch_size=10), 100, d) for d in ds}
    for learner in ("FOGD", "DualSGD"):
        random = Ours(learner, n_frequencies=FREQUENCIES)
        tables[learner, "d"] = {d: (random, 100, d) for d in ds if d <= 10**6}
    results: dict[Key, dict[int, Time]] = {}
    for (learner, letter), cases in tables.items():
        timed = whole_runs if learner in ("FOGD", "DualSGD") else going_on
        contestants = {str(value): timed(*case) for value, case in cases.items()}
        floors = ds if (learner, letter) == ("OjaSON", "d") else []
        contestants |= {f"roofline {d}": floor(100, d) for d in floors}
        times = in_turn(contestants, repetitions)
        found = results[learner, letter] = {value: times[str(value)] for value in cases}
        if floors:
            results["roofline of OjaSON", "d"] = {d: times[f"roofline {d}"] for d in floors}
        base = found[next(iter(cases))].us
        show(
            f"{learner} as {letter} grows: medians of {repetitions}, in turn",
            [letter, "µs/round", "least to greatest", "times the first"],
            [[name, *t.columns, t.us / base] for name, t in times.items()],
            "Else s = 100, d = 100,000, m = 10 or D = 100. The roofline: lines of the table are"
            " only gathered and scattered.",
        )
    return results
