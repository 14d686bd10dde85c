"""The application: the koco command (`cli`, `commands`), sweeps from Python (`from_python`), and
one package for each of its tasks.

`runtime` has what they share.

>>> import flows
>>> result = flows.sweep("ill-conditioned", store="store")  # doctest: +SKIP
>>> print(result)  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

from koco_stream.extras import remedy

if TYPE_CHECKING:
    from flows.from_python import SweepResult, results, sweep

__all__ = ["SweepResult", "results", "sweep"]


def __getattr__(name: str) -> Any:
    # loaded when first used: importing one module of the application imports no other
    if name in __all__:
        try:
            from flows import from_python
        except ModuleNotFoundError as error:
            raise ImportError(remedy(error) or str(error)) from error
        return getattr(from_python, name)
    raise AttributeError(f"module 'flows' has no attribute {name!r}")
