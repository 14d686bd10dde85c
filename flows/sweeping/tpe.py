"""The search that learns from results, `method = "tpe"`: Optuna is asked for a batch at a time.

A trial is a point of a space on all streams that differ in their order seed only. Its value is the
mean over its runs. A batch follows from the search's seed and the values of earlier batches, which
are read from the store. So a sweep that was killed goes on to the same trials, and more `samples`
keep the first ones (of whole batches; of the last, those that were there).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from warnings import catch_warnings, simplefilter

from flows.scores.means import means
from flows.sweeping.search import CHOICE, INTEGER, LOG_UNIFORM, Drawn, Point, Search, Space, points
from flows.tables.tables import grouped
from koco_stream.runs.run import Run, without_repeats

FIRST = 8  # trials that are drawn as `sobol` draws them, before there is anything to learn from
Values = Callable[[Sequence[str]], dict[str, float]]  # run_ids → values of runs that are ok


@dataclass
class Trials:
    """The trials of a space on streams that differ in their order seed only.

    `like` has a run on each of these streams. `told` are the points with their values, infinite
    if a run is not ok, and `asked` are those of the present batch with their runs.
    """

    space: Space
    like: Sequence[Run]
    told: list[tuple[Point, float]] = field(default_factory=list)
    asked: list[tuple[Point, list[Run]]] = field(default_factory=list)

    def ask(self, search: Search, count: int) -> list[Run]:
        """The runs of the next batch, of `count` trials."""
        begun, name, draws = len(self.told), self.space.name, self.space.draws
        if begun < FIRST:
            found = points(search, name, draws, begun + count)[begun:]
        else:
            of = [name, self.space.given, list(self.like[0].stream.group), begun]
            found = suggested(self.space, self.told, search.number(*of) % 2**32, count)
        self.asked = [
            (
                point,
                [
                    Run(run.stream, *configuration, run.measured)
                    for run in self.like
                    for configuration in self.space.configurations(point)
                ],
            )
            for point in found
        ]
        return [run for _, runs in self.asked for run in runs]

    def tell(self, values: dict[str, float]) -> None:
        """Take over the values of the batch's runs. A trial whose run is not ok is the worst."""
        found = means([values.get(run.run_id, math.inf) for run in runs] for _, runs in self.asked)
        points = (point for point, _ in self.asked)
        self.told += zip(points, found.tolist(), strict=True)


def stages(
    first: Sequence[Run], spaces: Sequence[Space], search: Search, values: Values
) -> Iterator[list[Run]]:
    """Yield the runs of each batch, and expect those of the last in the store when it goes on.

    `first` are the runs that are known at the beginning: the first batch, and those of learners of
    which nothing is drawn.
    """
    searched = _searched(first, spaces)
    seen: set[str] = set()
    for begun in range(0, search.samples, search.batch):
        count = min(search.batch, search.samples - begun)
        batch = [run for trials in searched for run in trials.ask(search, count)]
        runs = without_repeats(batch if begun else [*first, *batch])
        if new := [run for run in runs if run.run_id not in seen]:
            yield new
        seen.update(run.run_id for run in new)
        found = values([run.run_id for run in batch])
        for trials in searched:
            trials.tell(found)


def expected_runs(first: Sequence[Run], spaces: Sequence[Space], search: Search) -> int:
    """The approximate number of runs of all batches, if later ones are like the first."""
    batch = {
        run.run_id
        for trials in _searched(first, spaces)
        for run in trials.ask(search, search.known)
    }
    return len(first) + round(len(batch) * (search.samples / search.known - 1))


def _searched(first: Sequence[Run], spaces: Sequence[Space]) -> list[Trials]:
    """The trials of each space on each group of streams, before the first is asked for."""
    on_streams = {run.stream.identity_text: run for run in first}.values()
    groups = grouped(on_streams, lambda run: run.stream.group)
    return [Trials(space, like) for like in groups.values() for space in spaces]


def suggested(
    space: Space, trials: Sequence[tuple[Point, float]], seed: int, count: int
) -> list[Point]:
    """Points that Optuna suggests after these trials, a function of the arguments alone.

    A drawn value that has no effect, given the others, is not part of a trial.
    """
    import optuna  # slow, and an extra

    distributions = {name: _distribution(space.draws[name]) for name in sorted(space.draws)}

    def finished(point: Point, value: float) -> Any:
        relevant = sorted(space.relevant(point))
        return optuna.trial.create_trial(
            params={
                name: draw.choices.index(point[name]) if draw.kind == CHOICE else point[name]
                for name in relevant
                for draw in [space.draws[name]]
            },
            distributions={name: distributions[name] for name in relevant},
            value=value,
        )

    with _quiet():
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, constant_liar=True, n_startup_trials=1
        )
        study = optuna.create_study(sampler=sampler)
        study.add_trials([finished(*trial) for trial in trials])
        asked = [study.ask(distributions).params for _ in range(count)]
    return [
        {name: _decoded(space.draws[name], coded) for name, coded in params.items()}
        for params in asked
    ]


@contextmanager
def _quiet() -> Iterator[None]:
    """Context manager in which Optuna neither logs nor warns that grouping is experimental."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with catch_warnings():
            simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _distribution(draw: Drawn) -> Any:
    """What Optuna calls a drawn parameter's range. Choices are numbered: they may be anything."""
    from optuna import distributions

    if draw.kind == CHOICE:
        return distributions.CategoricalDistribution(range(len(draw.choices)))
    if draw.kind == INTEGER:
        return distributions.IntDistribution(int(draw.low), int(draw.high))
    return distributions.FloatDistribution(draw.low, draw.high, log=draw.kind == LOG_UNIFORM)


def _decoded(draw: Drawn, coded: Any) -> Any:
    """The value, rounded if it is real, that Optuna has as `coded`."""
    if draw.kind == CHOICE:
        return draw.choices[coded]
    return int(coded) if draw.kind == INTEGER else draw.rounded(float(coded))
