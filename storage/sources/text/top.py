"""The top of a text file: comments, how its rows are told apart, and the columns of a table."""

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain, filterfalse, islice
from pathlib import Path

from koco_stream.errors import WrongInput
from storage.sources.compressed import OPENERS
from storage.sources.features import Choice, chosen_columns
from storage.sources.numbers import (
    NUMBER,
    at,
    is_infinite,
    is_missing,
    is_number,
    is_numeric,
    is_other_number,
)
from storage.sources.problems import Problems
from storage.sources.source import Reading, refuse_first
from storage.sources.text.source import MOST_FIELD, TextFile, lines_of, refuse_long

NAMED = {".csv": "csv", ".tsv": "csv", ".vw": "vw", ".svm": "libsvm", ".libsvm": "libsvm"}
SEPARATORS = (",", ";", "\t")
SEPARATED_BY = {"csv": "commas, semicolons or tabs", "space": "spaces"}
MARKS = (b"#", b"%")
MATRIX = b"%%MatrixMarket"
MOST_BYTES = 1_000_000  # of comments and blank lines before the rows
MOST_SEEN = 10_000  # bytes of a line whose numbers are looked at
LIBSVM = re.compile(rb"\S+(\s+\d+:\S+)+\s*(#.*)?\Z")


def top_of(path: Path) -> tuple[list[tuple[int, bytes]], int, bytes]:
    """The top of a plain or compressed text file: the lines marked as comments; the number of the
    first line that is neither marked nor blank, and this line, which is empty if there is none.

    Raises `WrongInput` as `lines_of` does, if there is nothing but blank lines, too much comes
    before the first row, or a mark says that the lines after it are no rows.
    """
    comments: list[tuple[int, bytes]] = []
    size = 0
    for number, line in lines_of(path):
        text = line.strip()
        if text and not text.startswith(MARKS):
            return comments, number, line
        size += len(line) + 1
        late = f"no row in the first {MOST_BYTES:,} bytes; remove what comes before the rows"
        matrix = "no table of rows; write them as LIBSVM text"
        problems = ((size > MOST_BYTES, late), (text.startswith(MATRIX), matrix))
        refuse_first((is_there, f"{at(path, number)}: {wrong}") for is_there, wrong in problems)
        comments += [(number, line)] if text else []
    if not comments:
        raise WrongInput(f"{path}: the file holds no rows")
    return comments, 0, b""


def format_of(path: Path, line: bytes) -> str | None:
    """Format of a text file by its name or its first line; None if neither tells.

    What separates columns decides before numbers do, so that an empty field between tabs is one.
    """
    named = NAMED.get(_suffix(path))
    text = line.strip()
    if not named and not text:
        raise WrongInput(f"{path}: the file holds no rows")
    words = text[:MOST_SEEN].split()[: -1 if len(text) > MOST_SEEN else None]
    told = [
        (b"|" in text, "vw"),
        (b"," in text or b";" in text, "csv"),
        (LIBSVM.match(b" ".join(words)), "libsvm"),
        (b"\t" in line and not _blanks_too(line[:MOST_SEEN].strip()), "csv"),
        (NUMBER.match(text.partition(b"#")[0].strip()), "libsvm"),
        (words and all(map(NUMBER.match, words)), "space"),
    ]
    return named or next((form for fits, form in told if fits), None)


def separator_of(path: Path, line: bytes) -> str:
    """What separates the columns of a CSV file, by its first line: a comma, a semicolon or a tab.

    It is the one that occurs most often outside quotes, and the comma if several do. The comma is
    none if all commas are within numbers, such as `1,5;2,5`. A tab is if the file's name says so.
    """
    outside = b"".join(line[:MOST_SEEN].split(b'"')[::2]).decode("utf-8", "replace")
    other = max((";", "\t"), key=outside.count)
    fields = outside.split(other)
    if len(fields) > 1 and all("," not in text or is_other_number(text.strip()) for text in fields):
        return other
    tabs = "\t" in outside and _suffix(path) == ".tsv"
    return "\t" if tabs else max(SEPARATORS, key=outside.count)


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in OPENERS else path).suffix.lower()


def _blanks_too(line: bytes) -> bool:
    """Whether not only tabs but also blanks separate numbers in a line without empty fields.

    A number such as `1 234` is one.
    """
    fields = [field.split() for field in line.split(b"\t")]
    several = [words for words in fields if len(words) > 1 and all(map(NUMBER.match, words))]
    one = [words for words in several if is_other_number(b" ".join(words).decode())]
    return all(fields) and len(several) > len(one)


