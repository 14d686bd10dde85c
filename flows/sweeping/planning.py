"""What a sweep does with Dask: cohorts are planned and run; and the plan that a dry run shows."""

import shlex
from collections.abc import Sequence
from itertools import starmap
from typing import Any

from cluster.clusters import capacity, patience_of, site_named
from cluster.executors import Executor, soon
from cluster.reporting import reports_to
from cluster.workers import LostCluster, memory_table, preflight, wait_for
from flows.runtime.engine import Start, compile_rest
from flows.runtime.processes import say
from flows.sweeping.checks import CheckedSweep, read_checked
from flows.sweeping.halving import Race, rungs_of
from flows.sweeping.request import SweepRequest
from flows.sweeping.status import Tally
from flows.tables.text import grouped
from koco_stream.engine.checkpoint import paused_runs, unfinished
from koco_stream.engine.timing import known_timings, remember, timed
from koco_stream.engine.warm_up import needed
from koco_stream.errors import WrongInput
from koco_stream.learners import learner_named, shown_name
from koco_stream.learners.files import send
from koco_stream.learners.spec import MOST_RIDGES
from koco_stream.runs.cost_model import UNMEASURED, Costs, Timing, timing_key
from koco_stream.runs.planner import Limits, Plan, longest_of, plan
from koco_stream.runs.run import Cohort, Measured, Pause, Run

TIMING_SECONDS = 10.0  # the most that a sweep waits for its runs to be timed
LONG = 600.0  # seconds of a learner that are worth a remark: nobody changes a file to save less
# bytes of a run on disk: its results, its windows before the first, and a prediction, whose 8 do
# not compress, and the rounds nearly
RESULT_BYTES = 700
RUN_WINDOWS_BYTES = 5000
PREDICTION_BYTES = 10


def started(checked: CheckedSweep, tally: Tally, start: Start | None) -> Any:
    """The Dask client, or None for only this process, when all is compiled."""
    request = checked.request
    kinds = needed(checked.runs, checked.value_types)
    if start is None:
        compile_rest(kinds)
    client = start.ready(kinds) if start else None
    if client:
        site = site_named(request.cluster)
        if site and not wait_for(client, site.workers.min, site.patience_seconds):
            raise LostCluster(
                f"fewer than {site.workers.min} worker(s) connected within {site.patience}, the"
                " site's patience"
            )
        for line in preflight(client, request.store, checked.mapped_bytes):
            say(f"  {line}")
    for sentence in long_rows(checked):
        say(f"  {sentence}")
    tally.computing(client and client.dashboard_link)
    return client


def limits_of(
    cluster: str, workers: int, client: Any = None, time_limit: float | None = None
) -> Limits:
    return Limits(*capacity(cluster, workers, client), time_limit=time_limit)


def longest_learner(planned: Plan, checked: CheckedSweep) -> list[str]:
    """A sentence on a learner that takes more time than all others together without a limit."""
    longest = longest_of(planned.taken)
    if longest is None or checked.sweep.time_limit or planned.taken[longest] < LONG:
        return []
    bound = "max_dictionary in its table, " * (
        "max_dictionary" in learner_named(longest).defaults()
    )
    name, store = checked.request.sweep_file, shlex.quote(checked.request.store)
    made = f"{name}.toml, made by `koco sweep {name} --store {store} --dry-run > {name}.toml`"
    return [
        f"{shown_name(longest)} is expected to take {planned.taken[longest]:,.1f} s, all other"
        f" learners together {sum(planned.taken.values()) - planned.taken[longest]:,.1f} s; it runs"
        f" last; to bound it, give {bound}time_limit at the top of"
        f" {made if checked.sweep.usual else 'the sweep file'}, or max_rows in the table of its"
        " dataset"
    ]


def long_rows(checked: CheckedSweep) -> list[str]:
    """A sentence on each dataset and learner with rows that are long beside each of its alphas."""
    squares = {
        one.dataset_hash: one.statistics.get("mean_square_norm", 0.0)
        for one in checked.manifests.values()
    }
    runs = grouped(checked.runs, lambda run: (run.stream.dataset_hash, run.learner))
    return [
        f"{mine[0].stream.dataset}: its rows have a mean square norm of {squares[of]:.3g}, more"
        f" than {MOST_RIDGES:g} times each alpha of {shown_name(learner)}, which is likely to learn"
        " poorly; scale the features (koco prepare --scale), or take a larger alpha"
        for (of, learner), mine in runs.items()
        if all(run.learner_class.overshoots(run.params, squares[of]) for run in mine)
    ]


