"""What a learner class declares to the sweep engine: parameters, identity of a run, cost."""

import inspect
from functools import cache
from typing import Any, ClassVar, NamedTuple

from koco_stream.errors import WrongInput, nearest
from koco_stream.learners.parameters import Parameter, Value
from koco_stream.losses import LOSSES, curvature_of

Public = dict[str, Value]


def real(q: Public, name: str) -> float:
    """The value of the real parameter `name` as a float."""
    return float(q[name])  # type: ignore[arg-type]


def whole(q: Public, name: str) -> int:
    """The value of the integer parameter `name` as an int."""
    return int(q[name])  # type: ignore[arg-type]


def loss_and_clip(q: Public) -> dict[str, Any]:
    """The fields `loss` and `clip`, with which the `Params` of every learner begin."""
    return {"loss": LOSSES[str(q["loss"])], "clip": real(q, "clip")}


def newton_params(q: Public) -> dict[str, Any]:
    """The fields with which the `Params` of every online Newton step begin."""
    return {
        **loss_and_clip(q),
        "alpha": real(q, "alpha"),
        "curvature": float(q["curvature"] or 0.0),
        "decreasing": q["curvature_schedule"] == "decreasing",
    }


class StreamSize(NamedTuple):
    """A stream's rounds, features d (with the intercept), and mean non-zeros s per row."""

    rounds: int
    d: int
    s: float


class Shared(NamedTuple):
    """The cost of work done once for all runs of a cohort that have an equal `key`.

    It takes `nanoseconds` per round and memory in 8-byte numbers.
    """

    key: tuple[Value, ...]
    nanoseconds: float
    floats: int


class Cost(NamedTuple):
    """The approximate cost of a run: its state in 8-byte numbers, and the nanoseconds per round.

    Work that it shares with other runs is not in these two but in `shared`.
    """

    floats: int
    nanoseconds: float
    shared: Shared | None = None


class Spec:
    """What the planner, sweep files and result tables read from a learner class.

    A learner defines `parameters`, `to_params` and `cost`. It may also list the parameters it has
    but does not use in `unused`, set `always_stochastic`, or override `irrelevant` and
    `stochastic`. `numbers_version` is increased whenever a code change alters a run's numbers. The
    default curvature is `curvature_share` times the loss's σ (P1 in docs/errata.md).
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    unused: ClassVar[tuple[str, ...]] = ()
    always_stochastic: ClassVar[bool] = False
    numbers_version: ClassVar[int] = 1
    curvature_share: ClassVar[float] = 1.0

    @classmethod
    def to_params(cls, q: Public) -> Any:
        """The parameters of the compiled step, from the complete public parameters `q`."""
        return None

    @classmethod
    def irrelevant(cls, q: Public) -> set[str]:
        """The names of parameters that have no effect given the values of the others.

        They are not part of a run's identity.
        """
        conditions = {p.name: p.matters_if for p in cls.parameters if p.matters_if}
        irrelevant = {
            name for name, (other, values) in conditions.items() if q[other] not in values
        }
        return irrelevant.union(cls.unused)

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """Whether the learner uses random numbers, so that its results depend on the seed."""
        return cls.always_stochastic

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        """The approximate cost of a run on a stream of this size, for the planner."""
        return Cost(2 * size.d, 20 + 3.5 * size.s)

    # Derived from `parameters`, which may be declared in a base class -----------------------------

    @classmethod
    def parameter(cls, name: str) -> Parameter:
        """The declaration of the parameter `name`.

        An unknown name raises `WrongInput`, which suggests the nearest name.
        """
        named = {parameter.name: parameter for parameter in cls.parameters}
        if name not in named:
            near = nearest(name, list(named))
            raise WrongInput(f"{cls.__name__} has no parameter {name!r}{near}")
        return named[name]

    @classmethod
    def complete(cls, given: dict[str, Any]) -> Public:
        """All parameters in order: the given ones, checked, and defaults for the others.

        A curvature of None becomes the loss's σ.

        Raises `WrongInput` for an unknown name, a value out of range, or a loss without curvature
        where one is needed.
        """
        return cls.refilled({name: cls.parameter(name).check(q) for name, q in given.items()})

    @classmethod
    def refilled(cls, reduced: Public) -> Public:
        """All parameters in order, from the reduced (and already checked) parameters of a run."""
        public = {**cls.defaults(), **reduced}
        if "curvature" not in public or "curvature" in cls.irrelevant(public):
            return public
        if public["curvature"] is None:
            sigma = curvature_of(str(public["loss"]), real(public, "clip"))
            public["curvature"] = cls.curvature_share * sigma
        if public["curvature"] == 0.0:
            raise WrongInput(
                f"{cls.__name__}: the {public['loss']} loss with clip {public['clip']:g} has no"
                " curvature (σ = 0), so no second-order step is possible; give curvature a"
                " positive value, for example with curvature_schedule = 'decreasing'"
            )
        return public

    @classmethod
    @cache
    def defaults(cls) -> Public:
        """The default values of all parameters, in order, from the constructor's signature."""
        arguments = inspect.signature(cls).parameters
        return {q.name: q.check(arguments[q.name].default) for q in cls.parameters}

    @classmethod
    @cache
    def later(cls) -> Public:
        """The default values of the parameters that were introduced after runs had been stored."""
        return {q.name: cls.defaults()[q.name] for q in cls.parameters if q.later}

    @classmethod
    def identifying(cls, public: Public) -> Public:
        """The parameters in a run's identity: those with an effect, except later ones at
        defaults.
        """
        irrelevant, later = cls.irrelevant(public), cls.later()
        return {
            name: value
            for name, value in public.items()
            if name not in irrelevant and (name not in later or value != later[name])
        }

    @classmethod
    def shown(cls, identifying: Public) -> Public:
        """The parameters with an effect: those in a run's identity, and defaults of later ones."""
        if not cls.later():
            return identifying
        irrelevant = cls.irrelevant(cls.refilled(identifying))
        more = {name: value for name, value in cls.later().items() if name not in irrelevant}
        return {**more, **identifying}
