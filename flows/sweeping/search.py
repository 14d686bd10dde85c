"""Search: parameters whose values are drawn, and the [search] table, which says how.

A draw depends on the seed, the learner's name in the file, its drawn parameters and the draw's
number: more `samples` keep the first ones. With "tpe", each batch follows from the seed and the
values of earlier ones in the store.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

from flows.scores import means
from flows.tables.text import grouped
from koco_stream.errors import refuse_first
from koco_stream.io.files import content_hash
from koco_stream.learners.grids import (
    CHOICE,
    INTEGER,
    KINDS,
    LOG_UNIFORM,
    UNIFORM,
    combinations,
    ends_of,
)
from koco_stream.runs.run import Run, configuration_of, without_repeats
from koco_stream.types import Array

DIGITS = 6  # significant digits of a drawn real value
MOST_COMBINATIONS = 100  # combinations of choices that are tried before anything runs
FIRST = 8  # trials that are drawn as `sobol` draws them, before there is anything to learn from
Configuration = tuple[str, dict[str, Any], int | None]  # see `configuration_of`


class Search(BaseModel, extra="forbid", strict=True, frozen=True):
    method: Literal["random", "sobol", "tpe"]
    samples: PositiveInt = Field(le=1_000_000)
    seed: NonNegativeInt = 0
    batch: PositiveInt = 8

    @property
    def known(self) -> int:
        return min(self.batch, self.samples) if self.method == "tpe" else self.samples

    def number(self, *key: Any) -> int:
        return int(content_hash([self.seed, *key]), 16)


@dataclass(frozen=True)
class Drawn:
    """What a value is drawn from: a range with both its ends, or `choices`."""

    kind: str
    low: float = 0.0
    high: float = 1.0
    choices: tuple[Any, ...] = ()

    def value(self, u: float) -> Any:
        """The quantile at `u`."""
        if self.kind == CHOICE:
            return self.choices[min(int(u * len(self.choices)), len(self.choices) - 1)]
        if self.kind == INTEGER:
            return min(self.low + int(u * (self.high - self.low + 1)), self.high)
        if self.kind == LOG_UNIFORM:
            return self.rounded(self.low ** (1 - u) * self.high**u)
        return self.rounded(self.low * (1 - u) + self.high * u)

    def rounded(self, value: float) -> float:
        """A real value in few digits, which any library gives: a run's identity depends on it."""
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    def suggested(self, trial: Any, name: str) -> Any:
        if self.kind == CHOICE:
            return trial.suggest_categorical(name, self.choices)
        if self.kind == INTEGER:
            return trial.suggest_int(name, self.low, self.high)
        log = self.kind == LOG_UNIFORM
        return self.rounded(trial.suggest_float(name, self.low, self.high, log=log))


