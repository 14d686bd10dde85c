"""Preparing on the workers of a Dask cluster that see the same files."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# tasks a worker has or waits for, so that it always has work and scratch files stay few
IN_FLIGHT = 3


def map_on_dask(client: Any, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """`map` on the workers of a client's cluster: the results, the first exception and their order
    are the same. Items are taken as workers become free. A piece of work at which several workers
    die is an `OSError`.
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
    """What a task gave, once it has ended: waiting for the result itself leaves complaints on
    stderr when it is interrupted. Raises `OSError` if the workers that had the task died: of
    memory, as a rule.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    try:
        return next(as_completed([future], loop=client.loop)).result()
    except KilledWorker as error:
        raise OSError(
            "one worker process after the other was killed at the same piece of the work; make more"
            " memory free, or take --workers 0"
        ) from error
