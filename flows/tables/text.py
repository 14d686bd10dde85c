"""Tables as text, for terminals: what varies, in the width that there is."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

GAP = 2  # spaces between columns
SHORTEST_PARAMETERS = 28  # characters; columns are left out before parameters become shorter


class Shown(NamedTuple):
    """What a terminal has of a table: the headings, the cells, and the columns that were left out
    because they did not fit.
    """

    headings: list[str]
    rows: list[list[Any]]
    left_out: list[str]


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lines of aligned columns under their names, numbers to the right; floats have four digits.

    Booleans are yes or no, None is empty.
    """
    cells = [tuple(columns), *(tuple(map(_text, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [
        any(is_number(row[k]) for row in rows)
        and all(row[k] is None or is_number(row[k]) for row in rows)
        for k in range(len(columns))
    ]
    return "\n".join(
        (" " * GAP)
        .join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(row, widths, right, strict=True)
        )
        .rstrip()
        for row in cells
    )


def fitted(rows: Sequence[dict[str, Any]], columns: Sequence[str], width: int) -> Shown:
    """Choose what fits a line of `width` characters.

    Columns that are empty are left out, and so is the dataset's hash where the name says as much.
    Of the parameters there are those that vary between the rows of a learner. If that is too
    wide, long parameters are cut, and then columns are left out: deviations, seconds, and then
    from the right.
    """
    texts = varying_parameters(rows) if "params" in columns else []
    rows = [
        {**row, **({"params": text} if texts else {})}
        for row, text in zip(rows, texts or [""] * len(rows), strict=True)
    ]
    kept = [name for name in columns if any(row[name] not in (None, "") for row in rows)]
    if "dataset_hash" in kept and "dataset" in kept:
        named = {(row["dataset"], row["dataset_hash"]) for row in rows}
        if len(named) == len({dataset for dataset, _ in named}):
            kept.remove("dataset_hash")
    kept, left_out = kept or list(columns), list[str]()
    while width_of(rows, kept) > width and len(kept) > 1:
        longest = max((len(row["params"]) for row in rows), default=0) if "params" in kept else 0
        allowed = max(longest + width - width_of(rows, kept), SHORTEST_PARAMETERS)
        if longest > allowed:
            for row in rows:
                if len(row["params"]) > allowed:
                    row["params"] = row["params"][: allowed - 1] + "…"
        else:
            spare = [name for name in reversed(kept) if name.endswith("_std")]
            spare += [name for name in ("seconds_mean",) if name in kept]
            left_out.append(spare[0] if spare else kept[-1])
            kept.remove(left_out[-1])
    return Shown(list(map(heading, kept)), [[row[name] for name in kept] for row in rows], left_out)


def heading(column: str) -> str:
    """A column's name on a terminal: means go without saying, and deviations follow their mean."""
    return "std" if column.endswith("_std") else column.removesuffix("_mean")


def width_of(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> int:
    """The width of a table in characters."""
    texts = ([heading(name), *(_text(row[name]) for row in rows)] for name in columns)
    return sum(max(map(len, column)) for column in texts) + GAP * (len(columns) - 1)


def varying_parameters(rows: Sequence[dict[str, Any]]) -> list[str]:
    """For each row, the parameters in which the rows of its learner differ: `alpha=4 clip=1`."""
    parsed = [json.loads(row["params"] or "{}") for row in rows]
    values: dict[Any, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    counts: dict[Any, int] = defaultdict(int)
    for row, given in zip(rows, parsed, strict=True):
        counts[row.get("learner")] += 1
        for name, value in given.items():
            values[row.get("learner")][name].add(json.dumps(value))
    return [
        " ".join(
            f"{name}={_text(value)}"
            for name, value in sorted(given.items())
            if len(values[row.get("learner")][name]) > 1
        )
        for row, given in zip(rows, parsed, strict=True)
    ]


def is_number(value: Any) -> bool:
    """Whether a cell is a number; a boolean is a word."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
