"""All classes of 20news: our error beside Vowpal Wabbit's on the same rows and order, and what one
run over all classes takes beside a run for each class.
"""

import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_path
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from storage.preparing.prepare import prepare_file
from tests.bench.data import news_file
from tests.bench.measure import show

PEERS = (
    "--OjaNewton --sketch_size 10",
    "--OjaNewton --sketch_size 10 --loss_function logistic",
    "--adaptive",
    "--adaptive --loss_function logistic",
    "",
)
ALPHAS = [2.0**k for k in range(-1, 6)]
GIVEN = {"sketch_size": 10, "diagonal": True, "fit_intercept": True}
KERNEL = {"alpha": 1.0, "bandwidth": 1.0, "beta": 0.1}


def classes(repetitions: int, quick: bool) -> dict[str, float] | None:
    """Print both tables; returns our error less the best of Vowpal Wabbit's, and the ratios of
    times. None without the data.
    """
    file = news_file()
    if file is None:
        print("\nclasses: skipped, KOCO_DATA has no 20news")
        return None
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as folder:
        store = Path(folder) / "store"
        prepare_file(store, "20news", file, scale="unit-rows")
        manifest = load_manifest(store, "20news")
        stream = Stream(
            "20news",
            manifest.dataset_hash,
            "shuffled",
            0,
            max_rows=4000 if quick else None,
            multiclass="one-vs-rest",
        )
        ours = {
            f"OjaSON m=10, diagonal, alpha={alpha:g}": ran(store, [tuned(stream, alpha)])[0][2]
            for alpha in ALPHAS
        }
        theirs = {
            f"VW --oaa 20 {options}": error_of_vw(store, stream, options) for options in PEERS
        }
        show(
            "20news, all 20 classes: progressive error",
            ["learner", "error"],
            [list(one) for one in sorted({**ours, **theirs}.items(), key=lambda one: one[1])],
        )
        asked = [name for name in theirs if "logistic" not in name and name != "VW --oaa 20 "]
        found = {"error above VW's": min(ours.values()) - min(theirs[name] for name in asked)}
        lines = []
        kernel = Run.of(replace(stream, max_rows=3000), "SketchedKONS", KERNEL, 0)
        for name, every, times in (
            ("OjaSON", tuned(stream, 4.0), repetitions),
            ("SketchedKONS", kernel, min(repetitions, 2)),
        ):
            each = [
                replace(every, stream=replace(every.stream, multiclass=None, positive_class=label))
                for label in manifest.classes
            ]
            ran(store, [every, *each])  # compiled, and cached what is once for a stream
            walls, scans = [], []
            for _ in range(times):
                wall, scan, _ = ran(store, [every])[0]
                others = ran(store, each)
                walls.append(wall / sum(one[0] for one in others))
                scans.append(scan / sum(one[1] for one in others))
            lines.append([name, median(walls), median(scans)])
            found |= {f"{name} wall": median(walls), f"{name} scan": median(scans)}
        show("One run over all classes / a run for each", ["learner", "wall", "scan"], lines)
    return found


def tuned(stream: Stream, alpha: float) -> Run:
    """OjaSON with this step."""
    return Run.of(stream, "OjaSON", {**GIVEN, "alpha": alpha}, 0)


def ran(store: Path, runs: list[Run]) -> list[tuple[float, float, float]]:
    """Seconds of the run, seconds of its scan, and error, of runs each by itself."""
    found = []
    for run in runs:
        cohort = Cohort(run.stream, (run,), 1.0)
        begun = time.perf_counter()
        run_cohort(str(store), "bench", cohort)
        taken = time.perf_counter() - begun
        path = result_path(store, cohort).path
        (row,) = pq.read_table(path).to_pylist()
        path.unlink()
        found.append((taken, row["seconds"], row["error_rate"]))
    return found


def error_of_vw(store: Path, stream: Stream, options: str) -> float:
    """The average loss that `vw --oaa 20` reports for the stream's rows."""
    with tempfile.NamedTemporaryFile("w", suffix=".vw") as text:
        for block in StreamReader(store, stream).blocks():
            rows = block.rows
            for t, label in enumerate(block.labels.tolist()):
                these = slice(rows.indptr[t], rows.indptr[t + 1])
                pairs = zip(rows.indices[these].tolist(), rows.values[these].tolist(), strict=True)
                text.write(f"{label:g} |" + "".join(f" {j}:{v:.9g}" for j, v in pairs) + "\n")
        text.flush()
        words = [sys.executable, "-m", "vowpalwabbit", "-b", "22", "--oaa", "20", *options.split()]
        done = subprocess.run([*words, "-d", text.name], capture_output=True, text=True, check=True)
    found = re.search(r"average loss = (\S+)", done.stdout + done.stderr)
    assert found is not None
    return float(found[1])
