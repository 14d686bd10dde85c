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
