"""Successive halving of a sweep's configurations.

A run to a rung is one on the stream cut there (`max_rows`), which sweeps without halving share. The
best 1/factor of a learner's configurations on a stream go on from their checkpoint, equal ones by
their parameters as text.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, Field, PositiveInt

from flows.scores import means
from flows.tables.text import grouped
from koco_stream.io.files import canonical_json
from koco_stream.io.paths import AnyPath
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Pause, Run, Rungs
from koco_stream.streams.stream import Stream
from storage.results import among, read_runs


class Halving(BaseModel, extra="forbid", strict=True, frozen=True):
    factor: int = Field(default=3, ge=2)
    first: PositiveInt

    def cut(self, stream: Stream, sizes: Mapping[str, DataSize]) -> list[Stream]:
        rounds = sizes[stream.dataset_hash].rounds(stream)
        rungs = itertools.takewhile(
            lambda rung: rung < rounds, (self.first * self.factor**k for k in itertools.count())
        )
        return [*(replace(stream, max_rows=rung) for rung in rungs), stream]


def stages(
    runs: Sequence[Run],
    sizes: Mapping[str, DataSize],
    halving: Halving,
    losses: Callable[[Sequence[str]], dict[str, float]],
    decisions: list[dict[str, object]],
) -> Iterator[list[Run]]:
    """Yield the runs of each stage, and append what is decided after it to `decisions`."""
    cut = {stream: halving.cut(stream, sizes) for stream in {run.stream for run in runs}}
    alive = list(runs)
    for stage in itertools.count():
        streams = [cut[run.stream][stage] for run in alive]
        pairs = [
            (run, run if stream == run.stream else replace(run, stream=stream))
            for run, stream in zip(alive, streams, strict=True)
        ]
        yield [short for _, short in pairs]
        pairs = [(run, short) for run, short in pairs if short is not run]
        if not pairs:
            return
        found = losses([short.run_id for _, short in pairs])
        alive = []
        for group in grouped(pairs, lambda pair: (pair[0].stream.group, pair[0].learner)).values():
            alive += _continuing(group, stage, halving.factor, found, decisions)


def rungs_of(
    runs: Sequence[Run],
    now: Sequence[Run],
    sizes: Mapping[str, DataSize],
    halving: Halving,
    paused: Mapping[str, Pause],
) -> Rungs:
    """Which of the runs `now` go on from one that has `paused`, and how far each may go."""
    cuts = [halving.cut(stream, sizes) for stream in {run.stream for run in runs}]
    before = {stream: shorter for cut in cuts for shorter, stream in itertools.pairwise(cut)}
    later = {
        stream: tuple(sizes[one.dataset_hash].rounds(one) for one in cut[k:])
        for cut in cuts
        for k, stream in enumerate(cut[:-1], 1)
    }
    shorter = {
        run.run_id: replace(run, stream=before[run.stream]).run_id
        for run in now
        if run.stream in before
    }
    return Rungs(later, {run_id: paused[old] for run_id, old in shorter.items() if old in paused})


def _continuing(
    pairs: Sequence[tuple[Run, Run]],
    stage: int,
    factor: int,
    losses: dict[str, float],
    decisions: list[dict[str, object]],
) -> list[Run]:
    """Each of `pairs` is a whole run and the run to the rung."""
    configurations = grouped(pairs, lambda pair: canonical_json(pair[0].params))
    found = means(
        [losses.get(cut.run_id, math.inf) for _, cut in cuts] for cuts in configurations.values()
    )
    mean_losses = dict(zip(configurations, found.tolist(), strict=True))
    ranked = sorted(mean_losses, key=lambda params: (mean_losses[params], params))
    going = ranked[: math.ceil(len(ranked) / factor)]
    stream = pairs[0][0].stream
    decisions += [
        {
            "rung": stage + 1,
            "rounds": pairs[0][1].stream.max_rows,
            "dataset": stream.dataset,
            "positive_class": stream.positive_class,
            "multiclass": stream.multiclass,
            "order": stream.order,
            "learner": pairs[0][0].learner,
            "params": params,
            "n_runs": len(configurations[params]),
            "mean_loss": mean_losses[params] if math.isfinite(mean_losses[params]) else None,
            "rank": number,
            "goes_on": number <= len(going),
        }
        for number, params in enumerate(ranked, 1)
    ]
    return [run for params in going for run, _ in configurations[params]]


def measured(store: AnyPath, run_ids: Sequence[str], errors: bool) -> dict[str, float]:
    """Mean losses of stored runs that are ok; with `errors`, error rates where there are some."""
    runs = read_runs(store, ("run_id", "status", "mean_loss", "error_rate"))
    asked = runs.filter(among(runs, set(run_ids))).to_pylist()
    names = ("error_rate", "mean_loss") if errors else ("mean_loss",)
    return {
        row["run_id"]: next(row[name] for name in names if row[name] is not None)
        for row in asked
        if row["status"] == "ok"
    }
