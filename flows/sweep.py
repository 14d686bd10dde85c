"""The sweep flow: prepare → plan → run → collect → report, a few coarse Prefect tasks with Dask futures inside."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from cluster.clusters import LOCAL, cluster_named
from cluster.executors import run_on_dask, run_serially
from cluster.preflight import memory_table, preflight
from flows.halving import stages, write_decisions
from flows.planning import cost_factors, limits_of, mapped_bytes, sizes_of
from flows.progress import SweepProgress, say
from flows.startup import Engine, engine
from flows.sweep_file import Sweep, read_sweep
from flows.tables import runs_of
from koco_stream.errors import WrongInput
from koco_stream.manifest import Manifest, load_manifest
from koco_stream.places import place
from koco_stream.plan import Limits, Plan, plan
from koco_stream.resume import remove_finished, unfinished
from koco_stream.run import Receipt
from koco_stream.runs import Run, without_repeats
from koco_stream.stream import BLOCK_ROWS
from koco_stream.warm import needed
from storage.generated.datasets import prepare_synthetic
from storage.results import collect, finished_runs, read_columns
from storage.store import open_store

SHOWN = 20  # failed runs in a summary
MANY_PARTS = 500  # the tables of a sweep that runs long are put together now and then


@task(name="prepare", cache_policy=NO_CACHE)
def prepare_datasets(sweep: Sweep, store: str) -> dict[str, Manifest]:
    """The manifests of all datasets; those that are generated and not there yet are made now. What a killed sweep left is collected."""
    manifests = {}
    for use in sweep.datasets:
        manifests[use.name] = load_manifest(store, use.name) if use.given is None else prepare_synthetic(store, use.generator, use.given)
    collect_results(store)
    return manifests


@task(name="plan", cache_policy=NO_CACHE)
def plan_runs(missing: list[Run], manifests: Sequence[Manifest], store: str, limits: Limits, engine: Engine) -> Plan:
    """Cohorts of the runs; those that were begun stay as they were. Raises `WrongInput` if a run does not fit the cluster's workers."""
    sizes = sizes_of(manifests)
    try:
        return plan(missing, sizes, limits, unfinished(store), cost_factors(store, sizes, engine.timings))
    except MemoryError as error:
        if engine.client is None:
            raise
        raise WrongInput(f"{error}\n{memory_table(engine.client)}") from None


@task(name="run", cache_policy=NO_CACHE)
def run_plan(todo: Plan, store: str, name: str, engine: Engine, progress: SweepProgress, block_rows: int) -> None:
    """Run the cohorts, on Dask or in this process."""

    def receive(receipt: Receipt) -> None:
        progress.receive(receipt)
        received.append(receipt.cohort_id)
        if len(received) % MANY_PARTS == 0:
            collect(store)

    received: list[str] = []
    if engine.client is None:
        run_serially(store, name, todo.cohorts, receive, block_rows)
    else:
        run_on_dask(engine.client, store, name, todo.cohorts, receive, block_rows)


@task(name="collect", cache_policy=NO_CACHE)
def collect_task(store: str) -> int:
    """Parts into tables; checkpoints that nobody needs any more go."""
    return collect_results(store)


def collect_results(store: str) -> int:
    """See `collect_task`."""
    collected = collect(store)
    remove_finished(store, finished_runs(store))
    return collected


@task(name="report", cache_policy=NO_CACHE)
def write_sweep_report(store: str, name: str) -> str:
    """The HTML report of the sweep; returns its path."""
    from flows.report import write_report

    return str(write_report(store, name))


def remember(store: str, sweep: Sweep, runs: Sequence[Run]) -> None:
    """Note in the store what the sweep consists of: its file and its run_ids, which reports and results are read by."""
    content: dict[str, Any] = {"name": sweep.name, "file": sweep.text, "figures": sweep.figures, "run_ids": [run.run_id for run in runs]}
    (place(store) / "sweeps" / f"{sweep.name}.json").write_text(json.dumps(content) + "\n")


