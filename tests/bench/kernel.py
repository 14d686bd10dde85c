"""The kernel learners: PROS-N-KONS, KONS and Sketched-KONS beside NumPy on the same rows and coins,
and Sketched-KONS singly and in a cohort.
"""

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import koco_stream
from flows.preparing.preparation import prepare_named
from flows.report.rows import rows_of_stream
from koco_stream.learners import learner_named
from koco_stream.learners.kernel.shared_kernel_scan import SharedKernelScan
from koco_stream.numerics.random import uniform
from koco_stream.streams.inputs import as_rows
from koco_stream.streams.rows import frozen
from koco_stream.streams.stream import Stream
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
SETS = {"cpusmall": (8192, 12), "cadata": (20_640, 8), "casp": (45_730, 9)}  # rows, features
COHORT = 32
LONG = 8000  # rows, of which KONS in NumPy takes half a minute: it runs once
MANY = 1810  # rows, of which PROS-N-KONS takes nearly all into its dictionary at a large β


def regression_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set of the poster in [0, 1], shuffled by a fixed seed; without `KOCO_DATA` uniform rows of
    its size.
    """
    n, d = SETS[name]
    data = os.environ.get("KOCO_DATA")
    if data is None:
        X = np.random.default_rng(0).random((n, d))
        return X, np.sin(4 * X.mean(1)) ** 2
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as store:
        manifest = prepare_named(store, name, [Path(data) / name], {"scale": "minmax"})
        stream = Stream(name, manifest.dataset_hash, "shuffled", 0)
        X, labels = rows_of_stream(store, stream)
    return X.toarray(), labels


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
) -> dict[str, Any]:
    """µs a round of each contestant. All share the coins and so the points; predictions are checked
    to agree.
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
    lines = [[who, times[who].us, times[who].us / times[US].us] for who in (US, SOLVES, INVERSES)]
    show(
        f"PROS-N-KONS on {name}: {len(y):,} rows, d = {X.shape[1]}, {len(dictionary)} points",
        ["who", "µs a round", "times ours"],
        lines,
    )
    return times


def sketched(X: np.ndarray, y: np.ndarray, repetitions: int) -> dict[str, Any]:
    """Seconds of Sketched-KONS (floor 0, β = 1) over a stream, one configuration and a cohort of 32
    that share the kernel.
    """
    rows, labels = as_rows(X), frozen(y, np.float64)
    learner = learner_named("SketchedKONS")

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
        return seconds(
            lambda: scan.advance(
                np.tile(labels, (configurations, 1)), np.empty((configurations, len(y)))
            )
        )

    times = in_turn({"one": lambda: run(1), "cohort": lambda: run(COHORT)}, repetitions)
    show(
        f"Sketched-KONS on casp: {len(y):,} rounds, floor 0, β = 1, one core",
        ["configurations", "seconds", "least to greatest", "times one"],
        [[name, *t.columns, t.us / times["one"].us] for name, t in times.items()],
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
                US: lambda new=learner, q=given, n=n: new(**q).progressive(X[:n], y[:n]),
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


def kernel(repetitions: int, quick: bool) -> dict[str, Any]:
    """All of it: times by dataset, and of Sketched-KONS."""
    most = min(repetitions, 2)  # NumPy takes a hundred times as long
    found: dict[str, Any] = {}
    for name in SETS:
        X, y = regression_set(name)
        n = 3000 if quick else len(y)
        found[name] = pros(name, X[:n], y[:n], most)
    n = 1000 if quick else len(y)  # of casp
    found["steps"] = newton_steps(X[:n], y[:n], 1 if quick else 2)
    found["sketched"] = sketched(X[: 4 * n], y[: 4 * n], 1)
    X, y = wide(3000 if quick else 12_000)
    found["wide"] = pros("wide", X, y, most, bandwidth=2.5, ridge=1.0, beta=1.0)
    n = 300 if quick else MANY
    found["many"] = pros(
        "wide, most rows join", X[:n], y[:n], 1, warm=True, bandwidth=0.3, beta=4.0
    )
    return found
