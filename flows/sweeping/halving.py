"""Successive halving of a sweep's configurations, and the race.

A run to a rung is one on the stream cut there (`max_rows`), which other sweeps share. The best
1/factor of a learner's configurations on a stream go on from their checkpoint, equal ones by their
parameters as text; in a race all that are not shown to be behind the best.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from pydantic import BaseModel, Field, PositiveInt

from flows.scores import means
from flows.tables.text import grouped
from koco_stream.io.files import canonical_json
from koco_stream.io.paths import AnyPath
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Pause, Run, Rungs
from koco_stream.streams.stream import Stream
from storage.results import among, read_runs

Values = Callable[[Sequence[str]], dict[str, float]]  # of run_ids: of those that are ok


class Halving(BaseModel, extra="forbid", strict=True, frozen=True):
    factor: int = Field(default=3, ge=2)
    first: PositiveInt

    def cut(self, stream: Stream, sizes: Mapping[str, DataSize]) -> list[Stream]:
        rounds = sizes[stream.dataset_hash].rounds(stream)
        rungs = itertools.takewhile(
            lambda rung: rung < rounds, (self.first * self.factor**k for k in itertools.count())
        )
        return [*(replace(stream, max_rows=rung) for rung in rungs), stream]

    def n_going(self, ranked: Sequence[float], rounds: float, comparisons: int) -> int:
        """How many of these mean losses, the best first, go on, after so many `rounds` of losses of
        at most 1, with so many `comparisons` in the sweep.
        """
        return math.ceil(len(ranked) / self.factor)


# λ of the wagers that are mixed: for differences from a half down to 1e-5 of the range
WAGERS = 2.0 ** -np.arange(1.0, 17.0)


class Race(Halving, extra="forbid", strict=True, frozen=True):
    """A configuration leaves when a confidence sequence for its mean expected loss above the
    leader's lies above 0.

    For losses in [0, 1], a difference d of mean μ given the past, and ψ(λ) = −log(1 − λ) − λ, the
    product of exp(λ(d − μ) − ψ(λ)d²) is a supermartingale (Fan, Grama and Liu, 2015; Howard et al.,
    2021). It is mixed over λ, and Σd² is at most the sum of both losses, which runs have. Seeds of
    an order are averaged; the orders are one sequence, round by round.
    """

    factor: int = Field(default=2, ge=2)
    confidence: float = Field(default=0.95, gt=0.0, lt=1.0)

    def n_going(self, ranked: Sequence[float], rounds: float, comparisons: int) -> int:
        finite = [loss for loss in ranked if math.isfinite(loss)]
        if not finite or comparisons == 0:
            return len(ranked)
        most = math.log(comparisons / (1.0 - self.confidence))
        return sum(evidence(rounds * loss, rounds * finite[0]) < most for loss in finite)


def evidence(losses: float, least: float) -> float:
    """The log of the mixed product at μ = 0 for two sums of losses; it grows with the first."""
    squares = np.log1p(-WAGERS) + WAGERS
    found = np.logaddexp.reduce(WAGERS * (losses - least) + squares * (losses + least))
    return float(found) - math.log(WAGERS.size)


def competition(run: Run) -> tuple[object, ...]:
    """A key of the runs of which some go on."""
    return run.stream.group, run.learner


def configurations_of(runs: Iterable[Run]) -> set[str]:
    return {canonical_json(run.params) for run in runs}


def stages(
    runs: Sequence[Run],
    sizes: Mapping[str, DataSize],
    halving: Halving,
    losses: Values,
    decisions: list[dict[str, object]],
    scores: Values | None = None,
    largest: Callable[[Run], float] = lambda run: 1.0,
) -> Iterator[list[Run]]:
    """Yield the runs of each stage, and append what is decided after it to `decisions`.

    Runs are compared by `scores`, or else by mean losses, which in a round are at most `largest`.
    """
    cut = {stream: halving.cut(stream, sizes) for stream in {run.stream for run in runs}}
    counts = [len(configurations_of(group)) for group in grouped(runs, competition).values()]
    comparisons = sum(n * (n - 1) for n in counts)
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
        run_ids = [short.run_id for _, short in pairs]
        found = losses(run_ids)
        compared = scores(run_ids) if scores else found
        alive = []
        for group in grouped(pairs, lambda pair: competition(pair[0])).values():
            orders = len({run.stream for run, _ in group})
            rounds = halving.first * halving.factor**stage * orders
            scaled = rounds / max(largest(run) for run, _ in group)
            n_going = partial(halving.n_going, rounds=scaled, comparisons=comparisons)
            alive += _continuing(group, stage, n_going, found, compared, decisions)


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
    n_going: Callable[[Sequence[float]], int],
    losses: Mapping[str, float],
    scores: Mapping[str, float],
    decisions: list[dict[str, object]],
) -> list[Run]:
    """Each of `pairs` is a whole run and the run to the rung."""
    configurations = grouped(pairs, lambda pair: canonical_json(pair[0].params))

    def mean(values: Mapping[str, float]) -> dict[str, float]:
        found = means(
            [values.get(cut.run_id, math.inf) for _, cut in cuts]
            for cuts in configurations.values()
        )
        return dict(zip(configurations, found.tolist(), strict=True))

    mean_losses = mean(losses)
    mean_scores = mean(scores)
    ranked = sorted(mean_scores, key=lambda params: (mean_scores[params], params))
    going = ranked[: n_going([mean_scores[params] for params in ranked])]
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