MOST_COLUMNS = 1_000_000  # each may become a feature, named in the manifest


def between(form: str, separator: str) -> tuple[bytes, ...]:
    """What may stand between two fields of CSV, or of space-separated text."""
    return (separator.encode(),) if form == "csv" else (b" ", b"\t")


def fields_of(line: bytes, number: int, path: Path, form: str, separator: str) -> list[str]:
    """Split a line of CSV or space-separated text into stripped fields; none if it is blank.

    `form` is "csv" or "space", and `separator` stands between the fields of CSV. Raises
    `WrongInput` for too many or too long fields, for other bytes than UTF-8, and for wrong quotes.
    """
    separators = between(form, separator)
    refuse_long(path, number, line, "field", MOST_FIELD, separators)
    if sum(map(line.count, separators)) >= MOST_COLUMNS:
        raise WrongInput(
            f"{at(path, number)}: more than {MOST_COLUMNS:,} columns; write rows of so many"
            " features as LIBSVM text, without their zeros"
        )
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongInput(
            f"{at(path, number, error.start + 1)}: {error}; save the file as UTF-8"
        ) from None
    if form == "space":
        return text.split()
    fields = _csv_fields(text, path, number, separator)
    return [] if fields == [""] else fields


def _csv_fields(text: str, path: Path, line: int, separator: str) -> list[str]:
    if '"' not in text:
        return [field.strip() for field in text.split(separator)]
    try:
        reader = csv.reader([text], delimiter=separator, strict=True, skipinitialspace=True)
        fields = next(reader, [])
    except csv.Error as error:
        where = at(path, line, text.rfind('"') + 1)
        if "unexpected end" in str(error):
            raise WrongInput(
                f"{where}: a quoted field continues on the next line, or its quote is not closed:"
                f" {text[-60:]!r}; close it, and write the text on one line"
            ) from None
        raise WrongInput(f"{where}: {error}: {text[-60:]!r}; correct the quotes") from None
    return [field.strip() for field in fields]


# lines, rows, values, and characters of each, that are looked at
MOST_LINES = 100_000
MOST_ROWS = 1000
MOST_VALUES = 1_000_000
MOST_SHOWN = 60
SURE = 10  # so many numbers 0, 1, 2, … are no row of data

Rows = list[list[str]]


