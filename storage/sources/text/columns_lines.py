"""Line-by-line parser of CSV and space-separated text, which reports the position of every error.

It also inspects the first lines of a file to decide whether they are names, which column is the
target, and which are features. It is slow and defines what `ColumnText.fast` must return.
"""

import csv
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from storage.sources.compressed import opened
from storage.sources.features import Choice, Parsed, chosen_columns
from storage.sources.numbers import NUMBER, LabelRule, at, number_of
from storage.sources.source import Reading, refuse_first
from storage.sources.text.source import TextFile, lines_of


def column_lines(
    lines: Iterable[tuple[int, bytes]], path: Path, form: str, choice: Choice, rule: LabelRule
) -> Parsed:
    """Parse rows of CSV or space-separated text from (number, line) pairs.

    Raises `WrongInput` with the line and column of an error.
    """
    labels, values = array("d"), array("d")
    texts: dict[int, dict[str, int]] = {k: {} for k in choice.texts}
    remedy = (
        "correct it"
        if choice.one_hot
        else "correct it, or declare its texts as categories with --one-hot"
    )
    for line, fields in fields_of(lines, path, form):
        if len(fields) != choice.width:
            raise WrongInput(
                f"{at(path, line)}: {len(fields)} columns where the first line has {choice.width};"
                " correct or remove the line"
            )
        for k in choice.features:
            text = fields[k]
            if k in texts:
                values.append(texts[k].setdefault(text, len(texts[k])))
            else:
                values.append(number_of(text.encode(), path, line, choice.called(k), remedy))
        labels.append(
            rule(fields[choice.target].encode(), path, line, choice.called(choice.target))
        )
    matrix = np.array(values).reshape(len(labels), len(choice.features))
    return Parsed(np.array(labels), matrix, {k: list(found) for k, found in texts.items()})


def fields_of(
    lines: Iterable[tuple[int, bytes]], path: Path, form: str
) -> Iterator[tuple[int, list[str]]]:
    """Split the non-blank lines of CSV or space-separated text into (number, stripped fields).

    `form` is "csv" or "space".
    """
    for number, line in lines:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WrongInput(
                f"{at(path, number, error.start + 1)}: {error}; save the file as UTF-8"
            ) from None
        fields = text.split() if form == "space" else _csv_fields(text, path, number)
        if fields and fields != [""]:
            yield number, fields


def _csv_fields(text: str, path: Path, line: int) -> list[str]:
    if '"' not in text:
        return [field.strip() for field in text.split(",")]
    try:
        fields = next(csv.reader([text], strict=True, skipinitialspace=True), [])
    except csv.Error as error:
        where = at(path, line, text.rfind('"') + 1)
        if "unexpected end" in str(error):
            raise WrongInput(
                f"{where}: a quoted field goes on in the next line, or its quote is not closed:"
                f" {text[-60:]!r}; close it, and write the text in one line"
            ) from None
        raise WrongInput(f"{where}: {error}: {text[-60:]!r}; correct the quotes") from None
    return [field.strip() for field in fields]


def inspect(
    path: Path, form: str, reading: Reading, known: Choice | None
) -> tuple[Choice, TextFile]:
    """Decide the roles of the columns from a file's first lines, and where its rows begin.

    The roles `known` of the first file's columns apply to all. With `one_hot`, a column whose first
    value is not a number holds texts, in which "?" is a value like any other. Raises `WrongInput`
    if the columns are malformed or differ from those of the first file, or if there are no rows.
    """
    marked = lines_of(path) if reading.header is False else _lines_without_mark(path)
    rows = fields_of(marked, path, form)
    line, fields = _next_row(path, rows)
    if known is None and len(fields) < 2:
        between = "commas" if form == "csv" else "spaces"
        raise WrongInput(
            f"{at(path, line)}: one column only; a row needs a target and at least one feature,"
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
                    f"{at(path, line)}: other columns than the first file's; give files of the same"
                    " columns",
                ),
                (
                    unnamed,
                    f"{at(path, line)}: no number, and the first file has no names; add --no-header"
                    " if it is a row, or remove it",
                ),
            ]
        )
        _, first = _next_row(path, rows)
        if reading.header is None and not any(NUMBER.match(field.encode()) for field in first):
            raise WrongInput(
                f"{at(path, line)}: neither it nor the next row has a number; add --header if it"
                " holds names, else --no-header"
            )
        with opened(path) as (_, text):
            begin = sum(len(text.readline()) for _ in range(line))
    else:
        names, line = [], 0
    if known is None:
        known = chosen_columns(path, names, len(fields), reading)
        texts = tuple(
            k
            for k in known.features
            if known.one_hot and k < len(first) and not NUMBER.match(first[k].encode())
        )
        known = replace(known, texts=texts)
    return known, TextFile(path, begin, line + 1, path.stat().st_size)


def _is_header(path: Path, line: int, fields: list[str], reading: Reading) -> bool:
    """Whether the first line holds column names: given by the option, or a line without numbers.

    Raises `WrongInput` for a line of numbers and texts if texts cannot be values.
    """
    if reading.header is not None:
        return reading.header
    texts = [field for field in fields if not NUMBER.match(field.encode())]
    if 0 < len(texts) < len(fields) and not reading.one_hot and reading.labels is None:
        raise WrongInput(
            f"{at(path, line)}: numbers, and text {texts[0][:60]!r}: if the line holds names,"
            " add --header; if it is a row, fill the value in, or declare texts as categories"
            " with --one-hot, or as labels with --labels"
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
