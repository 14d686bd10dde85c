"""How fast each learner is on each dataset tonight: a run of it, timed beside the calibration
loop.
"""

import time
from collections.abc import Sequence
from typing import Any

import psutil
import pyarrow as pa

from flows.nightly.regression import FIRST, UNCLEAR, Pair, Speed, band, earlier_ratios, verdict_of
from koco_stream.engine.calibration import VERSION, Probe
from koco_stream.engine.result_file import machine
from koco_stream.io.files import canonical_json
from koco_stream.io.paths import AnyPath
from koco_stream.runs.run import Run

SHORTEST = 2e-4  # seconds: of less the call is too large a part
AGAIN = 4  # times that a learner is timed again before it is called slower or faster
FIRST_TIMES = 3  # what is timed for the first time is what later nights are compared with
PAUSE = 0.4  # seconds, and more each time: a busy neighbour goes


def probe_of(run: Run) -> str:
    """What says which run of a learner on a dataset is timed: whatever the dataset holds and the
    code's version is.
    """
    stream = {
        name: value
        for name, value in run.stream.identity().items()
        if name not in ("dataset_hash", "sharding")
    }
    return canonical_json({**stream, "params": run.params, "learner_seed": run.learner_seed})


def measure_speeds(
    store: AnyPath, runs: Sequence[Run], numbers: pa.Table, history: Sequence[dict[str, Any]]
) -> list[Speed]:
    """The speed of each learner on each dataset, of which a run ended well: of the run, and the
    rounds of it, that were timed last; else of the first one.

    What is not as in earlier nights is timed again, after a while, and what is nearest to them
    counts: noise passes, other code does not.
    """
    probes: list[tuple[Pair, str, Probe]] = []
    for pair, candidates in by_pair(runs, numbers).items():
        last = next(
            (
                row
                for row in reversed(history)
                if (row["dataset"], row["learner"]) == pair and row["probe"] in candidates
            ),
            None,
        )
        name = last["probe"] if last else min(candidates)
        probe = Probe(store, candidates[name], last["probe_rows"] if last else None)
        if min(probe.scan() for _ in range(3)) >= SHORTEST:
            probes.append((pair, name, probe))
    found: dict[Pair, Speed] = {}
    for attempt in range(1 + AGAIN):
        doubtful = [
            (pair, name, probe)
            for pair, name, probe in probes
            if pair not in found or is_doubtful(found[pair], attempt)
        ]
        if doubtful:
            time.sleep(attempt * PAUSE)
        for pair, name, probe in doubtful:
            speed = timed(pair, name, probe, history)
            found[pair] = better(found[pair], speed) if pair in found else speed
    return list(found.values())


def is_doubtful(speed: Speed, times: int) -> bool:
    """Whether this, measured so often, is to be measured again."""
    return times < FIRST_TIMES if speed.verdict == FIRST else speed.verdict != "same"


def better(one: Speed, other: Speed) -> Speed:
    """Of two measurements the clear one; of such, the one nearer to what was expected, or the
    shorter one, if nothing was.
    """

    def doubt(speed: Speed) -> tuple[bool, float]:
        return speed.verdict == UNCLEAR, (
            speed.ratio if speed.expected is None else abs(speed.ratio - speed.expected)
        )

    return min(one, other, key=doubt)


def by_pair(runs: Sequence[Run], numbers: pa.Table) -> dict[Pair, dict[str, Run]]:
    """The runs that ended well, by dataset and learner, then by what names them."""
    well = {
        (row["dataset"], row["learner"], row["params"], row["order_seed"], row["learner_seed"])
        for row in numbers.to_pylist()
        if row["status"] == "ok"
    }
    found: dict[Pair, dict[str, Run]] = {}
    for run in runs:
        key = (
            run.stream.dataset,
            run.learner,
            canonical_json(run.params),
            run.stream.order_seed,
            run.learner_seed,
        )
        if key in well:
            found.setdefault(key[:2], {})[probe_of(run)] = run
    return found


def timed(pair: Pair, name: str, probe: Probe, history: Sequence[dict[str, Any]]) -> Speed:
    """One measurement, and what it means among the earlier ones."""
    earlier = earlier_ratios(history, pair, name, probe.rows, machine(), VERSION)
    psutil.cpu_percent()
    begun, own = time.monotonic(), time.process_time()
    ratio = probe.ratio()
    cores_seconds = (time.monotonic() - begun) * (psutil.cpu_count() or 1)
    busy = psutil.cpu_percent() / 100  # of all cores, since it was asked last
    others = max(0.0, busy - (time.process_time() - own) / max(cores_seconds, 1e-9))
    expected = band(earlier)[0] if earlier else None
    verdict = verdict_of(ratio, earlier, others)
    return Speed(*pair, name, probe.rows, ratio, expected, verdict, others)
