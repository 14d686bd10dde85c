"""Preemption of a Dask worker: on SIGTERM it saves its state, and after `GRACE` seconds Dask's own
handler ends it. Loaded by `--preload` and `--preload-nanny`.
"""

import asyncio
import os
import signal
import threading
from types import FrameType
from typing import Any

from distributed import Nanny, Status, Worker

from cluster import reporting
from koco_stream.engine.preemption import requested

GRACE = 25.0  # seconds; by default Kubernetes and Slurm kill a process 30 s after SIGTERM
POLL_SECONDS = 0.05


def dask_setup(server: Any) -> None:
    if isinstance(server, Worker):
        reporting.dask_setup(server)
    if isinstance(server, Worker) and threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        tasks = list[asyncio.Task[None]]()
        before = signal.getsignal(signal.SIGTERM)

        def on_sigterm(number: int, frame: FrameType | None) -> None:
            if not requested.is_set():
                requested.set()
                loop.call_soon_threadsafe(
                    lambda: tasks.append(loop.create_task(leave(server, before)))
                )

        signal.signal(signal.SIGTERM, on_sigterm)


async def dask_teardown(server: Any) -> None:
    """Make a nanny that closes send SIGTERM to its worker and wait for it."""
    if isinstance(server, Nanny) and server.is_alive():
        os.kill(server.pid, signal.SIGTERM)
        await until(lambda: not server.is_alive(), GRACE + 2.0)


async def leave(worker: Worker, before: Any) -> None:
    """If leaving fails or takes too long, `before`, the earlier handler of SIGTERM, is called."""
    try:
        async with asyncio.timeout(GRACE):
            await hand_over(worker)
        await worker.close(nanny=False, executor_wait=False, reason="told to leave")
    except (OSError, RuntimeError, TimeoutError):
        signal.signal(signal.SIGTERM, before)
        os.kill(os.getpid(), signal.SIGTERM)


async def hand_over(worker: Worker) -> None:
    """A retired worker does not count as lost, so its tasks are not blamed for its end."""
    worker.status = Status.closing_gracefully
    await until(lambda: not worker.state.executing, GRACE)
    await until(lambda: not worker.data, 2.0)
    await worker.scheduler.retire_workers(
        workers=[worker.address], close_workers=False, remove=True
    )


async def until(there: Any, seconds: float) -> None:
    clock = asyncio.get_running_loop()
    end = clock.time() + seconds
    while not there() and clock.time() < end:
        await asyncio.sleep(POLL_SECONDS)
