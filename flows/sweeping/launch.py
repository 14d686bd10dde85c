"""A sweep: read the file, list the runs, subtract those that are there, plan, run, report."""

import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence, Set
from contextlib import ExitStack
from functools import partial
from typing import Any

import koco_stream
from flows.runtime.engine import Start
from flows.runtime.processes import say
from flows.runtime.recording import artifact, flow_run_here, recorded, stage
from flows.sweeping.checks import CheckedSweep, read_checked
from flows.sweeping.file import Sweep
from flows.sweeping.request import SweepRequest
from flows.sweeping.status import (
    Tally,
    Watcher,
    claim,
    record_progress,
    refuse_running,
    say_progress,
    write_status,
)
from flows.tables.sweep_runs import read_decisions, sweep_note, write_decisions
from flows.views.answer import results_of
from flows.views.views import IN_ORDER, Views
from koco_stream.engine.checkpoint import remove_finished
from koco_stream.engine.warm_up import needed
from koco_stream.errors import Damaged
from koco_stream.io.files import content_hash, json_text
from koco_stream.io.fingerprint import source_hash
from koco_stream.io.paths import StorePath, store_path
from koco_stream.runs.run import Run, without_repeats
from storage.collecting import collect, remove_damaged, remove_left
from storage.generated.generators import prepare_synthetic
from storage.results import finished_runs, table_files
from storage.store import check_makeable, open_store

SHOWN = 20  # failed runs in a summary
AGAIN = 60.0  # least seconds between two pages of a sweep that runs
MANY_RUNS = 20_000  # a report of more runs is written by a process of its own


def launch(
    request: SweepRequest, prefect: bool | None = None, sweep: Sweep | None = None
) -> dict[str, Any]:
    """Run a sweep: all checks first, then its workers and compilers start in parallel."""
    checked = read_checked(request, sweep)
    refuse_running(request.store, checked.sweep.name)
    try:
        missing = checked.next_to_compute()
    except Damaged:
        for file in remove_damaged(request.store):
            say(f"{file} was damaged and has been removed; its runs are computed again")
        missing = checked.next_to_compute()
    # the name of a cluster is always checked; `local` needs no check, which would import Dask
    is_checked = missing or request.cluster != "local"
    cluster = request.start_of_cluster(checked.mapped_bytes) if is_checked else None
    with ExitStack() as stack:
        start = None
        if missing and cluster:
            check_makeable(request.store)
            say("starting the workers")
            start = Start(
                cluster, needed(missing, checked.value_types), loads=request.cluster == "local"
            )
            if start.compilers:
                say("compiling the learners, once for this version; this can take a minute")
            stack.callback(start.close)
        return recorded(
            "sweep_flow",
            checked.sweep.name,
            vars(checked.request),
            partial(run_sweep, checked, start),
            prefect if missing else False,
        )


def run_sweep(checked: CheckedSweep, start: Start | None = None) -> dict[str, Any]:
    """Run a checked sweep; `start` is the cluster, if one is starting."""
    store = open_store(checked.request.store)
    name = checked.sweep.name
    watchers: list[tuple[int, Watcher]] = [(1, partial(write_status, store)), (60, say_progress)]
    if flow_run_here():
        watchers.append((30, record_progress))
    tally = Tally(name, watchers)
    seconds: dict[str, float] = defaultdict(float)

    def step(name: str, function: Callable[..., Any], *given: Any) -> Any:
        started_at = time.monotonic()
        done = stage(name, function, *given)
        seconds["computing" if name == "run" else name] += time.monotonic() - started_at
        return done

    checked = step("prepare", prepare_datasets, checked)
    claim(store, tally.status)
    client, is_started = None, False
    computed = 0
    shown_at = time.monotonic()
    runs: list[Run] = []
    decisions: list[dict[str, object]] = []
    with tally:
        for listed in checked.stages(decisions):
            passed = {run.run_id for run in runs}  # the last rung's have paused for the next
            runs = without_repeats([*runs, *listed])
            missing = checked.not_in_store(listed)
            remember(store, checked, runs)
            tally.more(len(listed), len(listed) - len(missing))
            if missing:
                from flows.sweeping.planning import plan_runs, run_cohorts, started  # imports Dask

                if not is_started:
                    client, is_started = started(checked, tally, start), True
                cohorts = step("plan", plan_runs, checked, missing, client)
                step("run", run_cohorts, checked, cohorts, client, tally)
                computed += len(missing)
            step("collect", collect_results, store, passed)
            if time.monotonic() - shown_at > AGAIN:
                write_report(store, name)
                shown_at = time.monotonic()
    write_decisions(store, name, decisions)
    report = step("report", write_report, store, name)
    if computed:
        artifact("table", f"results-{name}", partial(results_of, store, name), report, str(store))
    return {
        "sweep": name,
        "runs": len(runs),
        "computed": computed,
        "rounds": tally.rounds,
        **outcome(store, name),
        "finding": finding_of(store, name),
        "report": report,
        "seconds": {
            **{phase: round(took, 2) for phase, took in seconds.items()},
            "scans": round(tally.scan_seconds, 2),
        },
    }


