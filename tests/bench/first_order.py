"""The floor under AdaGrad and OGD: plain loops that only gather and scatter the same numbers of the
same rows. And 64 step sizes in one cohort, beside runs each by itself.
"""

import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_path
from koco_stream.numerics.compiler import jit
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.stream import Stream as Order
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_file
from tests.bench.data import AUTOS, Stream, news_file
from tests.bench.measure import in_turn, seconds, show
from tests.bench.ours import Ours

RUNS, SINGLE = 64, 8  # so many of the runs are also run singly
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


def side_by_side(repetitions: int, quick: bool) -> dict[str, tuple[float, float]]:
    """Seconds of 64 step sizes in one cohort, over those of each run by itself: of the scans, and
    with reading, metrics and the result file.
    """
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as folder:
        store, file = Path(folder) / "store", news_file()
        if file is None:
            manifest = prepare_synthetic(store, "sparse-text", {"n_rows": 18_846, "data_seed": 20})
        else:
            manifest = prepare_file(store, "20news", file, scale="unit-rows")
        order = Order(
            manifest.name,
            manifest.dataset_hash,
            "shuffled",
            0,
            max_rows=4000 if quick else None,
            positive_class=None if file is None else float(AUTOS),
        )
        found, lines = {}, []
        for name in FLOOR:
            runs = [Run.of(order, name, {"step_size": 2.0 ** (k / 8 - 6)}, 0) for k in range(RUNS)]
            some = runs[:: RUNS // SINGLE]
            taken(store, runs), taken(store, some[:1])  # compiled and cached
            ratios = []
            for _ in range(repetitions):
                alone = sum(taken(store, [run]) for run in some) * RUNS / SINGLE
                ratios.append(taken(store, runs) / alone)
            of_scans, of_all = np.array(ratios).T.tolist()
            found[name] = median(of_scans), median(of_all)
            for what, these in zip(("scans", "all"), (of_scans, of_all), strict=True):
                lines.append([f"{name}, {what}", median(these), min(these), max(these)])
        show(
            f"{RUNS} step sizes in one cohort / alone, seconds on {manifest.name}",
            ["learner", "ratio", "least", "greatest"],
            lines,
            "All: with reading the rows, the totals and the result file.",
        )
    return found


def taken(store: Path, runs: list[Run]) -> np.ndarray:
    """The seconds of the scans of runs in one cohort, and of all that it takes."""
    cohort = Cohort(runs[0].stream, tuple(runs), 1.0)
    receipt = run_cohort(str(store), "bench", cohort)
    result_path(store, cohort).path.unlink()
    return np.array([receipt.scan_seconds, receipt.seconds])