def is_drawn(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in KINDS


def drawn(parameter: Any, value: Mapping[str, Any]) -> Drawn:
    """What `{ uniform = [a, b] }`, for example, says of a parameter."""
    ((kind, given),) = value.items()
    is_whole = getattr(parameter, "kind", None) is int
    refuse_first(
        [
            (
                kind == CHOICE and not (isinstance(given, list) and given),
                f"choice takes a list of at least one value, not {given!r}",
            ),
            (
                kind in (UNIFORM, LOG_UNIFORM) and is_whole,
                f"{parameter.name} is a whole number; give {{ integer = [a, b] }} or {{ choice ="
                " [...] }",
            ),
        ]
    )
    if kind == CHOICE:
        return Drawn(kind, choices=tuple(dict.fromkeys(map(parameter.check, given))))
    number = int if kind == INTEGER else float
    return Drawn(kind, *(parameter.check(number(end)) for end in ends_of(kind, given)))


@dataclass(frozen=True)
class Space:
    """What is searched: a learner, called `name` in the file, with given values and with draws."""

    name: str
    learner: str
    grids: dict[str, list[Any]]
    draws: dict[str, Drawn]
    seeds: Sequence[int]

    def points(self, search: Search | None, count: int) -> list[dict[str, Any]]:
        """The first `count` draws; without drawn values there is one, which is empty."""
        if not search or not self.draws:
            return [{}]
        keys = sorted(self.draws)  # whatever their order in the file
        method = uniform if search.method == "random" else sobol
        rows = method(search.number(self.name, keys), len(keys), count)
        return [
            {name: self.draws[name].value(float(u)) for name, u in zip(keys, row, strict=True)}
            for row in rows
        ]

    def configurations(self, values: dict[str, Any]) -> Iterator[Configuration]:
        learner, params, seed = configuration_of(self.learner, values, self.seeds[0])
        for one in [None] if seed is None else self.seeds:
            yield learner, params, one

    def ask(self, study: Any, given: dict[str, Any], like: Sequence[Run]) -> tuple[Any, list[Run]]:
        """Optuna's next trial, and its runs on the streams of `like`."""
        trial = study.ask()
        point = {name: self.draws[name].suggested(trial, name) for name in sorted(self.draws)}
        configurations = list(self.configurations({**given, **point}))
        return trial, [Run(one.stream, *c, one.measured) for one in like for c in configurations]

    def examples(self) -> Iterator[Configuration]:
        """Yield a configuration for each combination of choices: one may be refused."""
        middles = {n: d.choices or (d.value(0.5),) for n, d in self.draws.items()}
        tried = itertools.islice(combinations(middles), MOST_COMBINATIONS)
        for given, chosen in itertools.product(combinations(self.grids), tried):
            yield next(self.configurations({**given, **chosen}))


def uniform(key: int, d: int, count: int) -> Array:
    """Points (count, d) of independent numbers in [0, 1), by the counter-based generator Philox."""
    return np.random.Generator(np.random.Philox(key=key)).random((count, d))


def sobol(key: int, d: int, count: int) -> Array:
    """The first points (count, d) of a Sobol sequence in [0, 1)ᵈ, scrambled by this key."""
    from scipy.stats import qmc  # slow

    return qmc.Sobol(d, scramble=True, rng=key).random_base2((count - 1).bit_length())[:count]


def batches(
    first: Sequence[Run],
    spaces: Sequence[Space],
    search: Search,
    values: Callable[[Sequence[str]], dict[str, float]],
) -> Iterator[list[Run]]:
    """Yield the runs of each batch, and expect those of the last in the store when it goes on."""
    streams = {run.stream.identity_text: run for run in first}.values()
    searched = [
        (_study(space, given, like[0], search), space, given, like)
        for like in grouped(streams, lambda run: run.stream.group).values()
        for space in spaces
        for given in combinations(space.grids)
    ]
    seen: set[str] = set()
    for earlier in range(0, search.samples, search.batch):
        asked = [
            (study, *space.ask(study, given, like))
            for study, space, given, like in searched
            for _ in range(min(search.batch, search.samples - earlier))
        ]
        batch = [run for *_, runs in asked for run in runs]
        known = without_repeats(batch if earlier else [*first, *batch])
        if new := [run for run in known if run.run_id not in seen]:
            yield new
        seen.update(run.run_id for run in new)
        found = values([run.run_id for run in batch])
        # a trial whose run is not ok is the worst
        scores = means([found.get(run.run_id, math.inf) for run in runs] for *_, runs in asked)
        for (study, trial, _), score in zip(asked, scores.tolist(), strict=True):
            study.tell(trial, score)


def _study(space: Space, given: dict[str, Any], like: Run, search: Search) -> Any:
    import optuna  # slow, and an extra

    seed = search.number(space.name, given, list(like.stream.group)) % 2**32
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    sampler = optuna.samplers.TPESampler(
        seed=seed, multivariate=True, constant_liar=True, n_startup_trials=FIRST
    )
    study = optuna.create_study(sampler=sampler)
    optuna.logging.set_verbosity(before)
    for point in space.points(search, -(-FIRST // search.batch) * search.batch):
        study.enqueue_trial(point)
    return study
