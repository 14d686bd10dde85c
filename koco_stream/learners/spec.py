"""What a learner's class says of it: its parameters, what identifies a run of it, what it costs."""

import inspect
from functools import cache
from typing import Any, ClassVar, NamedTuple

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


def loss_and_clip(q: Public) -> dict[str, Any]:
    """What every learner's `Params` begin with."""
    return {"loss": LOSSES[str(q["loss"])], "clip": real(q, "clip")}


def newton_params(q: Public) -> dict[str, Any]:
    """What the `Params` of every online Newton step begin with."""
    return {
        **loss_and_clip(q),
        "alpha": real(q, "alpha"),
        "curvature": float(q["curvature"] or 0.0),
        "decreasing": q["curvature_schedule"] == "decreasing",
    }


class StreamSize(NamedTuple):
    """rounds; d features (with the intercept's); s, the mean number of non-zeros of a row."""

    rounds: int
    d: int
    s: float


class Shared(NamedTuple):
    """What the runs of a cohort with an equal `key` do once, and the 8-byte numbers that it holds.

    It takes about `nanoseconds` a round.
    """

    key: tuple[Value, ...]
    nanoseconds: float
    floats: int


class Cost(NamedTuple):
    """About what a run costs: its state in 8-byte numbers, and the nanoseconds of a round.

    What is `shared` with other runs of a cohort is not in these two.
    """

    floats: int
    nanoseconds: float
    shared: Shared | None = None


class Spec:
    """What the planner, sweep files and tables read of a learner's class.

    A learner gives `parameters`, `to_params` and `cost`. Where that is not enough it says which
    parameters are `unused`, and that it is `always_stochastic`, or has its own `irrelevant` and
    `stochastic`. `numbers_version` is raised whenever a change to the code
    changes a run's numbers. The default curvature is `curvature_share` of the loss's σ (P1).
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    unused: ClassVar[tuple[str, ...]] = ()
    always_stochastic: ClassVar[bool] = False
    numbers_version: ClassVar[int] = 1
    curvature_share: ClassVar[float] = 1.0

    @classmethod
    def to_params(cls, q: Public) -> Any:
        """The numbers that the compiled step is given, for these complete parameters."""
        return None

    @classmethod
    def irrelevant(cls, q: Public) -> set[str]:
        """Those of these parameters that cannot matter: they are no part of a run's identity."""
        conditions = {p.name: p.matters_if for p in cls.parameters if p.matters_if}
        irrelevant = {
            name for name, (other, values) in conditions.items() if q[other] not in values
        }
        return irrelevant.union(cls.unused)

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """Whether the learner draws anything, so that the learner_seed matters."""
        return cls.always_stochastic

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        """About what a run on a stream of this size costs, for the planner."""
        return Cost(2 * size.d, 20 + 3.5 * size.s)

    # Of the class that declares `parameters`, which may be a base of this one ---------------------

    @classmethod
    def parameter(cls, name: str) -> Parameter:
        """The parameter `name`. Raises `WrongInput` with the nearest name if there is none."""
        named = {parameter.name: parameter for parameter in cls.parameters}
        if name not in named:
            near = nearest(name, list(named))
            raise WrongInput(f"{cls.__name__} has no parameter {name!r}{near}")
        return named[name]

    @classmethod
    def complete(cls, given: dict[str, Any]) -> Public:
        """All parameters, in order: those given, checked, and the defaults; a curvature of None
        becomes the loss's σ.

        Raises `WrongInput` for an unknown name, a value out of range, or a loss without curvature
        where one is needed.
        """
        return cls.refilled({name: cls.parameter(name).check(q) for name, q in given.items()})

    @classmethod
    def refilled(cls, reduced: Public) -> Public:
        """All parameters of a run, in order, from those that matter, which were checked before."""
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
        """The constructor's defaults of the parameters, in order, checked."""
        arguments = inspect.signature(cls).parameters
        return {q.name: q.check(arguments[q.name].default) for q in cls.parameters}

    @classmethod
    @cache
    def later(cls) -> Public:
        """The defaults of the parameters that were added after runs were made."""
        return {q.name: cls.defaults()[q.name] for q in cls.parameters if q.later}

    @classmethod
    def identifying(cls, public: Public) -> Public:
        """What of complete parameters belongs to a run's identity: what matters, and was there from
        the start or is not at its default.
        """
        irrelevant, later = cls.irrelevant(public), cls.later()
        return {
            name: value
            for name, value in public.items()
            if name not in irrelevant and (name not in later or value != later[name])
        }

    @classmethod
    def shown(cls, identifying: Public) -> Public:
        """The parameters of a run that matter: those of its identity, and the defaults of those
        that were added later.
        """
        if not cls.later():
            return identifying
        irrelevant = cls.irrelevant(cls.refilled(identifying))
        more = {name: value for name, value in cls.later().items() if name not in irrelevant}
        return {**more, **identifying}
