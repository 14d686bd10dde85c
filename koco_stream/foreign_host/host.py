"""A foreign learner's process: `python -m koco_stream.foreign_host.host CONNECTION PROGRESS`."""

import json
import math
import mmap
import os
import random
import signal
import sys
import traceback
from io import BytesIO
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np

from koco_stream.foreign_host.adapters import River, ScikitLearn, VowpalWabbit, adapter_of
from koco_stream.io.source_files import import_file
from koco_stream.types import Array


def send(connection: Connection, *arrays: Any) -> None:
    """Send arrays, numbers or texts as a message, each as in a file of NumPy's, without pickle."""
    content = BytesIO()
    for array in arrays:
        np.save(content, array, allow_pickle=False)
    connection.send_bytes(content.getbuffer())


def receive(connection: Connection, count: int) -> list[Array]:
    """The arrays of the next message, which are writable; `EOFError` at the end."""
    content = BytesIO(connection.recv_bytes())
    return [np.lib.format.read_array(content, allow_pickle=False) for _ in range(count)]


def started(asked: dict[str, Any]) -> River | ScikitLearn | VowpalWabbit:
    """The learner that this process is asked for."""
    if asked["file"]:  # the target's module is this file
        import_file(asked["target"].partition(":")[0], Path(asked["file"]))
    adapter = adapter_of(asked["target"], asked["arguments"])
    random.seed(asked["seed"])
    np.random.seed(asked["seed"])
    adapter.start(asked["seed"], asked["n_features"], asked["dense"])
    return adapter


def predictions_of(learner: Any, progress: Array, block: list[Array]) -> Array:
    """A block's predictions, up to the first that is not finite."""
    indptr, labels, values, indices = block
    predictions = np.empty(labels.size)
    rows = zip(pairwise(indptr.tolist()), labels.tolist(), strict=True)
    for t, ((lo, hi), label) in enumerate(rows):
        progress[0] += 1
        idx = indices[lo:hi] if indices.size == values.size else indices  # of all rows
        predictions[t] = learner.round(idx, values[lo:hi], label)
        if not math.isfinite(predictions[t]):
            return predictions[: t + 1]
    return predictions


def in_words(error: BaseException) -> str:
    """An exception's text, and the last place in its learner's code."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    place = traceback.extract_tb(error.__traceback__)[-1]
    is_ours = os.path.dirname(place.filename) == os.path.dirname(__file__)
    return text if is_ours else f"{text} ({place.filename}, line {place.lineno})"


def listen(connection: Connection, blocks: SimpleQueue[list[Array]]) -> None:
    """Receive blocks; end this process, and those that it started, with the one that sends them."""
    try:
        while True:
            blocks.put(receive(connection, 4))
    finally:
        os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Serve the process that started this one. The learner is made as its first rows arrive."""
    connection = Connection(int(sys.argv[1]))
    progress = np.frombuffer(mmap.mmap(int(sys.argv[2]), 8), np.int64)
    asked = json.loads(connection.recv_bytes())
    learner = None
    blocks = SimpleQueue[list[Array]]()
    Thread(target=listen, args=(connection, blocks), daemon=True).start()
    while True:
        block = blocks.get()
        try:
            learner = learner or started(asked)
            started_at = perf_counter()
            answer = (predictions_of(learner, progress, block), perf_counter() - started_at, "")
        except (Exception, SystemExit) as error:  # a learner may raise anything
            answer = (np.zeros(0), 0.0, in_words(error))
        send(connection, *answer)


if __name__ == "__main__":
    main()
