"""Sweeps as a user runs them, by `koco sweep` in a process of its own, on two cores: a great many
small runs, and a thousand runs beside joblib, optuna and Vowpal Wabbit.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import tomli_w

from storage.generated.generators import prepare_synthetic
from storage.results import read_runs
from tests.bench import data
from tests.bench.measure import seconds, show
from tests.bench.peers import OJA, write_text
from tests.bench.streaming import own_cache

ROWS = {"n_rows": 10_000, "n_features": 10_000, "mean_nonzeros": 30}
VW_RUNS = 20  # of the thousand


class Timing(NamedTuple):
    """Of one `koco sweep`, in seconds: computing; the scans, summed over the workers; the whole
    process. Then the most memory of that process, which holds the scheduler, in MB, and the runs
    computed.
    """

    computing: float
    scans: float
    whole: float
    megabytes: float
    computed: int


def sweeping(cores: set[int], quick: bool) -> dict[str, float]:
    """All of it; returns what the claims are about. `cores` are all that this process may use; two
    of them do the sweeps.
    """
    if len(cores) < 2:
        print("\nsweep: skipped, it needs two cores")
        return {}
    two = set(sorted(cores)[-2:])
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as name, own_cache(Path(name) / "cache"):
        return many_small(Path(name), two, quick) | a_thousand(Path(name), two, quick)


@contextmanager
def on(cores: set[int]) -> Iterator[None]:
    """What is started within may use these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def our_sweep(
    folder: Path, store: Path, cores: set[int], table: dict[str, Any], **given: Any
) -> Timing:
    """`koco sweep` of OjaSON on a dataset; what it says of itself."""
    path = folder / "sweep.toml"
    learner = {"name": "OjaSON", **given}
    path.write_text(tomli_w.dumps({"name": "sweep", "dataset": [table], "learner": [learner]}))
    words = ["sweep", str(path), "--store", str(store), "--workers", str(len(cores)), "--json"]
    begun, most = time.perf_counter(), 0.0
    with on(cores), (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        process = subprocess.Popen([sys.executable, "-m", "flows", *words], stdout=out, stderr=err)
    while process.poll() is None:
        most = max(most, peak(process.pid))
        time.sleep(0.1)
    whole = time.perf_counter() - begun
    if process.returncode:
        raise RuntimeError(f"koco sweep failed: {(folder / 'err').read_text()}")
    summary = json.loads((folder / "out").read_text().splitlines()[-1])
    phases = [float(summary["seconds"].get(phase, 0.0)) for phase in ("computing", "scans")]
    return Timing(*phases, whole, most, summary["computed"])


def peak(pid: int) -> float:
    """The most memory that a process has had so far, in MB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM")), 0.0)


def many_small(folder: Path, cores: set[int], quick: bool) -> dict[str, float]:
    """A great many runs of a thousand rounds: what each costs beside its scan."""
    table = {"name": "sparse-text", "n_rows": 1000, "n_features": 1000, "mean_nonzeros": 10}
    alphas = [1.02**k for k in range(100 if quick else 1000)]
    grid = {"sketch_size": 2, "alpha": alphas, "sketch_rate": [1.06**k for k in range(100)]}
    store = folder / "small"
    first = our_sweep(folder, store, cores, table, sketch_size=2, alpha=0.5)
    sweep = our_sweep(folder, store, cores, table, **grid)
    again = our_sweep(folder, store, cores, table, **grid)
    files = sum(file.is_file() for file in store.rglob("*"))
    # the start of everything costs the sweep of one run as much
    walls = {"computing": sweep.computing, "all but starting": sweep.whole - first.whole}
    each = {
        name: 1e3 * (len(cores) * wall - sweep.scans) / sweep.computed
        for name, wall in walls.items()
    }
    show(
        f"{sweep.computed:,} runs of OjaSON, m = 2, of 1,000 rounds, d = 1,000, s = 10, on"
        f" {len(cores)} cores",
        ["wall", "seconds", "scans, s", "ms a run beside its scan"],
        [[name, wall, sweep.scans, each[name]] for name, wall in walls.items()],
        f"Starting: what the command takes for one run, {first.whole:.1f} s; it took"
        f" {sweep.whole:.1f} s for all, and {again.whole:.1f} s again.",
        f"The process of the command had {sweep.megabytes:.0f} MB at most; the store has {files}"
        " files.",
    )
    return {
        **{f"small, {name}": ms for name, ms in each.items()},
        "small, MB": max(sweep.megabytes, again.megabytes),
        "small, files": float(files),
        "small, again": float(again.computed),
    }


def a_thousand(folder: Path, cores: set[int], quick: bool) -> dict[str, float]:
    """The same runs by `koco sweep` and otherwise: the others' seconds / ours, and how many mean
    losses have other bits.
    """
    grid = {
        "alpha": [1.1**k for k in range(-5, 5 if quick else 95)],
        "sketch_rate": [1.0 + k for k in range(10)],
    }
    manifest = prepare_synthetic(folder / "store", "sparse-text", ROWS)
    X, y = data.matrix_of(folder / "store", manifest)
    scipy.sparse.save_npz(folder / "rows.npz", X, compressed=False)
    np.save(folder / "labels.npy", y)
    (folder / "grid.json").write_text(json.dumps(grid))
    todo = [(alpha, rate) for alpha in grid["alpha"] for rate in grid["sketch_rate"]]
    table = {"name": "sparse-text", **ROWS}
    mine = our_sweep(folder, folder / "store", cores, table, sketch_size=10, **grid)
    runs = read_runs(folder / "store").select(["alpha", "sketch_rate", "mean_loss"])
    losses = {(row["alpha"], row["sketch_rate"]): row["mean_loss"] for row in runs.to_pylist()}
    each, different = {"koco sweep": mine.computing / mine.computed}, 0
    for peer in ("joblib, 2 jobs", "optuna, 1 process"):
        said = output(["-m", "tests.bench.sweep_peers", peer.split(",")[0], str(folder)], cores)
        answer = json.loads(said.splitlines()[-1])
        each[peer] = answer["seconds"] / len(answer["losses"])
        different += sum(losses[alpha, rate] != loss for alpha, rate, loss in answer["losses"])
    write_text(data.stream("rows", X, y), folder / "rows.vw")
    each["Vowpal Wabbit"] = vowpal_wabbit(folder, todo[:: len(todo) // VW_RUNS], cores)
    show(
        f"{len(todo):,} runs of OjaSON, m = 10, of 10,000 rounds, d = 10,000, s = 30, two cores",
        ["by", "ms a run", "times ours"],
        [[name, 1e3 * took, took / each["koco sweep"]] for name, took in each.items()],
        "Of ours, joblib and optuna the call that does the runs; of Vowpal Wabbit a process a run,"
        f" by {VW_RUNS} of them, halved, less the start of Python.",
    )
    # of 100 runs the seconds are mostly the starting of processes, about which nothing is claimed
    ratios = {} if quick else {name: took / each["koco sweep"] for name, took in each.items()}
    return {**ratios, "different": float(different)}


def vowpal_wabbit(folder: Path, chosen: list[tuple[float, float]], cores: set[int]) -> float:
    """Seconds of a run by the wheel's command line on its cache, on one of two cores."""
    fixed = f"--passes 1 --holdout_off --noconstant --quiet -b 14 {OJA}"
    command = ["-m", "vowpalwabbit", "-d", str(folder / "rows.vw"), "-c", *fixed.split()]
    output([*command, "-k"], cores)  # writes the cache

    def run_all() -> None:
        for alpha, rate in chosen:
            setting = ["--alpha_inverse", repr(1 / alpha), "--learning_rate_cnt", repr(rate)]
            output([*command, *setting], cores)

    starting = seconds(lambda: output(["-c", "import vowpalwabbit"], cores))
    return (seconds(run_all) / len(chosen) - starting) / len(cores)


def output(words: list[str], cores: set[int]) -> str:
    """What a Python command prints."""
    with on(cores):
        return subprocess.run(
            [sys.executable, *words], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
