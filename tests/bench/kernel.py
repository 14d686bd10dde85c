"""The kernel learners: PROS-N-KONS beside NumPy on the same rows and coins, Sketched-KONS singly
and in a cohort, NORMA as d grows.
"""

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import koco_stream
from flows.prepare.preparation import prepare_named
from koco_stream.learners import learner_named
from koco_stream.learners.shared_kernel_scan import SharedKernelScan
from koco_stream.numerics.random import uniform
from koco_stream.streams.inputs import as_rows
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.rows import frozen
from koco_stream.streams.stream import Stream
from tests.bench.growth import rows_of
from tests.bench.measure import Time, in_turn, results_in_turn, seconds, show
from tests.bench.numpy_kons import numpy_kons
from tests.bench.numpy_pros import numpy_pros

US, SOLVES, INVERSES = "ours", "NumPy", "NumPy, kept inverses"
# The reading of the poster's settings whose dictionaries have the published size: about 20 points.
POSTER = {
    "alpha": 1.0,
    "ridge": 1.0,
    "beta": 1.0,
    "epsilon": 0.5,
    "estimate": "poster",
    "curvature": 0.25,
    "bandwidth": 8 / np.sqrt(2),
}
PUBLISHED = {"cpusmall": 7.28, "cadata": 18.59, "casp": 40.73}  # seconds, poster's Table 1
COHORT = 32
LONG = 8000  # rows, of which KONS in NumPy takes half a minute: it runs once
MANY = 1810  # rows, of which PROS-N-KONS takes nearly all into its dictionary at a large β


def regression_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set of the poster in [0, 1], shuffled by a fixed seed; without `KOCO_DATA` uniform rows of
    its size.
    """
    n, d = {"cpusmall": (8192, 12), "cadata": (20_640, 8), "casp": (45_730, 9)}[name]
    data = os.environ.get("KOCO_DATA")
    if data is None:
        X = np.random.default_rng(0).random((n, d))
        return X, np.sin(4 * X.mean(1)) ** 2
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as store:
        manifest = prepare_named(store, name, [Path(data) / name], {"scale": "minmax"})
        rows, labels = StreamReader(
            store, Stream(name, manifest.dataset_hash, "shuffled", 0)
        ).whole()
        X = np.zeros((n, d))
        for t in range(n):
            lo, hi = rows.indptr[t], rows.indptr[t + 1]
            X[t, rows.indices[lo:hi] if rows.index_stride else rows.indices[: hi - lo]] = (
                rows.values[lo:hi]
            )
    return X, labels


def wide(n: int = 12_000, d: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Rows of d features in [0, 1] that lie near a space of 12, so that a dictionary of about 150
    points is enough.
    """
    draw = np.random.default_rng(90)
    X = draw.standard_normal((n, 12)) @ draw.standard_normal((12, d))
    X = (X - X.min(0)) / (X.max(0) - X.min(0))
    return X, np.clip(0.5 + 0.5 * np.sin(6 * X[:, :5].mean(1)), 0, 1)


def pros(
    name: str, X: np.ndarray, y: np.ndarray, repetitions: int, warm: bool = False, **settings: Any
) -> tuple[dict[str, Any], int]:
    """µs a round of each contestant, and the dictionary's size, which all share: same coins, same
    points. Predictions are checked to agree.
    """
    given = {**POSTER, **settings}
    coins = np.array([uniform(np.uint64(0), t) for t in range(1, len(y) + 1)])
    theirs = {**given, "coins": coins, "clip": 1.0}

    def ours() -> tuple[np.ndarray, Any]:
        model = koco_stream.PROSNKONS(**given)
        return model.progressive(X, y), model.dictionary_

    results, taken = results_in_turn(
        {
            US: ours,
            SOLVES: lambda: numpy_pros(X, y, **theirs),
            INVERSES: lambda: numpy_pros(X, y, **theirs, inverses=True),
        },
        repetitions,
        warm,
    )
    predictions, dictionary = results[US]
    for peer, points in (results[SOLVES], results[INVERSES]):
        assert list(points) == list(dictionary), "the peer has another dictionary"
        np.testing.assert_allclose(predictions, peer, atol=1e-6)
    us = 1e6 / len(y)
    times = {who: Time(*(us * part for part in time)) for who, time in taken.items()}
    published = PUBLISHED.get(name)
    lines = [[who, times[who].us, times[who].us / times[US].us] for who in (US, SOLVES, INVERSES)]
    if published:
        lines.append(
            [
                "published (other machine, R)",
                1e6 * published / {"cpusmall": 8192, "cadata": 20_640, "casp": 45_730}[name],
                None,
            ]
        )
    show(
        f"PROS-N-KONS on {name}: {len(y):,} rows, d = {X.shape[1]}, {len(dictionary)} points",
        ["who", "µs a round", "times ours"],
        lines,
    )
    return times, len(dictionary)


