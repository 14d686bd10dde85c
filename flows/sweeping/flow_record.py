"""What a sweep tells the process that records it in Prefect.

No step of a sweep waits for Prefect, whose server takes seconds to start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from flows.runtime.console import say
from flows.sweeping.request import SweepRequest
from flows.sweeping.steps import PLAIN, Steps
from koco_stream.io.cache import private_folder

LOG = "recorder.log"  # in Prefect's home
RECORDED_WITHIN = 30.0  # seconds after the sweep, which then ends without its record
EVERY = 1.0  # seconds between messages about progress
UNWANTED = "KOCO_NO_PREFECT"  # environment variable: if it is not empty, nothing is recorded


def recorded(wanted: bool = True) -> bool:
    """Whether sweeps are recorded: Prefect is installed, and the user has not said no."""
    return wanted and not os.environ.get(UNWANTED) and find_spec("prefect") is not None


class FlowRecord:
    """Context manager in which a sweep's steps are recorded as a flow run of Prefect.

    A process of its own (`flows.sweeping.flow_recorder`) starts Prefect's server, unless
    PREFECT_API_URL names one, and records what it is told. It takes many seconds of a core to
    start, so it starts when workers are busy with the first cohorts, or at the end; what came
    before is told then. It ends soon after the sweep, and sees by its closed input if the sweep was
    killed. Nothing fails if it ends early.

    The sweep waits for it at its end only if PREFECT_API_URL names a server: in a container or a
    batch job, no process outlives the sweep's.
    """

    def __init__(self, request: SweepRequest, name: str) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.untold: list[dict[str, Any]] = []
        self.next = 0.0
        self.tell(sweep=name, request=vars(request))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            self.tell(state="Failed", message=_in_words(error))
        elif error is not None:  # Ctrl-C, SIGTERM
            self.tell(state="Cancelled", message="stopped; the same command goes on")
        process = self._started()
        with suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]
        if os.environ.get("PREFECT_API_URL"):
            self._wait(process)
        else:
            threading.Thread(target=process.wait, daemon=True).start()  # it ends by itself

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the sweep is recorded, and say if it is not."""
        try:
            status = process.wait(RECORDED_WITHIN)
        except subprocess.TimeoutExpired:
            say("Prefect has not recorded the end of this sweep yet; a process goes on with it")
            return
        if status:
            say(f"Prefect has not recorded this sweep; see {private_folder('prefect') / LOG}")

    def tell(self, **message: Any) -> None:
        """Send a message, now or when the process has started; unless it has ended."""
        self.untold.append(message)
        if self.process is not None:
            lines, self.untold = self.untold, []
            with suppress(OSError):
                for line in lines:
                    self.process.stdin.write((json.dumps(line) + "\n").encode())  # type: ignore[union-attr]
                self.process.stdin.flush()  # type: ignore[union-attr]

    def _started(self) -> subprocess.Popen[bytes]:
        """The process, which starts now if it has not started."""
        if self.process is None:
            with (private_folder("prefect") / LOG).open("wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "flows.sweeping.flow_recorder"],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    # signals of a terminal or batch system are for the sweep
                    start_new_session=True,
                )
        return self.process

    def progress(self, share: float) -> None:
        """Tell the share of the work that is done, between 0 and 1."""
        if share == 1.0 or time.monotonic() >= self.next:
            self.next = time.monotonic() + EVERY
            self.tell(progress=share)

    def completed(self, summary: dict[str, Any]) -> None:
        """Tell that the sweep is done, and where its report is."""
        statuses = ", ".join(f"{count:,} {name}" for name, count in summary["statuses"].items())
        self.tell(state="Completed", message=f"runs: {statuses}", report=summary["report"])

    @property
    def steps(self) -> Steps:
        """The plain steps, whose beginnings and ends are told."""
        return {name: self._told(name, step) for name, step in PLAIN.items()}

    def _told(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(step)
        def run(*args: Any) -> Any:
            if name == "run":
                self._started()
            self.tell(begun=name)
            try:
                result = step(*args)
            except BaseException as error:
                self.tell(ended=name, error=_in_words(error))
                raise
            self.tell(ended=name)
            return result

        return run


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
