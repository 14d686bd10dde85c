"""Reports of cohorts under way: from Dask's workers, by way of its scheduler, to a sweep."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from distributed import Client, Worker

from koco_stream.engine import reporting
from koco_stream.engine.reporting import Report

TOPIC = "koco-stream-reports"


def dask_setup(worker: Worker) -> None:
    reporting.listeners.append(lambda report: worker.log_event(TOPIC, tuple(report)))


@contextmanager
def reports_to(client: Client | None, listener: Callable[[Report], None]) -> Iterator[None]:
    """Without a client, reports are of this process; workers without this preload send none."""
    if client is None:
        reporting.listeners.append(listener)
    else:
        client.subscribe_topic(TOPIC, lambda event: listener(Report(*event[1])))
    try:
        yield
    finally:
        if client is None:
            reporting.listeners.remove(listener)
        elif client.status == "running":
            client.unsubscribe_topic(TOPIC)