@flow(name="sweep", validate_parameters=False)
def sweep_flow(
    sweep_file: str,
    store: str,
    workers: int,
    block_rows: int = BLOCK_ROWS,
    cluster: str = LOCAL,
    retry_failed: bool = False,
    certificates: str | None = None,
    insecure: bool = False,
) -> dict[str, Any]:
    """Run the sweep in `sweep_file` on `store`; returns a summary: runs, those computed, their statuses, seconds by phase, the report's
    path.

    `cluster` is `local`, with so many `workers` processes (0 for none), or a scheduler's address, with the folder of its `certificates`;
    `insecure`: others may reach it. With `retry_failed`, runs that failed are run again. Raises `WrongInput` as `read_sweep` and
    `Sweep.runs` do, for workers that cannot be used, and at the end for datasets that were found damaged.
    """
    clock = Clock()
    sweep = read_sweep(sweep_file)
    open_store(store)
    with clock("prepare"):
        manifests = prepare_datasets(sweep, store)
    every, sets = sweep.runs(dict(manifests)), list(manifests.values())
    n_rows, value_types = {m.dataset_hash: m.n_rows for m in sets}, {m.dataset_hash: m.value_type for m in sets}
    decisions: list[dict[str, object]] = []
    runs: list[Run] = []
    computed = 0
    with ExitStack() as stack:
        progress = stack.enter_context(SweepProgress(store, sweep.name))
        ready: Engine | None = None
        for stage in stages(every, n_rows, sweep.halving, lambda ids: losses_of(store, ids), decisions):
            runs = without_repeats([*runs, *stage])
            with clock("plan"):
                finished = finished_runs(store, retry_failed)
            missing = [run for run in stage if run.run_id not in finished]
            progress.more(len(stage), len(stage) - len(missing))
            remember(store, sweep, runs)
            if missing:
                if ready is None:
                    with clock("start-up"):
                        kinds = needed(every, value_types, sizes_of(sets))
                        chosen = cluster_named(cluster, workers, mapped_bytes(sets), certificates, insecure)
                        ready = stack.enter_context(engine(chosen, kinds))
                    if ready.client is not None:
                        with clock("preflight"):
                            for line in preflight(ready.client, store, mapped_bytes(sets)):
                                say(f"  {line}")
                    progress.computing(ready.dashboard)
                with clock("plan"):
                    todo = plan_runs(missing, sets, store, limits_of(cluster, workers, ready.client), ready)
                with clock("computing"):
                    run_plan(todo, store, sweep.name, ready, progress, block_rows)
                computed += len(missing)
            with clock("collect"):
                collect_task(store)
    if decisions:
        write_decisions(store, sweep.name, decisions)
    with clock("report"):
        report = write_sweep_report(store, sweep.name)
    return {
        "sweep": sweep.name,
        "runs": len(runs),
        "computed": computed,
        **outcome(store, sweep.name),
        "report": report,
        "seconds": {**{phase: round(value, 2) for phase, value in clock.seconds.items()}, "scans": round(progress.scan_seconds, 2)},
    }


def outcome(store: str, name: str) -> dict[str, Any]:
    """How the sweep's runs ended: how many by status, and the first few that failed, with their reasons."""
    runs = runs_of(store, name).select(["dataset", "learner", "params", "status", "error"])
    failed = runs.filter(pc.equal(runs.column("status"), "failed"))
    return {
        "statuses": dict(Counter(runs.column("status").to_pylist())),
        "failed": failed.slice(0, SHOWN).drop_columns("status").to_pylist(),
    }


def losses_of(store: str, run_ids: Sequence[str]) -> dict[str, float]:
    """The mean losses of those of these runs that are ok."""
    runs = read_columns(store, ("run_id", "status", "mean_loss"))
    wanted = pc.and_(pc.is_in(runs.column("run_id"), pa.array(run_ids, pa.string())), pc.equal(runs.column("status"), "ok"))
    runs = runs.filter(wanted)
    return dict(zip(runs.column("run_id").to_pylist(), runs.column("mean_loss").to_pylist(), strict=True))


class Clock:
    """Seconds by phase, added up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Add to `phase` how long the block takes."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.monotonic() - begun
