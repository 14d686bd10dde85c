"""Search: parameters whose values are drawn, and the [search] table, which says how.

A draw is a function of the search's seed, the learner's name in the file, the names of its drawn
parameters, their ranges and the draw's number. So more `samples` keep the first ones, another
learner changes nothing, and all streams have the same. `flows.sweeping.tpe` has the method that
learns from results.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from koco_stream.errors import WrongInput
from koco_stream.io.files import content_hash
from koco_stream.learners import learner_named
from koco_stream.runs.run import configuration_of
from koco_stream.types import Array

UNIFORM, LOG_UNIFORM, INTEGER, CHOICE = "uniform", "log_uniform", "integer", "choice"
KINDS = (UNIFORM, LOG_UNIFORM, INTEGER, CHOICE)
DIGITS = 6  # significant digits of a drawn real value
MOST_COMBINATIONS = 100  # combinations of choices that are tried before anything runs
Point = dict[str, Any]  # values of the drawn parameters
Configuration = tuple[str, dict[str, Any], int | None]  # see `configuration_of`


class Search(BaseModel):
    """The [search] table: how values are drawn, and how many for each learner and stream.

    `batch` is how many configurations `tpe` asks for at a time.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    method: Literal["random", "sobol", "tpe"]
    samples: PositiveInt = Field(le=1_000_000)
    seed: NonNegativeInt = 0
    batch: PositiveInt = 8

    @property
    def learns(self) -> bool:
        """Whether it learns from results, so that not all runs are known at the beginning."""
        return self.method == "tpe"

    @property
    def known(self) -> int:
        """The number of samples that are known at the beginning."""
        return min(self.batch, self.samples) if self.learns else self.samples

    def number(self, *key: Any) -> int:
        """A number of 128 bits for a key, from the seed."""
        return int(content_hash([self.seed, *key]), 16)


@dataclass(frozen=True)
class Drawn:
    """What a parameter's value is drawn from: a range with both its ends, or `choices`.

    `kind` is one of `KINDS`.
    """

    kind: str
    low: float = 0.0
    high: float = 1.0
    choices: tuple[Any, ...] = ()

    def value(self, u: float) -> Any:
        """The value at `u`, a number from 0 to 1: the quantile, rounded if it is real."""
        if self.kind == CHOICE:
            return self.choices[min(int(u * len(self.choices)), len(self.choices) - 1)]
        if self.kind == INTEGER:
            low, high = int(self.low), int(self.high)
            return min(low + int(u * (high - low + 1)), high)
        if self.kind == LOG_UNIFORM:
            return self.rounded(self.low ** (1 - u) * self.high**u)
        return self.rounded(self.low * (1 - u) + self.high * u)

    def rounded(self, value: float) -> float:
        """A real value in `DIGITS` significant digits, within the range.

        So a run's identity is readable, and does not depend on the last bit of a library.
        """
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)


