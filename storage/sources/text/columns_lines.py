"""Line-by-line parser of CSV and space-separated text, which reports the position of every error.

It also inspects the first lines of a file to decide whether they are names, which column is the
target, and which are features. It is slow and defines what `ColumnText.fast` must return.
"""

import csv
import math
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from storage.sources.compressed import opened
from storage.sources.features import Choice, Parsed, chosen_columns
from storage.sources.numbers import (
    CHOOSE,
    DROP_ROWS,
    NUMBER,
    LabelRule,
    at,
    is_infinite,
    is_missing,
    number_of,
)
from storage.sources.problems import Problems
from storage.sources.source import Reading, refuse_first
from storage.sources.text.source import TextFile, lines_of

DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+\Z")
SEPARATORS = (",", ";", "\t")
LOOKED_AT = 1000  # rows in which the first value of a column is looked for


def column_lines(
    lines: Iterable[tuple[int, bytes]],
    path: Path,
    form: str,
    choice: Choice,
    rule: LabelRule,
    missing: str | None,
) -> Parsed:
    """Parse rows of CSV or space-separated text from (number, line) pairs.

    With `missing`, as in `Reading`, missing values are NaN; missing labels too if it is "drop".
    Raises `Malformed` with the line and column of every kind of fault.
    """
    labels, values = array("d"), array("d")
    texts: dict[int, dict[str, int]] = {k: {} for k in choice.texts}
    remedy = (
        "correct it"
        if choice.one_hot
        else "correct it, or treat its texts as categories with --one-hot"
    )
    problems = Problems()
    none: list[str] = []

    def feature(line: int, k: int, text: str) -> float:
        if k in texts:
            return texts[k].setdefault(text, len(texts[k]))
        if missing and is_missing(text):
            return math.nan
        comma = "write decimals with a point" if DECIMAL_COMMA.match(text) else remedy
        return number_of(text.encode(), path, line, choice.called(k), comma, if_missing=CHOOSE)

    def label(line: int, text: str) -> float:
        if missing == "drop" and is_missing(text) and rule.number(text) is None:
            return math.nan
        what = choice.called(choice.target)
        return rule(text.encode(), path, line, what, if_missing=DROP_ROWS)

    for number, line in problems.until_fault(lines):
        split = partial(fields_of, line, number, path, form, choice.separator)
        fields = problems.noting(split, none, "line")
        if len(fields) != choice.width:
            if fields:
                wrong = (
                    f"{at(path, number)}: {len(fields)} columns where the first line has"
                    f" {choice.width}; correct or remove the line"
                )
                problems.add(WrongInput(wrong), "width")
            continue
        for k in choice.features:
            text = fields[k]
            kind = "missing" if is_missing(text) else "no number"
            read = partial(feature, number, k, text)
            values.append(problems.noting(read, math.nan, kind, choice.called(k)))
        text = fields[choice.target]
        kind = "missing label" if is_missing(text) else "label"
        labels.append(problems.noting(partial(label, number, text), math.nan, kind))
    problems.refuse()
    matrix = np.array(values).reshape(len(labels), len(choice.features))
    return Parsed(np.array(labels), matrix, {k: list(found) for k, found in texts.items()})


def rows_of(
    lines: Iterable[tuple[int, bytes]], path: Path, form: str, separator: str
) -> Iterator[tuple[int, list[str]]]:
    """Split the non-blank lines of CSV or space-separated text into (number, stripped fields)."""
    for number, line in lines:
        fields = fields_of(line, number, path, form, separator)
        if fields:
            yield number, fields


def fields_of(line: bytes, number: int, path: Path, form: str, separator: str) -> list[str]:
    """Split a line of CSV or space-separated text into stripped fields; none if it is blank.

    `form` is "csv" or "space", and `separator` stands between the fields of CSV.
    """
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


def separator_of(line: bytes) -> str:
    """Separator of a CSV file, by its first line: the most frequent outside quotes of , ; and tab.

    A comma is taken where several are equally frequent.
    """
    outside = b"".join(line.split(b'"')[::2])
    return max(SEPARATORS, key=lambda separator: outside.count(separator.encode()))


