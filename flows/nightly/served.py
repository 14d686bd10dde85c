"""A flow run's process that `koco serve` has started ends when that one does, however it does: what
is started again is then done once.
"""

from __future__ import annotations

import os
import signal
import threading
import time

SERVER = "KOCO_SERVER_PROCESS"  # the number of the process that serves
LOOK_SECONDS = 0.2


def end_with_server() -> None:
    """End this process when the one that serves is gone. Nothing happens where none does."""
    serving = os.environ.get(SERVER)
    if serving:
        threading.Thread(target=_watch, args=(int(serving),), daemon=True).start()


def _watch(serving: int) -> None:
    while os.getppid() == serving:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
