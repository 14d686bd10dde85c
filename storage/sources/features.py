"""Columns as features: which column is the target, which are features, and texts as one feature
each (one-hot).
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput, nearest
from koco_stream.types import Array
from storage.sources.source import Piece, Reading, Source, refuse_first

MOST_TEXTS = 1_000_000  # different ones of a column: each is a feature, named in the manifest


@dataclass(kw_only=True)
class ColumnSource(Source):
    """A source of columns, of which those that hold texts become one feature for each text, in
    sorted order, once the source is surveyed.

    known: all texts of each column of texts, by whatever names the column.
    """

    known: dict[Any, list[str]] = field(default_factory=dict)

    def with_texts(
        self, met: dict[Any, dict[str, None]], columns: Iterable[tuple[Any, str, str]]
    ) -> Self:
        """The source that knows the texts that were met of each column of texts. `columns` has all
        features: (what names it, its name as a feature, its name in words).
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
        """Rows with labels (n,) of columns (n, k) that are numbers or texts: each row has the value
        values[i, j] at the feature offsets[i, j], counted from 0, of those of the column j. Zeros
        are dropped.
        """
        widths = [len(self.known[column]) if column in self.known else 1 for column in columns]
        indices = (offsets + np.cumsum([0, *widths[:-1]])).astype(np.int32)
        kept = values != 0.0
        return Piece(labels, np.append(0, np.cumsum(kept.sum(axis=1))), indices[kept], values[kept])


def chosen_columns(
    path: Path, names: Sequence[str], width: int, reading: Reading
) -> tuple[int, list[int], list[int]]:
    """(the target, the features, the columns left out) of `width` columns, counted from 0; `names`
    may be empty. The target is the last one unless the reading says otherwise.

    Raises `WrongInput` for columns that there are not, and if no feature is left.
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
    """The number of a column that an option has by name or by number from 1."""
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
    """A column in words, its number being counted from 1 there."""
    return f"column {names[column]!r}" if names else f"column {column + 1}"


def left_out(names: Sequence[str], dropped: Sequence[int]) -> tuple[str, ...]:
    """The columns left out, in words, for the manifest."""
    said = ", ".join(called(names, column) for column in dropped)
    return (f"left out: {said}",) if said else ()


def add_texts(
    met: dict[str, None], texts: Iterable[str], path: Path, column: str, drop: str | int
) -> None:
    """Add texts to those that were met of a column, in words, which `drop` names as an option does.
    Raises `WrongInput` for too many.
    """
    met.update(dict.fromkeys(texts))
    if len(met) > MOST_TEXTS:
        raise WrongInput(
            f"{path}: {column} holds more than {MOST_TEXTS:,} different texts; leave it out with"
            f" --drop {drop}"
        )
