"""What `koco sweep --dry-run` says: runs, passes over the data, seconds, memory and disk."""

from collections.abc import Sequence
from typing import Any

from flows.sweeping.checks import CheckedSweep, read_checked
from flows.sweeping.planning import cost_factors, limits_of
from flows.sweeping.request import SweepRequest
from koco_stream.learners import shown_name
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.dictionary_sample import large_dictionaries, with_growths
from koco_stream.runs.planner import Plan, plan
from koco_stream.runs.run import Kept, Run
from koco_stream.streams.shard_cache import cache_limit

RESULT_BYTES = 700  # bytes of a run's results on disk
RUN_WINDOWS_BYTES = 5000  # of a run's windows on disk, before the first
WINDOW_BYTES = 20  # of a window on disk, without metrics
PREDICTION_BYTES = 10  # of a prediction on disk: its 8 do not compress, and the rounds nearly


def dry_run_of(request: SweepRequest) -> dict[str, Any]:
    """Summary of a sweep's plan: runs, passes over the data, expected seconds, memory and disk.

    Raises `WrongInput` as `read_checked` does.
    """
    checked = read_checked(request)
    done, stages = checked.expected_stages()
    missing = [run for runs in stages for run in runs]
    # of a search that learns from results, only the next batch can be planned
    expected = checked.expected_runs - done if checked.sweep.spaces and missing else 0
    todo = max(expected, len(missing))
    batches = todo / max(len(missing), 1)
    sizes = with_growths(request.store, checked.sizes, missing)
    plans = staged_plans(checked, stages, sizes)
    largest = max((one.memory for one in plans), key=lambda terms: sum(terms.values()), default={})
    search = {"search": f"tpe: about this many runs; the next batch has {len(missing):,}"}
    return {
        "sweep": checked.sweep.name,
        "runs": done + todo,
        "in the store": done,
        "to compute": todo,
        **halving_note(checked, plans),
        **(search if checked.sweep.spaces and missing else {}),
        "orders": sorted({use.order_text for use in checked.sweep.datasets}),
        "passes": round(batches * sum(len(one.cohorts) for one in plans)),
        "computing seconds on one core": round(batches * sum(one.seconds for one in plans), 1),
        "memory of a worker": largest,
        "memory of a worker in bytes": sum(largest.values()),
        "disk of the results in bytes": RESULT_BYTES * todo,
        **{name: round(batches * count) for name, count in kept_bytes(missing, sizes).items()},
        "disk of the shared copies in bytes": sum(
            12 * size.n_values + 16 * size.n_rows for size in sizes.values()
        ),
        "limit of the shared copies in bytes": cache_limit(),
        **({"warnings": warnings} if (warnings := large_dictionaries(missing, sizes)) else {}),
    }


def staged_plans(
    checked: CheckedSweep, stages: Sequence[Sequence[Run]], sizes: dict[str, DataSize]
) -> list[Plan]:
    """Plan the stages one after the other: each may go on from the states of the one before."""
    request = checked.request
    limits = limits_of(request.store, request.cluster, request.workers)
    factors = cost_factors(request.store, sizes)
    plans: list[Plan] = []
    kept: dict[str, Kept] = {}
    for runs in stages:
        plans.append(plan(runs, sizes, limits, (), factors, checked.rungs(runs, kept)))
        kept = {
            run.run_id: Kept(run.stream.max_rows or 0, cohort.cohort_id, run.run_id)
            for cohort in plans[-1].cohorts
            if cohort.later
            for run in cohort.runs
        }
    return plans


def halving_note(checked: CheckedSweep, plans: Sequence[Plan]) -> dict[str, str]:
    """What a plan says of halving, by name; nothing without it."""
    if checked.sweep.halving is None:
        return {}
    counts = ", ".join(f"{len(one.runs):,}" for one in plans)
    note = f"runs to the {len(plans)} rungs: {counts}, as if the first configurations went on"
    again = {
        shown_name(cohort.runs[0].learner)
        for one in plans[:-1]
        for cohort in one.cohorts
        if not cohort.later and cohort.stream in one.costs.rungs.later
    }
    if again:
        names = ", ".join(sorted(again))
        note += (
            f"; {names} may begin again at a rung: a learner of another library cannot be"
            " continued, and large states may have no room on disk"
        )
    return {"halving": note}


def kept_bytes(runs: Sequence[Run], sizes: dict[str, DataSize]) -> dict[str, int]:
    """The bytes on disk of what the runs are asked for beside loss and error, by name."""
    windows = predictions = 0
    for run in runs:
        rounds, asked = sizes[run.stream.dataset_hash].rounds(run.stream), run.measured
        if asked.window:
            window = WINDOW_BYTES + 8 * len(asked.metrics)
            windows += RUN_WINDOWS_BYTES + -(-rounds // asked.window) * window
        predictions += PREDICTION_BYTES * rounds * asked.keep_predictions
    named = {
        "disk of the windows in bytes": windows,
        "disk of the predictions in bytes": predictions,
    }
    return {name: count for name, count in named.items() if count}
