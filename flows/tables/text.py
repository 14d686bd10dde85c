"""Rows in groups, and as text for terminals: numbers aligned at the point, and lines that fit."""

import math
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat, zip_longest
from typing import Any, TypeVar

GAP = "  "
DIGITS = 4  # of a float
NARROW = 20  # width to which a column of texts is narrowed
Key = TypeVar("Key")
T = TypeVar("T")


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    groups: dict[Key, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def laid_out(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    width: float = math.inf,
    digits: Mapping[str, int] | None = None,
) -> tuple[str, list[str]]:
    """A table in lines of at most `width` characters, and the names of the columns without room."""
    values = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
    numeric = [{*map(type, column)} <= {int, float, type(None)} for column in values]
    texts = [
        [_text(value, (digits or {}).get(name, DIGITS)) for value in column]
        for name, column in zip(columns, values, strict=True)
    ]
    cells = [
        _aligned(column) if number else column
        for column, number in zip(texts, numeric, strict=True)
    ]
    widths = _fitted(columns, cells, numeric, width)
    names = [_wrapped(name, size, "_")[::-1] for name, size in zip(columns, widths, strict=False)]
    lines = [*zip_longest(*names, fillvalue="")][::-1]  # a name of one line stands at the bottom
    for row in zip(*cells[: len(widths)], strict=True):
        lines += zip_longest(*map(_wrapped, row, widths, repeat(",")), fillvalue="")
    sides = [str.rjust if number else str.ljust for number in numeric[: len(widths)]]
    text = "\n".join(
        GAP.join(
            side(cell, size) for side, cell, size in zip(sides, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )
    return text, list(columns[len(widths) :])


def line_width() -> int:
    return shutil.get_terminal_size((100, 0)).columns


def number_text(value: float, digits: int = DIGITS) -> str:
    """A float with so many significant digits, or fewer if they say it exactly."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    if not -5 < exponent < 7:
        return f"{value:.{digits - 1}e}"
    text = f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text and float(text) == value else text


def with_minus(value: float, digits: int = DIGITS) -> str:
    return number_text(value, digits).replace("-", "−")


def _text(value: Any, digits: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value, digits)
    return "".join(one if one.isprintable() else " " for one in str(value))


def _aligned(texts: list[str]) -> list[str]:
    after = [len(text) - len(re.split(r"[.e]", text)[0]) for text in texts]
    longest = max(after, default=0)
    return [
        text + " " * (longest - n) if text else "" for text, n in zip(texts, after, strict=True)
    ]


def _fitted(
    columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], width: float
) -> list[int]:
    widths = [max(map(len, (name, *column))) for name, column in zip(columns, cells, strict=True)]
    least = [
        max(map(len, (*re.split("(?<=_)", name), *column))) if number else min(natural, NARROW)
        for name, column, number, natural in zip(columns, cells, numeric, widths, strict=True)
    ]
    kept = len(columns)
    while kept > 1 and sum(least[:kept]) + len(GAP) * (kept - 1) > width:
        kept -= 1
    fitted = widths[:kept]
    for k in sorted(range(kept), key=lambda k: (not numeric[k], -fitted[k])):
        excess = sum(fitted) + len(GAP) * (kept - 1) - width
        fitted[k] = max(least[k], fitted[k] - int(max(excess, 0)))
    return fitted


def _wrapped(text: str, width: int, after: str) -> list[str]:
    if len(text) <= width:
        return [text]
    line = f".{{1,{width}}}(?: |(?<={after})|$)|.{{{width}}}"
    return [found.rstrip() for found in re.findall(line, text)]