def inspect(
    path: Path, form: str, reading: Reading, known: Choice | None
) -> tuple[Choice, TextFile]:
    """Decide the roles of the columns from a file's first lines, and where its rows begin.

    The roles `known` of the first file's columns apply to all. With `one_hot`, a column holds texts
    if its first value that is not missing is not a number, as far as the first rows show. Raises
    `WrongInput` if the columns are malformed or differ from those of the first file, or if there
    are no rows.
    """
    marked = lines_of(path) if reading.header is False else _lines_without_mark(path)
    numbered = ((number, line) for number, line in marked if line.strip())
    head = next(numbered, (0, b""))
    separator = known.separator if known else separator_of(head[1])
    rows = rows_of(chain([head], numbered), path, form, separator)
    line, fields = _next_row(path, rows)
    if known is None and len(fields) < 2:
        between = "commas, semicolons or tabs" if form == "csv" else "spaces"
        raise WrongInput(
            f"{at(path, line)}: only one column; a row needs a target and at least one feature,"
            f" separated by {between}, and this is {fields[0][:60]!r}"
        )
    names, first, begin = fields, fields, 0
    if _is_header(path, line, fields, reading):
        other = known is not None and known.names not in ((), tuple(fields))
        unnamed = known is not None and known.names == () and reading.header is None
        refuse_first(
            [
                (
                    other,
                    f"{at(path, line)}: the columns differ from those of the first file; give"
                    " files with the same columns",
                ),
                (
                    unnamed,
                    f"{at(path, line)}: no number, and the first file has no header; add"
                    " --no-header if this is a row, or remove it",
                ),
            ]
        )
        _, first = _next_row(path, rows)
        if reading.header is None and not any(NUMBER.match(field.encode()) for field in first):
            raise WrongInput(
                f"{at(path, line)}: neither this line nor the next row has a number; add --header"
                " if this line holds column names, otherwise --no-header"
            )
        with opened(path) as (_, text):
            begin = sum(len(text.readline()) for _ in range(line))
    else:
        names, line = [], 0
    if known is None:
        known = chosen_columns(path, names, len(fields), reading)
        texts = _text_columns(known, chain([first], (row for _, row in rows)))
        known = replace(known, texts=texts, separator=separator)
    return known, TextFile(path, begin, line + 1, path.stat().st_size)


def _text_columns(choice: Choice, rows: Iterator[list[str]]) -> tuple[int, ...]:
    """Features whose first value that is not missing is a text; none without `one_hot`.

    Only the first rows are searched, up to the first malformed one. A column without a value there
    is taken as numbers.
    """
    texts, unseen = [], list(choice.features) if choice.one_hot else []
    for fields in islice(Problems().until_fault(rows), LOOKED_AT):
        seen = [k for k in unseen if k < len(fields) and not is_missing(fields[k])]
        texts += [
            k for k in seen if not (NUMBER.match(fields[k].encode()) or is_infinite(fields[k]))
        ]
        unseen = [k for k in unseen if k not in seen]
        if not unseen:
            break
    return tuple(sorted(texts))


def _is_header(path: Path, line: int, fields: list[str], reading: Reading) -> bool:
    """Whether the first line holds column names: given by the option, or a line without numbers.

    Raises `WrongInput` for a line of numbers and texts if texts cannot be values.
    """
    if reading.header is not None:
        return reading.header
    texts = [field for field in fields if not NUMBER.match(field.encode())]
    if reading.missing and len(texts) < len(fields):
        texts = [text for text in texts if not is_missing(text)]
    if 0 < len(texts) < len(fields) and not reading.one_hot and reading.labels is None:
        raise WrongInput(
            f"{at(path, line)}: numbers and the text {texts[0][:60]!r}: if the line holds column"
            " names, add --header; if it is a row, fill the value in, or treat texts as"
            " categories with --one-hot, as labels with --labels, or as missing with --missing"
        )
    return len(texts) == len(fields)


def _lines_without_mark(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a file, without a leading "#" before the column names in the first line."""
    for number, line in lines_of(path):
        yield number, line.lstrip(b"# ") if number == 1 and line.startswith(b"#") else line


def _next_row(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[int, list[str]]:
    row = next(rows, None)
    if row is None:
        raise WrongInput(f"{path}: the file holds no rows")
    return row