def inspect(
    path: Path, form: str, reading: Reading, known: Choice | None
) -> tuple[Choice, TextFile]:
    """Decide the roles of the columns from a file's first lines, and where its rows begin.

    The roles `known` of the first file's columns apply to all. With `one_hot`, a column holds texts
    if its first value that is not missing is not a number, as far as the first rows show. Raises
    `WrongInput` if the columns are malformed or differ from those of the first file, or if there
    are no rows.
    """
    comments, first, line = top_of(path)
    line = line or comments[0][1]
    separator = known.separator if known else separator_of(path, line)
    split = partial(fields_of, path=path, form=form, separator=separator)
    width = len(split(line, first))
    first, marked = _marked(comments, first, width, split, reading)
    lines = ((number, line) for number, line in lines_of(path) if 0 < first <= number)
    rows = ((k, row) for k, line in islice(lines, MOST_LINES) if (row := split(line, k)))
    first, fields = next(rows, (0, []))
    refuse_first(
        [
            (not fields, f"{path}: the file holds no rows"),
            (
                known is None and len(fields) < 2,
                f"{at(path, first)}: only one column; a row needs a target and at least one"
                f" feature, separated by {SEPARATED_BY[form]}, and this is"
                f" {''.join(fields)[:60]!r}",
            ),
        ]
    )
    problems = Problems()
    some = islice(problems.until_fault(rows), max(3, min(MOST_ROWS, MOST_VALUES // width)))
    seen = [[text[:MOST_SHOWN] for text in row] for _, row in some]
    marked = marked if reading.header or any(map(is_numeric, fields)) else []
    again = known is not None and known.names == tuple(fields)
    header = not marked and (again or _is_header(path, first, fields, seen, reading))
    if header and not seen:
        problems.refuse()
    names, seen = (fields, seen) if header else (marked, [fields, *seen])
    recognised = header and not again and reading.header is None
    refuse_first(
        [
            (
                recognised and known is not None and known.names == (),
                f"{at(path, first)}: no number, and the first file has no header; add --no-header"
                " if this is a row, or remove it",
            ),
            (
                bool(names) and known is not None and known.names not in ((), tuple(names)),
                f"{at(path, first)}: the columns differ from those of the first file; give files"
                " with the same columns",
            ),
            (not seen, f"{path}: the file holds no rows"),
            (
                recognised and not any(map(is_numeric, chain(*seen[:1]))),
                f"{at(path, first)}: neither this line nor the next row has a number; add --header"
                " if this line holds column names, otherwise --no-header",
            ),
        ]
    )
    if known is None:
        known = chosen_columns(path, names, len(fields), reading, partial(_column, seen))
        known = replace(known, texts=_text_columns(known, seen), separator=separator)
    first += header
    n_comments = sum(number < first for number, _ in comments) - bool(marked)
    return known, TextFile(path, first, path.stat().st_size, n_comments)


def _marked(
    comments: list[tuple[int, bytes]],
    first: int,
    width: int,
    split: Callable[..., list[str]],
    reading: Reading,
) -> tuple[int, list[str]]:
    """Line where a header or the rows begin, and the names in the last marked line before it.

    A marked line of `width` columns holds names if no column is a number. If there are numbers, but
    not in the first column, or there can be no names, it is a row, whose text begins so. All other
    marked lines are comments.
    """
    names: list[str] = []
    for number, line in comments:
        fields = Problems().noting(partial(split, line.lstrip(b"#% "), number), list[str](), "")
        if len(fields) == width and not is_numeric(fields[0]):
            if reading.header is False or any(map(is_numeric, fields)):
                return number, []
            names = fields
    return first, names


def _is_header(path: Path, line: int, fields: list[str], seen: Rows, reading: Reading) -> bool:
    """Whether a line, before the rows `seen`, holds column names: given by the option, or a line
    without numbers, or with the numbers of columns.

    Raises `WrongInput` for a line of numbers and texts if texts cannot be values, and for numbers
    that may be those of columns or values.
    """
    if reading.header is not None:
        return reading.header
    numbers = _has_column_numbers(fields, seen)
    texts = [field for field in fields if not is_numeric(field)]
    if len(texts) < len(fields):
        texts = [text for text in texts if not is_missing(text)]
    exact = fields in (_numbers(0, len(fields)), ["", *_numbers(0, len(fields) - 1)])
    mixed = 0 < len(texts) < len(fields) and not reading.one_hot and reading.labels is None
    refuse_first(
        [
            (
                exact and not numbers,
                f"{at(path, line)}: 0, 1, … may be the numbers of the columns, or a row; add"
                " --header or --no-header",
            ),
            (
                mixed and not numbers,
                f"{at(path, line)}: numbers and the text {''.join(texts[:1])[:60]!r}: if the line"
                " holds column names, add --header; if it is a row, fill the value in, or treat"
                " texts as categories with --one-hot, as labels with --labels, or as missing with"
                " --missing",
            ),
        ]
    )
    return numbers or len(texts) == len(fields)


def _has_column_numbers(fields: list[str], seen: Rows) -> bool:
    """Whether a line holds the numbers of columns, 0, 1, 2, …, as pandas writes them.

    There may be names beside them, or an empty field before them. It is sure if there are `SURE`
    numbers, then from 1 too; if the column of the empty field counts the rows; if a name stands
    over numbers; or if one of at least three columns has no other whole number.
    """
    unnamed = fields[0] == ""
    named = [k for k, field in enumerate(fields) if k >= unnamed and not is_number(field)]
    numbers = [field for field in fields if is_number(field)]
    n = len(numbers)
    none_missing = not any(is_missing(fields[k]) for k in named)
    if not seen or numbers != _numbers(0, n) or not n or not none_missing:
        return bool(seen) and n == len(fields) >= SURE and numbers == _numbers(1, n)
    columns = [list(filter(is_number, _column(seen, k))) for k in range(len(fields))]
    whole = [{text.lstrip("+-").isdecimal() for text in column} for column in columns]
    return (
        n >= SURE
        or (unnamed and columns[0] in (_numbers(0, len(seen)), _numbers(1, len(seen))))
        or any(len(columns[k]) == len(seen) for k in named)
        or (not named and n > 2 and {False} in whole)
    )


def _text_columns(choice: Choice, seen: Rows) -> tuple[int, ...]:
    """Features whose first value that is not missing is a text; none without `one_hot`.

    A column without a value in these rows is taken as numbers.
    """
    columns = {k: _column(seen, k) for k in choice.features if choice.one_hot}
    first = {k: next(filterfalse(is_missing, column), "0") for k, column in columns.items()}
    return tuple(k for k, text in first.items() if not (is_numeric(text) or is_infinite(text)))


def _numbers(first: int, n: int) -> list[str]:
    return [str(k) for k in range(first, first + n)]


def _column(seen: Rows, k: int) -> list[str]:
    return [fields[k] for fields in seen if k < len(fields)]
