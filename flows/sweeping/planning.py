"""A sweep's plan in numbers: worker limits, measured costs, the dry run, and predictions."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from distributed import Client

from cluster.clusters import LOCAL, capacity, site_named
from cluster.machine import worker_bytes
from cluster.simulation import Machines, simulate
from cluster.workers import LostCluster, wait_for
from flows.sweeping.checks import CheckedSweep
from flows.sweeping.halving import Stage
from flows.sweeping.request import SweepRequest
from koco_stream.engine.result_file import machine
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath
from koco_stream.learners import StreamSize, is_loaded, learner_named, run_name, shown_name
from koco_stream.runs.cost_model import DataSize, Timing, factors_of
from koco_stream.runs.dictionary_sample import large_dictionaries, with_growths
from koco_stream.runs.planner import Limits, plan
from koco_stream.runs.run import Run
from koco_stream.streams.shard_cache import cache_limit
from storage.results import read_runs

UNCERTAIN = (0.75, 1.3)  # multiples of a dictionary's expected points, for a range of times
CERTAIN = 1.2  # times whose range is smaller are given without it
SAMPLE = 200  # largest number of timings per learner
RESULT_BYTES = 700  # bytes of a run's results on disk
RUN_WINDOWS_BYTES = 5000  # of a run's windows on disk, before the first
WINDOW_BYTES = 20  # of a window on disk, without metrics
PREDICTION_BYTES = 10  # of a prediction on disk: its 8 do not compress, and the rounds nearly
PREDICTED = (
    "workers",
    "cohorts",
    "runs",
    "wall",
    "efficiency",
    "scheduler",
    "deaths",
    "files_a_second",
    "bytes_a_second",
)
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


def limits_of(cluster: str, workers: int, client: Client | None = None) -> Limits:
    """Number of workers and memory per worker for the plan of a sweep.

    They come from the site, from the cluster that `client` is connected to, or, for the local
    cluster, from `workers` (0 means only this process) and this machine's memory. Waits for the
    first workers of a site or of a scheduler's address.
    """
    if site := site_named(cluster):
        if client is not None and not wait_for(client, site.workers.min, site.patience_seconds):
            raise LostCluster(
                f"fewer than {site.workers.min} worker(s) connected within {site.patience}, the"
                " site's patience"
            )
        return Limits(site.workers.max, site.worker_bytes)
    if cluster != LOCAL and client is not None:
        return Limits(*capacity(client))
    return Limits(max(workers, 1), worker_bytes(max(workers, 1)))


def cost_factors(
    store: AnyPath, sizes: dict[str, DataSize], measured: Sequence[Timing] = ()
) -> dict[str, float]:
    """Factors, by learner, that correct the cost model's times.

    They come from finished runs on these datasets on this machine, or else from `measured` timings.
    """
    return {**factors_of(measured), **factors_of(finished_timings(store, sizes))}


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


def dry_run_of(request: SweepRequest) -> dict[str, Any]:
    """Summary of a sweep's plan: runs, passes over the data, expected seconds, memory and disk.

    Raises `WrongInput` as `CheckedSweep` does.
    """
    checked = CheckedSweep(request)
    done, stages = checked.expected_stages()
    missing = [run for runs, _ in stages for run in runs]
    # of a search that learns from results, only the next batch can be planned
    expected = checked.expected_runs - done if checked.sweep.spaces and missing else 0
    todo = max(expected, len(missing))
    batches = todo / max(len(missing), 1)
    sizes = with_growths(request.store, checked.sizes, missing)
    limits, factors = (
        limits_of(request.cluster, request.workers),
        cost_factors(request.store, sizes),
    )

    def seconds_of(sizes: dict[str, DataSize]) -> float:
        """The computing seconds of all stages and batches."""
        return batches * sum(
            plan(runs, sizes, limits, factors=factors, rungs=rungs).seconds
            for runs, rungs in stages
        )

    plans = [plan(runs, sizes, limits, factors=factors, rungs=rungs) for runs, rungs in stages]
    few, many = (seconds_of(scaled(sizes, factor)) for factor in UNCERTAIN)
    uncertain = {"computing seconds, from": round(few, 1), "computing seconds, to": round(many, 1)}
    largest = max((one.memory for one in plans), key=lambda terms: sum(terms.values()), default={})
    search = {"search": f"tpe: about this many runs; the next batch has {len(missing):,}"}
    return {
        "sweep": checked.sweep.name,
        "runs": done + todo,
        "in the store": done,
        "to compute": todo,
        **halving_note(checked, stages),
        **(search if checked.sweep.spaces and missing else {}),
        "orders": sorted({use.order_text for use in checked.sweep.datasets}),
        "passes": round(batches * sum(len(one.cohorts) for one in plans)),
        "computing seconds on one core": round(seconds_of(sizes), 1),
        **(uncertain if many > CERTAIN * few else {}),
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


def halving_note(checked: CheckedSweep, stages: Sequence[Stage]) -> dict[str, str]:
    """What a plan says of halving, by name; nothing without it."""
    if checked.sweep.halving is None:
        return {}
    counts = ", ".join(f"{len(runs):,}" for runs, _ in stages)
    note = f"runs to the {len(stages)} rungs: {counts}, as if the first configurations went on"
    again = sorted(
        {shown_name(run.learner) for run in checked.runs if run.learner_class.numbers == "foreign"}
    )
    if again:
        note += f"; {', '.join(again)} of another library: these begin again at each rung"
    return {"halving": note}


def scaled(sizes: dict[str, DataSize], factor: float) -> dict[str, DataSize]:
    """The datasets' sizes where dictionaries grow to this multiple of the expected points."""
    return {identity: size.with_points(factor) for identity, size in sizes.items()}


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


def predictions(
    request: SweepRequest,
    workers: Sequence[int],
    worker_bytes: int,
    cores: int | None = None,
    deaths_an_hour: float = 0.0,
) -> Iterator[dict[str, Any]]:
    """Predict the course of a sweep on clusters of several sizes.

    All runs of the sweep count, whether or not the store has them. Their costs are corrected by
    finished runs of this machine, if the store has any.

    Parameters
    ----------
    request : SweepRequest
        The sweep and its store.
    workers : sequence of int
        Numbers of workers; each gives a row.
    worker_bytes : int
        Memory of a worker in bytes.
    cores : int or None
        Cores that all workers share; None if each has its own.
    deaths_an_hour : float
        Rate at which a worker dies.

    Yields
    ------
    dict
        What `cluster.simulation.simulate` returns, by the names `PREDICTED`.

    Raises
    ------
    WrongInput
        As `CheckedSweep`, and if runs of the sweep follow from results of others by a search.
    """
    checked = CheckedSweep(request)
    if checked.sweep.spaces:
        raise WrongInput(
            f'{checked.sweep.path}: method = "tpe" chooses runs by results, so they cannot be'
            ' predicted; take method = "sobol" for that'
        )
    sizes = with_growths(request.store, checked.sizes, checked.runs)
    factors = cost_factors(request.store, sizes)
    for count in workers:
        cohorts = plan(checked.runs, sizes, Limits(count, worker_bytes), factors=factors).cohorts
        yield simulate(
            cohorts,
            [sizes[cohort.stream.dataset_hash].rounds(cohort.stream) for cohort in cohorts],
            Machines(count, cores, deaths_an_hour),
        )
