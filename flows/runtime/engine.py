"""Start of what runs cohorts: the Dask cluster and the compilers, in parallel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, NamedTuple

from cluster.machine import cores
from flows.runtime.console import say
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

        Raises `RuntimeError` if a compiler fails.
        """
        client = self.client.result()
        if any([compiler.wait() for compiler in self.compilers]):
            raise RuntimeError("compiling the learners failed; the compiler's messages are above")
        return Engine(client, compiled(kinds))

    def close(self) -> None:
        """Stop the compilers and the workers."""
        for compiler in self.compilers:
            compiler.terminate()
            compiler.wait()
        wait([self.client])
        self.stack.close()


def compiled(kinds: list[Needed]) -> list[Timing]:
    """The timings of learners; those that are not compiled yet, this process compiles.

    There are such, for example, if the value type of a dataset was not known at the start.
    """
    if rest := [kind for kind in kinds if kept_timing(kind) is None]:
        say("compiling the learners, once for this version; this can take a minute")
        warm_up(rest)
    return timings_of(kinds)


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
