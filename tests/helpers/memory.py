"""How much memory processes hold for themselves (not mapped files, which all share), sampled while
something runs.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

EVERY = 0.1  # seconds


@contextmanager
def anonymous_peaks() -> Iterator[dict[int, int]]:
    """The largest anonymous memory of this process and of each of its descendants so far, by
    process number, in bytes.
    """
    peaks: dict[int, int] = {}
    over = threading.Event()
    thread = threading.Thread(target=watch, args=(peaks, over), daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def watch(peaks: dict[int, int], over: threading.Event) -> None:
    """Look at them until it is over, and once more then."""
    me, last = psutil.Process(), False
    while not last:
        last = over.wait(EVERY)
        for process in (me, *me.children(recursive=True)):
            with suppress(psutil.Error):
                memory = process.memory_info()  # of the mapped files are the shared pages
                peaks[process.pid] = max(peaks.get(process.pid, 0), memory.rss - memory.shared)
