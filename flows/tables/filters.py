"""Filters of `koco results`: of learners, of datasets, and conditions `--where`.

A condition is a column, one of = != < <= > >=, and a value.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.errors import WrongInput, nearest, similar

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
MOST_VALUES = 20  # of a column, in a message
MOST_SIMILAR = 3


def found(
    runs: pa.Table,
    learners: Sequence[str] = (),
    datasets: Sequence[str] = (),
    conditions: Sequence[str] = (),
) -> pa.Table:
    """The rows of `runs` with one of the learners, one of the datasets, and all conditions.

    Without learners all have their place, and so with datasets. Raises `WrongInput` as `filtered`
    does, and for a filter that no row meets of those that meet the filters before it: the message
    has the nearest values, and those that there are.
    """
    for name, wanted in (("learner", learners), ("dataset", datasets)):
        there = _values(runs, name)
        for value in wanted:
            if runs.num_rows and value not in there:
                raise WrongInput(f"--{name} {value}: no run matches{_instead(value, name, there)}")
        if wanted:
            runs = runs.filter(pc.is_in(runs.column(name), pa.array(wanted, pa.string())))
    for condition in conditions:
        meeting = filtered(runs, [condition])
        if runs.num_rows and not meeting.num_rows:
            name, operator, value = _parsed(condition)
            there = _values(runs, name)
            ranged = operator in ("<", "<=", ">", ">=")
            raise WrongInput(
                f"--where {condition!r}: no run matches{_instead(value, name, there, ranged)}"
            )
        runs = meeting
    return runs


def _values(runs: pa.Table, name: str) -> list[Any]:
    """The values of a column, sorted; without missing ones."""
    return sorted(pc.unique(runs.column(name).drop_null()).to_pylist())


def _instead(wanted: str, name: str, there: Sequence[Any], ranged: bool = False) -> str:
    """The end of a message on a value that no run has: the nearest ones, and those there are.

    Of many values that are no texts, or if it is `ranged`, it has the first and the last.
    """
    if not there:
        return f"; {name} has no value in these runs"
    texts = [_text(value) for value in there]
    if ranged or (len(texts) > MOST_VALUES and not isinstance(there[0], str)):
        return f"; there are {len(texts):,} values, from {texts[0]} to {texts[-1]}"
    close = _nearest(wanted, there)
    said = f"; did you mean {' or '.join(close)}? There" if close else "; there"
    more = f"; and {len(texts) - MOST_VALUES:,} more" if len(texts) > MOST_VALUES else ""
    return f"{said} are: {'; '.join(texts[:MOST_VALUES])}{more}"


def _nearest(wanted: str, there: Sequence[Any]) -> list[str]:
    """Those of the values that are nearest to a text that is none of them, the nearest first."""
    if isinstance(there[0], int | float):
        with suppress(ValueError):
            number = float(wanted)
            close = sorted(there, key=lambda value: abs(value - number))[:MOST_SIMILAR]
            return [_text(value) for value in close if value != number]
    texts = [_text(value) for value in there if _text(value) != wanted]
    longer = [text for text in texts if text.casefold().startswith(wanted.casefold())]
    return similar(wanted, texts, MOST_SIMILAR) or longer[:MOST_SIMILAR]


def _text(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def filtered(runs: pa.Table, conditions: Sequence[str]) -> pa.Table:
    """The rows of `runs` that meet all conditions.

    A missing value equals only `none`, and is neither less nor greater than anything. Raises
    `WrongInput` for a malformed condition, an unknown column, or a value that its column cannot
    have.
    """
    for condition in conditions:
        name, operator, value = parsed(condition, runs.schema)
        column = runs.column(name)
        if value is None:
            holds = pc.is_null(column) if operator == "=" else pc.is_valid(column)
        else:
            holds = pc.fill_null(OPERATORS[operator](column, value), operator == "!=")
        runs = runs.filter(holds)
    return runs


def parsed(condition: str, columns: pa.Schema) -> tuple[str, str, pa.Scalar | None]:
    """Column, operator and value of a condition on a table with these columns.

    The value is None for `none`, and else of the column's type. Raises `WrongInput` as `filtered`
    does.
    """
    name, operator, text = _parsed(condition)
    if name not in columns.names:
        raise WrongInput(
            f"--where {condition!r}: runs have no column {name!r}{nearest(name, columns.names)}"
        )
    if text == NOTHING and operator in ("=", "!="):
        return name, operator, None
    kind = columns.field(name).type
    try:
        return name, operator, pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        raise WrongInput(
            f"--where {condition!r}: {text!r} cannot be compared with the column {name}, which"
            f" has the type {kind}"
        ) from None


def _parsed(condition: str) -> tuple[str, str, str]:
    """Column, operator and value of a condition. Raises `WrongInput` if it is none."""
    parts = CONDITION.match(condition)
    if not parts:
        others = " ".join(sign for sign in OPERATORS if sign != "=")
        raise WrongInput(
            f"--where {condition!r} is not a condition; write COLUMN=VALUE, or one of {others}"
            " for ="
        )
    name, operator, text = parts.groups()
    return name, operator, text
