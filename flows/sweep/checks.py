"""What a sweep is to compute, and what can be wrong with it: found before anything starts."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from flows.sweep.file import DatasetUse, Sweep, read_sweep
from flows.sweep.halving import losses_of, stages
from flows.sweep.request import SweepRequest
from koco_stream.errors import WrongInput
from koco_stream.io.paths import store_path
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Cohort, Run, without_repeats
from koco_stream.streams.manifest import Manifest, load_manifest
from koco_stream.streams.orders import SHUFFLED
from koco_stream.streams.shard_cache import check_room, copy_bytes
from koco_stream.streams.stream import Stream, sharding_of
from storage.generated.generators import GENERATORS, existing_synthetic
from storage.results import finished_runs
from storage.store import check_store


class CheckedSweep:
    """A sweep that can be run: what was asked for, its datasets and its runs.

    The steps of a sweep share it. It is a plain object on purpose: Prefect looks into every list
    and dataclass that a task is given.

    Parameters
    ----------
    request
        What is to be swept, and where.
    sweep
        The sweep, if its file was read before.

    Attributes
    ----------
    manifests
        Of the datasets, by name; None for a generated one that is not made yet.
    runs
        All runs of the sweep.
    missing
        Those of them that are to be computed.
    cohorts
        The missing runs, grouped, once they are planned.

    Raises
    ------
    WrongInput
        If the sweep cannot be run: its file, a dataset or the store is not as it must be.
    """

    def __init__(self, request: SweepRequest, sweep: Sweep | None = None) -> None:
        self.request = request
        self.sweep = sweep or read_sweep(request.sweep_file)
        check_store(request.store)
        self.manifests = self._known_manifests()
        for use in self.sweep.datasets:
            manifest = self.manifests[use.name]
            if manifest and use.orders[0][0] == SHUFFLED:
                check_room(manifest)
        self.runs = all_runs(self.sweep, self.manifests)
        self.missing = self.not_in_store(self.runs)
        self.cohorts: Sequence[Cohort] = ()

    def _known_manifests(self) -> dict[str, Manifest | None]:
        store = store_path(self.request.store)
        manifests: dict[str, Manifest | None] = {}
        for use in self.sweep.datasets:
            try:
                if use.given is not None:
                    manifests[use.name] = existing_synthetic(store, use.generator, use.given)
                else:
                    manifests[use.name] = load_manifest(store, use.name)
            except WrongInput as error:
                raise WrongInput(
                    f"{self.sweep.path}: {error}. Generated datasets: {', '.join(GENERATORS)}"
                ) from None
        return manifests

    def not_in_store(self, runs: Sequence[Run]) -> list[Run]:
        """Those of these runs that the store does not have; failed ones too, if they are to be run
        again.
        """
        finished = finished_runs(self.request.store, self.request.retry_failed)
        return [run for run in runs if run.run_id not in finished]

    @property
    def prepared(self) -> list[Manifest]:
        """The manifests of the datasets that are prepared."""
        return [manifest for manifest in self.manifests.values() if manifest]

    @property
    def value_types(self) -> dict[str, str]:
        """The types of the datasets' values, by dataset hash; a guess until one is prepared."""
        return {
            use.identity(manifest): manifest.value_type if manifest else "float64"
            for use, manifest in zip(self.sweep.datasets, self.manifests.values(), strict=True)
        }

    @property
    def sizes(self) -> dict[str, DataSize]:
        """The sizes of all datasets, by dataset hash or what stands for it in the runs."""
        return {
            use.identity(manifest): use.size(manifest)
            for use, manifest in zip(self.sweep.datasets, self.manifests.values(), strict=True)
        }

    @property
    def mapped_bytes(self) -> int:
        """Bytes of the largest dataset's copies, which the workers of a machine share."""
        copies = (
            sum(copy_bytes(manifest, shard) for shard in manifest.shards)
            for manifest in self.prepared
        )
        return max(copies, default=0)

    def stages(self, decisions: list[dict[str, object]]) -> Iterator[list[Run]]:
        """The runs of each stage of the sweep's halving, and the decisions: see
        `flows.sweep.halving.stages`.
        """
        n_rows = {identity: size.n_rows for identity, size in self.sizes.items()}
        return stages(
            self.runs,
            n_rows,
            self.sweep.halving,
            lambda run_ids: losses_of(self.request.store, run_ids),
            decisions,
        )


def all_runs(sweep: Sweep, manifests: dict[str, Manifest | None]) -> list[Run]:
    """All runs of a sweep, each once.

    Parameters
    ----------
    sweep
        The sweep.
    manifests
        Of its datasets, by name. One that is not prepared yet (None) gets a placeholder for a hash:
        enough to count its runs, not to run them.

    Raises
    ------
    WrongInput
        If a dataset's labels do not fit.
    """
    runs: list[Run] = []
    for use in sweep.datasets:
        manifest = manifests[use.name]
        classes = manifest.classes if manifest else [-1.0, 1.0]
        task = manifest.task if manifest else "classification"
        for whole in streams(use, manifest):
            stream = whole.reduced(use.size(manifest).n_rows, classes)
            mine = [Run(stream, *configuration) for configuration in sweep.configurations]
            for run in {run.params["loss"]: run for run in mine}.values():
                try:
                    replace(run, stream=whole).check_labels(classes, task)
                except WrongInput as error:
                    raise WrongInput(f"{sweep.path}: {error}") from None
            runs += mine
    return without_repeats(runs)


def streams(use: DatasetUse, manifest: Manifest | None) -> Iterator[Stream]:
    """The streams of a dataset: each order with each positive class."""
    identity = use.identity(manifest)
    sharding = sharding_of(manifest) if manifest and use.window_rows else None
    limits = (use.max_rows, use.window_rows, sharding)
    for (order, seed), positive in itertools.product(use.orders, use.positive_classes):
        yield Stream(use.name, identity, order, seed, positive, *limits)
