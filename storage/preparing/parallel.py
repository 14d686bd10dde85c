"""How the work of preparing is done: in this process, or on the workers of a Dask cluster that see
the same files.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

IN_FLIGHT = (
    3  # tasks a worker has or waits for, so that it is never idle and scratch files stay few
)


class Serially:
    """One item after the other, in this process: the specification of `OnDask`."""

    def each(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """function(item) for each item, in order."""
        return map(function, items)

    def compute(self, *collections: Any) -> Any:
        """The values of dask collections."""
        import dask

        return dask.compute(*collections, scheduler="synchronous")


class OnDask:
    """On the workers of a client's cluster. The results, the first exception and their order are
    those of `Serially`; a piece of work at which several workers die is an `OSError`.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def each(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """function(item) for each item, in order; items are taken as workers become free."""
        at_once = IN_FLIGHT * max(1, len(self.client.nthreads()))
        under_way: deque[Any] = deque()
        try:
            for item in items:
                under_way.append(self.client.submit(function, item, pure=False))
                if len(under_way) >= at_once:
                    yield self._result(under_way.popleft())
            while under_way:
                yield self._result(under_way.popleft())
        finally:
            if under_way:
                self.client.cancel(list(under_way), force=True)

    def compute(self, *collections: Any) -> Any:
        """The values of dask collections."""
        return tuple(self._result(future) for future in self.client.compute(list(collections)))

    def _result(self, future: Any) -> Any:
        """What a task gave, once it has ended: waiting for the result itself leaves complaints on
        stderr when it is interrupted. Raises `OSError` if the workers that had the task died: of
        memory, as a rule.
        """
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        try:
            return next(as_completed([future], loop=self.client.loop)).result()
        except KilledWorker as error:
            said = (
                "one worker process after the other was killed at the same piece of the work; make"
                " more memory free, or take --workers 0"
            )
            raise OSError(said) from error
