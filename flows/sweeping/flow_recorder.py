"""The process that records a sweep in Prefect, while Prefect answers.

Run as `python -m flows.sweeping.flow_recorder`, it reads the messages of
`flows.sweeping.flow_record.FlowRecord`, one JSON object a line. The first has the sweep's name and
request. What it prints is for the user, and the sweep says it.
"""

import json
import math
import os
import sys
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NoReturn

import httpx

from flows.runtime.prefect_server import PrefectServer, configure_prefect
from flows.sweeping.flow_run import Api, FlowRun, Message

NICENESS = 15  # the sweep's own processes come first
AGAIN = 1.0  # seconds between attempts while Prefect does not answer
PATIENCE = 5.0  # seconds without an answer after which the user is told
ANSWER_WITHIN = 4.0  # seconds for an answer, if the sweep waits for its record
PAGE_WITHIN = 2.0  # seconds for an answer of Prefect's pages
# Seconds after the sweep in which Prefect may still take what it has not taken: if the sweep waits,
# and if it does not, so that a server can start on a busy machine.
LEFT, LEFT_ALONE = 6.0, 120.0
WATCH_EVERY = 0.2  # seconds


def main() -> None:
    """Record one sweep, from its first message to the end of the input."""
    os.nice(NICENESS)
    configure_prefect()
    Recorder().record()


class Recorder:
    """What records the sweep whose messages stand on this process's input.

    Prefect may fail, be slow or be gone at any moment. Then what it does not have is kept, and sent
    when it answers again. Soon after the sweep the recorder ends in any case.
    """

    def __init__(self) -> None:
        self.waited_for = bool(os.environ.get("PREFECT_API_URL"))
        self.until, self.answered = math.inf, time.monotonic()
        self.trouble, self.told = "", False
        self.lines: SimpleQueue[str] = SimpleQueue()
        # read at once, so that the sweep never waits for a full pipe
        threading.Thread(target=self._read, daemon=True).start()
        first: Message = json.loads(self.lines.get())
        self.flow_run = FlowRun(first["sweep"], first["request"])
        seconds = ANSWER_WITHIN if self.waited_for else LEFT_ALONE
        os.environ.setdefault("PREFECT_API_REQUEST_TIMEOUT", str(seconds))
        os.environ.setdefault("PREFECT_CLIENT_MAX_RETRIES", "0")
        self.server = PrefectServer()
        self.server.start_for_one_flow()

    def record(self) -> None:
        """Write to Prefect what the sweep says, until Prefect has all or time is over."""
        # its import takes a second, in which the server starts
        from prefect.client.orchestration import get_client

        if self.until < math.inf:
            self.until = time.monotonic() + self._left()
        self.answered = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()
        with get_client(sync_client=True) as api:
            while not self.flow_run.complete:
                self._hear()
                self._write(api)

    def _left(self) -> float:
        return LEFT if self.waited_for else LEFT_ALONE

    def _read(self) -> None:
        for line in sys.stdin:
            self.lines.put(line)
        self.until = time.monotonic() + self._left()
        self.lines.put("")

    def _hear(self) -> None:
        """Take over what the sweep has said, after waiting for a moment."""
        with suppress(Empty):
            line = self.lines.get(timeout=AGAIN)
            while True:
                if line:
                    self.flow_run.hear(json.loads(line))
                else:
                    self.flow_run.cut()
                line = self.lines.get_nowait()

    def _write(self, api: Api) -> None:
        """Send Prefect what it does not have."""
        try:
            self.flow_run.write(api, self._tell_page)
        # it may answer anything
        except Exception as error:
            self.trouble = in_words(error)
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            if self.server.process is None and time.monotonic() - self.answered > PATIENCE:
                if self.until < math.inf:
                    self._give_up(self.trouble)
                self._tell_once(f"Prefect does not answer ({self.trouble}); the sweep continues")
            time.sleep(AGAIN)
        else:
            self.answered = time.monotonic()
            if self.told:
                tell("Prefect answers again")
            self.told = False

    def _tell_page(self, identity: str) -> None:
        """Tell where the flow run's page is, if the server has pages."""
        if self.server.process is None:
            from prefect.settings import PREFECT_UI_URL

            pages = PREFECT_UI_URL.value()
            with suppress(httpx.HTTPError):
                if httpx.get(pages, timeout=PAGE_WITHIN, follow_redirects=True).is_success:
                    tell(f"  this sweep in Prefect: {pages}/runs/flow-run/{identity}")

    def _tell_once(self, line: str) -> None:
        if not self.told:
            self.told = True
            tell(line)

    def _watch(self) -> None:
        """End this process when the server that it has started is gone, or time is over."""
        while True:
            time.sleep(WATCH_EVERY)
            if self.server.is_gone():
                self._give_up("its server is gone")
            if time.monotonic() > self.until:
                self._give_up(self.trouble or "it is slow")

    def _give_up(self, why: str) -> NoReturn:
        self._tell_once(f"Prefect has not recorded all of this sweep: {why}")
        self.server.kill()
        os._exit(1)  # a request may be under way in the other thread


def tell(line: str) -> None:
    """Print a line for the user, unless the sweep has ended without waiting for it."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), f"{line}\n".encode())


def in_words(error: Exception) -> str:
    """What is wrong with Prefect, in a few words."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return type(error).__name__


if __name__ == "__main__":
    main()
