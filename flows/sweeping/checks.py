"""Checks of a sweep before anything starts, and the list of its runs."""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from flows.sweeping import halving
from flows.sweeping.file import Sweep, sweep_called
from flows.sweeping.request import SweepRequest
from flows.sweeping.search import batches
from flows.tables.text import grouped
from koco_stream.errors import WrongInput
from koco_stream.io.paths import store_path
from koco_stream.learners import learner_named, shown_name
from koco_stream.metrics import METRICS, possible
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Measured, Run, without_repeats
from koco_stream.streams.manifest import Manifest, load_manifest
from koco_stream.streams.shard_cache import check_room, copy_bytes
from koco_stream.streams.stream import SHUFFLED, Stream
from storage.generated.generators import GENERATORS, existing_synthetic
from storage.results import finished_runs, seconds_of_stopped
from storage.store import check_store


class CheckedSweep:
    def __init__(self, request: SweepRequest, sweep: Sweep, manifests: dict[str, Manifest]) -> None:
        self.request, self.sweep, self.manifests = request, sweep, manifests
        self.sizes = {one.dataset_hash: DataSize.of(one) for one in manifests.values()}
        self.value_types = {one.dataset_hash: one.value_type for one in manifests.values()}
        self.mapped_bytes = max(
            sum(copy_bytes(one, shard) for shard in one.shards) for one in manifests.values()
        )
        self.runs = all_runs(sweep, manifests)
        # without halving, no stream has a rung
        self.halving = sweep.halving or halving.Halving(first=2**63)

    def not_in_store(self, runs: Sequence[Run]) -> list[Run]:
        """The runs to compute, with failed ones to be repeated, and stopped ones that have more
        time.
        """
        finished = finished_runs(self.request.store, self.request.retry_failed)
        taken = seconds_of_stopped(self.request.store)
        return [
            run
            for run in runs
            if run.run_id not in finished
            and taken.get(run.run_id, -1.0) < (self.sweep.time_limit or run.time_limit)
        ]

    def next_to_compute(self) -> list[Run]:
        return next(filter(None, map(self.not_in_store, self.stages([]))), [])

    def stages(self, decisions: list[dict[str, object]]) -> Iterator[list[Run]]:
        """Yield the runs of each rung of halving, or batch of a search that learns; else
        all runs.
        """
        search = self.sweep.search
        spaces = self.sweep.spaces
        losses = partial(halving.measured, self.request.store, errors=False)
        errors = partial(halving.measured, self.request.store, errors=True)
        if search and spaces:
            return batches(self.runs, spaces, search, errors)
        scores = errors if isinstance(self.halving, halving.Race) else None
        given = (self.runs, self.sizes, self.halving, losses, decisions, scores, self.largest_loss)
        return halving.stages(*given)

    def largest_loss(self, run: Run) -> float:
        """The most that a race compares in a round: an error, or a real target's loss at the
        clip.
        """
        manifest = self.manifests[run.stream.dataset]
        if manifest.task == "classification" or run.stream.positive_class is not None:
            return 1.0
        clip = run.params.get("clip", math.inf) if run.learner_class.numbers == "own" else math.inf
        ends = ("label_min", "label_max")  # not known before a stream is generated
        reach = clip + max(abs(manifest.statistics.get(end, 0.0)) for end in ends)
        return reach * reach * (0.5 if run.loss == "half_squared" else 1.0)

    def refuse_unbounded_race(self) -> None:
        for group in grouped(self.runs, halving.competition).values():
            run = max(group, key=self.largest_loss)
            if len(halving.configurations_of(group)) > 1 and math.isinf(self.largest_loss(run)):
                raise WrongInput(
                    f"{self.sweep.path}: a race compares losses that have a bound, and those of"
                    f" {shown_name(run.learner)} on {run.stream.dataset} have none: its targets are"
                    " real, and it has no finite clip; give it one, or take halving"
                )


def read_checked(request: SweepRequest, sweep: Sweep | None = None) -> CheckedSweep:
    sweep = sweep or sweep_called(request.sweep_file, request.store)
    check_store(request.store)
    store = store_path(request.store)
    manifests = {}
    for use in sweep.datasets:
        try:
            manifests[use.name] = (
                load_manifest(store, use.name)
                if use.given is None
                else existing_synthetic(store, use.table.name, use.given) or use.expected()
            )
        except WrongInput as error:
            raise WrongInput(
                f"{use.at}: {error}. Generated datasets: {', '.join(GENERATORS)}"
            ) from None
    checked = CheckedSweep(replace(request, store=str(store)), sweep, manifests)
    if isinstance(checked.halving, halving.Race):
        checked.refuse_unbounded_race()
    return checked


def all_runs(sweep: Sweep, manifests: dict[str, Manifest]) -> list[Run]:
    runs: list[Run] = []
    # a configuration of each loss, also of those that a search may come to
    examples = (one for space in sweep.spaces for one in space.examples())
    of_loss = {
        (learner, learner_named(learner).measured_loss(params)): (learner, params, seed)
        for learner, params, seed in (*sweep.configurations, *examples)
    }.values()
    for use in sweep.datasets:
        manifest = manifests[use.name]
        try:
            streams = list(use.streams(manifest))
            for stream, one in itertools.product(streams, of_loss):
                Run(stream, *one).check_labels(
                    manifest.classes, manifest.task, manifest.class_names
                )
            if streams[0].order == SHUFFLED:
                check_room(manifest)
        except WrongInput as error:
            raise WrongInput(f"{use.at}: {error}") from None
        for stream in streams:
            reduced = stream.reduced(manifest.n_rows, manifest.classes)
            measured = measured_on(sweep, manifest, reduced)
            runs += [Run(reduced, *one, measured) for one in sweep.configurations]
    for name in set(sweep.measured.metrics).difference(*(one.measured.metrics for one in runs)):
        kind = "two classes" if METRICS[name].of_two else METRICS[name].task
        raise WrongInput(
            f"{sweep.path}: the metric {name} is for {kind}, and the sweep has no such dataset;"
            " leave it out"
        )
    return without_repeats(runs)


def measured_on(sweep: Sweep, manifest: Manifest, stream: Stream) -> Measured:
    # a metric is for numbers, for classes, or for two classes
    n_classes = len(manifest.classes) if stream.multiclass else 2
    metrics = possible(sweep.measured.metrics, manifest.task, n_classes)
    return replace(sweep.measured, metrics=metrics)


def run_of(row: Mapping[str, Any], sweep: Sweep, manifest: Manifest) -> Run:
    """The run of a row of `runs`, which the sweep has, on a dataset of this manifest."""
    stream = Stream(**{one.name: row[one.name] for one in fields(Stream)})
    learners = {shown_name(one): one for one, *_ in sweep.configurations}
    return Run(
        stream,
        learners.get(row["learner"], row["learner"]),
        json.loads(row["params"]),
        row["learner_seed"],
        measured_on(sweep, manifest, stream),
    )
