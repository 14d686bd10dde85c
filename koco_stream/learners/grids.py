"""Grids of parameters, and the ends of ranges, as sweep files and `Mixture` are given them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koco_stream.errors import WrongInput

UNIFORM = "uniform"
LOG_UNIFORM = "log_uniform"
INTEGER = "integer"
CHOICE = "choice"
KINDS = (UNIFORM, LOG_UNIFORM, INTEGER, CHOICE)
BASES = {"powers_of_two": 2.0, "powers_of_ten": 10.0}
# what a grid of powers, or a range, is given by
ENDS = {
    **dict.fromkeys(
        BASES, "[first exponent, last exponent], two whole numbers in order from -300 to 300"
    ),
    INTEGER: "the smallest and the largest value, [a, b], whole numbers with a < b",
    UNIFORM: "the smallest and the largest value, [a, b], numbers with a < b",
    LOG_UNIFORM: "the smallest and the largest value, [a, b], numbers with 0 < a < b",
}


def values_of(value: Any) -> list[Any]:
    """The values of a grid: a single one, a list, or `{ powers_of_two = [first, last] }`."""
    if isinstance(value, dict):
        if len(value) != 1 or next(iter(value)) not in BASES:
            raise WrongInput(
                "give a list, { powers_of_two = [first, last] } or { powers_of_ten = [first, last]"
                " }; a parameter of a learner, but not of a mixture's member, may be drawn:"
                " { uniform = [a, b] }, { log_uniform = [a, b] }, { integer = [a, b] } or"
                " { choice = [...] }"
            )
        ((name, given),) = value.items()
        first, last = ends_of(name, given)
        return [BASES[name] ** k for k in range(first, last + 1)]
    if isinstance(value, list | tuple | range) and not value:
        raise WrongInput(
            "the grid is empty, so there is nothing to run; give at least one value, or leave the"
            " key out"
        )
    return list(value) if isinstance(value, list | tuple | range) else [value]


def ends_of(kind: str, ends: Any) -> Any:
    """The ends of a grid of powers or a range, checked; `WrongInput` says what they may be."""
    real = kind in (UNIFORM, LOG_UNIFORM)
    powers = kind in BASES
    largest = 300 if powers else 1.7e308
    if not (
        isinstance(ends, list)
        and len(ends) == 2
        and all(type(end) is int or (real and type(end) is float) for end in ends)
        and all(abs(end) <= largest for end in ends)
        and (ends[0] < ends[1] or (powers and ends[0] == ends[1]))
        and (ends[0] > 0 or kind != LOG_UNIFORM)
    ):
        raise WrongInput(f"{kind} takes {ENDS[kind]}, not {ends!r}")
    return ends


def combinations(grids: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield each choice of a value of every grid."""
    for values in itertools.product(*grids.values()):
        yield dict(zip(grids, values, strict=True))
