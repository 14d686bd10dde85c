"""What a sweep's plan needs: worker limits, and measured costs."""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cluster.clusters import capacity, site_named
from cluster.machine import worker_bytes
from cluster.site import LOCAL
from cluster.workers import LostCluster, wait_for
from flows.sweeping.checks import CheckedSweep, read_checked
from flows.sweeping.request import SweepRequest
from koco_stream.engine.result_file import machine
from koco_stream.errors import WrongInput
from koco_stream.io.fingerprint import free_bytes
from koco_stream.io.paths import AnyPath
from koco_stream.learners import StreamSize, is_loaded, learner_named, run_name, shown_name
from koco_stream.runs.cost_model import DataSize, Timing, factors_of
from koco_stream.runs.dictionary_sample import large_dictionaries, with_growths
from koco_stream.runs.planner import Limits, Plan, plan
from koco_stream.runs.run import Kept, Run
from koco_stream.streams.shard_cache import cache_limit
from storage.results import read_runs

if TYPE_CHECKING:
    from distributed import Client

ROOM_SHARE = 4  # states for longer runs take at most a quarter of the disk's free space
SAMPLE = 200  # largest number of timings per learner
TIMED = (
    "run_id",
    "status",
    "learner",
    "learner_code",
    "params",
    "dataset_hash",
    "multiclass",
    "rounds",
    "seconds",
    "cohort_size",
    "dictionary_size",
    "host",
)


def limits_of(store: AnyPath, cluster: str, workers: int, client: "Client | None" = None) -> Limits:
    """Number of workers, memory per worker and room on disk for the plan of a sweep.

    Kept states have a share of what is free on the store's disk; in a bucket, no limit is known.
    Workers and memory come from the site, from the cluster that `client` is connected to, or, for
    the local cluster, from `workers` (0 means only this process) and this machine's memory. Waits
    for the first workers of a site or of a scheduler's address.
    """
    free = None if "://" in str(store) else free_bytes(Path(str(store)))
    room = None if free is None else free // ROOM_SHARE
    if site := site_named(cluster):
        if client is not None and not wait_for(client, site.workers.min, site.patience_seconds):
            raise LostCluster(
                f"fewer than {site.workers.min} worker(s) connected within {site.patience}, the"
                " site's patience"
            )
        return Limits(site.workers.max, site.worker_bytes, kept_bytes=room)
    if cluster != LOCAL and client is not None:
        return Limits(*capacity(client), kept_bytes=room)
    return Limits(max(workers, 1), worker_bytes(max(workers, 1)), kept_bytes=room)


def cost_factors(
    store: AnyPath, sizes: dict[str, DataSize], measured: Sequence[Timing] = ()
) -> dict[str, float]:
    """Factors, by learner, that correct the cost model's times.

    They come from finished runs on these datasets on this machine, or else from `measured` timings.
    """
    try:
        finished = factors_of(finished_timings(store, sizes))
    except WrongInput:
        raise
    except Exception as error:  # an estimate ends no sweep
        why = f"{type(error).__name__}: {error}"
        warnings.warn(f"times of finished runs are not used for the plan ({why})", stacklevel=2)
        finished = {}
    return {**factors_of(measured), **finished}


def finished_timings(store: AnyPath, sizes: dict[str, DataSize]) -> Iterator[Timing]:
    """Yield timings of finished runs in the store, at most `SAMPLE` per learner.

    Only runs on this machine, on the datasets in `sizes`, and of learners that this process knows
    count.
    """
    runs = read_runs(store, TIMED)
    here = pc.and_(pc.equal(runs.column("host"), machine()), pc.equal(runs.column("status"), "ok"))
    runs = runs.filter(
        pc.and_(here, pc.is_in(runs.column("dataset_hash"), pa.array(sorted(sizes), pa.string())))
    )
    for name in pc.unique(runs.column("learner")).to_pylist():
        mine = runs.filter(pc.equal(runs.column("learner"), name))
        for row in mine.take(
            list(range(0, mine.num_rows, -(-mine.num_rows // SAMPLE)))
        ).to_pylist():
            size, params = sizes[row["dataset_hash"]], json.loads(row["params"])
            learner = run_name(name, row["learner_code"])
            if not is_loaded(learner):
                continue
            d = size.n_features + learner_named(learner).adds_intercept(params)
            stream = StreamSize(row["rounds"], d, size.n_values / max(size.n_rows, 1))
            sampling = learner_named(learner).sampling(params)
            if sampling is not None and sampling.floor < 1.0 and row["dictionary_size"]:
                expected = size.growths.get((sampling, row["rounds"]))
                if expected is None:
                    continue  # with other parameters; how its dictionary grew is not known
                found = expected.scaled(row["dictionary_size"] / max(expected.last, 1.0))
                stream = stream._replace(growth=found)
            # a run over all classes has a state of each
            seconds = row["seconds"] / (size.n_classes if row["multiclass"] else 1)
            yield Timing(learner, params, stream, seconds, row["cohort_size"])


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
