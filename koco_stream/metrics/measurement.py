"""The metrics of one run, computed while it runs, in memory that is known before."""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.metrics.declared import NUMBERS, WINDOWED
from koco_stream.metrics.sums import (
    COUNTS,
    MANY,
    REAL,
    ROUNDS,
    SIZE,
    TWO,
    add_block,
    auc_of_segment,
    auc_of_window,
    keep_scores,
    merge,
    metrics_into,
)
from koco_stream.types import Array

SEGMENT = 2**20  # the most rounds whose scores are kept


class Metered(NamedTuple):
    """What is measured; `classes` are given if each has a score."""

    names: tuple[str, ...]
    loss: int
    task: str
    n_rounds: int
    window: int | None = None
    classes: tuple[float, ...] = ()

    @property
    def kind(self) -> int:
        """What the labels are: `REAL`, `TWO` or `MANY`."""
        return REAL if self.task == NUMBERS else MANY if self.classes else TWO

    @property
    def n_windows(self) -> int:
        """The windows in the stream."""
        return -(-self.n_rounds // self.window) if self.window else 0

    def segment_rounds(self, segment: int = SEGMENT) -> int:
        """The rounds of a segment, in whole windows, for `auc`."""
        window = self.window or 1
        return max(segment // window, 1) * window if "auc" in self.names else 0


def measurement_bytes(metered: Metered) -> int:
    """The bytes of a measurement's arrays."""
    n_classes = max(len(metered.classes), 2)
    scores = COUNTS + min(metered.segment_rounds(), metered.n_rounds)
    windows = metered.n_windows * len(WINDOWED)
    return 8 * (scores + windows + 2 * (n_classes * n_classes + SIZE + 1))


class Measurement:
    """The metrics of one run over all its rounds, and over consecutive windows."""

    def __init__(self, metered: Metered, segment: int = SEGMENT) -> None:
        self.metered = metered
        n_classes = max(len(metered.classes), 2)
        self._segment = metered.segment_rounds(segment)
        self.arrays = {  # its whole state: filling these restores it
            "sums": np.zeros(SIZE),
            "confusion": np.zeros((n_classes, n_classes), np.int64),
            "total_sums": np.zeros(SIZE),
            "total_confusion": np.zeros((n_classes, n_classes), np.int64),
            "ranked": np.zeros(min(self._segment, metered.n_rounds)),
            "counts": np.zeros(COUNTS, np.int64),
            # of the AUC: the weighted sum of its values, the weights
            "mean": np.zeros(2),
            "windows": np.full((metered.n_windows, len(WINDOWED)), math.nan),
        }
        self._with_log_loss = "log_loss" in metered.names

    @property
    def rounds(self) -> int:
        """The rounds so far."""
        return int(self.arrays["total_sums"][ROUNDS] + self.arrays["sums"][ROUNDS])

    def add(self, predictions: Array, learnt: Array, numbers: Array, done: int) -> None:
        """Measure the first `done` rounds of a block."""
        metered = self.metered
        a = self.arrays
        first = 0
        while first < done:
            rounds = self.rounds
            last = done
            if self._segment:  # Python has something to do where a window or a segment ends
                left = [n - rounds % n for n in (metered.window, self._segment) if n]
                last = min(done, first + min(left))
                keep_scores(predictions[0, first:last], learnt[0, first:last], *self._ranked)
            add_block(
                metered.kind,
                metered.loss,
                self._with_log_loss,
                predictions[:, first:last],
                learnt[:, first:last],
                numbers[first:last],
                rounds,
                metered.window or 0,
                a["sums"],
                a["confusion"],
                a["total_sums"],
                a["total_confusion"],
                a["windows"],
            )
            self._end(rounds + last - first)
            first = last

    def _end(self, rounds: int, is_last: bool = False) -> None:
        window = self.metered.window
        segment = self._segment
        if segment and window and (rounds % window == 0) != is_last:
            row = self.arrays["windows"][(rounds - 1) // window]
            row[WINDOWED.index("auc")] = auc_of_window(*self._ranked)
        if segment and (rounds % segment == 0) != is_last:
            n = (rounds - 1) % segment + 1
            found = auc_of_segment(*self._ranked)
            if not math.isnan(found):
                self.arrays["mean"] += (n * found, n)

    @property
    def _ranked(self) -> tuple[Array, Array]:
        return self.arrays["ranked"], self.arrays["counts"]

    def finish(self) -> None:
        """End the last window and segment."""
        a = self.arrays
        rounds = self.rounds
        window = self.metered.window
        sums = a["sums"], a["confusion"], a["total_sums"], a["total_confusion"]
        if window and rounds % window:
            metrics_into(self.metered.kind, *sums[:2], a["windows"][rounds // window])
        merge(*sums)
        if rounds:
            self._end(rounds, is_last=True)

    def values(self) -> dict[str, float | None]:
        """A finished run's metrics by name, if they are defined."""
        a = self.arrays
        row = np.empty(len(WINDOWED))
        metrics_into(self.metered.kind, a["total_sums"], a["total_confusion"], row)
        found = dict(zip(WINDOWED, row.tolist(), strict=True))
        total, weight = a["mean"].tolist()
        found["auc"] = total / weight if weight else math.nan
        return {
            name: None if math.isnan(found[name]) else found[name] for name in self.metered.names
        }

    def windows(self) -> dict[str, Array]:
        """A finished run's windows: `first` and `last` round (from 1), and each metric (w,)."""
        window = self.metered.window or 1
        rounds = self.rounds
        n = -(-rounds // window) if self.metered.window else 0
        first = np.arange(n) * window + 1
        table = self.arrays["windows"][:n]
        wanted = {"mean_loss", "error_rate", *self.metered.names}
        columns = {
            name: table[:, k] if name in wanted else np.full(n, math.nan)
            for k, name in enumerate(WINDOWED)
        }
        return {"first": first, "last": np.minimum(first + window - 1, rounds), **columns}
