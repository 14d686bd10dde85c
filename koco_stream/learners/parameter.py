"""A learner's parameter: its values and its meaning, written once. Docstrings, pages and messages
are made of it.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput, similar

Value = float | int | bool | str | None


@dataclass(frozen=True)
class Parameter:
    """The declaration of one parameter of a learner.

    `meaning` is short, for pages and tables; `note` is said in the docstring only. The range from
    `low` to `high` is inclusive; with `above`, `low` itself is excluded. `choices` are the allowed
    words, also beside true and false. With `matters_if`, another parameter's name and some of its
    values, this one has an effect only if the other has such a value; `NEVER` is for one that has
    none.
    """

    name: str
    kind: type
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    choices: tuple[str, ...] = ()
    optional: bool = False
    matters_if: tuple[str, Sequence[Value]] | None = None
    note: str = ""

    @property
    def type_words(self) -> str:
        """The type, or the choices, as a docstring has them."""
        words = ", ".join(f'"{choice}"' for choice in self.choices)
        if not words:
            return self.kind.__name__
        return f"bool or {words}" if self.kind is bool else f"{{{words}}}"

    @property
    def range_words(self) -> str:
        """The range in words, without a bound that is there for the computer only."""
        words = []
        if math.isfinite(self.low):
            words.append(f"{'above' if self.above else 'from'} {self.low:g}")
        if math.isfinite(self.high) and self.high < 2**62:
            words.append(f"to {self.high:g}")
        return " ".join(words)

    @property
    def condition(self) -> str:
        """When the parameter has an effect; empty if always."""
        if self.matters_if is None:
            return ""
        other, values = self.matters_if
        if not values:
            return "not used"
        has = f"from {values[0]}" if isinstance(values, range) else " or ".join(map(str, values))
        return f"only with {other} {has}"

    def check(self, value: Any) -> Value:
        """The value in the parameter's type; `WrongInput` with what is allowed if it is wrong."""
        if value is None and self.optional:
            return None
        if self.kind is bool and isinstance(value, bool | np.bool_):
            return bool(value)
        if isinstance(value, str) and value in self.choices:
            return value
        if self.kind is bool:
            words = "".join(f" or {choice!r}" for choice in self.choices)
            raise WrongInput(f"{self.name} must be true or false{words}, not {value!r}")
        if self.kind is str:
            close = similar(str(value), list(self.choices), 1)
            raise WrongInput(
                f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
                + (f"; did you mean {close[0]!r}?" if close else "")
            )
        try:
            # Large integers stay exact.
            number = operator.index(value) if hasattr(value, "__index__") else float(value)
            finite = math.isfinite(number)
        except (TypeError, ValueError, OverflowError):
            number, finite = math.nan, False
        wanted = "whole" if self.kind is int else "finite"
        if isinstance(value, bool | str) or not finite or (wanted == "whole" and number % 1):
            raise WrongInput(f"{self.name} must be a {wanted} number, not {value!r}")
        if number < self.low or number > self.high or (self.above and number == self.low):
            bounds = f"{'greater than' if self.above else 'at least'} {self.low:g}"
            if math.isfinite(self.high):
                bounds += f" and at most {self.high:g}"
            raise WrongInput(f"{self.name} must be {bounds}, not {value!r}")
        return self.kind(number)

    def number(self, value: Value) -> int | float:
        """A checked value as compiled code has it: a word as its place among the choices, after
        false and true if it may be these, and 0 for none.
        """
        if isinstance(value, str):
            return self.choices.index(value) + 2 * (self.kind is bool)
        return self.kind(0) if value is None else value  # type: ignore[no-any-return]


NEVER: tuple[str, Sequence[Value]] = ("loss", ())
