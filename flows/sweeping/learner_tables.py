"""The [[learner]] tables of a sweep file, and what its [search] table makes of them."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from pydantic import BaseModel, ConfigDict

from flows.sweeping.search import (
    KINDS,
    Configuration,
    Drawn,
    Search,
    Space,
    drawn,
    is_drawn,
    points,
)
from flows.sweeping.toml_file import TomlFile
from koco_stream.errors import WrongInput
from koco_stream.extras import remedy
from koco_stream.learners import learner_called, learner_named

Grids = dict[str, list[Any]]  # values of each parameter


class LearnerTable(BaseModel):
    """A [[learner]] table: the learner's name, and for its parameters values, grids of values, or
    what they are drawn from.
    """

    model_config = ConfigDict(extra="allow", strict=True)
    name: str


@dataclass(frozen=True)
class LearnerUse:
    """A [[learner]] table that was checked: what runs call the learner, grids and draws."""

    number: int
    name: str
    learner: str
    grids: Grids
    draws: dict[str, Drawn]

    def count(self, search: Search | None) -> int:
        """The number of its configurations on a stream with one learner seed, at most."""
        drawn = search.samples if search and self.draws else 1
        return drawn * math.prod(map(len, self.grids.values()))

    def spaces(self, seeds: Sequence[int]) -> Iterator[Space]:
        """Yield what is searched: a space for each combination of the grids' values."""
        for given in combinations(self.grids):
            yield Space(self.name, self.learner, given, self.draws, seeds)


def learner_use(file: TomlFile, number: int, table: LearnerTable) -> LearnerUse:
    """A checked [[learner]] table; raises `WrongInput` with the line and the remedy."""
    with file.blaming("learner", number, "name"):
        reference = learner_called(table.name, file.path.parent)
        learner = learner_named(reference)
    grids, draws = {}, {}
    for key, value in (table.model_extra or {}).items():
        with file.blaming("learner", number, key):
            parameter = learner.parameter(key)
            if is_drawn(value):
                draws[key] = drawn(parameter, value)
            else:
                grids[key] = list(map(parameter.check, values_of(value)))
    return LearnerUse(number, table.name, reference, grids, draws)


def check_search(
    file: TomlFile, search: Search | None, has_halving: bool, uses: Sequence[LearnerUse]
) -> None:
    """Raise `WrongInput` unless the [search] table and the drawn values go together."""
    searched = [use for use in uses if use.draws]
    if search is None:
        for use in searched:
            at = file.at("learner", use.number, next(iter(use.draws)))
            raise WrongInput(
                f"{at}: how many values are drawn is not said; add a table [search] with method ="
                ' "sobol" and samples = 64'
            )
        return
    if not searched:
        raise WrongInput(
            f"{file.at('search')}: no parameter is drawn; give one a range, such as"
            f" {{ log_uniform = [a, b] }} ({', '.join(KINDS)}), or leave the table out"
        )
    if "batch" in search.model_fields_set and not search.learns:
        raise WrongInput(
            f'{file.at("search", "batch")}: only method = "tpe" draws in batches; leave the key out'
        )
    if search.learns and has_halving:
        raise WrongInput(
            f"{file.at('search', 'method')}: tpe learns from whole runs, and halving ends most of"
            ' them early; leave halving out, or take method = "sobol"'
        )
    if search.learns and find_spec("optuna") is None:
        missing = remedy(ModuleNotFoundError(name="optuna"))
        raise WrongInput(f'{file.at("search", "method")}: {missing}; or take method = "sobol"')


def configurations(
    file: TomlFile, search: Search | None, use: LearnerUse, seeds: Sequence[int]
) -> Iterator[Configuration]:
    """Yield the configurations of a table that are known before anything runs.

    They are all combinations of the grids' values, of the draws, and of the learner seeds.
    """
    known = points(search, use.name, use.draws, search.known) if search else [{}]
    with file.blaming("learner", use.number, "name"):
        for space in use.spaces(seeds):
            for _ in space.examples():
                pass  # a learner may refuse a choice that is not drawn yet
            for point in known:
                yield from space.configurations(point)


BASES = {"powers_of_two": 2.0, "powers_of_ten": 10.0}


def values_of(value: Any) -> list[Any]:
    """Values of a parameter in a sweep file, as a list.

    `value` is a single value, a list, `{ powers_of_two = [first, last] }` or `{ powers_of_ten =
    [first, last] }`. Raises `WrongInput` for an empty grid or other tables.
    """
    if isinstance(value, list) and not value:
        raise WrongInput(
            "the grid is empty, so there is nothing to run; give at least one value, or leave the"
            " key out"
        )
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    if len(value) != 1 or next(iter(value)) not in BASES:
        raise WrongInput(
            "give a list, { powers_of_two = [first, last] } or { powers_of_ten = [first, last] };"
            " a parameter of a learner may be drawn: { uniform = [a, b] }, { log_uniform ="
            " [a, b] }, { integer = [a, b] } or { choice = [...] }"
        )
    ((name, ends),) = value.items()
    if not (
        isinstance(ends, list)
        and len(ends) == 2
        and all(type(end) is int and abs(end) <= 300 for end in ends)
        and ends[0] <= ends[1]
    ):
        raise WrongInput(
            f"{name} needs two whole numbers in order, [first exponent, last exponent], not"
            f" {ends!r}"
        )
    return [BASES[name] ** k for k in range(ends[0], ends[1] + 1)]


def combinations(grids: Grids) -> Iterator[dict[str, Any]]:
    """Yield all combinations of the grids' values."""
    for values in itertools.product(*grids.values()):
        yield dict(zip(grids, values, strict=True))
