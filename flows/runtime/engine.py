"""Start of what runs cohorts: the Dask cluster and the compilation of learners, in parallel."""

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
    # its import takes a second, which a sweep without runs to compute can save
    from distributed import Client


class Engine(NamedTuple):
    """What runs cohorts: a Dask client, or None for only this process.

    `timings` has measured times of each learner on a few rows.
    """

    client: Client | None
    timings: list[Timing]


class Start:
    """A cluster and a compiler process that start in parallel when this object is made.

    With `loads`, workers load the compiled code before their first cohort. They must share this
    machine's cache.
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
        # started before the signals are blocked, because its start in Dask would unblock them
        resource_tracker.ensure_running()
        self.compiling = compiling(kinds) if kinds else None
        with shielded():
            threading.Thread(target=self._start, args=(cluster,), daemon=True).start()

    def _start(self, cluster: Callable[[], AbstractContextManager[Client]]) -> None:
        """Start the cluster, in a thread."""
        compiler = self.compiling
        try:
            client = self.stack.enter_context(cluster())
            if self.loads and compiler is not None and compiler.wait() == 0:
                # if a worker dies here, it will die in a cohort too, which is reported
                client.run(load, self.kinds, on_error="ignore")
            self.client.set_result(client)
        except BaseException as error:  # raised where the client is awaited
            self.client.set_exception(error)

    def ready(self, kinds: list[Needed]) -> Engine:
        """Wait for the workers and the compiler, and return the engine.

        `kinds` not compiled yet are compiled now: value types were guessed for datasets that were
        not prepared at the start.
        """
        self._compiled()  # first, because the compiler ends only when its output is read
        client = self.client.result()
        known = set(map(_identity, self.kinds))
        rest = [kind for kind in kinds if _identity(kind) not in known]
        if rest:
            self.compiling = compiling(rest)
            self._compiled()
        return Engine(client, self.timings)

    def _compiled(self) -> None:
        """Wait for the compiler, and read the timings that it prints."""
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
        """Stop the compiler and the workers."""
        if self.compiling is not None and self.compiling.poll() is None:
            self.compiling.terminate()
            self.compiling.wait()
        if self.client.exception() is None:
            self.stack.close()


def _identity(kind: Needed) -> tuple[str, str, str]:
    """What identifies compiled code: learner, parameters and value type."""
    return kind.learner, canonical_json(kind.params), kind.value_type


def compiling(kinds: list[Needed]) -> subprocess.Popen[str]:
    """Start a process that compiles learners and prints their times on a few rows."""
    from cluster.settings import ONE_THREAD

    with shielded():
        return subprocess.Popen(
            [sys.executable, "-m", "koco_stream.engine.warm_up", json.dumps(kinds)],
            env={**os.environ, **ONE_THREAD},
            stdout=subprocess.PIPE,
            text=True,
        )


@contextmanager
def engine(
    cluster: Callable[[], AbstractContextManager[Client]] | None,
    kinds: list[Needed],
    start: Start | None = None,
) -> Iterator[Engine]:
    """Start what runs cohorts, and close it at the end.

    Without `cluster` it is only this process. `start` is the cluster, if it is already starting.
    """
    if cluster is None:
        yield Engine(None, warm_up(kinds))
        return
    start = start or Start(cluster, kinds)
    try:
        yield start.ready(kinds)
    finally:
        start.close()
