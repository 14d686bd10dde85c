"""What sweeps are made of, how they are run in this process, and the tables they leave."""

from cluster.executors import run_serially
from flows.sweep.checks import CheckedSweep
from flows.sweep.request import SweepRequest
from koco_stream.engine.warm_up import needed, warm_up
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.schemas import RUNS
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from storage.results import read_curves, read_runs

MEASURED = [column.name for column in RUNS if column.measured]


def checked(spec, store):
    """The sweep of this file on this store, checked."""
    return CheckedSweep(SweepRequest(str(spec), str(store)))


def sizes_of(manifests):
    """The sizes of prepared datasets, by dataset hash."""
    return {manifest.dataset_hash: DataSize.of(manifest) for manifest in manifests}


def stream_of(store, name, *more, **given):
    """A stream of the dataset of this name in the store."""
    return Stream(name, load_manifest(store, name).dataset_hash, *more, **given)


def compiled(runs, manifests):
    """Compile what these runs on these datasets need."""
    manifests = list(manifests)
    kinds = {manifest.dataset_hash: manifest.value_type for manifest in manifests}
    warm_up(needed(runs, kinds, sizes_of(manifests)))


def run_here(store, cohorts, sweep="try", block_rows=4096):
    """Run cohorts one after the other in this process; their receipts."""
    receipts = []
    run_serially(str(store), sweep, cohorts, receipts.append, block_rows)
    return receipts


def tables(store):
    """Runs and curves, without what may differ from one execution to the next."""
    runs = read_runs(store).drop_columns(MEASURED).sort_by("run_id").to_pylist()
    order = [("run_id", "ascending"), ("t", "ascending")]
    return runs, read_curves(store).sort_by(order).to_pylist()
