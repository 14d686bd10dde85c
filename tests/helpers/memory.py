"""How much memory processes hold for themselves (not mapped files, which all share), sampled while
something runs.
"""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

EVERY = 0.1  # seconds


class AnonymousPeak:
    """The largest anonymous memory of this process and of each of its descendants, by process
    number, in bytes: `peaks`.
    """

    def __init__(self) -> None:
        self.peaks: dict[int, int] = {}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self.thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while True:
            for process in (me, *me.children(recursive=True)):
                self.peaks[process.pid] = max(
                    self.peaks.get(process.pid, 0), anonymous(process.pid)
                )
            if self.over.wait(EVERY):
                return


def anonymous(pid: int) -> int:
    """RssAnon of a process, 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))
