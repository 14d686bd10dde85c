"""The sweep flow: prepare → plan → run → collect → report, a few coarse Prefect tasks with Dask
futures inside.
"""

from __future__ import annotations

from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows.sweep.steps import PLAIN, Steps, Work, run_sweep

TASKS = Steps(
    *(task(step, name=name, cache_policy=NO_CACHE) for name, step in PLAIN._asdict().items())
)


@flow(name="sweep", validate_parameters=False)
def sweep_flow(
    sweep_file: str,
    store: str,
    workers: int,
    block_rows: int | None = None,
    cluster: str = "local",
    retry_failed: bool = False,
    certificates: str | None = None,
    insecure: bool = False,
) -> dict[str, Any]:
    """Run the sweep in `sweep_file` on `store`; returns a summary: runs, those computed, their
    statuses, seconds by phase, the report's path.

    `cluster` is `local`, with so many `workers` processes (0 for none), or a scheduler's address,
    with the folder of its `certificates`; `insecure`: others may reach it. With `retry_failed`,
    runs that failed are run again. Raises `WrongInput` as `read_sweep` and `Sweep.runs` do, for
    workers that cannot be used, and at the end for datasets that were found damaged.
    """
    return run_sweep(
        Work(sweep_file, store, workers, block_rows, cluster, retry_failed),
        TASKS,
        certificates,
        insecure,
    )
