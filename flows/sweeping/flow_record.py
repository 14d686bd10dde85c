"""What a sweep tells the process that records it in Prefect.

No step of a sweep waits for Prefect, whose server takes seconds to start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import wraps
from importlib.util import find_spec
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from flows.runtime.console import heard_by, say
from flows.runtime.pages import SHOWN
from flows.sweeping.request import SweepRequest
from flows.sweeping.steps import PLAIN, Steps, failed_lines
from flows.tables.tables import results_of
from koco_stream.io.cache import private_folder
from koco_stream.io.files import json_text

LOG = "recorder.log"  # in Prefect's home
# Seconds after the sweep, which then ends without its record. The recorder ends earlier if Prefect
# does not answer; it may be starting on a busy machine.
RECORDED_WITHIN = 30.0
PASSED_ON_WITHIN = 2.0  # seconds after the sweep in which the recorder is told of its end
EVERY = 1.0  # seconds between messages about progress
UNWANTED = "KOCO_NO_PREFECT"  # environment variable: if it is not empty, nothing is recorded


def recorded(wanted: bool = True) -> bool:
    """Whether sweeps are recorded: Prefect is installed, and the user has not said no."""
    return wanted and not os.environ.get(UNWANTED) and find_spec("prefect") is not None


class FlowRecord:
    """Context manager in which a sweep is recorded as a flow run of Prefect.

    A process of its own (`flows.sweeping.flow_recorder`) starts Prefect's server, unless
    PREFECT_API_URL names one or `koco serve` has one, and records what it is told: the steps, and
    the lines that the sweep says. It takes many seconds of a core to start, so it starts when
    workers are busy with the first cohorts, or at the end; what came before is told then. It ends
    soon after the sweep, and sees by its closed input if the sweep was killed.

    Nothing that happens to it or to Prefect changes the sweep, which says one line about it. The
    sweep waits for it at its end only if PREFECT_API_URL names a server: in a container or a batch
    job, no process outlives the sweep's.
    """

    def __init__(self, request: SweepRequest, name: str) -> None:
        self.request = request
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = True  # whether the process can still be started
        self.untold: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.spoke, self.over = False, False
        self.next = 0.0
        self.stack = ExitStack()
        self.tell(sweep=name, request=vars(request))

    def __enter__(self) -> Self:
        self.stack.enter_context(heard_by(lambda line: self.tell(line=line)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stack.close()
        if isinstance(error, Exception):
            self.tell(state="Failed", message=_in_words(error))
        elif error is not None:  # Ctrl-C, SIGTERM
            self.tell(state="Cancelled", message="stopped; the same command continues it")
        self._start()
        self.untold.put(None)
        if self.process is None:
            return
        if os.environ.get("PREFECT_API_URL"):
            self._wait(self.process)
        else:
            self.threads[0].join(PASSED_ON_WITHIN)
            threading.Thread(target=self.process.wait, daemon=True).start()  # it ends by itself
        self.over = True

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the sweep is recorded, and say if it is not. Ctrl-C ends the waiting."""
        try:
            process.wait(RECORDED_WITHIN)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
        for thread in self.threads:
            thread.join(PASSED_ON_WITHIN)
        if process.returncode and not self.spoke:
            say(f"Prefect has not recorded this sweep; see {private_folder('prefect') / LOG}")

    def tell(self, **message: Any) -> None:
        """Send a message, now or when the process has started; unless it has ended."""
        self.untold.put({"at": time.time(), **message})

    def _start(self) -> None:
        """Start the process if it was not started."""
        if not self.starts:
            return
        self.starts = False
        try:
            with (private_folder("prefect") / LOG).open("wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "flows.sweeping.flow_recorder"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    # signals of a terminal or batch system are for the sweep
                    start_new_session=True,
                )
        except OSError as error:
            say(f"Prefect does not record this sweep: {error}")
            return
        # in threads, because the process may stand still
        for work in (self._pass_on, self._hear):
            self.threads.append(threading.Thread(target=work, args=(self.process,), daemon=True))
            self.threads[-1].start()

    def _pass_on(self, process: subprocess.Popen[bytes]) -> None:
        """Pass on to the process what it is told, until the end."""
        with suppress(OSError), process.stdin as pipe:  # type: ignore[union-attr]
            for message in iter(self.untold.get, None):
                pipe.write((json_text(message) + "\n").encode())
                pipe.flush()

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """Say what the process prints, while the sweep goes on."""
        for line in process.stdout:  # type: ignore[union-attr]
            self.spoke = True
            if not self.over:
                say(line.decode().rstrip())

    def progress(self, share: float) -> None:
        """Tell the share of the work that is done, between 0 and 1."""
        if share == 1.0 or time.monotonic() >= self.next:
            self.next = time.monotonic() + EVERY
            self.tell(progress=share)

    def completed(self, summary: dict[str, Any]) -> None:
        """Tell that the sweep is done, its results, and where its report is."""
        for line in (*failed_lines(summary), f"report: {summary['report']}"):
            self.tell(line=line)
        statuses = ", ".join(f"{count:,} {name}" for name, count in summary["statuses"].items())
        results = results_of(self.request.store, summary["sweep"])[:SHOWN]
        ended = {"state": "Completed", "message": f"runs: {statuses}"}
        self.tell(**ended, report=summary["report"], results=results)

    @property
    def steps(self) -> Steps:
        """The plain steps, whose beginnings and ends are told."""
        return {name: self._told(name, step) for name, step in PLAIN.items()}

    def _told(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(step)
        def run(*args: Any) -> Any:
            if name == "run":
                self._start()
            self.tell(begun=name)
            try:
                result = step(*args)
            except BaseException as error:
                stopped = not isinstance(error, Exception)
                self.tell(ended="Cancelled" if stopped else "Failed", message=_in_words(error))
                raise
            self.tell(ended="Completed", message="")
            return result

        return run


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