def sketched(X: np.ndarray, y: np.ndarray, repetitions: int) -> dict[str, Any]:
    """Seconds of Sketched-KONS (floor 0, β = 1) over a stream, one configuration and a cohort of 32
    that share the kernel.
    """
    rows, labels = as_rows(X), frozen(y, np.float64)
    learner = learner_named("SketchedKONS")
    sizes: dict[int, list[int]] = {}

    def run(configurations: int) -> float:
        params, states = [], []
        for i in range(configurations):
            public = learner.complete(
                {
                    "alpha": 1.0,
                    "beta": 1.0,
                    "bandwidth": 8 / np.sqrt(2),
                    "curvature": 0.5 * (i % 4 + 1),
                }
            )
            params.append(learner.to_params(public))
            states.append(learner.init(params[-1], X.shape[1], i))
        scan = SharedKernelScan([learner] * configurations, params, states, rows)
        taken = seconds(
            lambda: scan.advance(
                np.tile(labels, (configurations, 1)), np.empty((configurations, len(y)))
            )
        )
        sizes[configurations] = [int(state.dictionary_size) for state in scan.states]
        return taken

    times = in_turn({"one": lambda: run(1), "cohort": lambda: run(COHORT)}, repetitions)
    show(
        f"Sketched-KONS on casp: {len(y):,} rounds, floor 0, β = 1, one core",
        ["configurations", "seconds", "times one", "points, least to most"],
        [
            [k, times[w].us, times[w].us / times["one"].us, f"{min(sizes[k])} to {max(sizes[k])}"]
            for k, w in ((1, "one"), (COHORT, "cohort"))
        ],
    )
    return dict(times)


def newton_steps(X: np.ndarray, y: np.ndarray, repetitions: int) -> dict[str, float]:
    """Our seconds over NumPy's of KONS by the number of rows, and of Sketched-KONS.

    Sketched-KONS has about a quarter of 4,000 rows in its sketch. Predictions are checked to agree.
    """
    kernel = {"alpha": 1.0, "bandwidth": 0.5, "curvature": 0.5}
    contestants = {
        **{
            f"KONS, {n:,} rows": (koco_stream.KONS, {}, n)
            for n in (1000, 4000, 8000)
            if n <= len(y)
        },
        "Sketched-KONS": (koco_stream.SketchedKONS, {"sampling_floor": 0.25}, min(4000, len(y))),
    }
    found: dict[str, float] = {}
    lines: list[list[object]] = []
    for name, (learner, more, n) in contestants.items():
        given = {**kernel, **more}
        joins = np.ones(n, bool)
        if learner is koco_stream.SketchedKONS:
            joins[:] = False
            joins[learner(**given).partial_fit(X[:n], y[:n]).dictionary_] = True
        results, times = results_in_turn(
            {
                US: partial(progressive, learner, given, X[:n], y[:n]),
                SOLVES: partial(numpy_kons, X[:n], y[:n], joins, **kernel),
            },
            repetitions if n < LONG else 1,
            warm=n >= LONG,
        )
        np.testing.assert_allclose(results[US], results[SOLVES], atol=1e-8)
        found[name] = times[US].us / times[SOLVES].us
        lines.append([name, int(joins.sum()), times[US].us, times[SOLVES].us, found[name]])
    show(
        f"The kernel online Newton step on casp, d = {X.shape[1]}, beside NumPy by sixteen rows",
        ["learner", "points", "ours, s", "NumPy, s", "ours / NumPy"],
        lines,
    )
    return found


def progressive(learner: Any, given: dict[str, Any], X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The predictions of a new learner."""
    return learner(**given).progressive(X, y)


def norma(repetitions: int) -> dict[int, Time]:
    """NORMA with 50 points on rows of 20 non-zeros at any of d features: a round's time does not
    grow with d.
    """
    n, s = 4000, 20
    streams = {}
    for d in (10**3, 10**6):
        draw = np.random.default_rng(d)
        streams[d] = rows_of(n, s, d, draw), np.where(draw.random(n) < 0.5, -1.0, 1.0)

    def run(d: int) -> float:
        return (
            1e6
            / n
            * seconds(lambda: koco_stream.NORMA(budget=50, step_size=0.1).progressive(*streams[d]))
        )

    times = in_turn({str(d): lambda d=d: run(d) for d in streams}, max(repetitions, 5))
    found = {d: times[str(d)] for d in streams}
    show(
        f"NORMA, 50 points, one call of {n:,} rows of {s} non-zeros: medians, in turn",
        ["d", "µs a round", "least to greatest", "times the first"],
        [
            [d, t.us, f"{t.least:.3g} to {t.greatest:.3g}", t.us / found[10**3].us]
            for d, t in found.items()
        ],
    )
    return found


def kernel(repetitions: int, quick: bool) -> dict[str, Any]:
    """All of it: times by dataset, of Sketched-KONS, and of NORMA by d."""
    most = 2  # NumPy takes a hundred times as long
    found: dict[str, Any] = {}
    for name in PUBLISHED:
        X, y = regression_set(name)
        n = 3000 if quick else len(y)
        found[name], _ = pros(name, X[:n], y[:n], min(repetitions, most))
        if name == "casp":
            found["steps"] = newton_steps(
                X[:1000] if quick else X, y[:1000] if quick else y, 1 if quick else 2
            )
            found["sketched"] = sketched(X[:4000] if quick else X, y[:4000] if quick else y, 1)
    found["norma"] = norma(repetitions)
    X, y = wide(3000 if quick else 12_000)
    found["wide"], found["wide points"] = pros(
        "wide", X, y, min(repetitions, most), bandwidth=2.5, ridge=1.0, beta=1.0
    )
    n = 300 if quick else MANY
    found["many"], found["many points"] = pros(
        "wide, most rows join", X[:n], y[:n], 1, warm=True, bandwidth=0.3, beta=4.0
    )
    return found
