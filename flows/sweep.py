"""The sweep flow: prepare → plan → run → collect → report, a few coarse Prefect tasks with Dask futures inside."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from cluster.executors import run_on_dask, run_serially
from cluster.local import worker_bytes
from flows.progress import SweepProgress, say
from flows.startup import started
from flows.sweep_file import Sweep, read_sweep
from koco_stream.manifest import Manifest, load_manifest
from koco_stream.places import place
from koco_stream.plan import DataSize, Limits, Plan, plan
from koco_stream.resume import remove_finished, unfinished
from koco_stream.runs import Run
from koco_stream.stream import BLOCK_ROWS
from koco_stream.warm import needed, warm
from storage.generated.datasets import prepare_synthetic
from storage.results import collect, finished_runs
from storage.store import open_store

T = TypeVar("T")


@task(name="prepare", cache_policy=NO_CACHE)
def prepare_datasets(sweep: Sweep, store: str) -> dict[str, Manifest]:
    """The manifests of all datasets; those that are generated and not there yet are made now."""
    manifests = {}
    for use in sweep.datasets:
        manifests[use.name] = load_manifest(store, use.name) if use.given is None else prepare_synthetic(store, use.generator, use.given)
    return manifests


@task(name="plan", cache_policy=NO_CACHE)
def plan_sweep(runs: list[Run], manifests: dict[str, Manifest], store: str, workers: int) -> Plan:
    """Cohorts of the runs that the store does not have."""
    finished = finished_runs(store)
    return plan_of([run for run in runs if run.run_id not in finished], manifests, workers, unfinished(store))


def plan_of(runs: list[Run], manifests: dict[str, Manifest], workers: int, begun: Sequence[Sequence[str]] = ()) -> Plan:
    """The plan for these runs on this many local workers; cohorts that were begun stay as they were."""
    sizes = {m.dataset_hash: DataSize.of(m) for m in manifests.values()}
    return plan(runs, sizes, Limits(workers, worker_bytes(workers)), begun)


@task(name="run", cache_policy=NO_CACHE)
def run_plan(todo: Plan, store: str, name: str, workers: int, value_types: dict[str, str], block_rows: int) -> dict[str, float]:
    """Run the cohorts, on Dask or (workers = 0) in this process; returns seconds of waiting for the start and of computing."""
    begun = time.monotonic()
    with SweepProgress(len(todo.runs)) as progress:
        if workers == 0:
            warm(needed(todo.runs, value_types))  # so that no run's seconds hold the compiler's
            ready = progress.begun = time.monotonic()
            run_serially(store, name, todo.cohorts, progress.receive, block_rows)
            return {"start-up": ready - begun, "computing": time.monotonic() - ready, "scans": progress.scan_seconds}
        with started(workers, needed(todo.runs, value_types)) as client:
            ready = time.monotonic()
            progress.begun = ready
            run_on_dask(client, store, name, todo.cohorts, progress.receive, block_rows)
            done = time.monotonic()
    return {"start-up": ready - begun, "computing": done - ready, "scans": progress.scan_seconds}


@task(name="collect", cache_policy=NO_CACHE)
def collect_results(store: str) -> int:
    """Parts into tables; checkpoints that nobody needs any more go."""
    collected = collect(store)
    remove_finished(store, finished_runs(store))
    return collected


@task(name="report", cache_policy=NO_CACHE)
def write_sweep_report(store: str, name: str) -> str:
    """The HTML report of the sweep; returns its path."""
    from flows.report import write_report

    return str(write_report(store, name))


def remember(store: str, sweep: Sweep, runs: list[Run]) -> None:
    """Note in the store what the sweep consists of: its file and its run_ids, which reports and results are read by."""
    content: dict[str, Any] = {"name": sweep.name, "file": sweep.text, "figures": sweep.figures, "run_ids": [run.run_id for run in runs]}
    (place(store) / "sweeps" / f"{sweep.name}.json").write_text(json.dumps(content) + "\n")


@flow(name="sweep", validate_parameters=False)
def sweep_flow(sweep_file: str, store: str, workers: int, block_rows: int = BLOCK_ROWS) -> dict[str, Any]:
    """Run the sweep in `sweep_file` on `store`; returns a summary: runs, those computed, seconds by phase, the report's path.

    `workers` is the number of local worker processes, 0 for none. Raises `WrongInput` as `read_sweep` and `Sweep.runs` do.
    """
    clock = Clock()
    sweep = read_sweep(sweep_file)
    open_store(store)
    manifests = clock("prepare", lambda: prepare_datasets(sweep, store))
    runs = sweep.runs(dict(manifests))
    todo = clock("plan", lambda: plan_sweep(runs, manifests, store, workers))
    there = len(runs) - len(todo.runs)
    say(f"sweep {sweep.name}: {len(runs):,} runs, {there:,} in the store already, {len(todo.runs):,} to compute")
    remember(store, sweep, runs)
    if todo.cohorts:
        value_types = {m.dataset_hash: m.value_type for m in manifests.values()}
        clock.seconds.update(run_plan(todo, store, sweep.name, workers, value_types, block_rows))
    clock("collect", lambda: collect_results(store))
    report = clock("report", lambda: write_sweep_report(store, sweep.name))
    return {
        "sweep": sweep.name,
        "runs": len(runs),
        "computed": len(todo.runs),
        "report": report,
        "seconds": {phase: round(value, 2) for phase, value in clock.seconds.items()},
    }


class Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, phase: str, work: Callable[[], T]) -> T:
        """Do `work` and note under `phase` how long it took."""
        begun = time.monotonic()
        try:
            return work()
        finally:
            self.seconds[phase] = time.monotonic() - begun
