"""Parallel preparation on a Dask cluster whose workers see the same file system."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# tasks submitted per worker: enough to keep it busy, few enough to limit the scratch files
IN_FLIGHT = 3


def map_on_dask(client: Any, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Apply a function to items on the workers of a Dask cluster, like `map`.

    Results come in the order of the items, and the first exception in that order is raised.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    function : callable
        Picklable function of one item.
    items : iterable
        Items; they are consumed as workers become free.

    Raises
    ------
    OSError
        If several workers die on the same item.
    """
    at_once = IN_FLIGHT * max(1, len(client.nthreads()))
    under_way: deque[Any] = deque()
    try:
        for item in items:
            under_way.append(client.submit(function, item, pure=False))
            if len(under_way) >= at_once:
                yield _result(client, under_way.popleft())
        while under_way:
            yield _result(client, under_way.popleft())
    finally:
        if under_way:
            client.cancel(list(under_way), force=True)


def _result(client: Any, future: Any) -> Any:
    """Result of a Dask future, once the task has ended.

    Waiting for the result itself would print errors to stderr when interrupted. Raises `OSError` if
    the task's workers died, usually for lack of memory.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    try:
        return next(as_completed([future], loop=client.loop)).result()
    except KilledWorker as error:
        raise OSError(
            "several worker processes in a row were killed at the same chunk; free some memory,"
            " or use --workers 0"
        ) from error
