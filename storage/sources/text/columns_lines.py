"""Line-by-line parser of CSV and space-separated text, which reports the position of every error.

It also inspects the first lines of a file to decide whether they are names, which column is the
target, and which are features. It is slow and defines what `ColumnText.fast` must return.
"""

import csv
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.compressed import opened
from storage.sources.features import called, chosen_columns
from storage.sources.numbers import NUMBER, LabelRule, at, number_of
from storage.sources.source import Reading, refuse_first
from storage.sources.text.source import TextFile, lines_of


@dataclass(frozen=True)
class Choice:
    """Roles of the columns of CSV or space-separated files, as decided from the first lines.

    Columns are counted from 0 here, and from 1 in messages.

    Attributes
    ----------
    form : {"csv", "space"}
        File format.
    width : int
        Number of columns.
    names : tuple of str
        Column names; empty without a header.
    target : int
        Label column.
    features, dropped : tuple of int
        Columns that are features, and columns left out.
    texts : tuple of int
        Feature columns that hold texts.
    one_hot : bool
        Whether text columns are one-hot encoded.
    """

    form: str
    width: int
    names: tuple[str, ...]
    target: int
    features: tuple[int, ...]
    dropped: tuple[int, ...]
    texts: tuple[int, ...]
    one_hot: bool

    def called(self, column: int) -> str:
        """Description of a column in messages: its name, or its number counted from 1."""
        return called(self.names, column)


@dataclass(frozen=True)
class Parsed:
    """Rows of CSV or space-separated text before one-hot encoding.

    Attributes
    ----------
    labels : Array (n,)
        Labels.
    values : Array (n, k)
        Values of the k feature columns; in a text column, the index of the text in `texts`.
    texts : dict of int to list of str
        Distinct texts of each text column, in order of first occurrence.
    """

    labels: Array
    values: Array
    texts: dict[int, list[str]]


def column_lines(
    lines: Iterable[tuple[int, bytes]], path: Path, choice: Choice, rule: LabelRule
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


class Chooser:
    """Decides the roles of the columns from the first lines of the files.

    The columns of the first file apply to all. The target column (by default the last) holds the
    labels. With `one_hot`, a column whose first value is not a number is a text column, in which
    "?" is a value like any other. `form` is "csv" or "space".
    """

    def __init__(self, form: str, rule: LabelRule, reading: Reading) -> None:
        self.form, self.rule, self.reading = form, rule, reading
        self.choice: Choice | None = None

    def inspect(self, path: Path) -> TextFile:
        """Inspect the first lines of a file, and return where its rows begin.

        Raises `WrongInput` if the columns are malformed or differ from those of the first file, or
        if there are no rows.
        """
        rows = fields_of(
            lines_of(path) if self.reading.header is False else _lines_without_mark(path),
            path,
            self.form,
        )
        line, fields = _next_row(path, rows)
        if self.choice is None and len(fields) < 2:
            between = "commas" if self.form == "csv" else "spaces"
            raise WrongInput(
                f"{at(path, line)}: one column only; a row needs a target and at least one feature,"
                f" separated by {between}, and this is {fields[0][:60]!r}"
            )
        if not self._is_header(path, line, fields):
            if (
                self.reading.header is None
                and line == 1
                and next(lines_of(path))[1].startswith(b"#")
            ):
                raise WrongInput(
                    f"{at(path, 1)}: a # before a row; remove the line if it is a comment, or add"
                    " --no-header if it is a row"
                )
            self.choice = self.choice or self._choose(path, [], fields)
            return TextFile(path, 0, 1, path.stat().st_size)
        names = self.choice and self.choice.names
        refuse_first(
            [
                (
                    bool(names) and names != tuple(fields),
                    f"{at(path, line)}: other columns than the first file's; give files of the same"
                    " columns",
                ),
                (
                    self.reading.header is None and names == (),
                    f"{at(path, line)}: no number, and the first file has no names; add --no-header"
                    " if it is a row, or remove it",
                ),
            ]
        )
        _, first = _next_row(path, rows)
        if self.reading.header is None and not any(NUMBER.match(field.encode()) for field in first):
            raise WrongInput(
                f"{at(path, line)}: neither it nor the next row has a number; add --header if it"
                " holds names, else --no-header"
            )
        self.choice = self.choice or self._choose(path, fields, first)
        with opened(path) as (_, text):
            begin = sum(len(text.readline()) for _ in range(line))
        return TextFile(path, begin, line + 1, path.stat().st_size)

    def _is_header(self, path: Path, line: int, fields: list[str]) -> bool:
        """Whether the first line holds column names: given by the option, or a line without
        numbers.

        Raises `WrongInput` for a line of numbers and texts if texts cannot be values.
        """
        if self.reading.header is not None:
            return self.reading.header
        texts = [field for field in fields if not NUMBER.match(field.encode())]
        if 0 < len(texts) < len(fields) and not self.reading.one_hot and self.rule.text is None:
            raise WrongInput(
                f"{at(path, line)}: numbers, and text {texts[0][:60]!r}: if the line holds names,"
                " add --header; if it is a row, fill the value in, or declare texts as categories"
                " with --one-hot, or as labels with --labels"
            )
        return len(texts) == len(fields)

    def _choose(self, path: Path, names: list[str], first: list[str]) -> Choice:
        """Assign the roles of a table's columns; `first` is its first row."""
        width = len(names or first)
        target, features, dropped = chosen_columns(path, names, width, self.reading)
        texts = tuple(
            k
            for k in features
            if self.reading.one_hot and k < len(first) and not NUMBER.match(first[k].encode())
        )
        return Choice(
            form=self.form,
            width=width,
            names=tuple(names),
            target=target,
            features=tuple(features),
            dropped=tuple(dropped),
            texts=texts,
            one_hot=self.reading.one_hot,
        )


def _lines_without_mark(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a file, without a leading "#" before the column names in the first line."""
    for number, line in lines_of(path):
        yield number, line.lstrip(b"# ") if number == 1 and line.startswith(b"#") else line


def _next_row(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[int, list[str]]:
    row = next(rows, None)
    if row is None:
        raise WrongInput(f"{path}: the file holds no rows")
    return row
