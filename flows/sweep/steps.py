"""The steps of a sweep: prepare → plan → run → collect → report. The flow makes each a task of
Prefect; where nothing is to be computed, they are done without it.

Dask and Prefect, which take seconds to import, are imported where they are needed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import koco_stream
from flows.results.decisions import write_decisions
from flows.results.tables import runs_of, sweep_note
from flows.runtime.console import say
from flows.sweep.file import Sweep, read_sweep
from flows.sweep.halving import losses_of, stages
from flows.sweep.progress import SweepProgress
from flows.sweep.request import SweepRequest
from koco_stream.engine.checkpoint import remove_finished, unfinished
from koco_stream.engine.cohort import Receipt
from koco_stream.engine.warm_up import needed
from koco_stream.errors import WrongInput
from koco_stream.io.files import content_hash
from koco_stream.io.fingerprint import source_hash
from koco_stream.io.paths import store_path
from koco_stream.runs.planner import Plan, plan
from koco_stream.runs.run import Run, without_repeats
from koco_stream.streams.manifest import Manifest, load_manifest
from storage.collecting import collect, remove_left
from storage.generated.generators import prepare_synthetic
from storage.results import finished_runs, read_runs, table_files
from storage.store import open_store

if TYPE_CHECKING:
    from flows.runtime.engine import Engine, Start

SHOWN = 20  # failed runs in a summary
MANY_RUNS = 20_000  # a report of so many is written by a process of its own
MANY_FILES = 500  # result files: those of a sweep that runs long become tables now and then


class Work:
    """What the tasks of one sweep share. A plain object on purpose: Prefect looks into every list
    and dataclass that a task is given.
    """

    def __init__(self, request: SweepRequest, sweep: Sweep | None = None) -> None:
        self.request, self.store = request, request.store
        self.sweep = sweep or read_sweep(request.sweep_file)
        self.start: Start | None = None  # of a cluster, for whoever needs an engine first
        self.manifests: dict[str, Manifest] = {}
        self.every: list[Run] = []  # all runs of the sweep
        self.missing: list[Run] = []  # those wanted now that the store does not have
        self.plan = Plan((), {})
        self.decisions: list[dict[str, object]] = []

    @property
    def sets(self) -> list[Manifest]:
        """The manifests."""
        return list(self.manifests.values())

    def stages(self) -> Iterator[list[Run]]:
        """See `halving.stages`."""
        n_rows = {m.dataset_hash: m.n_rows for m in self.sets}
        return stages(
            self.every,
            n_rows,
            self.sweep.halving,
            lambda ids: losses_of(self.store, ids),
            self.decisions,
        )


def prepare_datasets(work: Work) -> None:
    """The manifests of all datasets; those that are generated and not there yet are made now. What
    a killed sweep left is collected.
    """
    for use in work.sweep.datasets:
        prepared = (
            load_manifest(work.store, use.name)
            if use.given is None
            else prepare_synthetic(work.store, use.generator, use.given)
        )
        work.manifests[use.name] = prepared
    work.every = work.sweep.runs(dict(work.manifests))
    collect_results(work.store)


def plan_runs(work: Work, engine: Engine) -> None:
    """Cohorts of the missing runs; those that were begun stay as they were. Raises `WrongInput` if
    a run does not fit the cluster's workers.
    """
    from cluster.workers import memory_table
    from flows.sweep.planning import cost_factors, limits_of, sizes_of

    sizes = sizes_of(work.sets)
    factors = cost_factors(work.store, sizes, engine.timings)
    try:
        work.plan = plan(
            work.missing,
            sizes,
            limits_of(work.request.cluster, work.request.workers, engine.client),
            unfinished(work.store),
            factors,
        )
    except MemoryError as error:
        if engine.client is None:
            raise
        raise WrongInput(f"{error}\n{memory_table(engine.client)}") from None


def run_plan(work: Work, engine: Engine, progress: SweepProgress) -> None:
    """Run the cohorts, on Dask or in this process."""
    from cluster.clusters import patience_of
    from cluster.executors import run_on_dask, run_serially
    from flows.runtime.artifacts import ProgressArtifact

    def receive(receipt: Receipt) -> None:
        progress.receive(receipt)
        shown.share = progress.done / progress.total
        received.append(receipt.cohort_id)
        if len(received) % MANY_FILES == 0:
            collect(work.store)

    received: list[str] = []
    with ProgressArtifact(
        f"progress-{work.sweep.name}", f"Runs done of the sweep {work.sweep.name}"
    ) as shown:
        if engine.client is None:
            run_serially(
                work.store, work.sweep.name, work.plan.cohorts, receive, work.request.block_rows
            )
        else:
            run_on_dask(
                engine.client,
                work.store,
                work.sweep.name,
                work.plan.cohorts,
                receive,
                work.request.block_rows,
                patience_of(work.request.cluster),
            )


def collect_results(store: str) -> None:
    """Result files into tables; checkpoints that nobody needs any more go."""
    collect(store)
    pa.default_memory_pool().release_unused()
    remove_left(store)
    remove_finished(store, lambda: finished_runs(store))


def write_sweep_report(store: str, name: str) -> str:
    """The HTML report of the sweep; returns its path. Of many runs it takes most of a gigabyte,
    which this process, with Dask's scheduler in it, had better not: another one writes it. Raises
    `RuntimeError` with what that one says if it fails.
    """
    if len(sweep_note(store, name)["run_ids"]) > MANY_RUNS:
        written = subprocess.run(
            [sys.executable, "-m", "flows.cli", "report", name, "--store", store],
            capture_output=True,
            text=True,
            check=False,
        )
        if written.returncode:
            raise RuntimeError(f"the report could not be written: {written.stderr.strip()}")
        return written.stdout.strip()
    from flows.report.document import write_report

    return str(write_report(store, name))


def report_of(store: str, name: str, write: Callable[[str, str], str]) -> str:
    """The report's path; written by `write`, which takes seconds, unless the one that is there is
    of the same runs and the same version.
    """
    note = (store_path(store) / "sweeps" / f"{name}.json").read_text()
    of = content_hash(
        [
            koco_stream.__version__,
            source_hash(),
            note,
            [file.name for file in table_files(store, "runs")],
        ]
    )
    mark = store_path(store) / "reports" / f"{name}.made.json"
    try:
        made = json.loads(mark.read_text())
    except (FileNotFoundError, ValueError):
        made = {}
    if made.get("of") == of and (store_path(store) / "reports" / f"{name}.html").is_file():
        return str(made["report"])
    report = write(store, name)
    mark.write_text(json.dumps({"of": of, "report": report}) + "\n")
    return report


class Steps(NamedTuple):
    """The steps of a sweep that take long: as they are, or each a task of the flow."""

    prepare: Callable[[Work], None]
    plan: Callable[[Work, Engine], None]
    run: Callable[[Work, Engine, SweepProgress], None]
    collect: Callable[[str], None]
    report: Callable[[str, str], str]


PLAIN = Steps(prepare_datasets, plan_runs, run_plan, collect_results, write_sweep_report)


def remember(store: str, sweep: Sweep, runs: Sequence[Run]) -> None:
    """Note in the store what the sweep consists of: its file and its run_ids, which reports and
    results are read by.
    """
    content: dict[str, Any] = {
        "name": sweep.name,
        "file": sweep.text,
        "figures": sweep.figures,
        "run_ids": [run.run_id for run in runs],
    }
    (store_path(store) / "sweeps" / f"{sweep.name}.json").write_text(json.dumps(content) + "\n")


def run_sweep(work: Work, steps: Steps) -> dict[str, Any]:
    """The sweep itself: see `flows.sweep.flow.sweep_flow`."""
    clock = Clock()
    store, name = work.store, work.sweep.name
    open_store(store)
    with clock("prepare"):
        steps.prepare(work)
    runs: list[Run] = []
    computed = 0
    with ExitStack() as stack:
        progress = stack.enter_context(SweepProgress(store, name))
        ready: Engine | None = None
        for stage in work.stages():
            runs = without_repeats([*runs, *stage]) if runs else stage
            with clock("plan"):
                finished = finished_runs(store, work.request.retry_failed)
                work.missing = [run for run in stage if run.run_id not in finished]
                remember(store, work.sweep, runs)
            progress.more(len(stage), len(stage) - len(work.missing))
            if work.missing:
                from cluster.workers import preflight
                from flows.runtime.engine import engine
                from flows.sweep.planning import mapped_bytes, sizes_of

                if ready is None:
                    shared = mapped_bytes(work.sets)
                    with clock("start-up"):
                        chosen = work.request.start_of_cluster(shared)
                        start, work.start = work.start, None  # whoever takes it closes it
                        types = {m.dataset_hash: m.value_type for m in work.sets}
                        kinds = needed(work.every, types, sizes_of(work.sets))
                        ready = stack.enter_context(engine(chosen, kinds, start))
                    if ready.client is not None:
                        with clock("preflight"):
                            for line in preflight(ready.client, store, shared):
                                say(f"  {line}")
                    progress.computing(ready.client.dashboard_link if ready.client else None)
                with clock("plan"):
                    steps.plan(work, ready)
                with clock("computing"):
                    steps.run(work, ready, progress)
                computed += len(work.missing)
                work.plan, work.missing = Plan((), {}), []  # of many runs they are large
            with clock("collect"):
                steps.collect(store)
    write_decisions(store, name, work.decisions)
    count = len(runs)
    # the runs go: of many they take as much memory as what comes next
    runs = stage = work.every = []
    work.sweep.expanded.clear()
    with clock("report"):
        report = report_of(store, name, steps.report)
    if computed:
        from flows.report.flow import results_artifact

        results_artifact(store, name, report)
    return {
        "sweep": name,
        "runs": count,
        "computed": computed,
        **outcome(store, name),
        "report": report,
        "seconds": {
            **{phase: round(value, 2) for phase, value in clock.seconds.items()},
            "scans": round(progress.scan_seconds, 2),
        },
    }


def outcome(store: str, name: str) -> dict[str, Any]:
    """How the sweep's runs ended: how many by status, and the first few that failed, with their
    reasons.
    """
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
