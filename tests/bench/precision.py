"""Tables in single precision beside double: rounds of a whole machine on 20news, and the errors of
linear learners on all datasets at hand.
"""

import multiprocessing
import os
import tempfile
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from flows.reproduce.reproduction import prepared
from flows.reproduce.targets import SWEEPS
from flows.sweeping.file import read_sweep
from koco_stream.errors import WrongInput
from koco_stream.numerics.llvm.feature_lines import aligned_zeros, feature_table, shape_for
from storage.results import read_runs
from tests.bench.data import AUTOS, news, news_file
from tests.bench.measure import in_turn, seconds, show
from tests.bench.roofline import with_package
from tests.bench.sweeping import our_sweep, spec

PRECISIONS = ("double", "single")
CONFIGURATIONS = 128  # of OjaSON, in a cohort for each core


def precision(cores: set[int], repetitions: int, quick: bool) -> dict[str, Any]:
    """Measure and print. Returns `rounds`, single over double; `traffic`, the same of a loop that
    only gathers and scatters; and `difference`, the largest difference of errors (of real targets:
    of mean losses).
    """
    news = news_file()
    if quick or news is None:
        print("\nprecision: skipped, it needs minutes, and KOCO_DATA")
        return {}
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as name:
        return {
            "rounds": rounds(Path(name), news.parents[1], cores, min(repetitions, 2)),
            "traffic": traffic(cores, repetitions),
            "difference": differences(Path(name), news.parents[1], cores),
        }


def rounds(folder: Path, data: Path, cores: set[int], repetitions: int) -> float:
    """Rounds a second of all cores with single precision over those with double: sweeps of OjaSON
    in turn.
    """
    store = folder / "store"
    prepared(str(store), "20news", data, 0)
    alphas = [2.0 ** (k / 64) for k in range(CONFIGURATIONS)]
    seconds: dict[str, list[float]] = {p: [] for p in PRECISIONS}
    for repetition in range(repetitions + 1):
        for kind in PRECISIONS:
            grids = {"precision": kind, "sketch_size": 10, "fit_intercept": True}
            own = [
                alpha * (1.0 + repetition / 1000) for alpha in alphas
            ]  # runs that are not stored
            dataset = {"name": "20news", "order": "shuffled", "positive_class": AUTOS}
            path = spec(folder, f"{kind}-{repetition}", dataset, "OjaSON", alpha=own, **grids)
            taken = our_sweep(path, store, cores, None, "--no-prefect")
            if repetition:
                seconds[kind].append(taken.scans)
    us = {kind: median(taken) for kind, taken in seconds.items()}
    ratio = us["double"] / us["single"]
    show(
        f"20news: {CONFIGURATIONS} configurations of OjaSON, m = 10, on {len(cores)} cores",
        ["precision", "seconds of scans", "rounds a second / double's"],
        [[kind, us[kind], us["double"] / us[kind]] for kind in PRECISIONS],
    )
    return ratio


def traffic(cores: set[int], repetitions: int) -> float:
    """As `rounds`, of the loop that only gathers and scatters the lines of OjaSON with m = 10, in a
    process on each core: more is not to be had of the memory.
    """
    with ProcessPoolExecutor(len(cores), multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(traffic_on, sorted(cores), [repetitions] * len(cores)))
    us = {kind: median(one[kind] for one in found) for kind in PRECISIONS}
    show(
        f"20news: lines only gathered and scattered on {len(cores)} cores at once, medians of"
        f" {repetitions}, in turn",
        ["precision", "µs/round", "rounds a second / double's"],
        [[kind, us[kind], us["double"] / us[kind]] for kind in PRECISIONS],
    )
    return us["double"] / us["single"]


def traffic_on(core: int, repetitions: int) -> dict[str, float]:
    """µs a round of that loop on one core, by the precision."""
    os.sched_setaffinity(0, {core})
    stream, shape = news(), shape_for(11)
    rows, a = stream.rows, aligned_zeros(2, len(shape)).reshape(-1)
    numbers = rows.indptr, rows.indices, rows.index_stride, rows.values

    def once(kind: str) -> float:
        table = feature_table(stream.d, len(shape), kind == "single")
        table += table.dtype.type(1e-3)
        return 1e6 / stream.n * seconds(lambda: with_package(table, shape, *numbers, a))

    times = in_turn({kind: partial(once, kind) for kind in PRECISIONS}, repetitions)
    return {kind: time.us for kind, time in times.items()}


def differences(folder: Path, data: Path, cores: set[int]) -> float:
    """The largest difference, over all datasets at hand and learners, between the least errors; a
    single row of a dataset is not counted.
    """
    store, path = folder / "sets", SWEEPS / "precision.toml"
    for use in read_sweep(path).datasets:
        try:
            prepared(str(store), use.name, data, 0)
        except WrongInput as error:
            print(f"  ({use.name}: left out, {error})")
    our_sweep(path, store, cores)
    least: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    a_row: dict[tuple[str, str], float] = {}
    same: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in read_runs(store).to_pylist():
        if row["status"] != "ok":
            continue
        value = row["mean_loss"] if row["error_rate"] is None else row["error_rate"]
        kind, key = row["precision"], (row["dataset"], row["learner"])
        least[key][kind] = min(least[key].get(kind, value), value)
        a_row[key] = 0.0 if row["error_rate"] is None else 1.0 / row["rounds"]
        others = str((row["alpha"], row["step_size"], row["diagonal"]))
        same[key][others][kind] = value
    lines, worst = [], 0.0
    for key, by_kind in sorted(least.items()):
        if len(by_kind) < 2:
            continue
        apart = abs(by_kind["single"] - by_kind["double"])
        pairs = [pair for pair in same[key].values() if len(pair) == 2]
        most = max(abs(pair["single"] - pair["double"]) for pair in pairs)
        worst = max(worst, apart - a_row[key])
        lines.append([key[0], key[1], by_kind["double"], by_kind["single"], apart, most])
    show(
        "the least progressive error (of real targets: mean loss) in double and single precision",
        ["dataset", "learner", *PRECISIONS, "difference", "of any configuration, the largest"],
        lines,
    )
    return worst