def is_drawn(value: Any) -> bool:
    """Whether a value in a sweep file says from what it is drawn."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in KINDS


def drawn(parameter: Any, value: Mapping[str, Any]) -> Drawn:
    """What `value`, such as `{ uniform = [a, b] }`, says of a parameter, or of an argument.

    Raises `WrongInput` if the parameter has no such values.
    """
    ((kind, given),) = value.items()
    if kind == CHOICE:
        if not isinstance(given, list) or not given:
            raise WrongInput(f"choice takes a list of at least one value, not {given!r}")
        choices = tuple(map(parameter.check, given))
        for number, one in enumerate(choices):
            if one in choices[:number]:
                raise WrongInput(f"choice has {one!r} twice; give each value once")
        return Drawn(kind, choices=choices)
    _check_kind(parameter, kind)
    wanted = int if kind == INTEGER else (int, float)
    if not (
        isinstance(given, list)
        and len(given) == 2
        and all(isinstance(end, wanted) and not isinstance(end, bool) for end in given)
        and math.isfinite(given[0])
        and math.isfinite(given[1])
        and given[0] < given[1]
    ):
        numbers = "whole numbers" if kind == INTEGER else "numbers"
        raise WrongInput(
            f"{kind} takes the smallest and the largest value, [a, b], {numbers} with a < b, not"
            f" {given!r}"
        )
    if kind == LOG_UNIFORM and given[0] <= 0:
        raise WrongInput(f"log_uniform takes values greater than 0, not {given!r}")
    low, high = (parameter.check(end if kind == INTEGER else float(end)) for end in given)
    return Drawn(kind, low, high)


def _check_kind(parameter: Any, kind: str) -> None:
    """Raise `WrongInput` unless a parameter's values are numbers of this kind.

    An argument of a foreign learner takes any.
    """
    wanted = getattr(parameter, "kind", None)
    if wanted in (bool, str):
        raise WrongInput(f"{parameter.name} is not a number; give {{ choice = [...] }}")
    if wanted is int and kind != INTEGER:
        raise WrongInput(
            f"{parameter.name} is a whole number; give {{ integer = [a, b] }} or {{ choice = [...]"
            " }"
        )
    if wanted is float and kind == INTEGER:
        raise WrongInput(
            f"{parameter.name} is a real number; give {{ uniform = [a, b] }}, {{ log_uniform = [a,"
            " b] } or { choice = [...] }"
        )


@dataclass(frozen=True)
class Space:
    """What is searched: a learner, the values that are given, and what others are drawn from.

    `name` is the learner's name in the file. `seeds` are the learner seeds of each configuration.
    """

    name: str
    learner: str
    given: Point
    draws: dict[str, Drawn]
    seeds: Sequence[int]

    def configurations(self, point: Point) -> Iterator[Configuration]:
        """Yield the configurations with the drawn values `point`: one a learner seed.

        Raises `WrongInput` as `configuration_of` does.
        """
        given = {**self.given, **point}
        learner, params, seed = configuration_of(self.learner, given, self.seeds[0])
        for one in [None] if seed is None else self.seeds:
            yield learner, params, one

    def relevant(self, point: Point) -> Point:
        """The drawn values that have an effect, given the others."""
        learner = learner_named(self.learner)
        irrelevant = learner.irrelevant(learner.complete({**self.given, **point}))
        return {name: value for name, value in point.items() if name not in irrelevant}

    def examples(self) -> Iterator[Configuration]:
        """Yield a configuration for each combination of the choices, in the middle of the ranges.

        They say before anything runs whether a learner, or a stream's labels, refuse one.
        """
        values = [d.choices if d.kind == CHOICE else (d.value(0.5),) for d in self.draws.values()]
        for chosen in itertools.islice(itertools.product(*values), MOST_COMBINATIONS):
            yield next(self.configurations(dict(zip(self.draws, chosen, strict=True))))


def points(search: Search, name: str, draws: Mapping[str, Drawn], count: int) -> list[Point]:
    """The first `count` draws of a learner's table, whose learner is called `name`.

    A table without drawn values has one, which is empty.
    """
    if not draws:
        return [{}]
    keys = sorted(draws)  # whatever their order in the file
    method = uniform if search.method == "random" else sobol
    rows = method(search.number(name, keys), len(keys), count)
    return [
        {name: draws[name].value(float(u)) for name, u in zip(keys, row, strict=True)}
        for row in rows
    ]


def uniform(key: int, d: int, count: int) -> Array:
    """The first points (count, d) of a sequence of independent random points of [0, 1)ᵈ.

    The bits are Philox's, a counter-based generator, with this key.
    """
    words = np.random.Philox(key=key).random_raw(count * d)
    return ((words >> np.uint64(11)) * 2.0**-53).reshape(count, d)


def sobol(key: int, d: int, count: int) -> Array:
    """The first points (count, d) of a Sobol sequence in [0, 1)ᵈ, scrambled by this key."""
    from scipy.stats import qmc  # slow

    sequence = qmc.Sobol(d, scramble=True, rng=key)
    return sequence.random_base2((count - 1).bit_length())[:count]
