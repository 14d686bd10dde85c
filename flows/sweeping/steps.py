"""A sweep: read the file, list the runs, subtract those in the store, plan, run, collect, report.

`run_sweep` is this sentence, and its steps are plain functions, which the Prefect flow makes tasks.
Dask and Prefect, whose import takes seconds, are imported where they are needed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import koco_stream
from flows.runtime.console import say
from flows.sweeping.checks import CheckedSweep
from flows.sweeping.file import Sweep
from flows.sweeping.progress import ProgressLine
from flows.sweeping.status import StatusFile
from flows.sweeping.watching import Tally, Watcher
from flows.tables.decisions import write_decisions
from flows.tables.sweep_runs import sweep_note
from flows.tables.text import printable
from flows.views.views import runs_of
from koco_stream.engine.checkpoint import kept_states, remove_finished, remove_kept, unfinished
from koco_stream.engine.cohort import Receipt
from koco_stream.engine.warm_up import needed
from koco_stream.errors import WrongInput
from koco_stream.io.files import content_hash, json_text
from koco_stream.io.fingerprint import source_hash
from koco_stream.io.paths import store_path
from koco_stream.learners.files import send
from koco_stream.runs.planner import plan
from koco_stream.runs.run import Cohort, Run, without_repeats
from koco_stream.streams.manifest import Manifest, load_manifest
from storage.collecting import collect, remove_left
from storage.generated.generators import prepare_synthetic
from storage.results import finished_runs, table_files
from storage.store import open_store

if TYPE_CHECKING:
    from flows.runtime.engine import Engine, Start

SHOWN = 20  # failed runs in a summary
MOST_WARNINGS = 5  # of large dictionaries, which a search may have many of
MANY_RUNS = 20_000  # a report of more runs is written by a process of its own
MANY_FILES = 500  # number of new result files after which they are collected into tables


class Stage:
    """The runs of a stage that the store lacks, and the cohorts that they are planned in.

    It is not a dataclass on purpose: see `CheckedSweep`.
    """

    def __init__(self, missing: Sequence[Run], cohorts: Sequence[Cohort] = ()) -> None:
        self.missing, self.cohorts = missing, cohorts


def prepare_datasets(checked: CheckedSweep) -> CheckedSweep:
    """Prepare the sweep's generated datasets, and collect results that a killed sweep left.

    Returns the sweep on its datasets.
    """
    store = checked.request.store
    collect_results(store)
    manifests: dict[str, Manifest | None] = {
        use.name: load_manifest(store, use.name)
        if use.given is None
        else prepare_synthetic(store, use.generator, use.given)
        for use in checked.sweep.datasets
    }
    if manifests == checked.manifests:
        return checked
    return CheckedSweep(checked.request, checked.sweep, manifests)


def plan_runs(checked: CheckedSweep, stage: Stage, engine: Engine) -> Stage:
    """Group the missing runs into cohorts. Cohorts with a checkpoint keep their runs.

    Raises `WrongInput` if a run needs more memory than the cluster's workers have.
    """
    from cluster.workers import memory_table
    from flows.sweeping.planning import cost_factors, limits_of
    from koco_stream.runs.dictionary_sample import large_dictionaries, with_growths

    request = checked.request
    sizes = with_growths(request.store, checked.sizes, stage.missing)
    warnings = large_dictionaries(stage.missing, sizes)
    for warning in warnings[:MOST_WARNINGS]:
        say(f"  warning: {warning}")
    if len(warnings) > MOST_WARNINGS:
        more = len(warnings) - MOST_WARNINGS
        say(f"  and {more} more warnings of large dictionaries; koco sweep --dry-run has all")
    factors = cost_factors(request.store, sizes, engine.timings)
    try:
        limits = limits_of(request.store, request.cluster, request.workers, engine.client)
        rungs = checked.rungs(stage.missing, kept_states(request.store))
        planned = plan(stage.missing, sizes, limits, unfinished(request.store), factors, rungs)
    except MemoryError as error:
        if engine.client is None:
            raise
        raise WrongInput(f"{error}\n{memory_table(engine.client)}") from None
    return Stage(stage.missing, planned.cohorts)


def run_cohorts(checked: CheckedSweep, stage: Stage, engine: Engine, tally: Tally) -> None:
    """Run the cohorts on Dask or in this process; `tally` counts their receipts."""
    from cluster.clusters import patience_of
    from cluster.executors import run_on_dask, run_serially
    from cluster.reporting import reports_to

    request, name = checked.request, checked.sweep.name

    def receive(receipt: Receipt) -> None:
        tally.receive(receipt)
        if tally.cohorts % MANY_FILES == 0:
            collect(request.store)

    for file in filter(None, {run.file for run in stage.missing}):
        send(request.store, file.code)
    work = (request.store, name, stage.cohorts, receive)
    tally.plan(stage.cohorts, checked.sizes)
    with reports_to(engine.client, tally.hear):
        if engine.client is None:
            run_serially(*work)
        else:
            run_on_dask(engine.client, *work, patience=patience_of(request.cluster))


def collect_results(store: str) -> None:
    """Collect result files into tables, and remove checkpoints that are not needed any more."""
    collect(store)
    pa.default_memory_pool().release_unused()
    remove_left(store)
    remove_finished(store, lambda: finished_runs(store))


def write_sweep_report(store: str, name: str) -> str:
    """Write the HTML report of a sweep; returns its path.

    A report of many runs takes most of a gigabyte, so a process of its own writes it: this one may
    hold Dask's scheduler. Raises `RuntimeError` with the output of that process if it fails.
    """
    if len(sweep_note(store, name)["run_ids"]) > MANY_RUNS:
        written = subprocess.run(
            [sys.executable, "-m", "flows", "report", name, "--store", store],
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
    """Path of a sweep's report, which `write` makes unless it is up to date.

    It is up to date if the sweep's runs, the result tables and the code have not changed since.
    """
    made_of = [
        koco_stream.__version__,
        source_hash(),
        sweep_note(store, name),
        [file.name for file in table_files(store, "runs")],
    ]
    reports = store_path(store) / "reports"
    page, mark = reports / f"{name}.html", reports / f"{name}.made.json"
    made = json_text({"of": content_hash(made_of), "report": str(page)}) + "\n"
    if not (page.is_file() and mark.is_file() and mark.read_text() == made):
        say("  the report is being written")
        write(store, name)
        mark.write_text(made)
    return str(page)


# The long steps of a sweep, by name: plain functions, or tasks of the Prefect flow.
Steps = Mapping[str, Callable[..., Any]]
PLAIN: Steps = {
    "prepare": prepare_datasets,
    "plan": plan_runs,
    "run": run_cohorts,
    "collect": collect_results,
    "report": write_sweep_report,
}


def remember(store: str, sweep: Sweep, runs: Sequence[Run]) -> None:
    """Record the sweep's file and run_ids in the store, where results and reports find them."""
    note = {
        "name": sweep.name,
        "file": sweep.text,
        "figures": sweep.figures,
        "run_ids": [run.run_id for run in runs],
        "datasets": {run.stream.dataset_hash: run.stream.dataset for run in runs},
    }
    (store_path(store) / "sweeps" / f"{sweep.name}.json").write_text(json_text(note) + "\n")


