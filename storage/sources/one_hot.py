"""Columns one-hot: a column of numbers is one feature, a column of texts one for each text, in
sorted order.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from koco_stream.types import Array
from storage.sources.source import Piece


def one_hot_piece(labels: Array, values: Array, places: Array, widths: Sequence[int]) -> Piece:
    """Rows with labels (n,) of columns (n, k), column j becoming widths[j] features: each row has
    the value values[i, j] at the feature places[i, j] of those, counted from 0. Zeros are dropped.
    """
    indices = (places + np.cumsum([0, *widths[:-1]])).astype(np.int32)
    kept = values != 0.0
    return Piece(labels, np.append(0, np.cumsum(kept.sum(axis=1))), indices[kept], values[kept])


def feature_names(columns: Iterable[tuple[str, list[str] | None]]) -> list[str]:
    """The features' names; `columns` are names with the texts of a column of texts, sorted, or
    None.
    """
    return [
        feature
        for name, texts in columns
        for feature in ([name] if texts is None else [f"{name}={text}" for text in texts])
    ]


def in_words(columns: Iterable[tuple[str, list[str]]]) -> str:
    """What was done, for the manifest; `columns` are the columns of texts, in words, with their
    texts.
    """
    said = ", ".join(f"{column} ({len(texts)})" for column, texts in columns)
    return f"one-hot, values in sorted order: {said}" if said else "one-hot: no column of texts"
