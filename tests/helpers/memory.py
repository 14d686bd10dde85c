"""How much memory processes hold for themselves (not mapped files, which all share), sampled while
something runs.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


@contextmanager
def anonymous_peaks() -> Iterator[dict[int, int]]:
    """Within: the largest anonymous memory so far of this process and of each of its descendants,
    in bytes, by process number.
    """
    peaks: dict[int, int] = {}
    over = threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not over.wait(0.1):
            for process in (me, *me.children(recursive=True)):
                peaks[process.pid] = max(peaks.get(process.pid, 0), anonymous(process.pid))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def anonymous(pid: int) -> int:
    """RssAnon of a process, 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))