def run_sweep(
    checked: CheckedSweep,
    steps: Steps = PLAIN,
    start: Start | None = None,
    watchers: Sequence[Watcher] = (),
) -> dict[str, Any]:
    """Run a checked sweep; returns the summary described at `flows.prefect_flows.sweep_flow`.

    A stage has all runs; with halving there is one for each rung, and a search that learns from
    results has one for each batch. `steps` are plain functions or Prefect tasks. `start` is the
    cluster, if it is already starting. The `watchers` hear how far the sweep is.
    """
    store, name = checked.request.store, checked.sweep.name
    seconds: dict[str, float] = defaultdict(float)
    decisions: list[dict[str, object]] = []
    runs: list[Run] = []
    passed: set[str] = set()  # runs of the rungs before, whose states are kept for one more
    computed = 0
    open_store(store)
    with timed(seconds, "prepare"):
        checked = steps["prepare"](checked)
    with ExitStack() as stack:
        watching = (StatusFile(store), ProgressLine(), *watchers)
        tally = stack.enter_context(Tally(name, watching))
        engine = None
        for listed in checked.stages(decisions):
            runs = without_repeats([*runs, *listed]) if runs else listed
            with timed(seconds, "plan"):
                stage = Stage(checked.not_in_store(listed))
                remember(store, checked.sweep, runs)
            tally.more(len(listed), len(listed) - len(stage.missing))
            if stage.missing:
                engine = engine or stack.enter_context(started(checked, tally, start, seconds))
                with timed(seconds, "plan"):
                    planned = steps["plan"](checked, stage, engine)
                with timed(seconds, "computing"):
                    steps["run"](checked, planned, engine, tally)
                computed += len(stage.missing)
                del planned  # frees memory
            with timed(seconds, "collect"):
                steps["collect"](store)
                remove_kept(store, passed)
            if checked.sweep.halving:
                passed |= {run.run_id for run in listed}
    remove_kept(store, passed)
    write_decisions(store, name, decisions)
    with timed(seconds, "report"):
        report = report_of(store, name, steps["report"])
    return {
        "sweep": name,
        "runs": len(runs),
        "computed": computed,
        "rounds": tally.rounds,
        **outcome(store, name),
        "report": report,
        "seconds": {
            **{phase: round(value, 2) for phase, value in seconds.items()},
            "scans": round(tally.scan_seconds, 2),
        },
    }


