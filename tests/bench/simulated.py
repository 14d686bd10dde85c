"""The simulator beside the machine: the same sweep predicted and run with one, two and four
workers.
"""

from pathlib import Path

from cluster.machine import worker_bytes
from flows.sweep.planning import predictions
from flows.sweep.request import SweepRequest
from tests.bench.sweeping import our_sweep, spec
from tests.bench.table import show

WORKERS = (1, 2, 4)


def simulated(folder: Path, cores: set[int], quick: bool) -> dict[str, float]:
    """By number of workers, the predicted over the measured wall time of a sweep's computing.

    The costs come from a first run of the sweep with one worker, as they do for a user: from the
    store.
    """
    table = {"name": "dense-stream", "n_rows": 10_000 if quick else 200_000}
    alphas = [1.25**k for k in range(40 if quick else 100)]
    path = spec(
        folder,
        "simulated",
        table,
        "OjaSON",
        sketch_size=10,
        alpha=alphas,
        sketch_rate=[1.0, 1.25, 1.5, 1.75, 2.0],
    )
    our_sweep(path, folder / "timed", cores, workers=1)
    request = SweepRequest(str(path), str(folder / "timed"))
    predicted = {
        row["workers"]: row for row in predictions(request, WORKERS, worker_bytes(1), len(cores))
    }
    measured = {
        workers: our_sweep(path, folder / f"with-{workers}", cores, workers=workers).computing
        for workers in WORKERS
    }
    ratios = {workers: predicted[workers]["wall"] / measured[workers] for workers in WORKERS}
    rows = table["n_rows"]
    show(
        f"The simulator's prediction of a sweep of {5 * len(alphas)} runs of OjaSON on {rows:,}"
        f" dense rows, on {len(cores)} cores",
        [
            "workers",
            "cohorts",
            "predicted, s",
            "measured, s",
            "predicted / measured",
            "predicted efficiency",
        ],
        [
            [
                w,
                predicted[w]["cohorts"],
                predicted[w]["wall"],
                measured[w],
                ratios[w],
                predicted[w]["efficiency"],
            ]
            for w in WORKERS
        ],
        "Measured: the phase `computing`; the costs are those of a first run of the sweep with one"
        " worker.",
    )
    return {str(workers): ratio for workers, ratio in ratios.items()}
