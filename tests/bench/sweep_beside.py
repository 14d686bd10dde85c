"""The same thousand runs by `koco sweep` and otherwise: a process a run, joblib, ray tune, optuna,
Vowpal Wabbit; on two cores.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from storage.generated.generators import prepare_synthetic
from storage.results import read_runs
from tests.bench import data
from tests.bench.measure import seconds, show
from tests.bench.peers import write_text
from tests.bench.sweep_peers import configurations
from tests.bench.sweeping import on, our_sweep, spec

ROWS = {"n_rows": 10_000, "n_features": 10_000, "mean_nonzeros": 30}
OURS, WITHOUT, JOBLIB, OPTUNA, RAY = (
    "koco sweep",
    "koco sweep --no-prefect",
    "joblib, 2 jobs",
    "optuna, 1 process",
    "ray tune, actors reused",
)
RAY_PLAIN, ONE_EACH, VW = (
    "ray tune as it comes",
    "a process a run, 2 at a time",
    "Vowpal Wabbit, 2 at a time",
)
PEERS = {JOBLIB: "joblib", OPTUNA: "optuna", RAY: "ray", RAY_PLAIN: "ray-plain"}
VW_OPTIONS = (
    "--passes 1 --holdout_off --noconstant --quiet -b 14 --OjaNewton --sketch_size 10"
    " --epoch_size 1"
)
ONE_RUN = """
import sys
from pathlib import Path
from tests.bench.sweep_peers import load, mean_loss
X, y = load(Path(sys.argv[1]))
print(mean_loss(X, y, alpha=float(sys.argv[2]), sketch_rate=float(sys.argv[3])))
"""
Losses = dict[tuple[float, float], float]


class Taken(NamedTuple):
    """Seconds of `done` runs, without starting and with it, and their losses by (alpha,
    sketch_rate).
    """

    call: float
    whole: float
    done: int
    losses: Losses


def beside(folder: Path, cores: set[int]) -> dict[str, float]:
    """Measure and print. Returns the ratios to ours, and how many losses differ from ours."""
    grid = {"alpha": [1.1**k for k in range(-5, 95)], "sketch_rate": [1.0 + k for k in range(10)]}
    shared = folder / "beside"
    shared.mkdir()
    write_rows(shared)
    (shared / "grid.json").write_text(json.dumps(grid))
    todo = [(config["alpha"], config["sketch_rate"]) for config in configurations(grid)]
    few, some = (todo[:: len(todo) // count][:count] for count in (10, 40))
    taken = {OURS: ours(shared, grid, cores, "store")}
    taken[WITHOUT] = ours(shared, grid, cores, "another store", "--no-prefect")
    for name, peer in PEERS.items():
        taken[name] = other(shared, peer, cores)
    taken[ONE_EACH] = processes(shared, few, cores)
    taken[VW], started = vowpal_wabbit(shared, some, cores)
    call = {name: t.call / t.done * len(todo) for name, t in taken.items()}
    whole = {name: call[name] + t.whole - t.call for name, t in taken.items()}
    mine = taken[OURS].losses
    compared = [
        (losses[key], mine[key])
        for name, (_, _, _, losses) in taken.items()
        if name not in (OURS, WITHOUT)
        for key in losses
    ]
    different = sum(a != b for a, b in compared)
    show(
        f"{len(todo):,} runs of OjaSON, m = 10, of 10,000 rounds, d = 10,000, s = 30, two cores",
        ["by", "seconds", "times ours", "with starting, s", "times ours", "runs done"],
        [
            [
                name,
                call[name],
                call[name] / call[OURS],
                whole[name],
                whole[name] / whole[OURS],
                taken[name].done,
            ]
            for name in taken
        ],
        "If fewer runs were done, their time was multiplied. Seconds: ours, computing, with the"
        " regret's comparator; of the others,",
        "the call that does all runs, after imports, reading the rows and ray.init; joblib's starts"
        " its processes within. Prefect's server",
        "starts beside the workers and takes some seconds of the cores, whatever the sweep. The"
        " last two",
        f"start a process a run: Vowpal Wabbit reads its cache; {started:.2f} s for Python to load"
        " it are subtracted.",
        f"Mean losses of joblib, optuna, ray tune and single processes: {len(compared):,} compared"
        f" with ours, {different} of other bits.",
    )
    ratios = {
        name: call[peer] / call[OURS]
        for name, peer in (("ray", RAY_PLAIN), ("ray, reused", RAY), ("VW", VW), ("optuna", OPTUNA))
    }
    return ratios | {"different": float(different)}


def write_rows(folder: Path) -> None:
    """The stream: prepared, for ours; as a matrix; and as Vowpal Wabbit's text and cache."""
    manifest = prepare_synthetic(folder / "store", "sparse-text", ROWS)
    X, y = data.matrix_of(folder / "store", manifest)
    scipy.sparse.save_npz(folder / "rows.npz", X, compressed=False)
    np.save(folder / "labels.npy", y)
    write_text(data.stream("rows", X, y), folder / "rows.vw")


