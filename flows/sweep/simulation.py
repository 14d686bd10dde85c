"""What a sweep would take on more machines than there are here: its real plan for each number of
workers, run by the simulator.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cluster.machine import worker_bytes
from cluster.simulation import Machines, simulate
from flows.sweep.checks import checked, sizes_of_all
from flows.sweep.planning import cost_factors
from koco_stream.runs.planner import Limits, plan

PREDICTED = (
    "workers",
    "cohorts",
    "runs",
    "wall",
    "efficiency",
    "scheduler",
    "deaths",
    "parts_a_second",
    "bytes_a_second",
)


def predictions(
    spec: Path,
    store: str,
    workers: Sequence[int],
    cores: int | None = None,
    deaths_an_hour: float = 0.0,
    worker_memory: int | None = None,
) -> Iterator[dict[str, Any]]:
    """A row for each number of workers: see `simulation.Prediction`. All runs of the sweep are
    counted, whether the store has them or not; the costs are what the store's finished runs have
    taken on this machine, where there are any.

    `cores` are shared by all workers, for predictions of this machine; `worker_memory` are the
    bytes of each.
    """
    sweep, manifests, runs, _ = checked(spec, store)
    sizes = sizes_of_all(sweep, manifests)
    factors = cost_factors(store, sizes)
    for count in workers:
        todo = plan(runs, sizes, Limits(count, worker_memory or worker_bytes(1)), factors=factors)
        rounds = [
            sizes[cohort.stream.dataset_hash].rounds(cohort.stream) for cohort in todo.cohorts
        ]
        yield asdict(simulate(todo.cohorts, rounds, Machines(count, cores, deaths_an_hour)))
