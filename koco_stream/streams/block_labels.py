"""The labels of a block of rows as the states of a run learn them: one class, or every class."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from koco_stream.streams.reader import StreamReader
from koco_stream.streams.rows import frozen
from koco_stream.types import Array


class BlockLabels(NamedTuple):
    """The labels of a block of rows: as each state of a run learns them, and as class numbers.

    `learnt` is (1, n), or (K, n) with −1 and +1 if all K classes are learnt; then `numbers` (n,)
    counts from 0 which of `classes` a row has.
    """

    learnt: Array
    numbers: Array | None = None
    classes: Sequence[float] = ()

    @staticmethod
    def of(labels: Array, reader: StreamReader) -> "BlockLabels":
        """The labels (n,) of a block that `reader` has read."""
        if reader.stream.multiclass is None:
            return BlockLabels(labels.reshape(1, -1))
        classes = np.array(reader.manifest.classes)
        learnt = np.where(labels == classes[:, None], 1.0, -1.0)
        return BlockLabels(
            frozen(learnt, np.float64), np.searchsorted(classes, labels), reader.manifest.classes
        )
