"""The sweep flow: prepare → plan → run → collect → report, a few coarse Prefect tasks with Dask futures inside.

Dask is imported where runs are to be computed: a sweep that is in the store ends sooner.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from prefect import flow, task
from prefect.cache_policies import NO_CACHE

import koco_stream
from flows.artifacts import ProgressArtifact, results_artifact
from flows.halving import losses_of, stages, write_decisions
from flows.progress import SweepProgress, say
from flows.sweep_file import Sweep, read_sweep
from flows.tables import runs_of, sweep_note
from koco_stream.errors import WrongInput
from koco_stream.files import content_hash
from koco_stream.fingerprint import source_hash
from koco_stream.manifest import Manifest, load_manifest
from koco_stream.places import place
from koco_stream.plan import Plan, plan
from koco_stream.resume import remove_finished, unfinished
from koco_stream.run import Receipt
from koco_stream.runs import Run, without_repeats
from koco_stream.warm import Needed, needed
from storage.generated.datasets import prepare_synthetic
from storage.results import collect, finished_runs, read_runs, remove_left, table_files
from storage.store import open_store

if TYPE_CHECKING:
    from flows.startup import Engine

SHOWN = 20  # failed runs in a summary
MANY_PARTS = 500  # the tables of a sweep that runs long are put together now and then


class Work:
    """What the tasks of one sweep share. A plain object on purpose: Prefect looks into every list and dataclass that a task is given."""

    def __init__(self, sweep_file: str, store: str, workers: int, block_rows: int | None, cluster: str, retry_failed: bool) -> None:
        self.sweep, self.store, self.workers, self.block_rows = read_sweep(sweep_file), store, workers, block_rows
        self.cluster, self.retry_failed = cluster, retry_failed
        self.manifests: dict[str, Manifest] = {}
        self.every: list[Run] = []  # all runs of the sweep
        self.missing: list[Run] = []  # those wanted now that the store does not have
        self.plan = Plan((), {})
        self.decisions: list[dict[str, object]] = []

    @property
    def sets(self) -> list[Manifest]:
        """The manifests."""
        return list(self.manifests.values())

    def forget_runs(self) -> None:
        """Let the runs go: of many they take as much memory as what comes next."""
        self.every, self.missing, self.plan = [], [], Plan((), {})
        self.sweep.expanded.clear()

    def stages(self) -> Iterator[list[Run]]:
        """See `halving.stages`."""
        n_rows = {m.dataset_hash: m.n_rows for m in self.sets}
        return stages(self.every, n_rows, self.sweep.halving, lambda ids: losses_of(self.store, ids), self.decisions)

    def kinds(self) -> list[Needed]:
        """What must be compiled."""
        from flows.planning import sizes_of

        return needed(self.every, {m.dataset_hash: m.value_type for m in self.sets}, sizes_of(self.sets))


@task(name="prepare", cache_policy=NO_CACHE)
def prepare_datasets(work: Work) -> None:
    """The manifests of all datasets; those that are generated and not there yet are made now. What a killed sweep left is collected."""
    for use in work.sweep.datasets:
        prepared = load_manifest(work.store, use.name) if use.given is None else prepare_synthetic(work.store, use.generator, use.given)
        work.manifests[use.name] = prepared
    work.every = work.sweep.runs(dict(work.manifests))
    collect_results(work.store)


@task(name="plan", cache_policy=NO_CACHE)
def plan_runs(work: Work, engine: Engine) -> None:
    """Cohorts of the missing runs; those that were begun stay as they were. Raises `WrongInput` if a run does not fit the cluster's
    workers."""
    from cluster.preflight import memory_table
    from flows.planning import cost_factors, limits_of, sizes_of

    sizes = sizes_of(work.sets)
    factors = cost_factors(work.store, sizes, engine.timings)
    try:
        work.plan = plan(work.missing, sizes, limits_of(work.cluster, work.workers, engine.client), unfinished(work.store), factors)
    except MemoryError as error:
        if engine.client is None:
            raise
        raise WrongInput(f"{error}\n{memory_table(engine.client)}") from None


@task(name="run", cache_policy=NO_CACHE)
def run_plan(work: Work, engine: Engine, progress: SweepProgress) -> None:
    """Run the cohorts, on Dask or in this process."""
    from cluster.clusters import patience_of
    from cluster.executors import run_on_dask, run_serially

    def receive(receipt: Receipt) -> None:
        progress.receive(receipt)
        shown.note(progress.done / progress.total)
        received.append(receipt.cohort_id)
        if len(received) % MANY_PARTS == 0:
            collect(work.store)

    received: list[str] = []
    with ProgressArtifact(f"progress-{work.sweep.name}", f"Runs done of the sweep {work.sweep.name}") as shown:
        if engine.client is None:
            run_serially(work.store, work.sweep.name, work.plan.cohorts, receive, work.block_rows)
        else:
            run_on_dask(engine.client, work.store, work.sweep.name, work.plan.cohorts, receive, work.block_rows, patience_of(work.cluster))


@task(name="collect", cache_policy=NO_CACHE)
def collect_task(store: str) -> None:
    """Parts into tables; checkpoints that nobody needs any more go."""
    collect_results(store)


def collect_results(store: str) -> None:
    """See `collect_task`."""
    collect(store)
    pa.default_memory_pool().release_unused()
    remove_left(store)
    remove_finished(store, lambda: finished_runs(store))


@task(name="report", cache_policy=NO_CACHE)
def write_sweep_report(store: str, name: str) -> str:
    """The HTML report of the sweep; returns its path."""
    from flows.report import write_report

    return str(write_report(store, name))


def report_of(store: str, name: str) -> str:
    """The report's path; written, unless the one that is there is of the same runs and the same version. Its figures take seconds."""
    note = (place(store) / "sweeps" / f"{name}.json").read_text()
    of = content_hash([koco_stream.__version__, source_hash(), note, [file.name for file in table_files(store, "runs")]])
    mark = place(store) / "reports" / f"{name}.made.json"
    try:
        made = json.loads(mark.read_text())
    except (FileNotFoundError, ValueError):
        made = {}
    if made.get("of") == of and (place(store) / "reports" / f"{name}.html").is_file():
        return str(made["report"])
    report = write_sweep_report(store, name)
    mark.write_text(json.dumps({"of": of, "report": report}) + "\n")
    return report