def dashboard_of(engine: Engine) -> str | None:
    """The address of Dask's pages; None without a cluster, and without bokeh, which draws them."""
    if engine.client is None or find_spec("bokeh") is None:
        return None
    return engine.client.dashboard_link


@contextmanager
def started(
    checked: CheckedSweep, tally: Tally, start: Start | None, seconds: dict[str, float]
) -> Iterator[Engine]:
    """Start what runs the cohorts: workers that were checked, and compiled learners.

    The seconds of each phase are added to `seconds`.
    """
    from cluster.workers import preflight
    from flows.runtime.engine import engine

    shared = checked.mapped_bytes
    with ExitStack() as stack:
        with timed(seconds, "start-up"):
            kinds = needed(checked.runs, checked.value_types, checked.sizes)
            ready = stack.enter_context(
                engine(checked.request.start_of_cluster(shared), kinds, start)
            )
        if ready.client is not None:
            with timed(seconds, "preflight"):
                for line in preflight(ready.client, checked.request.store, shared):
                    say(f"  {line}")
        tally.computing(dashboard_of(ready))
        yield ready


def outcome(store: str, name: str) -> dict[str, Any]:
    """Number of a sweep's runs by status, and the first failed runs with their errors."""
    runs = runs_of(store, name, ("run_id", "dataset", "learner", "params", "status", "error"))
    statuses = dict(Counter(runs.column("status").to_pylist()))
    failed = runs.filter(pc.equal(runs.column("status"), "failed")).slice(0, SHOWN)
    return {"statuses": statuses, "failed": failed.drop_columns(["run_id", "status"]).to_pylist()}


def failed_lines(summary: dict[str, Any]) -> list[str]:
    """Lines on the first failed runs of a sweep with this summary."""
    return [
        printable(f"failed: {row['learner']} {row['params']} on {row['dataset']}: {row['error']}")
        for row in summary["failed"]
    ]


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Add the duration of the block to the seconds of `phase`."""
    begun = time.monotonic()
    try:
        yield
    finally:
        seconds[phase] += time.monotonic() - begun