def prepare_datasets(checked: CheckedSweep) -> CheckedSweep:
    """Collect what a killed sweep left, and generate datasets; returns the sweep on them."""
    store = store_path(checked.request.store)
    sweep = checked.sweep
    collect_results(store)
    lacking = [use for use in sweep.datasets if not checked.manifests[use.name].shards]
    for use in lacking:
        prepare_synthetic(store, use.table.name, use.given or {})
    return read_checked(checked.request, sweep) if lacking else checked


def remember(store: StorePath, checked: CheckedSweep, runs: Sequence[Run]) -> None:
    sweep = checked.sweep
    named = [one for one in checked.manifests.values() if one.class_names]
    note = {
        "name": sweep.name,
        "file": sweep.text,
        "figures": sweep.figures,
        "run_ids": [run.run_id for run in runs],
        "datasets": {run.stream.dataset_hash: run.stream.dataset for run in runs},
        "classes": {one.dataset_hash: [*one.names_of_classes.items()] for one in named},
    }
    (store / "sweeps" / f"{sweep.name}.json").write_text(json_text(note) + "\n")


def collect_results(store: StorePath, passed: Set[str] = frozenset()) -> None:
    collect(store)
    remove_left(store)
    remove_finished(store, partial(finished_runs, store), passed)


def write_report(store: StorePath, name: str) -> str:
    """Write the HTML report of a sweep, unless it is up to date."""
    note = sweep_note(store, name)
    files = [file.name for file in table_files(store, "runs")]
    written = [store / "reports" / f"{name}.{end}" for end in ("html", "md", "made.json")]
    page, _, mark = written
    decisions = read_decisions(store, name).num_rows
    made = json_text(content_hash([koco_stream.__version__, source_hash(), note, files, decisions]))
    if all(file.is_file() for file in written) and mark.read_text() == made:
        return str(page)
    say("  the report is being written")
    if len(note["run_ids"]) > MANY_RUNS:
        done = subprocess.run(
            [sys.executable, "-m", "flows", "report", name, "--store", str(store)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"the report could not be written: {done.stderr.strip()}")
    else:
        from flows.report import document

        document.write_report(store, name)
    mark.write_text(made)
    return str(page)


def finding_of(store: StorePath, name: str) -> str:
    lines = (store / "reports" / f"{name}.md").read_text().splitlines()
    return next(line for line in lines if line.startswith("**")).strip("*")


def outcome(store: StorePath, name: str) -> dict[str, Any]:
    views = Views(store, [name])
    ends = Counter(views.column(f"SELECT status FROM runs ORDER BY {IN_ORDER}"))
    failed = views.rows(
        "SELECT dataset, learner, params, error FROM runs WHERE status = 'failed'"
        f" ORDER BY {IN_ORDER} LIMIT {SHOWN}"
    )
    return {"statuses": dict(ends), "failed": failed}
