"""What metrics and windows add to the time of a run: the run with them over the run without."""

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_path
from koco_stream.runs.measured import Measured
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.stream import Stream
from storage.generated.generators import prepare_synthetic
from tests.bench.measure import show

ASKED = {
    "all but auc, windows of 1,000": Measured(
        ("balanced_accuracy", "f1", "kappa", "log_loss"), 1000
    ),
    "auc": Measured(("auc",)),
    "all, windows of 1,000": Measured(
        ("auc", "balanced_accuracy", "f1", "kappa", "log_loss"), 1000
    ),
}
LEARNERS = {
    "OjaSON m=10": ("OjaSON", {"sketch_size": 10, "alpha": 1.0}),
    "OjaSON m=10, diagonal": ("OjaSON", {"sketch_size": 10, "alpha": 1.0, "diagonal": True}),
    "AdaGrad": ("AdaGrad", {"step_size": 0.1}),
}


def metrics(repetitions: int, quick: bool) -> dict[str, float]:
    """Print the table, on a dense stream of 25 features; returns the ratios."""
    found, lines = dict[str, float](), []
    n_rows = 30_000 if quick else 300_000
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as folder:
        store = Path(folder)
        size = {"n_rows": n_rows, "n_features": 25}
        manifest = prepare_synthetic(store, "hyperplane", size)
        stream = Stream(manifest.name, manifest.dataset_hash)
        for name, (learner, given) in LEARNERS.items():
            plain = Run.of(stream, learner, given, 0)
            kinds = {"": plain} | {k: replace(plain, measured=m) for k, m in ASKED.items()}
            for run in kinds.values():  # compiles
                seconds(store, run)
            taken = [
                {k: seconds(store, run) for k, run in kinds.items()} for _ in range(repetitions)
            ]
            ratios = {k: median(one[k] / one[""] for one in taken) for k in ASKED}
            lines.append([name, 1e9 * median(one[""] for one in taken) / n_rows, *ratios.values()])
            found |= {f"{name}, {k}": ratio for k, ratio in ratios.items()}
    show(
        f"A run with metrics / without, {n_rows:,} rounds of 25 features",
        ["learner", "ns a round without", *ASKED],
        lines,
    )
    return found


def seconds(store: Path, run: Run) -> float:
    """The seconds of a run by itself, its result file included."""
    cohort = Cohort(run.stream, (run,), 1.0)
    begun = time.perf_counter()
    run_cohort(str(store), "bench", cohort)
    taken = time.perf_counter() - begun
    result_path(store, cohort).remove()
    return taken
