"""A foreign learner as the engine sees it: parameters, identity, cost, and its rounds."""

import json
from functools import cache
from typing import Any, ClassVar, NamedTuple

from koco_stream.errors import WrongInput, nearest
from koco_stream.foreign_host.adapters import adapter_of
from koco_stream.io.files import canonical_json
from koco_stream.learners.foreign.run import ForeignRun, Params
from koco_stream.learners.scan import advance_each
from koco_stream.learners.spec import Public, Spec, StreamSize
from koco_stream.streams.rows import Rows
from koco_stream.types import Array


class Argument(NamedTuple):
    """An argument of a foreign learner's constructor, which takes what TOML and JSON can say."""

    name: str

    def check(self, value: Any) -> Any:
        """The value in Python's own types; `WrongInput` if JSON has no such value."""
        try:
            return json.loads(canonical_json(value))
        except (AttributeError, TypeError, ValueError):
            raise WrongInput(
                f"{self.name} must be a finite number, a text, true, false, a list or a table, not"
                f" {value!r}"
            ) from None


class ForeignLearner(Spec):
    """A learner of another library, called row by row in a process of its own.

    `foreign_learner` makes a subclass for each. The constructor of its class is called in that
    process only, since it may take time and memory: here, only the names of its arguments are
    checked, by its signature. A value that it refuses is the failure of a run.
    """

    numbers: ClassVar[str] = "foreign"
    time_limit: ClassVar[float] = 3600.0  # it may hang
    target: ClassVar[str]
    file: ClassVar[str] = ""
    advance_states = staticmethod(advance_each)
    initial_state = ForeignRun

    @classmethod
    def parameter(cls, name: str) -> Any:
        """What checks a value of `name`; `WrongInput` with the nearest name if there is none."""
        signature = adapter_of(cls.target, {}).signature
        try:
            signature.bind_partial(**{name: None})
        except TypeError:
            raise WrongInput(
                f"{cls.__name__} has no argument {name!r}"
                + nearest(name, list(signature.parameters))
            ) from None
        return Argument(name)

    @classmethod
    def complete(cls, given: dict[str, Any]) -> Public:
        """The given arguments, checked.

        Raises `WrongInput` for an unknown argument, a missing one, a value that JSON does not have,
        and a library that is not installed.
        """
        public = super().complete(given)
        adapter = adapter_of(cls.target, public)
        try:
            adapter.signature.bind(**dict.fromkeys(adapter.seeds, 0) | public)
        except TypeError as error:
            raise WrongInput(f"{cls.__name__}: {error}; give it in the table") from None
        return public

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """Whether its results depend on the seed, which it is then given."""
        return adapter_of(cls.target, q).draws

    @classmethod
    def classifies(cls, q: Public) -> bool:
        """Whether it learns from labels −1 and +1 only."""
        return adapter_of(cls.target, q).classifies

    @classmethod
    def measured_loss(cls, q: Public) -> str:
        """Which of `koco_stream.losses.LOSSES` its predictions are measured by."""
        return adapter_of(cls.target, q).loss

    @classmethod
    def adds_intercept(cls, q: Public) -> bool:
        """Whether its rows have an additional feature that is always 1; it has its own."""
        return False

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        """Its process's memory, roughly."""
        # 200 MB: Python with scikit-learn; the others take less
        return (200 << 20) // 8 + 8 * size.d

    @classmethod
    def to_params(cls, q: Public) -> Params:
        """What its process needs to know, from the complete public parameters `q`."""
        return Params(cls, q, cls.time_limit)

    @classmethod
    def within(cls, params: Params, seconds: float) -> Params:
        """The parameters of a run that may take so many seconds."""
        return params._replace(time_limit=seconds)

    @classmethod
    def clock(cls, state: ForeignRun) -> float:
        """The seconds that the learner took so far, by the clock of its process."""
        return state.seconds

    @classmethod
    def advance(
        cls, params: Params, state: ForeignRun, rows: Rows, labels: Array, predictions: Array
    ) -> tuple[ForeignRun, int]:
        """Learn from a block of rows, filling `predictions` (n,), as `Algorithm.advance` does.

        Raises as `ForeignRun.advance` does.
        """
        return state, state.advance(rows, labels, predictions)


@cache
def foreign_learner(name: str, target: str | None = None, file: str = "") -> type[ForeignLearner]:
    """The learner called `name` of the class `target`, which is `name` if it is left out.

    A target is `package.module:Class`, or `vw`. Nothing is imported yet. With `file`, the module is
    imported from there in the learner's process, and is imported already in this one.
    """
    return type(name, (ForeignLearner,), {"target": target or name, "file": file})
