"""Which runs the page asks for, as a condition in SQL.

Names of columns are only those of the table; every value is a parameter.
"""

import math
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from flows.tables.filters import parsed
from koco_stream.errors import WrongInput, nearest
from koco_stream.runs.schemas import RUNS, schema

COLUMNS = {column.name: column for column in RUNS}
SCHEMA = schema(RUNS)
LISTS = ("sweep", "dataset", "learner", "status")  # columns whose values are picked from a list
MEMBERS = "run_id IN (SELECT run_id FROM members WHERE sweep IN (SELECT unnest(?)))"
Sql = tuple[str, list[Any]]  # a condition, and its parameters


@dataclass(frozen=True)
class Chosen:
    """Runs that have one of the picked values in each column of `LISTS`, and meet conditions.

    A column of which nothing is picked leaves no run out. A sweep has all runs that it asked for,
    also those that another one has computed. `where` has conditions as those of `koco results
    --where`, with `and` between them.
    """

    picked: tuple[tuple[str, ...], ...] = ((),) * len(LISTS)
    where: str = ""

    def sql(self) -> Sql:
        """The condition on the table `runs`. Raises `WrongInput` for a wrong condition."""
        found: list[Sql] = []
        for name, values in zip(LISTS, self.picked, strict=True):
            if values:
                one_of = MEMBERS if name == "sweep" else f'"{name}" IN (SELECT unnest(?))'
                found.append((one_of, [list(values)]))
        found += [condition_sql(one) for one in re.split(r"\s+and\s+", self.where.strip()) if one]
        words = " AND ".join(f"({words})" for words, _ in found)
        return words or "TRUE", [value for _, values in found for value in values]


def condition_sql(condition: str) -> Sql:
    """A condition of `koco results --where`, which holds for the same runs."""
    try:
        name, operator, scalar = parsed(condition, SCHEMA)
    except WrongInput as error:
        raise WrongInput(str(error).removeprefix("--where ")) from None
    if scalar is None:
        return f"{column(name)} IS {'NULL' if operator == '=' else 'NOT NULL'}", []
    value = plain(scalar)
    if isinstance(value, float) and math.isnan(value):
        return ("TRUE" if operator == "!=" else "FALSE"), []
    if operator == "!=":
        return f"{column(name)} IS DISTINCT FROM ?", [value]
    holds = f"{column(name)} {operator} ?"
    if pa.types.is_floating(scalar.type):  # DuckDB takes nan for the largest number
        holds += f" AND NOT isnan({column(name)})"
    return holds, [value]


def plain(scalar: pa.Scalar) -> Any:
    """The value of a scalar; a time without its zone, which is UTC."""
    value = scalar.as_py()
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def column(name: str) -> str:
    """The quoted name of a column of the table. Raises `WrongInput` for any other name."""
    if name not in COLUMNS:
        raise WrongInput(f"runs have no column {name!r}{nearest(name, list(COLUMNS))}")
    return f'"{name}"'
