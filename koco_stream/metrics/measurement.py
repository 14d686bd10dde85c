"""The metrics of one run, computed while it runs, in memory that is known before."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from koco_stream.metrics.declared import ALWAYS, NUMBERS
from koco_stream.types import Array

SEGMENT = 2**20  # the most rounds whose scores are kept
# What is summed over rounds: of classes; and of real labels, whose differences from the first label
# make their spread.
LOSS, LOG_LOSS = range(2)
ABSOLUTE, SQUARED, APART, SQUARED_APART, SIZE = range(1, 6)


class Metered(NamedTuple):
    """What is measured; `classes` are given if each has a score."""

    names: tuple[str, ...]
    task: str
    n_rounds: int
    window: int | None = None
    classes: tuple[float, ...] = ()


@cache
def measurement_bytes(metered: Metered) -> int:
    """The bytes of a measurement's arrays."""
    return sum(array.nbytes for array in Measurement(metered).arrays.values())


class Measurement:
    """The metrics of one run, over all its rounds and over consecutive windows."""

    def __init__(self, metered: Metered, segment: int = SEGMENT) -> None:
        self.metered = metered
        # the rounds of a window, and those of a segment for `auc`, in whole windows
        self.size = metered.window or max(metered.n_rounds, 1)
        whole = max(segment // (metered.window or 1), 1) * (metered.window or 1)
        self.segment = whole if "auc" in metered.names else 0
        scores = min(self.segment, metered.n_rounds)
        windows = max(-(-metered.n_rounds // self.size), 1)
        n_classes = max(len(metered.classes), 2)
        self.arrays = {  # its whole state: filling these restores it
            "rounds": np.zeros(1, np.int64),
            "sums": np.zeros((SIZE, windows)),
            "first_label": np.zeros(windows),
            # of each class: the rows, those that are predicted to be of it, and both
            "counts": np.zeros((3, windows, n_classes), np.int64),
            "scores": np.zeros(scores),
            "positive": np.zeros(scores, bool),
            "auc": np.zeros(windows),
            # of the AUC: the weighted sum over segments, and the weights
            "mean": np.zeros(2),
        }

    @property
    def rounds(self) -> int:
        """The rounds so far."""
        return int(self.arrays["rounds"][0])

    def add(
        self, predictions: Array, learnt: Array, numbers: Array, losses: Array, predicted: Array
    ) -> None:
        """Measure rounds: scores and labels (1, n) or (K, n), and for each its class, loss and
        predicted class.
        """
        a, names = self.arrays, self.metered.names
        done = self.rounds + np.arange(losses.size)
        windows = done // self.size
        terms = [losses]
        if self.metered.task == NUMBERS:
            starts = done % self.size == 0
            a["first_label"][windows[starts]] = learnt[0, starts]
            errors, apart = predictions[0] - learnt[0], learnt[0] - a["first_label"][windows]
            terms += [np.abs(errors), errors * errors, apart, apart * apart]
        else:
            cells = windows * a["counts"].shape[2]
            of_class, of_predicted = cells + numbers, cells + predicted
            each = of_class, of_predicted, of_class[numbers == predicted]
            for counts, cell in zip(a["counts"], each, strict=True):
                np.add.at(counts.reshape(-1), cell, 1)
            if "log_loss" in names and self.metered.classes:
                own = predictions[numbers, np.arange(numbers.size)]
                terms.append(np.logaddexp.reduce(predictions, axis=0) - own)
            elif "log_loss" in names:
                terms.append(np.logaddexp(0.0, -learnt[0] * predictions[0]))
        for sums, term in zip(a["sums"], terms, strict=False):
            np.add.at(sums, windows, term)  # one after the other
        if self.segment:
            self._rank(predictions[0], learnt[0] > 0.0)
        a["rounds"] += losses.size

    def _rank(self, scores: Array, positive: Array) -> None:
        """Keep scores, and find the AUC of each window and segment that ends."""
        first, rounds = 0, self.rounds
        while first < scores.size:
            at = rounds % self.segment
            n = min(scores.size - first, self.size - rounds % self.size, self.segment - at)
            self.arrays["scores"][at : at + n] = scores[first : first + n]
            self.arrays["positive"][at : at + n] = positive[first : first + n]
            first, rounds = first + n, rounds + n
            self._end(rounds)

    def _end(self, rounds: int, is_last: bool = False) -> None:
        """Find the AUC of the window and the segment whose last round is done, or the run's."""
        a, at = self.arrays, (rounds - 1) % self.segment + 1
        if self.metered.window and (rounds % self.size == 0) != is_last:
            first = at - (rounds - 1) % self.size - 1
            a["auc"][(rounds - 1) // self.size] = auc(
                a["scores"][first:at], a["positive"][first:at]
            )
        if (rounds % self.segment == 0) != is_last:
            found = auc(a["scores"][:at], a["positive"][:at])
            a["mean"] += (0.0, 0.0) if math.isnan(found) else (at * found, at)

    def finish(self) -> None:
        """End the last window and segment."""
        if self.segment and self.rounds:
            self._end(self.rounds, is_last=True)

    def values(self) -> dict[str, float | None]:
        """A finished run's metrics by name, if they are defined."""
        a, rounds = self.arrays, self._rounds_of_windows()
        sums, apart = a["sums"].copy(), a["first_label"] - a["first_label"][0]
        sums[SQUARED_APART] += apart * (2.0 * sums[APART] + rounds * apart)
        sums[APART] += apart * rounds
        whole = (of.sum(axis=1, keepdims=True) for of in (rounds[None], sums, a["counts"]))
        found = metrics_of(self.metered, *whole)
        with np.errstate(invalid="ignore"):
            found["auc"] = a["mean"][:1] / a["mean"][1:]
        values = {name: float(found[name].item()) for name in self.metered.names}
        return {name: None if math.isnan(value) else value for name, value in values.items()}

    def windows(self) -> dict[str, Array]:
        """A finished run's windows: `first` and `last` round (from 1), and each metric (w,)."""
        a, rounds = self.arrays, self._rounds_of_windows()
        found = metrics_of(self.metered, rounds, a["sums"], a["counts"]) | {"auc": a["auc"]}
        n = np.count_nonzero(rounds) if self.metered.window else 0
        last = np.cumsum(rounds)[:n]
        return {
            "first": last - rounds[:n] + 1,
            "last": last,
            **{name: found[name][:n] for name in (*ALWAYS, *self.metered.names)},
        }

    def _rounds_of_windows(self) -> Array:
        """The rounds done of each window."""
        return np.clip(self.rounds - np.arange(self.arrays["auc"].size) * self.size, 0, self.size)


def metrics_of(metered: Metered, rounds: Array, sums: Array, counts: Array) -> dict[str, Array]:
    """Each metric but AUC of ranges of rounds; NaN where it is not defined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_loss = sums[LOSS] / rounds
        if metered.task == NUMBERS:
            spread = sums[SQUARED_APART] - sums[APART] ** 2 / rounds
            r2 = np.where(spread > 0.0, 1.0 - sums[SQUARED] / spread, sums[SQUARED] == 0.0)
            return {
                "mean_loss": mean_loss,
                "error_rate": np.full_like(mean_loss, math.nan),
                "mae": sums[ABSOLUTE] / rounds,
                "rmse": np.sqrt(sums[SQUARED] / rounds),
                "r2": np.where(rounds >= 2, r2, math.nan),
            }
        own, predicted, hits = counts
        correct = hits.sum(axis=1) / rounds
        by_chance = (own * predicted).sum(axis=1) / (rounds * rounds)
        f1 = 2.0 * hits / (own + predicted)
        of_many = np.nansum(f1, axis=1) / np.count_nonzero(own + predicted, axis=1)
        return {
            "mean_loss": mean_loss,
            "error_rate": (rounds - hits.sum(axis=1)) / rounds,
            "balanced_accuracy": np.nansum(hits / own, axis=1) / np.count_nonzero(own, axis=1),
            # of two classes, that of the label +1
            "f1": of_many if metered.classes else np.nan_to_num(f1[:, 1]),
            "kappa": (correct - by_chance) / (1.0 - by_chance),
            "log_loss": sums[LOG_LOSS] / rounds,
        }


def auc(scores: Array, is_positive: Array) -> float:
    """The share of pairs in which the positive row has the larger score; ties count half."""
    positive, negative = np.sort(scores[is_positive]), np.sort(scores[~is_positive])
    pairs = positive.size * negative.size
    less, no_more = (negative.searchsorted(positive, side) for side in ("left", "right"))
    return float(0.5 * (less.sum() + no_more.sum())) / pairs if pairs else math.nan
