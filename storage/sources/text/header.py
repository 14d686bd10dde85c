"""Whether the first line of a table holds the names of its columns."""

from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from koco_stream.errors import WrongInput, refuse_first
from storage.sources.numbers import at, is_infinite, is_missing, is_number, is_numeric
from storage.sources.source import Reading

MOST_SHOWN = 60
SURE = 10  # so many numbers 0, 1, 2, … are no row of data
OFTEN = 5  # times that each text of a column occurs, on average, where another one is a name
YEARS = range(1900, 2100)
Rows = list[list[str]]


def marked_names(
    comments: list[tuple[int, bytes]],
    first: int,
    width: int,
    split: Callable[..., list[str]],
    reading: Reading,
) -> tuple[int, list[str]]:
    """Line where a header or the rows begin, and the names in the last marked line before it."""
    names: list[str] = []
    for number, line in comments:
        fields = list[str]()
        with suppress(WrongInput):
            fields = split(line.lstrip(b"#% "), number)
        if len(fields) == width and not is_numeric(fields[0]):
            if reading.header is False or any(map(is_numeric, fields)):
                return number, []
            names = fields
    return first, names


def is_header(path: Path, line: int, fields: list[str], seen: Rows, reading: Reading) -> bool:
    """The option says so, or the line has no numbers and its texts do not all recur below it, or it
    has the numbers of columns.
    """
    if reading.header is not None:
        return reading.header
    numbers = [field for field in fields if is_numeric(field)]
    below = {
        k: column_of(seen, k)
        for k, text in enumerate(fields)
        if not (is_numeric(text) or is_missing(text) or is_infinite(text))
    }
    recur = [fields[k][:MOST_SHOWN] in column for k, column in below.items()]
    # a text is new where the rows have few others, many times each
    are_new = not any(recur) and any(OFTEN * len({*of}) <= len(of) for of in below.values())
    n = len(numbers)
    first = int(numbers[0]) if numbers and numbers[0].isdecimal() else -1
    count_up = n > 1 and numbers == numbers_from(first, n)
    exact = fields in (numbers_from(0, len(fields)), ["", *numbers_from(0, len(fields) - 1)]) or (
        count_up and n == len(fields) > 2 and first in YEARS
    )
    mixed = numbers and any(of and all(map(is_number, of)) for of in below.values())
    of_columns = are_of_columns(fields, [*below], seen) or (count_up and are_new)
    unsure = not (numbers or are_new or all(recur) or any(map(is_numeric, chain(*seen))))
    refuse_first(
        [
            (
                exact and not of_columns,
                f"{at(path, line)}: {', '.join(numbers[:2])}, … may be the numbers of the columns,"
                " or a row; add --header or --no-header",
            ),
            (
                bool(mixed) and not of_columns,
                f"{at(path, line)}: numbers and the text"
                f" {''.join(fields[k] for k in [*below][:1])[:60]!r}, over numbers: if the line"
                " holds column names, add --header; if it is a row, --no-header, and fill the"
                " value in",
            ),
            (
                unsure and bool(seen),
                f"{at(path, line)}: neither this line nor the next rows have a number; add --header"
                " if this line holds column names, otherwise --no-header",
            ),
        ]
    )
    return of_columns or not (numbers or (recur and all(recur)))


def are_of_columns(fields: list[str], named: list[int], seen: Rows) -> bool:
    """Whether a line holds the numbers of columns, 0, 1, 2, …, as pandas writes them."""
    unnamed = fields[0] == ""
    numbers = list(filter(is_number, fields))
    n = len(numbers)
    if not seen or numbers != numbers_from(0, n) or not n or any(map(is_missing, fields[unnamed:])):
        return bool(seen) and n == len(fields) >= SURE and numbers == numbers_from(1, n)
    columns = [list(filter(is_number, column_of(seen, k))) for k in range(len(fields))]
    whole = [{text.lstrip("+-").isdecimal() for text in column} for column in columns]
    return (
        n >= SURE
        or (unnamed and columns[0] in (numbers_from(0, len(seen)), numbers_from(1, len(seen))))
        or any(len(columns[k]) == len(seen) for k in named)
        or (not named and n > 2 and {False} in whole)
    )


def numbers_from(first: int, n: int) -> list[str]:
    return [str(k) for k in range(first, first + n)]


def column_of(seen: Rows, k: int) -> list[str]:
    return [fields[k] for fields in seen if k < len(fields)]
