"""What a worker does when it is told to leave (SIGTERM): save what it is at, hand over, go.

Given to workers as `--preload cluster.preemption --preload-nanny cluster.preemption`. Without it
Dask ends the process within seconds, and what was done since the last checkpoint is done again
elsewhere. Order: no new work, the running cohorts save their states at the end of their blocks
(`koco_stream.engine.preemption`), the scheduler hears of it, the worker closes; all within `GRACE`,
after which Dask's own way is taken.
"""

import asyncio
import os
import signal
import threading
from types import FrameType
from typing import Any

from distributed import Nanny, Status, Worker

from koco_stream.engine.preemption import requested

GRACE = 25.0  # seconds: Kubernetes and Slurm kill after 30, if they are not told otherwise
POLL_SECONDS = 0.05


def dask_setup(server: Any) -> None:
    """Catch SIGTERM in a worker's process.

    Dask calls it when the worker, or its nanny, has started.
    """
    if isinstance(server, Worker) and threading.current_thread() is threading.main_thread():
        loop, tasks = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        before = signal.getsignal(signal.SIGTERM)

        def told(number: int, frame: FrameType | None) -> None:
            if not requested.is_set():
                requested.set()
                loop.call_soon_threadsafe(
                    lambda: tasks.append(loop.create_task(leave(server, before)))
                )

        signal.signal(signal.SIGTERM, told)


async def dask_teardown(server: Any) -> None:
    """Have a nanny that closes pass the word on to its worker, and wait for it.

    Dask calls it when either closes.
    """
    if isinstance(server, Nanny) and server.is_alive():
        os.kill(server.pid, signal.SIGTERM)
        await until(lambda: not server.is_alive(), GRACE + 2.0)


async def leave(worker: Worker, before: Any) -> None:
    """Finish up and close the worker; if that fails, or takes too long, end by the handler that was
    there `before`.
    """
    try:
        async with asyncio.timeout(GRACE):
            await hand_over(worker)
        await worker.close(nanny=False, executor_wait=False, reason="told to leave")
    except (OSError, RuntimeError, TimeoutError):
        signal.signal(signal.SIGTERM, before)
        os.kill(os.getpid(), signal.SIGTERM)


async def hand_over(worker: Worker) -> None:
    """Take no new tasks, wait for the running ones, and have what they return fetched; the
    scheduler then knows that nothing died here.
    """
    worker.status = Status.closing_gracefully
    await until(lambda: not worker.state.executing, GRACE)
    await until(lambda: not worker.data, 2.0)
    await worker.scheduler.retire_workers(
        workers=[worker.address], close_workers=False, remove=True
    )


async def until(there: Any, seconds: float) -> None:
    """Wait until `there()`, at most so long."""
    clock = asyncio.get_running_loop()
    end = clock.time() + seconds
    while not there() and clock.time() < end:
        await asyncio.sleep(POLL_SECONDS)
