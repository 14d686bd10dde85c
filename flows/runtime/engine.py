"""Start of what runs cohorts: the Dask cluster and the compilers, in parallel."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from multiprocessing import resource_tracker
from typing import Any

from cluster.machine import cores
from flows.runtime.processes import in_background, say, shielded
from koco_stream.engine.warm_up import Needed, load, warm_up
from koco_stream.io.files import json_text


class Start:
    """A cluster and compilers that start in parallel when this object is made."""

    def __init__(
        self,
        cluster: Callable[[], AbstractContextManager[Any]],
        kinds: list[Needed],
        loads: bool = False,
    ) -> None:
        self.stack = ExitStack()
        # started before the signals are blocked, because its start in Dask would unblock them
        resource_tracker.ensure_running()
        self.compilers = compilers(kinds)
        self.client = in_background(partial(self._client, cluster, kinds if loads else []))

    def _client(
        self, cluster: Callable[[], AbstractContextManager[Any]], kinds: list[Needed]
    ) -> Any:
        client = self.stack.enter_context(cluster())
        if kinds and not any(compiler.wait() for compiler in self.compilers):
            # if a worker dies here, it will die in a cohort too, which is reported
            client.run(load, kinds, on_error="ignore")
        return client

    def ready(self, kinds: list[Needed]) -> Any:
        """The client, when its workers are there and all is compiled."""
        client = self.client.result()
        if any([compiler.wait() for compiler in self.compilers]):
            raise RuntimeError("compiling the learners failed; the compiler's messages are above")
        compile_rest(kinds)
        return client

    def close(self) -> None:
        for compiler in self.compilers:
            compiler.terminate()
            compiler.wait()
        wait([self.client])
        self.stack.close()


def compile_rest(kinds: list[Needed]) -> None:
    """Compile what is not compiled yet, in this process."""
    if rest := [kind for kind in kinds if not kind.is_compiled]:
        say("compiling the learners, once for this version; this can take a minute")
        warm_up(rest)


def compilers(kinds: list[Needed]) -> list[subprocess.Popen[bytes]]:
    from cluster.site import ONE_THREAD

    rest = [kind for kind in kinds if not kind.is_compiled]
    shares = [share for core in range(cores()) if (share := rest[core :: cores()])]
    with shielded():
        return [
            subprocess.Popen(
                [sys.executable, "-P", "-m", "koco_stream.engine.warm_up", json_text(share)],
                env={**os.environ, **ONE_THREAD},
            )
            for share in shares
        ]
