"""Starting what runs cohorts: the Dask cluster and the compilation of learners, side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, NamedTuple

from flows.runtime.processes import shielded
from koco_stream.engine.warm_up import Needed, load, warm_up
from koco_stream.io.files import canonical_json
from koco_stream.learners import StreamSize
from koco_stream.runs.cost_model import Timing

if TYPE_CHECKING:
    # a second to import, and a sweep that has nothing to compute needs none
    from distributed import Client


class Engine(NamedTuple):
    """What runs cohorts: a client of Dask, or none for this process only; and timings of each
    learner on a few rows.
    """

    client: Client | None
    timings: list[Timing]


class Start:
    """A cluster and the compilation of what its workers need, both begun when this is made.

    Parameters
    ----------
    cluster
        What starts the cluster.
    kinds
        What its workers need compiled.
    loads
        Whether the workers, which share the cache, load what was compiled before they are given
        anything to do.
    """

    def __init__(
        self,
        cluster: Callable[[], AbstractContextManager[Client]],
        kinds: list[Needed],
        loads: bool = False,
    ) -> None:
        self.kinds, self.loads, self.timings = kinds, loads, list[Timing]()
        self.stack = ExitStack()
        self.client: Future[Client] = Future()
        # its start, which Dask would cause, lets the signals through again
        resource_tracker.ensure_running()
        self.compiling = compiling(kinds) if kinds else None
        with shielded():
            threading.Thread(target=self._start, args=(cluster,), daemon=True).start()

    def _start(self, cluster: Callable[[], AbstractContextManager[Client]]) -> None:
        compiler = self.compiling
        try:
            client = self.stack.enter_context(cluster())
            if self.loads and compiler is not None and compiler.wait() == 0:
                # a worker that dies of it will die again, of a cohort, and that is said
                client.run(load, self.kinds, on_error="ignore")
            self.client.set_result(client)
        except BaseException as error:  # handed to whoever waits for the client
            self.client.set_exception(error)

    def ready(self, kinds: list[Needed]) -> Engine:
        """The client, once the workers are up and `kinds` are compiled: of data that was not there
        at the start the type was a guess.
        """
        self._compiled()  # first: the compiler ends when what it prints is read
        client = self.client.result()
        known = set(map(_identity, self.kinds))
        rest = [kind for kind in kinds if _identity(kind) not in known]
        if rest:
            self.compiling = compiling(rest)
            self._compiled()
        return Engine(client, self.timings)

    def _compiled(self) -> None:
        """Wait for the compiler, and take the timings that it prints."""
        if self.compiling is None:
            return
        printed = self.compiling.communicate()[0]
        if self.compiling.returncode != 0:
            raise RuntimeError("compiling the learners failed; what the compiler said stands above")
        self.timings += [
            Timing(learner, params, StreamSize(*size), *rest)
            for learner, params, size, *rest in json.loads(printed)
        ]
        self.compiling = None

    def close(self) -> None:
        """Stop the workers."""
        if self.compiling is not None and self.compiling.poll() is None:
            self.compiling.terminate()
            self.compiling.wait()
        if self.client.exception() is None:
            self.stack.close()


def _identity(kind: Needed) -> tuple[str, str, str]:
    return kind.learner, canonical_json(kind.params), kind.value_type


def compiling(kinds: list[Needed]) -> subprocess.Popen[str]:
    """A process that compiles what these need, and prints how long each took for a few rows."""
    from cluster.settings import ONE_THREAD

    command = [sys.executable, "-m", "koco_stream.engine.warm_up", json.dumps(kinds)]
    with shielded():
        return subprocess.Popen(
            command, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, text=True
        )


@contextmanager
def engine(
    cluster: Callable[[], AbstractContextManager[Client]] | None,
    kinds: list[Needed],
    start: Start | None = None,
) -> Iterator[Engine]:
    """What runs cohorts, closed at the end.

    Parameters
    ----------
    cluster
        What starts the cluster; None for this process only.
    kinds
        What is to be compiled.
    start
        The cluster, if its start has begun already.
    """
    if cluster is None:
        yield Engine(None, warm_up(kinds))
        return
    start = start or Start(cluster, kinds)
    try:
        yield start.ready(kinds)
    finally:
        start.close()
