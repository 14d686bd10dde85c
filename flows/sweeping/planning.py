"""What a sweep's plan needs: worker limits, and measured costs."""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cluster.clusters import LOCAL, capacity, site_named
from cluster.machine import worker_bytes
from cluster.workers import LostCluster, wait_for
from koco_stream.engine.result_file import machine
from koco_stream.errors import WrongInput
from koco_stream.io.fingerprint import free_bytes
from koco_stream.io.paths import AnyPath
from koco_stream.learners import StreamSize, is_loaded, learner_named, run_name
from koco_stream.runs.cost_model import DataSize, Timing, factors_of
from koco_stream.runs.planner import Limits
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
