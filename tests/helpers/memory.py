"""How much memory processes hold for themselves (not mapped files, which all share), sampled while
something runs.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

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
                with suppress(psutil.NoSuchProcess):
                    held = process.memory_info()
                    own = held.rss - held.shared  # RssAnon: `shared` is what is mapped
                    peaks[process.pid] = max(peaks.get(process.pid, 0), own)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()
