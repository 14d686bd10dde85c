"""CSV and space-separated text, line by line: what is legal, and where it is not. Slow, and the
specification of `columns_fast`.
"""

import csv
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule, at, number_of
from storage.sources.text.column_choice import Choice, Parsed


def column_lines(
    lines: Iterable[tuple[int, bytes]], path: Path, choice: Choice, rule: LabelRule
) -> Parsed:
    """The rows of (number, line). Raises `WrongInput` naming the line and the column that are not
    right.
    """
    labels, values = array("d"), array("d")
    texts: dict[int, dict[str, int]] = {k: {} for k in choice.texts}
    remedy = (
        "correct it"
        if choice.one_hot
        else "correct it, or declare its texts as categories with --one-hot"
    )
    for line, fields in fields_of(lines, path, choice.form):
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
    """(line, fields without spaces around them) of the lines that are not blank; `form` is "csv" or
    "space".
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
        place = at(path, line, text.rfind('"') + 1)
        if "unexpected end" in str(error):
            raise WrongInput(
                f"{place}: a quoted field goes on in the next line, or its quote is not closed:"
                f" {text[-60:]!r}; close it, and write the text in one line"
            ) from None
        raise WrongInput(f"{place}: {error}: {text[-60:]!r}; correct the quotes") from None
    return [field.strip() for field in fields]
