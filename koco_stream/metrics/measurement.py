"""The metrics of one run, computed while it runs, in memory that is known before."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from koco_stream.metrics.declared import ALWAYS, NUMBERS
from koco_stream.types import Array

SEGMENT = 2**20  # the most rounds whose scores are kept
# What is summed over the rounds: of classes; and of real labels, whose spread is the sum of squared
# differences from their mean.
ROUNDS, LOSS, LOG_LOSS = range(3)
ABSOLUTE, SQUARED, LABELS, SPREAD, SIZE = range(2, 7)


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
    """The metrics of one run over all its rounds, and over consecutive windows."""

    def __init__(self, metered: Metered, segment: int = SEGMENT) -> None:
        self.metered = metered
        self.window = metered.window or 0
        self.columns = (*ALWAYS, *metered.names)
        whole_windows = max(segment // max(self.window, 1), 1) * max(self.window, 1)
        self.segment = whole_windows if "auc" in metered.names else 0
        ranges = 2 if self.window else 1  # the run, and the window
        n_classes = max(len(metered.classes), 2)
        n_windows = -(-metered.n_rounds // self.window) if self.window else 0
        scores = min(self.segment, metered.n_rounds)
        self.arrays = {  # its whole state: filling these restores it
            "sums": np.zeros((ranges, SIZE)),
            "confusion": np.zeros((ranges, n_classes, n_classes), np.int64),
            "scores": np.zeros(scores),
            "positive": np.zeros(scores, bool),
            # of the AUC: the weighted sum of its values, the weights
            "mean": np.zeros(2),
            "windows": np.zeros((n_windows, len(self.columns))),
        }

    @property
    def rounds(self) -> int:
        """The rounds so far."""
        return int(self.arrays["sums"][0, ROUNDS])

    def add(
        self, predictions: Array, learnt: Array, numbers: Array, losses: Array, predicted: Array
    ) -> None:
        """Measure rounds: scores and labels (1, n) or (K, n), and for each its class, loss and
        predicted class.
        """
        terms = self._terms(predictions, learnt, numbers, losses)
        first = 0
        while first < losses.size:
            left = [size - self.rounds % size for size in (self.window, self.segment) if size]
            last = min([losses.size, *(first + n for n in left)])
            these = slice(first, last)
            if self.segment:
                at = self.rounds % self.segment
                self.arrays["scores"][at : at + last - first] = predictions[0, these]
                self.arrays["positive"][at : at + last - first] = learnt[0, these] > 0.0
            self._add_up(terms[:, these], numbers[these], predicted[these])
            self._end()
            first = last

    def _terms(self, predictions: Array, learnt: Array, numbers: Array, losses: Array) -> Array:
        """What is added in each round, (k, n)."""
        terms = [np.ones(losses.size), losses]
        if self.metered.task == NUMBERS:
            errors = predictions[0] - learnt[0]
            terms += [np.abs(errors), errors * errors, learnt[0]]
        elif "log_loss" in self.metered.names and self.metered.classes:
            own = predictions[numbers, np.arange(numbers.size)]
            terms.append(np.logaddexp.reduce(predictions, axis=0) - own)
        elif "log_loss" in self.metered.names:
            terms.append(np.logaddexp(0.0, -learnt[0] * predictions[0]))
        return np.array(terms)

    def _add_up(self, terms: Array, numbers: Array, predicted: Array) -> None:
        """Add rounds, one after the other, to the sums of the run and of the window."""
        sums = self.arrays["sums"]
        found = in_order(sums[:, : len(terms)], terms)
        sums[:, : len(terms)] = found[:, :, -1]
        if self.metered.task == NUMBERS:
            means = found[:, LABELS] / np.maximum(found[:, ROUNDS], 1.0)
            spreads = (terms[LABELS] - means[:, :-1]) * (terms[LABELS] - means[:, 1:])
            sums[:, SPREAD] = in_order(sums[:, SPREAD], spreads)[:, -1]
        else:
            for counts in self.arrays["confusion"]:
                np.add.at(counts.reshape(-1), numbers * len(counts) + predicted, 1)

    def _end(self, is_last: bool = False) -> None:
        """End the window and the segment, if their last round is done or the run's."""
        a, rounds = self.arrays, self.rounds
        if self.window and (rounds % self.window == 0) != is_last:
            row = (rounds - 1) // self.window
            a["windows"][row] = self._metrics(1, self._auc(rounds - row * self.window))
            a["sums"][1] = a["confusion"][1] = 0
        if self.segment and (rounds % self.segment == 0) != is_last:
            n = (rounds - 1) % self.segment + 1
            found = self._auc(n)
            a["mean"] += (0.0, 0.0) if math.isnan(found) else (n * found, n)

    def _auc(self, rounds: int) -> float:
        """The AUC of the last rounds, if it is asked for."""
        end = (self.rounds - 1) % self.segment + 1 if self.segment else 0
        scores = self.arrays["scores"][max(end - rounds, 0) : end]
        positive = self.arrays["positive"][max(end - rounds, 0) : end]
        return auc(scores[positive], scores[~positive])

    def _metrics(self, k: int, area: float) -> list[float]:
        """The metrics named in `columns` of the run (0) or of the window (1)."""
        sums, confusion = self.arrays["sums"][k], self.arrays["confusion"][k]
        rounds = sums[ROUNDS]
        found = {"auc": area, "error_rate": math.nan}
        with np.errstate(invalid="ignore", divide="ignore"):
            found["mean_loss"] = sums[LOSS] / rounds
            if self.metered.task == NUMBERS:
                constant = float(sums[SQUARED] == 0.0)
                of_spread = 1.0 - sums[SQUARED] / sums[SPREAD] if sums[SPREAD] > 0.0 else constant
                found["r2"] = of_spread if rounds >= 2.0 else math.nan
                found["mae"] = sums[ABSOLUTE] / rounds
                found["rmse"] = math.sqrt(sums[SQUARED] / rounds)
            else:
                own, predicted = confusion.sum(1).astype(float), confusion.sum(0)
                hits = confusion.diagonal()
                f1 = 2.0 * hits / (own + predicted)
                chance = (own * predicted).sum() / (rounds * rounds)
                found["error_rate"] = (rounds - hits.sum()) / rounds
                found["balanced_accuracy"] = np.nansum(hits / own) / np.count_nonzero(own)
                of_many = np.nansum(f1) / np.count_nonzero(own + predicted)
                found["f1"] = of_many if self.metered.classes else np.nan_to_num(f1[1])
                found["kappa"] = (hits.sum() / rounds - chance) / (1.0 - chance)
                found["log_loss"] = sums[LOG_LOSS] / rounds
        return [float(found[name]) for name in self.columns]

    def finish(self) -> None:
        """End the last window and segment."""
        if self.rounds:
            self._end(is_last=True)

    def values(self) -> dict[str, float | None]:
        """A finished run's metrics by name, if they are defined."""
        total, weight = self.arrays["mean"].tolist()
        found = self._metrics(0, total / weight if weight else math.nan)
        named = zip(self.columns, found, strict=True)
        return {
            name: None if math.isnan(value) else value
            for name, value in named
            if name in self.metered.names
        }

    def windows(self) -> dict[str, Array]:
        """A finished run's windows: `first` and `last` round (from 1), and each metric (w,)."""
        first = np.arange(0, self.rounds if self.window else 0, self.window or 1)
        last = np.minimum(first + self.window, self.rounds)
        columns = self.arrays["windows"][: first.size].T
        return {"first": first + 1, "last": last, **dict(zip(self.columns, columns, strict=True))}


def in_order(sums: Array, terms: Array) -> Array:
    """The sums (…) as they grow by terms (…, n), one after the other: (…, n + 1)."""
    each = np.broadcast_to(terms, (*sums.shape, terms.shape[-1]))
    return np.concatenate([sums[..., None], each], axis=-1).cumsum(axis=-1)


def auc(positive: Array, negative: Array) -> float:
    """The share of pairs in which the positive row has the larger score; ties count half."""
    pairs = positive.size * negative.size
    negative = np.sort(negative)
    less, no_more = (negative.searchsorted(np.sort(positive), side) for side in ("left", "right"))
    return float(0.5 * (less.sum() + no_more.sum())) / pairs if pairs else math.nan