def remember(store: str, sweep: Sweep, runs: Sequence[Run]) -> None:
    """Note in the store what the sweep consists of: its file and its run_ids, which reports and results are read by."""
    content: dict[str, Any] = {"name": sweep.name, "file": sweep.text, "figures": sweep.figures, "run_ids": [run.run_id for run in runs]}
    (place(store) / "sweeps" / f"{sweep.name}.json").write_text(json.dumps(content) + "\n")


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
    """Run the sweep in `sweep_file` on `store`; returns a summary: runs, those computed, their statuses, seconds by phase, the report's
    path.

    `cluster` is `local`, with so many `workers` processes (0 for none), or a scheduler's address, with the folder of its `certificates`;
    `insecure`: others may reach it. With `retry_failed`, runs that failed are run again. Raises `WrongInput` as `read_sweep` and
    `Sweep.runs` do, for workers that cannot be used, and at the end for datasets that were found damaged.
    """
    clock = Clock()
    work = Work(sweep_file, store, workers, block_rows, cluster, retry_failed)
    name = work.sweep.name
    open_store(store)
    with clock("prepare"):
        prepare_datasets(work)
    runs: list[Run] = []
    computed = 0
    with ExitStack() as stack:
        progress = stack.enter_context(SweepProgress(store, name))
        ready: Engine | None = None
        for stage in work.stages():
            runs = without_repeats([*runs, *stage]) if runs else stage
            with clock("plan"):
                finished = finished_runs(store, retry_failed)
                work.missing = [run for run in stage if run.run_id not in finished]
                remember(store, work.sweep, runs)
            progress.more(len(stage), len(stage) - len(work.missing))
            if work.missing:
                from cluster.clusters import cluster_named
                from cluster.preflight import preflight
                from flows.planning import mapped_bytes
                from flows.startup import engine

                if ready is None:
                    with clock("start-up"):
                        chosen = cluster_named(cluster, workers, mapped_bytes(work.sets), certificates, insecure)
                        ready = stack.enter_context(engine(chosen, work.kinds()))
                    if ready.client is not None:
                        with clock("preflight"):
                            for line in preflight(ready.client, store, mapped_bytes(work.sets)):
                                say(f"  {line}")
                    progress.computing(ready.dashboard)
                with clock("plan"):
                    plan_runs(work, ready)
                with clock("computing"):
                    run_plan(work, ready, progress)
                computed += len(work.missing)
                work.plan, work.missing = Plan((), {}), []  # of many runs they are large
            with clock("collect"):
                collect_task(store)
    write_decisions(store, name, work.decisions)
    count = len(runs)
    work.forget_runs()
    runs = stage = []
    with clock("report"):
        report = report_of(store, name)
    if computed:
        results_artifact(store, name, report)
    return {
        "sweep": name,
        "runs": count,
        "computed": computed,
        **outcome(store, name),
        "report": report,
        "seconds": {**{phase: round(value, 2) for phase, value in clock.seconds.items()}, "scans": round(progress.scan_seconds, 2)},
    }


def outcome(store: str, name: str) -> dict[str, Any]:
    """How the sweep's runs ended: how many by status, and the first few that failed, with their reasons."""
    mine, runs = set(sweep_note(store, name)["run_ids"]), read_runs(store, ("run_id", "status"))
    ended = zip(runs.column("run_id").to_pylist(), runs.column("status").to_pylist(), strict=True)
    statuses = Counter(status for run_id, status in ended if run_id in mine)
    if not statuses["failed"]:
        return {"statuses": dict(+statuses), "failed": []}
    runs = runs_of(store, name, ("run_id", "dataset", "learner", "params", "status", "error"))
    failed = runs.filter(pc.equal(runs.column("status"), "failed"))
    return {
        "statuses": dict(+statuses),
        "failed": failed.slice(0, SHOWN).drop_columns(["run_id", "status"]).to_pylist(),
    }


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
