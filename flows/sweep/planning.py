"""What the plan of a sweep is made from: sizes of datasets, limits of workers, and costs measured
before.
"""

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from distributed import Client

from cluster.clusters import LOCAL, capacity, site_named
from cluster.machine import worker_bytes
from cluster.workers import LostCluster, wait_for
from koco_stream.engine.result_file import machine
from koco_stream.io.paths import AnyPath
from koco_stream.learners import StreamSize
from koco_stream.runs.cost_model import DataSize, Timing, factors_of
from koco_stream.runs.planner import Limits
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.shard_cache import copy_bytes
from storage.results import read_columns

SAMPLE = 200  # runs of a learner whose timings are looked at
TIMED = ("learner", "params", "dataset_hash", "rounds", "seconds", "cohort_size", "host", "status")


def limits_of(cluster: str, workers: int, client: Client | None = None) -> Limits:
    """The limits of a plan: for so many local workers (none is this process only), for what a site
    requests, or for those of the cluster that `client` is of. Waits for the first workers of a site
    and of an address.
    """
    if site := site_named(cluster):
        if client is not None and not wait_for(client, site.workers.min, site.patience_seconds):
            raise LostCluster(
                f"fewer than {site.workers.min} worker(s) came within {site.patience}, the site's"
                " patience"
            )
        return Limits(site.workers.max, site.worker_bytes)
    if cluster != LOCAL and client is not None:
        return Limits(*capacity(client))
    return Limits(max(workers, 1), worker_bytes(max(workers, 1)))


def sizes_of(manifests: Sequence[Manifest]) -> dict[str, DataSize]:
    """The sizes of prepared datasets, by dataset hash."""
    return {manifest.dataset_hash: DataSize.of(manifest) for manifest in manifests}


def mapped_bytes(manifests: Sequence[Manifest]) -> int:
    """Bytes of the largest dataset's copies, which the workers of a machine share."""
    return max(
        (sum(copy_bytes(manifest, shard) for shard in manifest.shards) for manifest in manifests),
        default=0,
    )


def cost_factors(
    store: AnyPath, sizes: dict[str, DataSize], measured: Sequence[Timing] = ()
) -> dict[str, float]:
    """What the learners' costs are to be multiplied with, by learner: from runs that this machine
    has finished on these datasets; for learners without any, from what was `measured` just now.
    """
    return {**factors_of(measured), **factors_of(finished_timings(store, sizes))}


def finished_timings(store: AnyPath, sizes: dict[str, DataSize]) -> Iterator[Timing]:
    """Timings of runs in the store: of each learner a sample, all from this machine and on these
    datasets.
    """
    runs = read_columns(store, TIMED)
    here = pc.and_(pc.equal(runs.column("host"), machine()), pc.equal(runs.column("status"), "ok"))
    runs = runs.filter(
        pc.and_(here, pc.is_in(runs.column("dataset_hash"), pa.array(sorted(sizes), pa.string())))
    )
    for learner in pc.unique(runs.column("learner")).to_pylist():
        mine = runs.filter(pc.equal(runs.column("learner"), learner))
        for row in mine.take(
            list(range(0, mine.num_rows, -(-mine.num_rows // SAMPLE)))
        ).to_pylist():
            size, params = sizes[row["dataset_hash"]], json.loads(row["params"])
            d = size.n_features + int(bool(params["fit_intercept"]))
            stream = StreamSize(row["rounds"], d, size.n_values / max(size.n_rows, 1))
            yield Timing(learner, params, stream, row["seconds"], row["cohort_size"])
