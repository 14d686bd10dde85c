"""How the work of preparing is done: in this process, or on the workers of a Dask cluster that see the same files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

IN_FLIGHT = 3  # tasks a worker has or waits for, so that it is never idle and scratch files stay few


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
    """On the workers of a client's cluster. The results, the first exception and their order are those of `Serially`."""

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
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            if under_way:
                self.client.cancel(list(under_way), force=True)

    def compute(self, *collections: Any) -> Any:
        """The values of dask collections."""
        return tuple(self.client.gather(self.client.compute(list(collections))))