def timings_of(
    checked: CheckedSweep, runs: Sequence[Run], limits: Limits, client: Any
) -> dict[str, Timing]:
    """Measured times of our learners; what is not known is measured where runs are computed."""
    alike = {timing_key(run): run for run in runs if run.is_own}
    known = known_timings(alike.values())
    costs = Costs(checked.sizes, worker_bytes=limits.worker_bytes)
    rest = [
        run
        for key, run in alike.items()
        if key not in known and costs.of(run).bytes < limits.worker_bytes
    ]
    for file in {file for run in runs for file in run.files}:
        send(checked.request.store, file.code)
    words = [(checked.request.store, run) for run in rest]
    found = soon(client, timed, words, TIMING_SECONDS) if client else starmap(timed, words)
    for key, timing in found:
        if timing != UNMEASURED:
            remember(key, timing)
            known[key] = timing
    return known


def plan_runs(checked: CheckedSweep, runs: Sequence[Run], client: Any) -> Sequence[Cohort]:
    """Group runs into cohorts. Cohorts with a checkpoint keep their runs."""
    request, store = checked.request, checked.request.store
    limits = limits_of(request.cluster, request.workers, client, checked.sweep.time_limit)
    timings = timings_of(checked, runs, limits, client)
    rungs = rungs_of(checked.runs, runs, checked.sizes, checked.halving, paused_runs(store))
    try:
        planned = plan(runs, checked.sizes, limits, unfinished(store), timings, rungs)
    except MemoryError as error:
        raise WrongInput(f"{error}\n{memory_table(client)}" if client else str(error)) from None
    for sentence in longest_learner(planned, checked):
        say(f"  {sentence}")
    return planned.cohorts


def run_cohorts(
    checked: CheckedSweep, cohorts: Sequence[Cohort], client: Any, tally: Tally
) -> None:
    request = checked.request
    tally.plan(
        {
            one.cohort_id: len(one.runs)
            * (checked.sizes[one.stream.dataset_hash].rounds(one.stream) - one.pause.rounds)
            for one in cohorts
        }
    )
    with reports_to(client, tally.hear):
        Executor(
            client,
            request.store,
            checked.sweep.name,
            tally.receive,
            patience=patience_of(request.cluster),
        ).run(cohorts)


def dry_run_of(request: SweepRequest) -> dict[str, Any]:
    """What a dry run shows. With halving, it is as if the first configurations went on."""
    checked = read_checked(request)
    done = 0
    stages = list[list[Run]]()
    for listed in checked.stages([]):
        stages.append(checked.not_in_store(listed))
        done += len(listed) - len(stages[-1])
        if stages[-1] and checked.sweep.spaces:
            break
    missing = [run for runs in stages for run in runs]
    sizes = checked.sizes
    rounds = {run.run_id: sizes[run.stream.dataset_hash].rounds(run.stream) for run in missing}
    paused = {run.run_id: Pause(rounds[run.run_id]) for run in missing if run.is_own}
    planned = plan(
        missing,
        sizes,
        limits_of(request.cluster, request.workers, None, checked.sweep.time_limit),
        timings=known_timings(missing),
        rungs=rungs_of(checked.runs, missing, sizes, checked.halving, paused),
    )
    who = "all" if isinstance(checked.halving, Race) else "the first"
    counts = ", ".join(f"{len(runs):,}" for runs in stages)
    warnings = [*longest_learner(planned, checked), *long_rows(checked)]
    return {
        "sweep": checked.sweep.name,
        "runs": done + len(missing),
        "in the store": done,
        "to compute": len(missing),
        **(
            {"halving": f"runs to the rungs: {counts}, as if {who} configurations went on"}
            if checked.sweep.halving
            else {}
        ),
        **({"search": "tpe: this is the next batch"} if checked.sweep.spaces else {}),
        "passes": len(planned.cohorts),
        "computing seconds on one core": round(planned.seconds, 1),
        "memory of a worker": planned.memory,
        "memory of a worker in bytes": sum(planned.memory.values()),
        "disk of the results in bytes": sum(
            result_bytes(run.measured, rounds[run.run_id]) for run in missing
        ),
        "disk of the shared copies in bytes": sum(
            12 * size.n_values + 16 * size.n_rows for size in sizes.values()
        ),
        **({"warnings": warnings} if warnings else {}),
    }


def result_bytes(asked: Measured, rounds: int) -> int:
    windows = -(-rounds // asked.window) if asked.window else 0
    of_windows = RUN_WINDOWS_BYTES * bool(windows) + windows * (20 + 8 * len(asked.metrics))
    return RESULT_BYTES + of_windows + PREDICTION_BYTES * rounds * asked.keep_predictions
