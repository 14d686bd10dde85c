"""Sweeps as a user runs them: `koco sweep` in a process of its own, on two cores; and single runs,
by the serial code, on one.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from cluster.executors import run_serially
from flows.sweeping.checks import all_runs
from flows.sweeping.file import read_sweep
from koco_stream.engine.cohort import Receipt, seen_by
from koco_stream.engine.result_file import result_files_folder
from koco_stream.runs.run import Cohort, Run, RunState
from koco_stream.runs.schemas import curve_points
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from tests.bench.measure import seconds
from tests.bench.streaming import own_cache


class Timing(NamedTuple):
    """Of one `koco sweep`, in seconds: waiting for the workers; computing; the scans, summed over
    the workers; all its phases but the start; the whole process. Then the most memory of that
    process, which holds the scheduler, in MB; the runs, and those computed.
    """

    startup: float
    computing: float
    scans: float
    phases: float
    whole: float
    megabytes: float
    runs: int
    computed: int


def sweeping(cores: set[int], quick: bool) -> dict[str, float]:
    """All of it; returns what the claims are about. `cores` are all that this process may use; two
    of them do the sweeps.
    """
    from tests.bench.sweep_beside import beside
    from tests.bench.sweep_sizes import checkpoints, cohorts, many_small, simulated, two_cores

    if len(cores) < 2:
        print("  (sweep: skipped, it needs two cores)")
        return {}
    two = set(sorted(cores)[-2:])
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as name:
        folder = Path(name)
        with own_cache(folder / "cache"):
            found = cohorts(folder, two, quick)
            found |= checkpoints(folder, quick)
            found |= two_cores(folder, two, quick)
            found |= many_small(folder, two, quick)
            if quick:  # what they compare would be mostly the starting of processes
                return found
            found |= beside(folder, two)
            found |= {
                f"simulated, {workers}": ratio for workers, ratio in simulated(folder, two).items()
            }
    return found


@contextmanager
def on(cores: set[int]) -> Iterator[None]:
    """What is started within may use these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def spec(folder: Path, name: str, dataset: dict[str, Any], learner: str, **grids: Any) -> Path:
    """A sweep file of one dataset and one learner."""
    path = folder / f"{name}.toml"
    tables = {"name": name, "dataset": [dataset], "learner": [{"name": learner, **grids}]}
    path.write_text(tomli_w.dumps(tables))
    return path


def our_sweep(
    path: Path, store: Path, cores: set[int], workers: int | None = None, *options: str
) -> Timing:
    """`koco sweep` with so many workers, or one a core, and further options; what it says of
    itself.
    """
    count = str(len(cores) if workers is None else workers)
    command = [
        sys.executable,
        "-m",
        "flows",
        "sweep",
        str(path),
        "--store",
        str(store),
        "--workers",
        count,
        "--json",
        *options,
    ]
    out, said = (store.with_name(f"{path.stem}.{kind}") for kind in ("out", "err"))
    begun, most = time.perf_counter(), 0
    with on(cores), out.open("w") as stdout, said.open("w") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
    while process.poll() is None:
        most = max(most, peak(process.pid))
        time.sleep(0.1)
    whole = time.perf_counter() - begun
    if process.returncode:
        raise RuntimeError(f"koco sweep {path.name} failed: {said.read_text()}")
    summary = json.loads(out.read_text().splitlines()[-1])
    by_phase = summary["seconds"]
    phases = [float(by_phase.get(phase, 0.0)) for phase in ("start-up", "computing", "scans")]
    rest = sum(
        took
        for phase, took in by_phase.items()
        if phase not in ("start-up", "Prefect", "scans", "total")
    )
    return Timing(*phases, rest, whole, most / 1e3, summary["runs"], summary["computed"])


def peak(pid: int) -> int:
    """The most memory that a process has had so far, in kB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def runs_of(path: Path, store: Path) -> list[Run]:
    """The runs of a sweep file whose datasets the store has."""
    sweep = read_sweep(path)
    return all_runs(sweep, {use.name: load_manifest(store, use.name) for use in sweep.datasets})


def serially(store: Path, cohort: Cohort) -> Receipt:
    """Run a cohort in this process, and take what it wrote away."""
    receipts: list[Receipt] = []
    run_serially(str(store), "single", [cohort], receipts.append)
    (result_files_folder(store) / f"{cohort.cohort_id}.parquet").remove()
    return receipts[0]


def singly(store: Path, run: Run) -> float:
    """Seconds of the initialisation and the scan of a run in a cohort of its own."""
    seen = seen_by(StreamReader(store, run.stream))
    begin = seconds(lambda: RunState.start(run, seen, curve_points(1)))
    return begin + serially(store, Cohort(run.stream, (run,), 0.0)).scan_seconds


def some_singly(store: Path, runs: list[Run], cores: set[int], count: int = 4) -> list[float]:
    """The times of some runs, spread over the list, each in a cohort of its own, in as many
    processes at once as there are cores: so a core has its share of the memory's bandwidth, as it
    has in a sweep. One goes before, unmeasured: it has the code compiled and the stream copied.
    """
    chosen = runs[len(runs) // (2 * count) :: max(len(runs) // count, 1)][:count]
    serially(store, Cohort(chosen[0].stream, (chosen[0],), 0.0))
    with on(cores), ProcessPoolExecutor(len(cores), multiprocessing.get_context("spawn")) as pool:
        for _ in pool.map(singly, [store] * len(cores), chosen[: len(cores)]):
            pass  # the processes have started, and the code is loaded
        return list(pool.map(singly, [store] * count, chosen))
