"""Checks of a sweep before anything starts, and the list of its runs."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from flows.runtime.console import say
from flows.sweeping import tpe
from flows.sweeping.file import DatasetUse, Sweep, read_sweep
from flows.sweeping.halving import measured, rungs_of, stages
from flows.sweeping.request import SweepRequest
from koco_stream.errors import Damaged, WrongInput
from koco_stream.io.paths import store_path
from koco_stream.learners import learner_named
from koco_stream.metrics import METRICS, possible
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Kept, Run, Rungs, without_repeats
from koco_stream.streams.manifest import Manifest, load_manifest
from koco_stream.streams.orders import SHUFFLED
from koco_stream.streams.shard_cache import check_room, copy_bytes
from koco_stream.streams.stream import Stream, sharding_of
from storage.collecting import remove_damaged
from storage.generated.generators import GENERATORS, existing_synthetic
from storage.results import finished_runs
from storage.store import check_store


class CheckedSweep:
    """A sweep that can be run: the request, its file, its datasets and its runs.

    It does not change. It is not a dataclass on purpose, because Prefect traverses every list and
    dataclass that is passed to a task.

    Parameters
    ----------
    request : SweepRequest
        Where it is run.
    sweep : Sweep
        What its file says.
    manifests : dict of str to Manifest or None
        Its datasets by name; None if one is not generated yet.
    """

    def __init__(
        self, request: SweepRequest, sweep: Sweep, manifests: dict[str, Manifest | None]
    ) -> None:
        self.request, self.sweep, self.manifests = request, sweep, manifests
        self.runs = all_runs(sweep, manifests)

    def not_in_store(self, runs: Sequence[Run]) -> list[Run]:
        """Those of `runs` that the store lacks, with failed ones if they are to be repeated."""
        finished = finished_runs(self.request.store, self.request.retry_failed)
        return [run for run in runs if run.run_id not in finished]

    def next_to_compute(self) -> list[Run]:
        """The runs of the first stage that has any which the store lacks."""
        return next(filter(None, map(self.not_in_store, self.stages([]))), [])

    @property
    def value_types(self) -> dict[str, str]:
        """Value type of each dataset, by dataset hash; float64 is assumed until it is prepared."""
        return {
            use.identity(manifest): manifest.value_type if manifest else "float64"
            for use, manifest in zip(self.sweep.datasets, self.manifests.values(), strict=True)
        }

    @property
    def sizes(self) -> dict[str, DataSize]:
        """Size of each dataset, by dataset hash or its placeholder."""
        return {
            use.identity(manifest): use.size(manifest)
            for use, manifest in zip(self.sweep.datasets, self.manifests.values(), strict=True)
        }

    @property
    def n_rows(self) -> dict[str, int]:
        """Number of rows of each dataset, by dataset hash or its placeholder."""
        return {identity: size.n_rows for identity, size in self.sizes.items()}

    def rungs(self, runs: Sequence[Run], kept: Mapping[str, Kept]) -> Rungs:
        """Which of `runs` go on from a state in `kept`; see `halving.rungs_of`."""
        return rungs_of(self.runs, runs, self.n_rows, self.sweep.halving, kept)

    @property
    def mapped_bytes(self) -> int:
        """Size in bytes of the largest dataset's copies, which the workers of a machine share."""
        return max(
            sum(copy_bytes(manifest, shard) for shard in manifest.shards) if manifest else 0
            for manifest in self.manifests.values()
        )

    def stages(self, decisions: list[dict[str, object]]) -> Iterator[list[Run]]:
        """Yield the runs of each stage: of halving, or of a search that learns from results.

        See `flows.sweeping.halving.stages`, which appends to `decisions`, and
        `flows.sweeping.tpe.stages`. Without either, all runs are in one stage.
        """
        search, spaces, store = self.sweep.search, self.sweep.spaces, self.request.store
        if search is not None and spaces:
            return tpe.stages(self.runs, spaces, search, lambda ids: measured(store, ids, True))
        return stages(
            self.runs,
            self.n_rows,
            self.sweep.halving,
            lambda ids: measured(store, ids, False),
            decisions,
        )

    @property
    def expected_runs(self) -> int:
        """The number of runs of the sweep; about, if a search learns from results."""
        search, spaces = self.sweep.search, self.sweep.spaces
        if search is None or not spaces:
            return len(self.runs)
        return tpe.expected_runs(self.runs, spaces, search)

    def expected_stages(self) -> tuple[int, list[list[Run]]]:
        """The number of runs that the store has, and the stages of those to compute.

        With halving, they are the stages if the first configurations go on. Of a search that learns
        from results, only the next batch is known.
        """
        halving, spaces = self.sweep.halving, self.sweep.spaces
        # before anything is computed, all configurations are equally good
        equal = stages(self.runs, self.n_rows, halving, lambda ids: dict.fromkeys(ids, 0.0), [])
        done, missing = 0, list[list[Run]]()
        for stage in self.stages([]) if spaces else equal:
            lacks = self.not_in_store(stage)
            done += len(stage) - len(lacks)
            if lacks or not spaces:
                missing.append(lacks)
            if lacks and spaces:
                break
        return done, missing


