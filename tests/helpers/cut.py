"""Work on a store that ends in the middle, as if its process were killed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from koco_stream.io.paths import StorePath


class Cut(BaseException):
    """The work ends here."""


@contextmanager
def cut_after(changes: int) -> Iterator[None]:
    """The block ends before the change of a file that comes after so many."""
    left = iter(range(changes))

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*words: Any) -> Any:
            if next(left, None) is None:
                raise Cut
            return change(*words)

        return changed

    with pytest.MonkeyPatch.context() as patch, suppress(Cut):
        for name in ("remove", "written"):
            patch.setattr(StorePath, name, counted(getattr(StorePath, name)))
        yield


def meanwhile(monkeypatch, owner, name, happens):
    """Before this function is called the next time, another process does something."""
    call = getattr(owner, name)

    def called_after(*words, **more):
        monkeypatch.undo()
        happens(*words, **more)
        return call(*words, **more)

    monkeypatch.setattr(owner, name, called_after)
