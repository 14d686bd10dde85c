"""The explorer's server in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from flows.exploring.server import Server
from koco_stream.io.paths import AnyPath


@contextmanager
def serving(store: AnyPath) -> Iterator[Server]:
    """The server of a store's page, in a thread of this process."""
    with Server(store) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
