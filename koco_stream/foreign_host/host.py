"""A foreign learner's process: `python -m koco_stream.foreign_host.host PROGRESS CONNECTION`."""

import math
import mmap
import os
import random
import select
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from koco_stream.foreign_host.frames import receive, send
from koco_stream.foreign_host.models import (
    Model,
    RiverModel,
    Row,
    ScikitLearnModel,
    VowpalWabbitModel,
)
from koco_stream.foreign_host.target import (
    RIVER,
    SEED_LIMIT,
    VOWPAL_WABBIT,
    class_of,
    kind_of,
    seed_argument,
)
from koco_stream.io.source_files import import_file
from koco_stream.types import Array


class Hosted:
    """A learner in this process; `dense` rows have all their features."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.n_features, self.dense = int(asked["n_features"]), bool(asked["dense"])
        if asked["file"]:  # the target's module is this file
            import_file(asked["target"].partition(":")[0], Path(asked["file"]))
        self.model = model_of(asked["target"], asked["arguments"], asked["seed"], self.n_features)

    def learn(self, asked: dict[str, Any], arrays: list[Array], progress: Array) -> Array:
        """A block's predictions, up to the first that is not finite."""
        labels = arrays[1].tolist()
        predictions = np.empty(len(labels))
        for t, row in enumerate(self._rows_of(arrays, asked["sparse"])):
            progress[0] += 1
            predictions[t] = self.model.round(row, labels[t])
            if not math.isfinite(predictions[t]):
                return predictions[: t + 1]
        return predictions

    def _rows_of(self, arrays: list[Array], sparse: bool) -> Iterator[Row]:
        indptr, _, values, indices = arrays
        every = np.arange(self.n_features, dtype=np.int32)
        for lo, hi in pairwise(indptr.tolist()):
            idx = indices[lo:hi] if sparse else every
            if self.dense:
                val = np.zeros(self.n_features, values.dtype)
                val[idx] = values[lo:hi]
                yield None, val
            else:
                yield idx, values[lo:hi]


def model_of(target: str, arguments: dict[str, Any], seed: int, n_features: int) -> Model:
    """Make the learner that a target names."""
    kind, seed = kind_of(target), seed % SEED_LIMIT
    random.seed(seed)
    np.random.seed(seed)
    if kind == VOWPAL_WABBIT:
        return VowpalWabbitModel(str(arguments.get("options", "")), seed)
    seeded = seed_argument(target)
    learner = class_of(target)(**({seeded: seed} if seeded else {}) | arguments)
    return RiverModel(learner) if kind == RIVER else ScikitLearnModel(learner, n_features)


def in_words(error: BaseException) -> str:
    """An exception's text, and the last place in its learner's code."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    places = traceback.extract_tb(error.__traceback__)
    here = os.path.dirname(__file__)
    if not places or os.path.dirname(places[-1].filename) == here:
        return text
    return f"{text} ({places[-1].filename}, line {places[-1].lineno})"


def serve(connection: Connection, progress: Array) -> None:
    """Answer requests until `EOFError`."""
    hosted: Hosted | None = None
    while True:
        request = receive(connection)
        started_at, found = perf_counter(), np.zeros(0)
        answer: dict[str, Any] = {"seconds": 0.0}
        try:
            if hosted is None:
                hosted = Hosted(request[0])
            else:
                found = hosted.learn(*request, progress)
                answer["seconds"] = perf_counter() - started_at
        except (Exception, SystemExit) as error:  # a learner may raise anything
            answer["error"] = in_words(error)
        send(connection, answer, [found])


def end_with(connection: Connection) -> None:
    """End this process, and those that it started, with the one that asks."""

    def watch() -> None:
        closed = select.poll()
        closed.register(connection.fileno(), 0)  # that the other end is closed is always told
        closed.poll()
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Serve the process that started this one."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    progress = np.frombuffer(mmap.mmap(int(sys.argv[1]), 8), np.int64)
    connection = Connection(int(sys.argv[2]))
    end_with(connection)
    with suppress(EOFError):
        serve(connection, progress)


if __name__ == "__main__":
    main()
