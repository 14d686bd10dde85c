"""Grids of a sweep file: the values that a key may have, and their combinations."""

import itertools
from collections.abc import Iterator
from typing import Any

from koco_stream.errors import WrongInput

BASES = {"powers_of_two": 2.0, "powers_of_ten": 10.0}
Grids = dict[str, list[Any]]  # values of each parameter


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
