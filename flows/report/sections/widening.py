"""Grids and ranges of a sweep file that go on beyond their edge."""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.learners import LEARNERS

MORE = 2  # values that are added at an end of a grid
POWERS = {"powers_of_two": 2.0, "powers_of_ten": 10.0}
LARGEST, SMALLEST = "largest", "smallest"


def widened(learner: str, name: str, value: Any, ends: Collection[str]) -> Any:
    """The values of a parameter in a sweep file, with more beyond the `ends`.

    `value` is a list of numbers or a table such as `{ powers_of_two = [0, 3] }`; `ends` are
    "largest", "smallest" or both. None if the learner allows nothing beyond, or if there is no
    rule for such a value.
    """
    allowed = _check_of(learner, name)
    if isinstance(value, dict) and len(value) == 1:
        ((kind, given),) = value.items()
        wide = _wide_range(kind, given, ends, allowed)
        return None if wide is None or wide == given else {kind: wide}
    if not isinstance(value, list) or len(value) < 2 or not all(map(_is_number, value)):
        return None
    values = sorted(value)
    above = [v for v in _beyond(values) if LARGEST in ends and allowed(v)]
    below = [v for v in _beyond(values[::-1]) if SMALLEST in ends and allowed(v)]
    return [*below[::-1], *values, *above] if above or below else None


def toml_text(value: Any) -> str:
    """A list or a table of one key as TOML."""
    if isinstance(value, dict):
        ((kind, given),) = value.items()
        return f"{{ {kind} = {toml_text(given)} }}"
    return "[" + ", ".join(f"{v:g}" if isinstance(v, float) else json_text(v) for v in value) + "]"


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _check_of(learner: str, name: str) -> Callable[[float], bool]:
    """Says whether a learner allows a value of a parameter; of other libraries, all are."""
    declared = {p.name: p for p in LEARNERS[learner].parameters} if learner in LEARNERS else {}

    def allowed(value: float) -> bool:
        if name not in declared:
            return True
        try:
            declared[name].check(value)
        except WrongInput:
            return False
        return True

    return allowed


def _beyond(values: Sequence[float]) -> list[float]:
    """The next values of a sequence, which grows or falls by its last factor, or else its step."""
    last, before = values[-1], values[-2]
    whole = all(isinstance(value, int) for value in values)
    if min(values) > 0 and last != before:
        found = [last * (last / before) ** k for k in range(1, MORE + 1)]
    else:
        found = [last + k * (last - before) for k in range(1, MORE + 1)]
    rounded = [round(v) for v in found] if whole else [float(f"{v:.6g}") for v in found]
    return [v for v in dict.fromkeys(rounded) if v not in values]


def _wide_range(
    kind: str, given: Any, ends: Collection[str], allowed: Callable[[float], bool]
) -> list[float] | None:
    """The ends of a range or of exponents, moved outwards where that is allowed."""
    if not (isinstance(given, list) and len(given) == 2 and all(map(_is_number, given))):
        return None
    low, high = given
    if kind in POWERS:
        moved = low - MORE, high + MORE
        values = POWERS[kind] ** moved[0], POWERS[kind] ** moved[1]
    elif kind == "log_uniform":
        moved = values = low / 10.0, high * 10.0
    elif kind in ("uniform", "integer"):
        moved = values = low - (high - low), high + (high - low)
    else:
        return None
    if not all(map(math.isfinite, values)):
        return None
    return [
        moved[0] if SMALLEST in ends and allowed(values[0]) else low,
        moved[1] if LARGEST in ends and allowed(values[1]) else high,
    ]