def ours(
    folder: Path, grid: dict[str, list[float]], cores: set[int], into: str, *options: str
) -> Taken:
    """By `koco sweep` with these options, into a store that has the rows, or a new one."""
    path = spec(folder, "grid", {"name": "sparse-text", **ROWS}, "OjaSON", sketch_size=10, **grid)
    sweep = our_sweep(path, folder / into, cores, None, *options)
    table = read_runs(folder / into).select(["alpha", "sketch_rate", "mean_loss"])
    losses = {(row["alpha"], row["sketch_rate"]): row["mean_loss"] for row in table.to_pylist()}
    return Taken(sweep.computing, sweep.whole, sweep.computed, losses)


def other(folder: Path, peer: str, cores: set[int]) -> Taken:
    """By one of `sweep_peers`, in a process of its own."""
    begun = time.perf_counter()
    said = output(["-m", "tests.bench.sweep_peers", peer, str(folder)], cores)
    whole, answer = time.perf_counter() - begun, json.loads(said.splitlines()[-1])
    losses = {(config["alpha"], config["sketch_rate"]): loss for config, loss in answer["losses"]}
    return Taken(answer["seconds"], whole, len(losses), losses)


def processes(folder: Path, chosen: Sequence[tuple[float, float]], cores: set[int]) -> Taken:
    """A new Python for each run: it reads the rows, learns, and prints its loss."""
    commands = [["-c", ONE_RUN, str(folder), repr(a), repr(r)] for a, r in chosen]
    begun = time.perf_counter()
    printed = two_at_a_time(commands, cores)
    taken = time.perf_counter() - begun
    return Taken(taken, taken, len(chosen), dict(zip(chosen, map(float, printed), strict=True)))


def vowpal_wabbit(
    folder: Path, chosen: Sequence[tuple[float, float]], cores: set[int]
) -> tuple[Taken, float]:
    """The wheel's command line for each setting; and the seconds for which one such process only
    starts.
    """
    command = ["-m", "vowpalwabbit", "-d", str(folder / "rows.vw"), "-c", *VW_OPTIONS.split()]
    output([*command, "-k"], cores)  # writes the cache
    settings = [
        ["--alpha_inverse", repr(1 / alpha), "--learning_rate_cnt", repr(rate)]
        for alpha, rate in chosen
    ]
    whole = seconds(lambda: two_at_a_time([[*command, *setting] for setting in settings], cores))
    starting = seconds(
        lambda: two_at_a_time([["-c", "import vowpalwabbit"] for _ in settings], cores)
    )
    return Taken(whole - starting, whole, len(settings), {}), starting * 2 / len(settings)


def two_at_a_time(commands: Sequence[list[str]], cores: set[int]) -> list[str]:
    """What each Python command prints."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda words: output(words, cores), commands))


def output(words: list[str], cores: set[int]) -> str:
    """What a Python command prints. Raises `RuntimeError` with what it said if it failed."""
    with on(cores):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[:3])} failed: {done.stderr}")
    return done.stdout
