"""Conditions of `koco results --where`: a column, one of = != < <= > >=, and a value."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.errors import WrongInput, nearest

OPERATORS: dict[str, Callable[..., Any]] = {
    "!=": pc.not_equal,
    "<=": pc.less_equal,
    ">=": pc.greater_equal,
    "=": pc.equal,
    "<": pc.less,
    ">": pc.greater,
}
CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*\Z", re.DOTALL)
SHOWN = 12  # values that a message lists
NOTHING = "none"  # stands for a missing value: order_seed=none


def filtered(runs: pa.Table, conditions: Sequence[str]) -> pa.Table:
    """The rows of `runs` that meet all conditions.

    A missing value equals only `none`, and is neither less nor greater than anything. Raises
    `WrongInput` for a malformed condition, an unknown column, or a value that its column cannot
    have.
    """
    for condition in conditions:
        runs = runs.filter(_holds(runs, condition))
    return runs


def _holds(runs: pa.Table, condition: str) -> pa.ChunkedArray:
    """Mask of the runs that meet a condition."""
    found = CONDITION.match(condition)
    if not found:
        others = " ".join(sign for sign in OPERATORS if sign != "=")
        raise WrongInput(
            f"--where {condition!r} is not a condition; write COLUMN=VALUE, or one of {others}"
            " for ="
        )
    name, operator, text = found.groups()
    if name not in runs.column_names:
        raise WrongInput(
            f"--where {condition!r}: runs have no column {name!r}{nearest(name, runs.column_names)}"
        )
    column = runs.column(name)
    if text == NOTHING and operator in ("=", "!="):
        return pc.is_null(column) if operator == "=" else pc.is_valid(column)
    try:
        value = pa.scalar(text).cast(column.type)
    except pa.ArrowInvalid:
        raise WrongInput(
            f"--where {condition!r}: {text!r} cannot be in the column {name}, which has the type"
            f" {column.type}"
        ) from None
    return pc.fill_null(OPERATORS[operator](column, value), operator == "!=")


def unmet(runs: pa.Table, conditions: Sequence[str]) -> list[str]:
    """Sentences on conditions that no run meets: of words, the nearest one and those there are."""
    if not conditions or not runs.num_rows:
        return []
    found = []
    for condition in conditions:
        name, operator, text = CONDITION.match(condition).groups()  # type: ignore[union-attr]
        if runs.filter(_holds(runs, condition)).num_rows:
            continue
        column = runs.column(name)
        if pa.types.is_string(column.type) and operator == "=":
            there = sorted(value for value in pc.unique(column).to_pylist() if value is not None)
            some = ", ".join(there[:SHOWN]) + (", …" if len(there) > SHOWN else "")
            found.append(f"no run has {name}={text}{nearest(text, there)}; there are: {some}")
        else:
            ends = pc.min_max(column).as_py() if column.null_count < len(column) else None
            between = f"; the values are {ends['min']} to {ends['max']}" if ends else ""
            found.append(f"no run has {condition}{between}")
    return found or ["no run meets all conditions"]
