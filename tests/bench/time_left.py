"""The time left that sweeps show, each second, beside what it came to."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tomli_w

from flows.sweeping.progress import NEARLY, shown_seconds
from storage.preparing.prepare import prepare_file
from tests.bench.data import news_file
from tests.bench.measure import show
from tests.bench.streaming import own_cache
from tests.bench.sweeping import on

ALLOWED = 0.35  # of the truth
FROM = 0.25  # of a sweep's time on
ALPHA = {"powers_of_two": [-1, 5]}
SWEEPS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "kernel dictionaries": (
        {"name": "cpusmall", "order": "shuffled", "order_seeds": 3},
        [
            {"name": learner, "kernel": "gaussian", "bandwidth": [0.2, 0.3], "alpha": [0.5, 2.0]}
            for learner in ("CONKONS", "PROSNKONS")
        ],
    ),
    "sparse rows": (
        {"name": "20news", "multiclass": "one-vs-rest", "order": "shuffled", "order_seeds": 5},
        [
            {"name": "OjaSON", "sketch_size": [0, 10], "alpha": ALPHA, "diagonal": True},
            {"name": "AdaGrad", "step_size": ALPHA},
        ],
    ),
    "many rows, never read before": (
        {"name": "ill-conditioned", "n_rows": 600_000, "order": "shuffled", "order_seeds": 3},
        [
            {"name": "OjaSON", "sketch_size": [0, 5, 10], "alpha": ALPHA},
            {"name": "AdaGrad", "step_size": ALPHA},
        ],
    ),
}


def time_left(cores: set[int], quick: bool) -> dict[str, float]:
    """Run three sweeps of half a minute or so; the share of the samples that are off, by sweep.

    A sample is taken each second from a quarter of the way on. It is off if it differs from the
    truth by more than 35 %; "less than 5 s" is off if the truth is more than 35 % longer.
    """
    folder, news = os.environ.get("KOCO_DATA"), news_file()
    if quick or len(cores) < 2 or not folder or not news:
        print("\ntime left: skipped, it needs two cores, minutes, and KOCO_DATA")
        return {}
    found: dict[str, float] = {}
    lines: list[list[object]] = []
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as name, own_cache(Path(name) / "c"):
        store = Path(name) / "store"
        prepare_file(store, "20news", news, scale="unit-rows")
        prepare_file(
            store,
            "cpusmall",
            Path(folder) / "cpusmall" / "cpu.small.csv.xz",
            target="usr",
            scale="minmax",
        )
        for title, (dataset, learners) in SWEEPS.items():
            spec = Path(name) / "spec.toml"
            sweep = f"left-{dataset['name']}"
            tables = {"name": sweep, "dataset": [dataset], "learner": learners}
            spec.write_text(tomli_w.dumps(tables))
            samples, took = sampled(sweep, spec, store, cores)
            asked = [(at, left) for at, left in samples if at >= FROM * took]
            off = [(at, left) for at, left in asked if is_off(left, took - at)]
            found[title] = len(off) / len(asked)
            worst = ", ".join(
                f"{shown_seconds(left)} s said, {took - at:.1f} s true" for at, left in off[:4]
            )
            lines.append([title, took, len(asked), len(off), worst])
    show("Time left", ["sweep", "s", "samples", "off", "which"], lines)
    return found


def is_off(left: float, truth: float) -> bool:
    """Whether what is shown differs from the truth by more than is allowed."""
    if left < NEARLY:
        return truth > (1 + ALLOWED) * NEARLY
    return abs(left - truth) > ALLOWED * truth


def sampled(
    name: str, spec: Path, store: Path, cores: set[int]
) -> tuple[list[tuple[float, float]], float]:
    """The times of a sweep at which its status was read, with the seconds left that it said, and
    the time of its last run: all in seconds since its workers began to compute.
    """
    command = [sys.executable, "-m", "flows.cli", "sweep", str(spec), "--store", str(store)]
    with on(cores):
        process = subprocess.Popen(
            [*command, "--workers", str(len(cores)), "--no-prefect"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    status = store / "status" / f"{name}.json"
    begun, samples, ended = 0.0, [], 0.0
    while process.poll() is None:
        time.sleep(0.05)
        if not status.is_file():
            continue
        said, now = json.loads(status.read_text()), time.monotonic()
        begun = begun or (now if said["seconds_left"] is not None else 0.0)
        if said["runs"] and said["done"] == said["runs"]:
            ended = ended or now
        elif begun and (not samples or now - samples[-1][0] >= 1.0):
            samples.append((now, said["seconds_left"]))
    if process.returncode or process.stderr is None:
        raise RuntimeError(f"koco sweep {spec.name} failed")
    return [(at - begun, left) for at, left in samples], ended - begun
