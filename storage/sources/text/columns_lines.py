"""Line-by-line parser of CSV and space-separated text, which reports the position of every error.

It is slow and defines what `ColumnText.fast` must return.
"""

import csv
import math
from array import array
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from storage.sources.features import Choice, Parsed
from storage.sources.numbers import (
    CHOOSE,
    DROP_ROWS,
    LabelRule,
    at,
    is_missing,
    is_other_number,
    number_of,
)
from storage.sources.problems import Problems
from storage.sources.text.source import MOST_FIELD, refuse_long

MOST_COLUMNS = 1_000_000  # each may become a feature, named in the manifest


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
        if k in texts and not is_other_number(text):
            return texts[k].setdefault(text, len(texts[k]))
        if missing and is_missing(text):
            return math.nan
        return number_of(text.encode(), path, line, choice.called(k), remedy, if_missing=CHOOSE)

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
