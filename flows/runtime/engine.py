"""Start of what runs cohorts: the Dask cluster and the compilers, in parallel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, NamedTuple

from cluster.machine import cores
from flows.runtime.processes import in_background, shielded
from koco_stream.engine.warm_up import Needed, kept_timing, load, warm_up
from koco_stream.io.files import json_text
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
    """A cluster and compiler processes that start in parallel when this object is made.

    With `loads`, workers load the compiled code before their first cohort. They must share this
    machine's cache.
    """

    def __init__(
        self,
        cluster: Callable[[], AbstractContextManager[Client]],
        kinds: list[Needed],
        loads: bool = False,
    ) -> None:
        self.stack = ExitStack()
        # started before the signals are blocked, because its start in Dask would unblock them
        resource_tracker.ensure_running()
        self.compilers = compilers(kinds)
        self.client = in_background(partial(self._client, cluster, kinds if loads else []))

    def _client(
        self, cluster: Callable[[], AbstractContextManager[Client]], kinds: list[Needed]
    ) -> Client:
        """Start the cluster, and let its workers load the compiled code of `kinds`."""
        client = self.stack.enter_context(cluster())
        if kinds and not any(compiler.wait() for compiler in self.compilers):
            # if a worker dies here, it will die in a cohort too, which is reported
            client.run(load, kinds, on_error="ignore")
        return client

    def ready(self, kinds: list[Needed]) -> Engine:
        """Wait for the workers and the compilers, and return the engine.

        `kinds` not compiled yet are compiled now: value types were guessed for datasets that were
        not prepared at the start.
        """
        client = self.client.result()
        _wait(self.compilers)
        self.compilers = compilers(kinds)
        _wait(self.compilers)
        return Engine(client, timings_of(kinds))

    def close(self) -> None:
        """Stop the compilers and the workers."""
        for compiler in self.compilers:
            compiler.terminate()
            compiler.wait()
        wait([self.client])
        self.stack.close()


def timings_of(kinds: list[Needed]) -> list[Timing]:
    """The kept timings of learners that are compiled."""
    return [timing for timing in map(kept_timing, kinds) if timing]


def compilers(kinds: list[Needed]) -> list[subprocess.Popen[bytes]]:
    """Start processes, one a core, that compile those of `kinds` that are not compiled yet."""
    from cluster.site import ONE_THREAD

    rest = [kind for kind in kinds if kept_timing(kind) is None]
    shares = [share for core in range(cores()) if (share := rest[core :: cores()])]
    with shielded():
        return [
            subprocess.Popen(
                [sys.executable, "-P", "-m", "koco_stream.engine.warm_up", json_text(share)],
                env={**os.environ, **ONE_THREAD},
            )
            for share in shares
        ]


def _wait(started: list[subprocess.Popen[bytes]]) -> None:
    """Wait for compilers. Raises `RuntimeError` if one fails."""
    if any([compiler.wait() for compiler in started]):
        raise RuntimeError("compiling the learners failed; the compiler's messages are above")


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
        if any(kept_timing(kind) is None for kind in kinds):
            warm_up(kinds)
        yield Engine(None, timings_of(kinds))
        return
    with closing(start or Start(cluster, kinds)) as started:
        yield started.ready(kinds)
