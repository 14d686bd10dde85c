"""What the trivial learner `Constant` comes to on a stream, found from the labels alone.

It is computed by the learner's own scan on rows without features, and counted as a run's losses and
mistakes are. So it equals a run of `Constant` on that stream to the bit.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from koco_stream.io.cache import computed_once
from koco_stream.learners.constant import Constant
from koco_stream.learners.scan import tally, tally_classes
from koco_stream.losses import LOSSES
from koco_stream.streams.reader import BlockLabels, StreamReader
from koco_stream.streams.rows import sparse_rows
from koco_stream.types import Array


class TrivialResult(NamedTuple):
    """The mean loss of `Constant` over a stream, and mistakes over rounds."""

    mean_loss: float
    error_rate: float


def trivial_result(reader: StreamReader, loss: str) -> TrivialResult | None:
    """What `Constant` comes to on a stream with a loss, cached in the cache folder.

    None if it diverges there, or if the stream is empty. The error rate has no meaning for real
    labels.
    """
    version = Constant.numbers_version
    identity = {**reader.stream.identity(), "loss": loss, "version": version}
    found = computed_once("constants", identity, lambda: result_on(reader.labels(), loss))
    return found and TrivialResult(*found)


def result_on(blocks: Iterable[BlockLabels], loss: str) -> TrivialResult | None:
    """What `Constant` comes to on blocks of labels; None as `trivial_result` is."""
    params = Constant.to_params(Constant.complete({"loss": loss}))
    states: list[Any] = []  # one for each class that is learnt
    totals = np.zeros(3)
    kept = totals, np.zeros(0), 0, np.zeros((0, 3))
    for labels in blocks:
        predictions: Array = np.empty(labels.learnt.shape)
        done = predictions.shape[1]
        rows = sparse_rows(np.zeros(done + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), 0)
        states = states or [Constant.init(params, 0, 0) for _ in predictions]
        for k, state in enumerate(states):
            these = labels.learnt[k], predictions[k]
            states[k], rounds = Constant.advance(params, state, rows, *these)
            done = min(done, rounds)
        if not labels.classes:
            tally(LOSSES[loss], predictions[0], labels.learnt[0], done, *kept)
        else:
            tally_classes(LOSSES[loss], predictions, labels.learnt, labels.numbers, done, *kept)
        if done < predictions.shape[1]:
            return None
    n, cumulative, mistakes = totals.tolist()
    if n == 0.0 or not math.isfinite(cumulative):
        return None
    return TrivialResult(cumulative / n, mistakes / n)
