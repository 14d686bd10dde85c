"""Sweeps of several sizes: what sharing a pass saves, what a checkpoint costs, how busy two cores
are, what a small run costs.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from koco_stream.numerics.llvm.feature_lines import shape_for
from koco_stream.runs.planner import Limits
from koco_stream.runs.run import Cohort
from koco_stream.streams.manifest import Manifest
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_source
from storage.results import read_runs
from tests.bench.kernel import regression_set
from tests.bench.measure import seconds, show
from tests.bench.sweeping import Timing, our_sweep, runs_of, serially, some_singly, spec
from tests.helpers.tables import table_of

ALPHAS = [2.0 ** (k / 2) for k in range(-6, 14)]
RATES = [1.0, 2.0, 3.0, 4.0, 5.0]
# Prefect's server takes some seconds of the cores, however long a sweep is.
WITHOUT = "--no-prefect"
SINGLE = 8  # of the runs are also run singly
TURNS = 2  # of the sweep of OjaSON, whose claim is the narrower one, and of these


def news_like(folder: Path, quick: bool) -> tuple[Path, dict[str, object], Manifest]:
    """A store with many rows like those of 20 Newsgroups, its table of a sweep file, and its
    manifest.
    """
    given = {"n_rows": 20_000 if quick else 200_000}
    return (
        folder / "news",
        {"name": "sparse-text", **given},
        prepare_synthetic(folder / "news", "sparse-text", given),
    )


def cohorts(folder: Path, cores: set[int], quick: bool) -> dict[str, float]:
    """A sweep of OjaSON and one of Sketched-KONS, beside what their runs would take singly."""
    store, table, manifest = news_like(folder, quick)
    linear = spec(
        folder, "linear", table, "OjaSON", sketch_size=10, alpha=ALPHAS, sketch_rate=RATES
    )
    X, y = regression_set("casp")
    n = 6000 if quick else 20_000
    prepare_source(folder / "kernel", "casp", table_of(X[:n], y[:n]))
    grids = {
        "alpha": [1.0, 2.0, 4.0, 8.0],
        "beta": [0.25, 0.5, 0.75, 1.0],
        "curvature": [0.25, 0.5, 1.0, 2.0],
    }
    kernel = spec(
        folder, "sketched", {"name": "casp"}, "SketchedKONS", bandwidth=8 / np.sqrt(2), **grids
    )
    lines, found = [], {}
    for name, path, into, count in (
        ("OjaSON, m = 10", linear, store, TURNS),
        ("Sketched-KONS", kernel, folder / "kernel", 1),
    ):
        turns = in_alternation(path, into, cores, 1 if quick else count)
        found[name] = median(turn.ratio for turn in turns)
        for turn in turns:
            each = f"{min(turn.single):.3g} to {max(turn.single):.3g}"
            lines.append(
                [
                    name,
                    turn.sweep.runs,
                    each,
                    turn.all_single,
                    turn.sweep.computing,
                    turn.sweep.scans / len(cores),
                    turn.ratio,
                ]
            )
    points = pc.max(read_runs(folder / "kernel 0").column("dictionary_size")).as_py()
    show(
        f"Sweeps on {len(cores)} cores beside their single runs: {manifest.n_rows:,} rows of d ="
        f" {manifest.n_features:,}; casp, {n:,} rows",
        [
            "sweep",
            "runs",
            f"{SINGLE} of them singly, s",
            "all singly / cores, s",
            "computing, s",
            "scans / cores, s",
            "computing / singly",
        ],
        lines,
        f"Singly: initialisation and scan of a cohort of one, {len(cores)} such processes at"
        " once; all singly: the mean of the",
        f"{SINGLE}, spread over the grid, each timed before the sweep and after it, times the"
        " number of runs. Sweeps and single runs take",
        f"turns, and the median counts: {found['OjaSON, m = 10']:.3g} and"
        f" {found['Sketched-KONS']:.3g}. The stream's copy and the regret's",
        "comparator were made before, only by the first.",
        f"The largest sketch of Sketched-KONS has {points} points.",
    )
    return {
        "cohorts": found["OjaSON, m = 10"],
        "sketched": found["Sketched-KONS"],
        "points": float(points),
    }


class Turn(NamedTuple):
    """A sweep on so many cores, and the seconds of some of its single runs, before and after it."""

    sweep: Timing
    single: list[float]
    cores: int

    @property
    def all_single(self) -> float:
        """What all its runs would take singly on these cores."""
        return mean(self.single) * self.sweep.runs / self.cores

    @property
    def ratio(self) -> float:
        """What it takes of that."""
        return self.sweep.computing / self.all_single


def in_alternation(path: Path, store: Path, cores: set[int], turns: int) -> list[Turn]:
    """A sweep so many times, each time into a new store of the same datasets, and its single runs
    before, between and after: the machine is not equally fast all the time.
    """
    single, found = some_singly(store, runs_of(path, store), cores, SINGLE), []
    for turn in range(turns):
        again = store.with_name(f"{store.name} {turn}")
        shutil.copytree(store, again, copy_function=os.link)
        sweep = our_sweep(path, again, cores, None, WITHOUT)
        after = some_singly(store, runs_of(path, store), cores, SINGLE)
        found.append(Turn(sweep, single + after, len(cores)))
        single = after
    return found


def checkpoints(folder: Path, quick: bool) -> dict[str, float]:
    """A cohort with and without checkpoints, in turn; what one costs, as a share of the time
    between two of them.
    """
    store, table, manifest = news_like(folder, quick)
    path = spec(
        folder, "saved", table, "OjaSON", sketch_size=10, alpha=[2.0**k for k in range(-10, 10)]
    )
    runs = runs_of(path, store)
    saves, repetitions = (2, 1) if quick else (8, 2)
    plain = Cohort(runs[0].stream, tuple(runs), 0.0)
    saving = replace(plain, checkpoint_rounds=-(-manifest.n_rows // (saves + 1)))
    times = [
        [seconds(lambda cohort=cohort: serially(store, cohort)) for cohort in (plain, saving)]
        for _ in range(repetitions)
    ]
    without, having = (median(column) for column in zip(*times, strict=True))
    each = (having - without) / saves
    between = Limits(1, 1).checkpoint_seconds
    megabytes = len(runs) * manifest.n_features * len(shape_for(11)) * 8e-6
    show(
        f"A cohort of {len(runs)} runs of OjaSON, m = 10, d = {manifest.n_features:,}, with {saves}"
        " checkpoints and without, in turn",
        [
            "seconds without",
            "seconds with",
            "one checkpoint, s",
            f"% of {between:g} s, which lie between two",
        ],
        [[without, having, each, 100 * each / between]],
        f"In this process, medians of {repetitions}; a checkpoint holds about {megabytes:.0f} MB.",
    )
    return {"checkpoint": each / between}


def two_cores(folder: Path, cores: set[int], quick: bool) -> dict[str, float]:
    """A sweep of about two minutes on dense rows: how much of the time the workers scan."""
    table = {"name": "dense-stream", "n_rows": 50_000 if quick else 200_000}
    alphas = [1.25**k for k in range(30 if quick else 150)]
    path = spec(
        folder,
        "dense",
        table,
        "OjaSON",
        sketch_size=10,
        alpha=alphas,
        sketch_rate=[1.5**k for k in range(10 if quick else 20)],
    )
    sweep = our_sweep(path, folder / "dense", cores)
    busy = sweep.scans / (len(cores) * sweep.computing)
    show(
        f"OjaSON, m = 10, on {table['n_rows']:,} dense rows, d = 90: how busy {len(cores)}"
        " cores are",
        [
            "runs",
            "computing, s",
            "scans, s",
            "scans / (cores x computing)",
            "start-up, s",
            "the whole command, s",
        ],
        [[sweep.runs, sweep.computing, sweep.scans, busy, sweep.startup, sweep.whole]],
        "A scan's seconds are by the clock; the stream's first reading is within computing.",
    )
    return {"busy": busy}


def many_small(folder: Path, cores: set[int], quick: bool) -> dict[str, float]:
    """A great many runs of a thousand rounds: what each costs beside its scan."""
    table = {"name": "sparse-text", "n_rows": 1000, "n_features": 1000, "mean_nonzeros": 10}
    many = 100 if quick else 1000
    grids = {"alpha": [1.02**k for k in range(many)], "sketch_rate": [1.06**k for k in range(100)]}
    store = folder / "small"
    first = our_sweep(spec(folder, "one", table, "OjaSON", sketch_size=2, alpha=0.5), store, cores)
    path = spec(folder, "many", table, "OjaSON", sketch_size=2, **grids)
    sweep = our_sweep(path, store, cores)
    again = our_sweep(path, store, cores)
    files = sum(file.is_file() for file in store.rglob("*"))
    rest = sweep.whole - first.whole  # the start of everything costs the sweep of one run as much

    def each(wall: float) -> float:
        return 1e3 * (len(cores) * wall - sweep.scans) / sweep.computed

    show(
        f"{sweep.computed:,} runs of OjaSON, m = 2, of 1,000 rounds, d = 1,000, s = 10, on"
        f" {len(cores)} cores",
        ["wall", "seconds", "scans, s", "ms a run beside its scan"],
        [
            [name, wall, sweep.scans, each(wall)]
            for name, wall in (
                ("computing", sweep.computing),
                ("its phases but starting", sweep.phases),
                ("all but starting", rest),
            )
        ],
        "Phases: prepare to report. Starting: what the command takes for one run,"
        f" {first.whole:.1f} s; it took {sweep.whole:.1f} s for",
        f"all, and {again.whole:.1f} s again, computing {again.computed}.",
        f"The process of the command had {sweep.megabytes:.0f} MB at most (again:"
        f" {again.megabytes:.0f}); the store has {files} files.",
    )
    return {
        "small, computing": each(sweep.computing),
        "small, all": each(rest),
        "small, MB": max(sweep.megabytes, again.megabytes),
        "small, files": float(files),
        "small, again": float(again.computed),
    }
