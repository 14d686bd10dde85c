"""CSV and space-separated text: rows of as many columns as the first, of which one is the target."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput, nearest
from storage.table import Table
from storage.text import MISSING, NUMBER, LabelRule, lines_of, number_of


def read_columns(
    paths: Sequence[Path],
    form: str,
    rule: LabelRule,
    *,
    target: str | None = None,
    drop: Sequence[str] = (),
    one_hot: bool = False,
    header: bool | None = None,
) -> Table:
    """Files of columns (`form` is "csv" or "space"), one after the other, the columns being those of the first.

    The target column (by default the last) gives the labels; those in `drop` are left out; with `one_hot`, a column whose first value is
    no number becomes one feature for each of its values, in sorted order, and "?" is a value like any other. Raises `WrongInput`.
    """
    reader = ColumnReader(form, rule, target, drop, one_hot, header)
    for path in paths:
        reader.read(path)
    return reader.table()


class ColumnReader:
    """Reads files of the same columns into one table."""

    def __init__(self, form: str, rule: LabelRule, target: str | None, drop: Sequence[str], one_hot: bool, header: bool | None) -> None:
        self.form, self.rule, self.wanted, self.dropped = form, rule, target, drop
        self.one_hot, self.header = one_hot, header
        self.names: list[str] = []
        self.width = self.target = 0
        self.features: list[int] = []  # the columns that are features
        self.texts: dict[int, dict[str, int]] = {}  # of the columns of texts: each text's number, in first-seen order
        self.labels, self.values = array("d"), array("d")

    def read(self, path: Path) -> None:
        """Append a file's rows. Raises `WrongInput` naming the line and column that are not right."""
        before, first, line = len(self.labels), True, 0
        try:
            for line, fields in (csv_rows if self.form == "csv" else space_rows)(path):
                if first:
                    first = False
                    if self.width == 0:
                        self._begin(path, line, fields)
                    if self._is_header(path, line, fields):
                        if self.names and self.names != fields:
                            raise WrongInput(f"{path}, line {line}: other columns than the first file's; give files of the same columns")
                        self._choose(path, fields)
                        continue
                    if not self.features:
                        self._choose(path, [])
                if len(fields) != self.width:
                    raise WrongInput(
                        f"{path}, line {line}: {len(fields)} columns where the first line has {self.width}; correct or remove the line"
                    )
                self._append(path, line, fields)
        except csv.Error as error:
            raise WrongInput(f"{path}, line {line + 1}: {error}; correct the quotes") from None
        if len(self.labels) == before:
            raise WrongInput(f"{path}: the file holds no rows")

    def _begin(self, path: Path, line: int, fields: list[str]) -> None:
        self.width = len(fields)
        if self.width < 2:
            raise WrongInput(f"{path}, line {line}: one column only; a row needs a target and at least one feature, separated by commas")

    def _is_header(self, path: Path, line: int, fields: list[str]) -> bool:
        """As told; else a line without any number. Raises `WrongInput` for a line with both where texts cannot be values."""
        if self.header is not None:
            return self.header
        texts = [field for field in fields if not NUMBER.match(field.encode())]
        if 0 < len(texts) < len(fields) and not self.one_hot and self.rule.text is None:
            raise WrongInput(
                f"{path}, line {line}: numbers, and text {texts[0][:60]!r}: if the line holds names, add --header; if it is a row, fill "
                "the value in, or declare texts as categories with --one-hot, or as labels with --labels"
            )
        return len(texts) == len(fields)

    def _choose(self, path: Path, names: list[str]) -> None:
        """Find the target and the features among the columns."""
        if self.features:
            return
        repeated = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if repeated is not None:
            raise WrongInput(f"{path}: the header has {repeated!r} twice; give each column a name of its own")
        self.names = names
        self.target = self.width - 1 if self.wanted is None else self._column(path, "--target", self.wanted)
        out = {self._column(path, "--drop", name) for name in self.dropped}
        if self.target in out:
            raise WrongInput(f"{path}: --drop names the target column, {self._called(self.target)}; name another --target")
        self.features = [k for k in range(self.width) if k != self.target and k not in out]
        if not self.features:
            raise WrongInput(f"{path}: --drop leaves no feature; keep at least one column besides the target")

    def _column(self, path: Path, option: str, wanted: str) -> int:
        if wanted in self.names:
            return self.names.index(wanted)
        if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 and 1 <= int(wanted) <= self.width:
            return int(wanted) - 1
        if self.names:
            raise WrongInput(f"{path}: {option} {wanted}: no such column{nearest(wanted, self.names)}")
        raise WrongInput(f"{path}: {option} {wanted}: the file has no header; give the column's number, 1 to {self.width}")

    def _called(self, column: int) -> str:
        return f"column {self.names[column]!r}" if self.names else f"column {column + 1}"

    def _append(self, path: Path, line: int, fields: list[str]) -> None:
        if self.one_hot and not self.labels:
            self.texts = {k: {} for k in self.features if not NUMBER.match(fields[k].encode())}
        for k in self.features:
            text = fields[k]
            if k in self.texts:
                numbers = self.texts[k]
                self.values.append(numbers.setdefault(text, len(numbers)))
            else:
                remedy = "correct it" if self.one_hot else "correct it, or declare its texts as categories with --one-hot"
                self.values.append(number_of(text.encode(), path, line, self._called(k), remedy))
        self.labels.append(self.rule(fields[self.target].encode(), path, line, self._called(self.target)))

    def table(self) -> Table:
        """What was read, dense; sparse if columns were made one-hot."""
        n, width = len(self.labels), len(self.features)
        done = list(self.rule.done)
        if self.dropped:
            done.append(f"left out: {', '.join(self._called(self._column(Path(), '--drop', name)) for name in self.dropped)}")
        if self.one_hot:
            return self._one_hot(done)
        indptr = np.arange(0, (n + 1) * width, width)
        names = [self.names[k] for k in self.features] if self.names else []
        return Table(
            np.array(self.labels), indptr, np.zeros(0, np.int32), np.array(self.values), width, "dense", self.form, names, tuple(done)
        )

    def _one_hot(self, done: list[str]) -> Table:
        """Numbers where they are, and a 1 at the feature of each text: canonical CSR."""
        n, width = len(self.labels), len(self.features)
        values = np.array(self.values).reshape(n, width)
        indices = np.empty((n, width), np.int32)
        names: list[str] = []
        for place, k in enumerate(self.features):
            called = self.names[k] if self.names else f"column {k + 1}"
            if k not in self.texts:
                indices[:, place] = len(names)
                names.append(called)
                continue
            texts = sorted(self.texts[k])
            numbers = [text for text in texts if NUMBER.match(text.encode())]
            if numbers and all(text in numbers or text.lower() in MISSING for text in texts):
                missing = next(iter(self.texts[k]))
                raise WrongInput(f"{self._called(k)} holds numbers, and {missing!r} in its first row; fill the value in or remove the row")
            rank = {text: number for number, text in enumerate(texts)}
            to_rank = np.array([rank[text] for text in self.texts[k]])
            indices[:, place] = len(names) + to_rank[values[:, place].astype(np.int64)]
            values[:, place] = 1.0
            names += [f"{called}={text}" for text in texts]
        columns = ", ".join(f"{self._called(k)} ({len(texts)})" for k, texts in self.texts.items())
        done.append(f"one-hot, values in sorted order: {columns}" if self.texts else "one-hot: no column of texts")
        kept = values != 0.0
        indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        return Table(np.array(self.labels), indptr, indices[kept], values[kept], len(names), "sparse", self.form, names, tuple(done))


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, fields without spaces around them) of a CSV file. A # before the first line's names is taken away."""
    lines = csv.reader(_decoded(path), strict=True, skipinitialspace=True)
    for fields in lines:
        if fields and fields != [""]:
            yield lines.line_num, [field.strip() for field in fields]


def space_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, fields) of a file whose columns are separated by spaces or tabs."""
    for number, line in enumerate(_decoded(path), 1):
        if fields := line.split():
            yield number, fields


def _decoded(path: Path) -> Iterator[str]:
    for number, line in lines_of(path):
        try:
            text = line.decode("utf-8") + "\n"
        except UnicodeDecodeError as error:
            raise WrongInput(f"{path}, line {number}: {error}; save the file as UTF-8") from None
        yield text.lstrip("# ") if number == 1 and text.startswith("#") else text
