"""Tables as sources: the target and feature columns of a table, and one-hot encoding."""

import re
from abc import abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput, nearest
from koco_stream.types import Array
from storage.sources.arrow import Locate, encoded, is_missing, labels, numbers, with_missing
from storage.sources.numbers import CHOOSE, DROP_ROWS, LabelRule, is_number
from storage.sources.source import (
    MOST_TOLD,
    UNDECIDED,
    Malformed,
    ParallelMap,
    Piece,
    Problems,
    Reading,
    Source,
    dense_piece,
    few,
    refuse_first,
)

# limit on the distinct texts of one column: each becomes a feature, named in the manifest
MOST_TEXTS = 1_000_000
# names that pandas gives to an index, of which the last may also be a feature's
STORED = re.compile(r"__index_level_\d+__")
INDEX = re.compile(r"|Unnamed: 0(\.\d+)?|index|level_\d+")


@dataclass(frozen=True)
class Choice:
    """Roles of the columns of a table, counted from 0 here and from 1 in messages.

    `names` is empty for a table without names. The columns `index` number the rows, and are left
    out as the `dropped` ones are. The features `texts` hold texts. With `one_hot`, they are one-hot
    encoded. `separator` stands between the columns of a CSV file. `notes` say what is doubtful.
    """

    width: int
    names: tuple[str, ...]
    target: int
    features: tuple[int, ...]
    dropped: tuple[int, ...]
    texts: tuple[int, ...]
    one_hot: bool
    index: tuple[int, ...] = ()
    separator: str = ","
    notes: tuple[str, ...] = ()

    def called(self, column: int) -> str:
        """Description of a column in messages: its name, or its number counted from 1."""
        return f"column {self.names[column]!r}" if self.names else f"column {column + 1}"

    def few(self, columns: Sequence[int]) -> str:
        """Description of columns by their number and the first names."""
        return few([self.called(column) for column in columns])


@dataclass(frozen=True)
class Parsed:
    """Rows of a table before one-hot encoding.

    `labels` (n,) and `values` (n, k) are the label column and the k feature columns. A column of
    text has numbers in `values`: each is the position of the row's text in `texts[column]`, the
    list of that column's distinct texts. Missing values are NaN, if the source accepts them.
    """

    labels: Array
    values: Array
    texts: dict[int, list[str]]


