"""Tables as text, for terminals: numbers aligned at the point, and lines that fit."""

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

GAP = "  "
DIGITS = 4  # of a float
WITHOUT_TERMINAL = 100  # characters in a line
NARROW = 16  # width to which a column of texts is narrowed, unless a word is longer
LONG_WORD = 24  # longer words are broken


class Layout(NamedTuple):
    """A table as text, and the names of the columns that had no room."""

    text: str
    left_out: list[str]


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lines of aligned columns under their names, as wide as they need to be.

    Floats have four digits, booleans are yes or no, None is empty.
    """
    return laid_out(columns, rows).text


def laid_out(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    width: int | None = None,
    digits: Mapping[str, int] | None = None,
) -> Layout:
    """Lay out a table in lines of at most `width` characters, or of any length.

    Where it is too wide, first names of columns with numbers go on in a second line, at their
    underscores; then texts, after spaces and commas; and then the last columns are left out.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    rows : sequence of sequence
        Values of each row.
    width : int or None
        Longest line; None for any.
    digits : mapping of str to int, optional
        Significant digits of the floats in a column, by its name; else four.
    """
    values = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
    numeric = [_is_numeric(column) for column in values]
    cells = [
        _aligned(column, (digits or {}).get(name, DIGITS)) if number else list(map(_text, column))
        for name, column, number in zip(columns, values, numeric, strict=True)
    ]
    widths = [max(map(len, (name, *column))) for name, column in zip(columns, cells, strict=True)]
    if width is not None:
        widths = _fitted(columns, cells, numeric, widths, width)
    kept = len(widths)
    header = [_wrapped(name, w, "_") for name, w in zip(columns, widths, strict=False)]
    lines = _lines(header, widths, [True] * kept, numeric)
    for row in zip(*cells[:kept], strict=True):
        wrapped = [_wrapped(text, w, " ,") for text, w in zip(row, widths, strict=True)]
        lines += _lines(wrapped, widths, [False] * kept, numeric)
    return Layout("\n".join(lines), list(columns[kept:]))


def line_width(stream: TextIO) -> int:
    """Characters in a line of the terminal that `stream` is, and 100 if it is none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or WITHOUT_TERMINAL
    except (OSError, ValueError):  # a file, a pipe, or a stream in memory
        return WITHOUT_TERMINAL


def number_text(value: float, digits: int = DIGITS) -> str:
    """A float with so many significant digits, or fewer if they say it exactly.

    Very large and very small ones have an exponent; digits before the point are never cut.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    if not -5 < exponent < 7:
        return f"{value:.{digits - 1}e}"
    text = f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text and float(text) == value else text


def with_minus(value: float, digits: int = DIGITS) -> str:
    """As `number_text`, with a minus sign instead of a hyphen: for pages, not for files."""
    return number_text(value, digits).replace("-", "−")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number_text(value) if isinstance(value, float) else printable(str(value))


def printable(text: str) -> str:
    """A text for a terminal, which acts on control characters: they become spaces."""
    return "".join(one if one.isprintable() else " " for one in text)


def _is_numeric(values: Sequence[Any]) -> bool:
    """Whether a column has numbers, and nothing else."""
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    )


def _aligned(values: Sequence[Any], digits: int) -> list[str]:
    """Texts of numbers, with spaces after them so that their points are one below the other."""
    texts = [number_text(v, digits) if isinstance(v, float) else _text(v) for v in values]
    after = [len(text) - len(re.split(r"[.e]", text)[0]) for text in texts]
    longest = max(after, default=0)
    return [
        text + " " * (longest - n) if text else "" for text, n in zip(texts, after, strict=True)
    ]


def _fitted(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    widths: Sequence[int],
    width: int,
) -> list[int]:
    """Widths of the columns that have room in lines of `width` characters."""
    least = [
        max(map(len, (*_pieces(name, "_"), *column)))
        if number
        else min(natural, _narrow(column), width)
        for name, column, number, natural in zip(columns, cells, numeric, widths, strict=True)
    ]
    kept = len(columns)
    while kept > 1 and sum(least[:kept]) + len(GAP) * (kept - 1) > width:
        kept -= 1
    fitted = list(widths[:kept])
    excess = sum(fitted) + len(GAP) * (kept - 1) - width
    for numbers in (True, False):
        for _ in range(excess):
            wide = [k for k in range(kept) if numeric[k] == numbers and fitted[k] > least[k]]
            if not wide:
                break
            fitted[max(wide, key=lambda k: fitted[k])] -= 1
            excess -= 1
    return fitted


def _narrow(texts: Sequence[str]) -> int:
    """Least width of a column of texts, which has room for its words if they are not long."""
    words = {len(piece.rstrip()) for text in set(texts) for piece in _pieces(text, " ,")}
    return max([NARROW, *(n for n in words if n <= LONG_WORD)])


def _pieces(text: str, after: str) -> list[str]:
    """Parts of a text, each of which ends with one of the characters `after`, or with the text."""
    return re.findall(f"[^{after}]*[{after}]+|[^{after}]+", text)


def _wrapped(text: str, width: int, after: str) -> list[str]:
    """Lines of at most `width` characters, broken after one of the characters `after` if it can be.

    A text that has room is one line, as it is.
    """
    if len(text) <= width:
        return [text]
    lines = [""]
    for piece in _pieces(text, after):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


def _lines(
    cells: Sequence[Sequence[str]],
    widths: Sequence[int],
    bottom: Sequence[bool],
    numeric: Sequence[bool],
) -> list[str]:
    """Lines of a row whose cells have several lines; at the top of the row, or at its `bottom`."""
    height = max(map(len, cells), default=1)
    padded = [
        [*[""] * (height - len(cell)), *cell] if low else [*cell, *[""] * (height - len(cell))]
        for cell, low in zip(cells, bottom, strict=True)
    ]
    sides: list[Callable[[str, int], str]] = [str.rjust if n else str.ljust for n in numeric]
    return [
        GAP.join(
            side(text, width) for side, text, width in zip(sides, line, widths, strict=False)
        ).rstrip()
        for line in zip(*padded, strict=True)
    ]
