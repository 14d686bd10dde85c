"""Objects whose methods run one at a time."""

import os
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from threading import RLock
from types import FunctionType
from typing import Any, ClassVar

LEARNING = "progressive", "partial_fit", "fit", "record", "learn_one"
APART = "get_params", "set_params"  # read nothing that is learnt; who prints need not wait


class OneAtATime:
    """An object whose properties and public methods hold its lock, whichever threads call them.

    Of a user's class only learning methods and properties do: others may start threads that need
    it. Each process has its own lock, since one held during a fork would never be free. Attributes
    in `changed_in_place` are copied in a pickle.
    """

    changed_in_place: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        is_ours = cls.__module__.partition(".")[0] == __name__.partition(".")[0]
        for name, found in list(vars(cls).items()):
            if isinstance(found, property) and found.fget is not None:
                setattr(cls, name, found.getter(_alone(found.fget)))
            elif isinstance(found, FunctionType) and found.__code__.co_varnames[:1] == ("self",):
                if name in LEARNING or (is_ours and not name.startswith(("_", *APART))):
                    setattr(cls, name, _alone(found))

    @property
    def _lock(self) -> Any:
        # `setdefault` takes what is set first if threads come at once.
        own = vars(self)
        locks = own.get("_locks") or own.setdefault("_locks", _Locks())
        return locks.get(os.getpid()) or locks.setdefault(os.getpid(), RLock())

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {
                name: deepcopy(value) if name in self.changed_in_place else value
                for name, value in vars(self).items()
                if name != "_locks"
            }


class _Locks(dict[int, Any]):
    def __reduce__(self) -> tuple[type["_Locks"], tuple[()]]:
        return _Locks, ()


def _alone(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def alone(self: Any, *given: Any, **named: Any) -> Any:
        with self._lock:
            return method(self, *given, **named)

    return alone
