"""What stands in a foreign learner's table: arguments of its constructor, and two words of ours."""

import math
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.learners.spec import Parameter, Public

BATCH = Parameter("batch", int, "the rows that are predicted before they are learnt", low=1)
TIME_LIMIT = Parameter("time_limit", float, "the most seconds of a run", low=0, above=True)
RESERVED = {"batch": BATCH, "time_limit": TIME_LIMIT}
DEFAULTS: Public = {"batch": 1, "time_limit": 3600.0}


class Argument:
    """An argument of a foreign learner's constructor, which takes what TOML and JSON can say."""

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, value: Any) -> Any:
        """The value in Python's own types; `WrongInput` if JSON has no such value."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str | int):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, list | tuple):
            return [self.check(each) for each in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: self.check(each) for key, each in value.items()}
        raise WrongInput(
            f"{self.name} must be a finite number, a text, true, false, a list or a table, not"
            f" {value!r}"
        )


def arguments_in(public: Public) -> dict[str, Any]:
    """The arguments of the constructor."""
    return {name: q for name, q in public.items() if name not in RESERVED}
