"""What is declared of a learner: its file, its parameters, what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

from koco_stream.errors import WrongInput, nearest
from koco_stream.learners.parameters import Parameter, Value
from koco_stream.losses import LOSSES, curvature_of

Public = dict[str, Value]


def real(q: Public, name: str) -> float:
    """The parameter `name`, which is a number."""
    return float(q[name])  # type: ignore[arg-type]


def whole(q: Public, name: str) -> int:
    """The parameter `name`, which is a whole number."""
    return int(q[name])  # type: ignore[arg-type]


def newton_params(q: Public) -> tuple[int, float, float, float, bool]:
    """What the `Params` of every online Newton step begin with: loss, alpha, clip, curvature,
    decreasing.
    """
    return (
        LOSSES[str(q["loss"])],
        real(q, "alpha"),
        real(q, "clip"),
        float(q["curvature"] or 0.0),
        q["curvature_schedule"] == "decreasing",
    )


class StreamSize(NamedTuple):
    """rounds; d features (with the intercept's); s, the mean number of non-zeros of a row."""

    rounds: int
    d: int
    s: float


class Shared(NamedTuple):
    """What the runs of a cohort with an equal `key` do once: about `ns` a round, and 8-byte numbers
    held.
    """

    key: tuple[Value, ...]
    ns: float
    floats: int


@dataclass(frozen=True)
class Learner:
    """An algorithm: its file, its public parameters, and how these become the numbers that its
    `step` is given.

    `idle` names, for given parameters, those that cannot matter: they are no part of a run's
    identity; `draws` says whether the learner_seed matters. `state_floats(params, size)` is the
    size of the state in 8-byte numbers, `round_ns(params, size)` about what a round takes, without
    what `shared` says that it shares (all for the planner). `numbers_version` is raised whenever a
    change to the code changes a run's numbers.
    """

    name: str
    module: ModuleType
    parameters: tuple[Parameter, ...]
    to_params: Callable[[Public], Any]
    idle: Callable[[Public], set[str]]
    draws: Callable[[Public], bool]
    state_floats: Callable[[Public, StreamSize], int]
    round_ns: Callable[[Public, StreamSize], float]
    shared: Callable[[Public, StreamSize], Shared] | None = None
    numbers_version: int = 1
    curvature_share: float = 1.0  # the default curvature is this share of the loss's σ (P1)

    def parameter(self, name: str) -> Parameter:
        """The declaration of parameter `name`. Raises `WrongInput` with the nearest name if there
        is none.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise WrongInput(
            f"{self.name} has no parameter"
            f" {name!r}{nearest(name, [q.name for q in self.parameters])}"
        )

    def complete(self, given: dict[str, Any]) -> Public:
        """All parameters, in order: those given, checked, and the defaults; a curvature of None
        becomes the loss's σ.

        Raises `WrongInput` for an unknown name, a value out of range, or a loss without curvature
        where one is needed.
        """
        checked = {name: self.parameter(name).check(value) for name, value in given.items()}
        return self.with_curvature({**self.defaults, **checked})

    def refilled(self, reduced: Public) -> Public:
        """All parameters of a run, in order, from those that matter, which were checked before."""
        return self.with_curvature({**self.defaults, **reduced})

    @cached_property
    def defaults(self) -> Public:
        """The defaults, in order, checked."""
        return {q.name: q.check(q.default) for q in self.parameters}

    @cached_property
    def later(self) -> Public:
        """The defaults of the parameters that were added after runs were made."""
        return {q.name: self.defaults[q.name] for q in self.parameters if q.later}

    def identifying(self, public: Public) -> Public:
        """What of complete parameters belongs to a run's identity: what matters, and was there from
        the start or is not at its default.
        """
        idle = self.idle(public)
        return {
            name: value
            for name, value in public.items()
            if name not in idle and (name not in self.later or value != self.later[name])
        }

    def shown(self, identifying: Public) -> Public:
        """The parameters of a run that matter: those of its identity, and the defaults of those
        that were added later.
        """
        if not self.later:
            return identifying
        idle = self.idle(self.refilled(identifying))
        return {
            **{name: value for name, value in self.later.items() if name not in idle},
            **identifying,
        }

    def with_curvature(self, public: Public) -> Public:
        """The parameters with a curvature of None made the loss's σ. Raises `WrongInput` for a loss
        that has none where one is needed.
        """
        if "curvature" in public and "curvature" not in self.idle(public):
            if public["curvature"] is None:
                sigma = curvature_of(str(public["loss"]), real(public, "clip"))
                public["curvature"] = self.curvature_share * sigma
            if public["curvature"] == 0.0:
                raise WrongInput(
                    f"{self.name}: the {public['loss']} loss with clip {public['clip']:g} has no"
                    " curvature (σ = 0), so no second-order step is possible; give curvature a"
                    " positive value, for example with curvature_schedule = 'decreasing'"
                )
        return public
