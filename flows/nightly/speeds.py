"""Speed of each learner on each dataset: one of its runs, timed next to a calibration loop."""

import time
from collections.abc import Sequence
from typing import Any

import psutil
import pyarrow as pa

from flows.nightly.regression import (
    FIRST,
    UNCLEAR,
    Pair,
    Speed,
    band,
    earlier_ratios,
    pair_of,
    verdict_of,
)
from koco_stream.engine.calibration import VERSION, Probe
from koco_stream.engine.result_file import machine
from koco_stream.io.files import canonical_json
from koco_stream.io.paths import AnyPath
from koco_stream.runs.run import Run

SHORTEST = 2e-4  # seconds; in a shorter scan the overhead of the call dominates
AGAIN = 4  # most repetitions before a learner is called slower or faster
FIRST_TIMES = 3  # measurements of a first speed, because later ones are compared with it
PAUSE = 0.4  # seconds times the attempt: the other processes may have ended by then


def measure_speeds(
    store: AnyPath, runs: Sequence[Run], numbers: pa.Table, history: Sequence[dict[str, Any]]
) -> list[Speed]:
    """Measure the speed of each learner on each dataset that has a run with status ok.

    A measurement that differs from earlier nightly runs is repeated after a pause, and the one
    nearest to the expected ratio counts: noise passes, but slower code stays slow. The run and the
    rounds that were timed last are timed again. Runs too short to be timed are left out. `store` is
    that of the nightly run, and `history` has the rows of earlier ones.
    """
    probes: list[tuple[Pair, str, Probe]] = []
    for pair, candidates in by_pair(runs, numbers).items():
        before = [row for row in history if pair_of(row) == pair and row["probe"] in candidates]
        name = before[-1]["probe"] if before else min(candidates)
        probe = Probe(store, candidates[name], before[-1]["probe_rows"] if before else None)
        if min(probe.scan() for _ in range(3)) >= SHORTEST:
            probes.append((pair, name, probe))
    found: dict[Pair, Speed] = {}
    for attempt in range(1 + AGAIN):
        doubtful = [
            (pair, name, probe)
            for pair, name, probe in probes
            if (speed := found.get(pair)) is None
            or (attempt < FIRST_TIMES if speed.verdict == FIRST else speed.verdict != "same")
        ]
        if doubtful:
            time.sleep(attempt * PAUSE)
        for pair, name, probe in doubtful:
            speed = timed(pair, name, probe, history)
            # a clear one is preferred to an unclear one, then the one nearer to the expected ratio,
            # or the faster one if no ratio is expected
            found[pair] = min(
                (speed, found.get(pair, speed)),
                key=lambda one: (one.verdict == UNCLEAR, abs(one.ratio - (one.expected or 0.0))),
            )
    return list(found.values())


def by_pair(runs: Sequence[Run], numbers: pa.Table) -> dict[Pair, dict[str, Run]]:
    """Runs with status ok, by (dataset, learner), then by an identifier as canonical JSON.

    It does not depend on the dataset's content or on the version of the code.
    """
    by = ("dataset", "learner", "params", "order_seed", "learner_seed")
    well = {tuple(row[name] for name in by) for row in numbers.to_pylist() if row["status"] == "ok"}
    found: dict[Pair, dict[str, Run]] = {}
    for run in runs:
        pair = run.stream.dataset, run.learner
        if (*pair, canonical_json(run.params), run.stream.order_seed, run.learner_seed) in well:
            probe = {
                **run.stream.identity(),
                "params": run.params,
                "learner_seed": run.learner_seed,
            }
            del probe["dataset_hash"], probe["sharding"]
            found.setdefault(pair, {})[canonical_json(probe)] = run
    return found


def timed(pair: Pair, name: str, probe: Probe, history: Sequence[dict[str, Any]]) -> Speed:
    """Time a run once, and judge its speed by those of earlier nightly runs."""
    earlier = earlier_ratios(history, pair, name, probe.rows, machine(), VERSION)
    psutil.cpu_percent()
    begun, own = time.monotonic(), time.process_time()
    ratio = probe.ratio()
    cores_seconds = (time.monotonic() - begun) * (psutil.cpu_count() or 1)
    busy = psutil.cpu_percent() / 100  # share of all cores, since the call above
    others = max(0.0, busy - (time.process_time() - own) / max(cores_seconds, 1e-9))
    expected = band(earlier)[0] if earlier else None
    return Speed(
        *pair, name, probe.rows, ratio, expected, verdict_of(ratio, earlier, others), others
    )
