"""What a store's runs came to: views of DuckDB, which are the one selection and the one best.

The room has the name of a function, `flows.results`, and is called as that too.
"""

import sys
from types import ModuleType
from typing import Any


class Room(ModuleType):
    """A module that is called as the function of its name."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        from flows import from_python

        return from_python.results(*given, **named)


sys.modules[__name__].__class__ = Room