def read_checked(request: SweepRequest, sweep: Sweep | None = None) -> CheckedSweep:
    """Read a sweep's file, unless it was read before, and check it against the store.

    Raises `WrongInput` if the file, a dataset or the store cannot be used.
    """
    sweep = sweep or read_sweep(request.sweep_file)
    check_store(request.store)
    store = store_path(request.store)
    request = replace(request, store=str(store))
    manifests: dict[str, Manifest | None] = {}
    for use in sweep.datasets:
        try:
            manifests[use.name] = manifest = (
                load_manifest(store, use.name)
                if use.given is None
                else existing_synthetic(store, use.generator, use.given)
            )
        except WrongInput as error:
            raise WrongInput(
                f"{sweep.path}: {error}. Generated datasets: {', '.join(GENERATORS)}"
            ) from None
        if manifest and use.orders[0][0] == SHUFFLED:
            check_room(manifest)
    return CheckedSweep(request, sweep, manifests)


def checked_sweep(request: SweepRequest, sweep: Sweep | None = None) -> CheckedSweep:
    """A sweep that will be run. A damaged result file is removed: its runs are computed again."""
    checked = read_checked(request, sweep)
    try:
        checked.not_in_store([])
    except Damaged:
        removed = remove_damaged(request.store)
        if not removed:
            raise
        for file in removed:
            say(f"{file} was damaged and has been removed; its runs are computed again")
    return checked


def all_runs(sweep: Sweep, manifests: dict[str, Manifest | None]) -> list[Run]:
    """List all runs of a sweep, without duplicates.

    A dataset that is not prepared yet gets a placeholder for its hash, which is enough to count
    runs. Raises `WrongInput` if a dataset's labels do not fit a loss or a positive class.
    """
    runs: list[Run] = []
    computed: set[str] = set()  # metrics
    # a configuration of each loss that a search which learns from results may come to
    examples = [one for space in sweep.spaces for one in space.examples()]
    of_later_losses = {learner_named(one[0]).measured_loss(one[1]): one for one in examples}
    for use in sweep.datasets:
        manifest = manifests[use.name]
        size = use.size(manifest)
        classes = manifest.classes if manifest else [-1.0, 1.0]
        task = manifest.task if manifest else "classification"
        for whole in streams(use, manifest):
            stream = whole.reduced(size.n_rows, classes)
            # a metric is for classes or for numbers
            of_two = stream.positive_class is not None or not stream.multiclass
            names = possible(sweep.measured.metrics, task, 2 if of_two else len(classes))
            measured = replace(sweep.measured, metrics=names)
            computed.update(names)
            mine = [Run(stream, *one, measured) for one in sweep.configurations]
            later = [Run(stream, *one) for one in of_later_losses.values()]
            try:
                for run in {run.loss: run for run in [*mine, *later]}.values():
                    replace(run, stream=whole).check_labels(classes, task)
            except WrongInput as error:
                raise WrongInput(f"{sweep.path}: {error}") from None
            runs += mine
    for name in sweep.measured.metrics:
        if name not in computed and None not in manifests.values():
            metric = METRICS[name]
            kind = "two classes" if metric.of_two else metric.task
            raise WrongInput(
                f"{sweep.path}: the metric {name} is for {kind}, and the sweep has no such"
                " dataset; leave it out"
            )
    return without_repeats(runs)


def streams(use: DatasetUse, manifest: Manifest | None) -> Iterator[Stream]:
    """Yield the streams of a dataset: each order with each positive class."""
    identity = use.identity(manifest)
    sharding = sharding_of(manifest) if manifest and use.window_rows else None
    limits = (use.max_rows, use.window_rows, sharding)
    for (order, seed), positive in itertools.product(use.orders, use.positive_classes):
        yield Stream(use.name, identity, order, seed, positive, *limits, use.multiclass)