@dataclass(kw_only=True)
class ColumnSource(Source):
    """Base of the sources that read tables.

    With one-hot encoding, each distinct text of a text column is one feature. The features of a
    column are in the sorted order of its texts, which are `known` once the source is surveyed. Rows
    are then sparse, unless at least half of the features are columns of numbers.
    """

    choice: Choice
    rule: LabelRule
    known: dict[int, list[str]] = field(default_factory=dict)

    @abstractmethod
    def rows(self, piece: Any) -> Parsed:
        """Read the rows of a piece. Raises `WrongInput` with the position of an error."""

    def from_arrow(self, columns: Sequence[pa.Array], at: Locate) -> Parsed:
        """Rows from Arrow columns: those of the features, and then the target.

        Raises `Malformed` with every kind of fault; `at` says where a row is.
        """
        choice = self.choice
        problems = Problems()
        texts = dict[int, list[str]]()
        *features, target = columns
        values = np.zeros((len(target), len(features)))

        def feature(k: int, column: pa.Array) -> Array:
            what = choice.called(k)
            if k not in choice.texts:
                read = partial(numbers, what=what, remedy=CHOOSE)
                return with_missing(read, column, at) if self.missing else read(column, at)
            column = column.cast(pa.large_string())
            column = column.fill_null("") if self.missing else column
            codes, texts[k] = encoded(column, at, what, CHOOSE, no_numbers=True)
            return codes

        for into, k, column in zip(values.T, choice.features, features, strict=True):
            kind = "missing" if is_missing(column).any() else "no number"
            read = partial(feature, k, column)
            into[:] = problems.noting(read, into, kind, choice.called(k))
        read = partial(labels, what=choice.called(choice.target), rule=self.rule, remedy=DROP_ROWS)
        read = partial(with_missing, read) if self.missing == "drop" else read
        known = problems.noting(partial(read, target, at), values[:, 0], "label")
        problems.refuse()
        return Parsed(known, values, texts)

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        """Copy of this source that knows the distinct texts of its text columns.

        Raises `WrongInput` for a malformed row and for too many distinct texts in a column.
        """
        source = super().surveyed(parallel_map, scratch)
        choice = self.choice
        if not choice.one_hot:
            return source
        met: dict[int, dict[str, None]] = {k: {} for k in choice.texts}
        for texts in parallel_map(self.texts_of, self.pieces(scratch) if met else ()):
            for k in choice.texts:
                met[k].update(dict.fromkeys(texts[k]))
                if len(met[k]) > MOST_TEXTS:
                    raise WrongInput(
                        f"{self.paths[0]}: {choice.called(k)} holds more than {MOST_TEXTS:,}"
                        " different texts; leave it out with --drop"
                        f" {choice.names[k] if choice.names else k + 1}"
                    )
        known = {k: sorted(texts) for k, texts in met.items()}
        n_numbers = len(choice.features) - len(known)
        n_features = n_numbers + sum(map(len, known.values()))
        names = []
        for k in choice.features:
            name = choice.names[k] if choice.names else choice.called(k)
            names += [f"{name}={text}" for text in known[k]] if k in known else [name]
        said = ", ".join(f"{choice.called(k)} ({len(known[k]):,})" for k in choice.texts)
        what = f"one-hot, values in sorted order: {said}" if said else "one-hot: no column of texts"
        return replace(
            source,
            known=known,
            feature_names=names,
            n_features=n_features,
            layout="dense" if 2 * n_numbers >= n_features else "sparse",
            done=(*self.done, what),
        )

    def texts_of(self, piece: Any) -> dict[int, list[str]]:
        """Distinct texts of the text columns in a piece, by column."""
        choice = replace(self.choice, features=self.choice.texts)
        try:
            texts = replace(self, choice=choice).rows(piece).texts
        except Malformed:
            self.rows(piece)  # raises the problems of all columns
            raise
        self.release(piece)
        return texts

    def read(self, piece: Any) -> Piece:
        """Read the rows of a piece; each text becomes a 1 at its feature.

        With the choice "drop", rows with a missing number or label are left out. Raises
        `WrongInput` with the position of an error, and for a text that was absent during the
        survey.
        """
        rows = self.rows(piece)
        whole = np.ones(rows.labels.size, bool)
        if self.missing == "drop":
            whole = ~(np.isnan(rows.labels) | np.isnan(rows.values).any(axis=1))
        encoded = self._encoded(rows, whole) if self.choice.one_hot else None
        kept = encoded or dense_piece(rows.labels[whole], rows.values[whole])
        return replace(kept, n_dropped=int(whole.size - whole.sum()))

    def _encoded(self, rows: Parsed, whole: Array) -> Piece:
        """One-hot encode those rows where `whole` (n,) is true, in the layout of the source."""
        values = rows.values[whole]
        offsets = np.zeros((int(whole.sum()), rows.values.shape[1]), int)
        widths = []
        for j, k in enumerate(self.choice.features):
            widths.append(len(self.known.get(k, [""])))
            if k in self.known:
                known = self.known[k]
                ranks = [bisect_left(known, text) for text in rows.texts[k]]
                for rank, text in zip(ranks, rows.texts[k], strict=True):
                    if known[rank : rank + 1] != [text]:
                        raise WrongInput(
                            f"{self.choice.called(k)}: {text[:60]!r} was not there when the files"
                            " were first read; do not change them while they are prepared"
                        )
                offsets[:, j] = np.array(ranks, int)[values[:, j].astype(int)]
                values[:, j] = 1.0
        indices = offsets + np.cumsum([0, *widths[:-1]])
        labels = rows.labels[whole]
        if self.layout == "dense":
            matrix = np.zeros((labels.size, sum(widths)))
            np.put_along_axis(matrix, indices, values, axis=1)
            return dense_piece(labels, matrix)
        kept = values != 0.0
        indptr = np.append(0, np.cumsum(kept.sum(axis=1)))
        return Piece(labels, indptr, indices[kept].astype(np.int32), values[kept])


