"""Mapping of table columns to features: target and feature columns, and one-hot encoding."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput, nearest
from koco_stream.types import Array
from storage.sources.source import Piece, Reading, Source, refuse_first

# limit on the distinct texts of one column: each becomes a feature, named in the manifest
MOST_TEXTS = 1_000_000


@dataclass(kw_only=True)
class ColumnSource(Source):
    """Base of the sources that read tables and can one-hot encode text columns.

    Once the source is surveyed, each distinct text of a text column is one feature. The features of
    a column are in the sorted order of its texts.

    Attributes
    ----------
    known : dict
        Sorted distinct texts of each text column, by the column's number or name.
    """

    known: dict[Any, list[str]] = field(default_factory=dict)

    def with_texts(
        self, met: dict[Any, dict[str, None]], columns: Iterable[tuple[Any, str, str]]
    ) -> Self:
        """Copy of this source that knows the distinct texts of its text columns.

        Parameters
        ----------
        met : dict
            Distinct texts of each text column, by the column's key (its number or name).
        columns : iterable of (key, str, str)
            All feature columns: key, feature name, description for the manifest.
        """
        known = {column: sorted(texts) for column, texts in met.items()}
        names, said = [], []
        for column, name, words in columns:
            if column in known:
                names += [f"{name}={text}" for text in known[column]]
                said.append(f"{words} ({len(known[column])})")
            else:
                names.append(name)
        what = f"one-hot, values in sorted order: {', '.join(said)}"
        return replace(
            self,
            known=known,
            feature_names=names,
            n_features=len(names),
            done=(*self.done, what if said else "one-hot: no column of texts"),
        )

    def one_hot(
        self, columns: Sequence[Hashable], labels: Array, values: Array, offsets: Array
    ) -> Piece:
        """Encode table rows as sparse rows; zero values are dropped.

        Parameters
        ----------
        columns : sequence of length k
            Keys of the feature columns.
        labels : Array (n,)
            Labels of the rows.
        values : Array (n, k)
            Numbers of numeric columns; 1 in text columns.
        offsets : Array (n, k)
            Feature of each value, counted from 0 among the features of its column.
        """
        widths = [len(self.known[column]) if column in self.known else 1 for column in columns]
        indices = (offsets + np.cumsum([0, *widths[:-1]])).astype(np.int32)
        kept = values != 0.0
        return Piece(labels, np.append(0, np.cumsum(kept.sum(axis=1))), indices[kept], values[kept])


def chosen_columns(
    path: Path, names: Sequence[str], width: int, reading: Reading
) -> tuple[int, list[int], list[int]]:
    """Select the target and the features among the `width` columns of a table.

    Parameters
    ----------
    path : Path
        The table's file, for error messages.
    names : sequence of str
        Column names; empty if the table has none.
    width : int
        Number of columns.
    reading : Reading
        Options; without a `target`, the last column is the target.

    Returns
    -------
    tuple
        Target column, feature columns and dropped columns, counted from 0.

    Raises
    ------
    WrongInput
        If a named column does not exist, a name is repeated, or no feature is left.
    """
    repeated = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if repeated is not None:
        raise WrongInput(
            f"{path}: two columns are called {repeated!r}; give each a name of its own"
        )
    target = width - 1
    if reading.target is not None:
        target = _column(path, names, width, "--target", reading.target)
    dropped = [_column(path, names, width, "--drop", name) for name in reading.drop]
    features = [k for k in range(width) if k != target and k not in dropped]
    own = f"{path}: --drop names the target column, {called(names, target)}; name another --target"
    none = f"{path}: no column is left as a feature; keep at least one besides the target"
    refuse_first([(target in dropped, own), (not features, none)])
    return target, features, dropped


def _column(path: Path, names: Sequence[str], width: int, option: str, wanted: str) -> int:
    """Index of the column that a command-line option names.

    The option has the column's name, or its number from 1; the index counts from 0.
    """
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    if names:
        raise WrongInput(f"{path}: {option} {wanted}: no such column{nearest(wanted, list(names))}")
    raise WrongInput(
        f"{path}: {option} {wanted}: the file has no header; give the column's number, 1 to {width}"
    )


def called(names: Sequence[str], column: int) -> str:
    """Description of a column in messages: its name, or its number counted from 1."""
    return f"column {names[column]!r}" if names else f"column {column + 1}"


def left_out(names: Sequence[str], dropped: Sequence[int]) -> tuple[str, ...]:
    """Manifest entry that lists the dropped columns; empty if there are none."""
    said = ", ".join(called(names, column) for column in dropped)
    return (f"left out: {said}",) if said else ()


def add_texts(
    met: dict[str, None], texts: Iterable[str], path: Path, column: str, drop: str | int
) -> None:
    """Add the values of a text column to the column's distinct texts `met`.

    `column` describes the column in messages; `drop` is its name or number for the `--drop` option.
    Raises `WrongInput` if there are more than `MOST_TEXTS` distinct texts.
    """
    met.update(dict.fromkeys(texts))
    if len(met) > MOST_TEXTS:
        raise WrongInput(
            f"{path}: {column} holds more than {MOST_TEXTS:,} different texts; leave it out with"
            f" --drop {drop}"
        )