def column_fields(
    paths: Sequence[Path], form: str, choice: Choice, reading: Reading
) -> dict[str, Any]:
    """Fields of a `ColumnSource` that follow from the roles of its columns."""
    rule = LabelRule(reading.labels)
    numeric = [k for k in choice.features if k not in choice.texts]
    said = [
        f"target: {choice.called(choice.target)}",
        f"numeric: {len(numeric):,}" + (f" ({choice.few(numeric)})" if numeric else ""),
        *choice.notes,
    ]
    without = ((choice.dropped, ""), (choice.index, " (an index)"))
    left_out = ", ".join(choice.few(columns) + why for columns, why in without if columns)
    return {
        "format": form,
        "paths": tuple(paths),
        "layout": UNDECIDED if choice.one_hot else "dense",
        "n_features": None if choice.one_hot else len(choice.features),
        "feature_names": [choice.names[k] for k in choice.features]
        if choice.names and not choice.one_hot
        else [],
        "done": (*rule.done, *([f"left out: {left_out}"] if left_out else [])),
        "origin": {**reading.given(), "format": form, "columns": said},
        "rule": rule,
        "choice": choice,
        "missing": reading.missing,
    }


def chosen_columns(
    path: Path,
    names: Sequence[str],
    width: int,
    reading: Reading,
    column: Callable[[int], Sequence[str]],
    stored: Collection[str] = (),
) -> Choice:
    """Select the target and the features among the `width` columns of a table.

    A column that holds the index of a data frame is left out, by its name and its first values,
    which `column` gives as texts; so are the columns `stored` as an index. Without a `target`, the
    last other column is the target. `names` is empty if the columns have none. Which columns hold
    texts is left open. Raises `WrongInput` if a named column does not exist, a name is repeated, or
    no feature is left.
    """
    repeated = [*(Counter(names) - Counter({*names}))]
    twice = f"{path}: two columns are called {''.join(repeated[:1])!r}; rename one of them"
    refuse_first([(bool(repeated), twice)])
    named_one = partial(_column, path, names, width)
    target = None if reading.target is None else named_one("--target", reading.target)
    dropped = tuple(named_one("--drop", name) for name in reading.drop)
    named = [k for k, name in enumerate(names) if INDEX.fullmatch(name) and (name or k == 0)]
    index = {k for k, name in enumerate(names) if name in stored or STORED.fullmatch(name)}
    index |= {k for k in named if labels_rows(column(k))}
    index -= {target, *dropped}
    if target is None:
        target = max({*range(width)} - index, default=width - 1)
    left_out = {target, *dropped, *index}
    features = tuple(k for k in range(width) if k not in left_out)
    choice = Choice(width, tuple(names), target, features, dropped, (), reading.one_hot)
    own = f"{path}: --drop names the target column, {choice.called(target)}; name another --target"
    rename = f", or rename {choice.few(sorted(index))} if it is no index" if index else ""
    none = f"{path}: no column is left as a feature; keep at least one besides the target{rename}"
    refuse_first([(target in dropped, own), (not features, none)])
    notes = [
        f"{choice.called(k)} may only number the rows; if so, leave it out with --drop"
        f" {(names[k] or repr('')) if names else k + 1}"
        for k in features
        if k in named or counts_rows(column(k))
    ]
    return replace(choice, index=tuple(sorted(index)), notes=tuple(notes[:MOST_TOLD]))


def labels_rows(column: Sequence[str]) -> bool:
    """Whether the first values of a column may label rows: all differ, and none is a fraction."""
    fractions = (is_number(text) and not float(text).is_integer() for text in column)
    return len({*column}) == len(column) and not any(fractions)


def counts_rows(column: Sequence[str]) -> bool:
    """Whether the first values of a column are 0, 1, 2, … or 1, 2, 3, …; at least three."""
    first = column[0] if len(column) > 2 and is_number(column[0]) else ""
    return (
        bool(first)
        and float(first) in (0, 1)
        and all(
            is_number(text) and float(text) == float(first) + k for k, text in enumerate(column)
        )
    )


def _column(path: Path, names: Sequence[str], width: int, option: str, wanted: str) -> int:
    """Index of the column that an option names by its name, or by its number from 1."""
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    unnamed = f"the file has no header; give the column's number, 1 to {width}"
    wrong = f"no such column{nearest(wanted, list(names))}" if names else unnamed
    raise WrongInput(f"{path}: {option} {wanted}: {wrong}")
