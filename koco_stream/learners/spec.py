"""What a learner class declares to the sweep engine: parameters, identity of a run, memory.

The checks of sweep files, the identity of a run and the columns of the table `runs` are derived
from the parameters' declarations; their defaults are those of the constructors. Parameters that
several learners share are here, others beside their learner.
"""

import inspect
import math
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, NamedTuple

from koco_stream.errors import WrongInput, nearest
from koco_stream.kernels.kernel import KERNELS
from koco_stream.learners.parameter import NEVER as NEVER, Parameter as Parameter, Value as Value
from koco_stream.losses import LOSSES, OF_REAL_LABELS, STEP_SCHEDULES, curvature_of
from koco_stream.types import Array

LOSS = Parameter("loss", str, "the loss function", choices=tuple(LOSSES))
CLIP = Parameter("clip", float, "C, the bound on predictions", low=0, above=True)
FIT_INTERCEPT = Parameter("fit_intercept", bool, "add a feature that is always 1")
SHARED = (LOSS, CLIP, FIT_INTERCEPT)
WITHOUT_CLIP = (LOSS, replace(CLIP, matters_if=NEVER), FIT_INTERCEPT)
SEED = Parameter("seed", int, "the seed of a learner's random numbers", low=0, high=2**63 - 1)
UNUSED_SEED = replace(SEED, matters_if=NEVER)

STEP_SIZE = Parameter("step_size", float, "the step size", low=0, above=True)
STEP_SCHEDULE = Parameter(
    "step_schedule",
    str,
    "the step of round t: step_size (constant), step_size/√t (sqrt) or step_size/t (linear)",
    choices=tuple(STEP_SCHEDULES),
    note="Empty rows are not counted.",
)
ALPHA = Parameter("alpha", float, "α, the ridge; 1/α is the initial step", low=0, above=True)
CURVATURE = Parameter(
    "curvature",
    float,
    "the coefficient of g gᵀ; by default the loss's σ for `clip`",
    low=0,
    optional=True,
)
CURVATURE_SCHEDULE = Parameter(
    "curvature_schedule",
    str,
    "how `curvature` changes: it stays constant, or decreases as 1/√t",
    choices=("constant", "decreasing"),
)
NEWTON_STEP = (ALPHA, CURVATURE, CURVATURE_SCHEDULE)
PROJECTION = Parameter(
    "projection",
    str,
    "how predictions are bounded: the weights are projected, or the prediction is truncated",
    choices=("weights", "prediction"),
    note="The weights are projected onto {w : |wᵀx| ≤ C} before each prediction, as in the paper.",
)
WEIGHTS = PROJECTION.number("weights")
SKETCH_SIZE = Parameter(
    "sketch_size",
    int,
    "m, the number of rows of the sketch (FDSON: after a shrink)",
    low=1,
    high=1023,
)
DELTA = Parameter("delta", float, "δ, added to the roots of the eigenvalues", low=0, above=True)
DIAGONAL = Parameter(
    "diagonal",
    bool,
    "rescale features by the diagonal of past gradients' squares; updated: with this round's square"
    " too, after the prediction",
    choices=("updated",),
    note="Learns from D^(−1/2) x with D_jj = 0.1 + Σ g_j² (section 5.2). `updated` is as in Vowpal"
    " Wabbit (docs/errata.md, S7).",
)

BANDWIDTH = Parameter(
    "bandwidth",
    float,
    "width of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²))",
    low=0,
    above=True,
)
KERNEL_SHAPE = (
    Parameter("kernel", str, "the kernel", choices=tuple(KERNELS)),
    replace(BANDWIDTH, matters_if=("kernel", ("gaussian",))),
    Parameter(
        "degree",
        int,
        "degree of the polynomial kernel (xᵀx' + 1)^degree",
        low=1,
        high=16,
        matters_if=("kernel", ("polynomial",)),
    ),
)
BETA = Parameter(
    "beta",
    float,
    "β: a point is sampled with probability β times its leverage score",
    low=0,
    above=True,
    note="The guarantee needs 3·log(T/δ)/ε²; published experiments use 1.",
)
EPSILON = Parameter(
    "epsilon", float, "ε, the accuracy of KORS's estimate", low=0, high=1, above=True
)
ESTIMATE = Parameter(
    "estimate",
    str,
    "the factor of KORS's estimate: 1 + ε (icml) or 1 − ε (poster)",
    choices=("icml", "poster"),
)
RIDGE = Parameter("ridge", float, "γ, the ridge of KORS", low=0, above=True)
SAMPLING = (RIDGE, BETA, EPSILON, ESTIMATE)
N_FREQUENCIES = Parameter(
    "n_frequencies",
    int,
    "D, the number of random frequencies; each gives a cosine and a sine",
    low=1,
    high=100_000,
)
BUDGET = Parameter("budget", int, "B, the number of points that are kept", low=1, high=4096)

# Rows whose ‖x‖² is more than so many α overshoot: a step of g/α moves its row's prediction by
# ℓ'·‖x‖²/α.
MOST_RIDGES = 100.0

Public = dict[str, Any]  # values as `Parameter.check` gives them


def loss_and_clip(q: Public) -> dict[str, Any]:
    """The fields `loss` and `clip`, with which the `Params` of most learners begin."""
    return {"loss": LOSSES[str(q["loss"])], "clip": q["clip"]}


def newton_params(q: Public) -> dict[str, Any]:
    """The fields with which the `Params` of every online Newton step begin."""
    return {
        **loss_and_clip(q),
        "alpha": q["alpha"],
        "curvature": float(q["curvature"] or 0.0),
        "decreasing": q["curvature_schedule"] == "decreasing",
    }


class StreamSize(NamedTuple):
    """A stream's rounds, features d (with the intercept), and mean non-zeros s per row."""

    rounds: int
    d: int
    s: float


class Shared(NamedTuple):
    """What runs with an equal `key` hold once: so many 8-byte numbers."""

    key: tuple[Value, ...] = ()
    floats: int = 0


class Spec:
    """What the planner, sweep files and result tables read from a learner class.

    A learner defines `parameters`; `params_type`, whose fields have their names, or `to_params`;
    and `floats`, or `feature_floats`, the numbers held of a feature. `predicts` is false if its
    predictions mean nothing. `numbers_version` is raised when a change of code alters a run's
    numbers. The default curvature is `curvature_share` times the loss's σ (docs/errata.md, P1).
    `numbers` is "own" for the same bits in any cohort, cut or process, and "foreign" for less.
    `time_limit`: seconds of a run in a sweep without one. `open_ended`: the rows decide how large a
    dictionary becomes.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    params_type: ClassVar[Any] = None
    predicts: ClassVar[bool] = True
    always_stochastic: ClassVar[bool] = False
    numbers: ClassVar[str] = "own"
    grows: ClassVar[bool] = False
    numbers_version: ClassVar[int] = 1
    time_limit: ClassVar[float] = math.inf
    curvature_share: ClassVar[float] = 1.0
    open_ended: ClassVar[bool] = False
    feature_floats: ClassVar[int] = 2

    @classmethod
    def to_params(cls, q: Public) -> Any:
        """The parameters of the compiled step, from the complete public parameters `q`."""
        return cls.filled(q)

    @classmethod
    def filled(cls, q: Public, **more: Any) -> Any:
        """`params_type` with `more`, and in the other fields the parameters of their names. What is
        neither, or a parameter without effect, has the field's default.
        """
        own = {p.name: p for p in cls.parameters if p.name in q and p.matters_if != NEVER}
        known = {name: p.number(q[name]) for name, p in own.items()} | more
        names = [name for name in cls.params_type._fields if name in known]
        return cls.params_type(**{name: known[name] for name in names})

    @classmethod
    def irrelevant(cls, q: Public) -> set[str]:
        """The parameters that have no effect given the others, and are not in a run's identity."""
        conditions = {p.name: p.matters_if for p in cls.parameters if p.matters_if}
        return {name for name, (other, values) in conditions.items() if q[other] not in values}

    @classmethod
    def within(cls, params: Any, seconds: float) -> Any:
        """The parameters of a run that may take so many seconds; a foreign learner may hang."""
        return params

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """Whether the learner uses random numbers, so that its results depend on the seed."""
        return cls.always_stochastic

    @classmethod
    def measured_loss(cls, q: Public) -> str:
        """The loss that is measured of a run's predictions: the squared one if it has none."""
        return str(q.get("loss", "squared"))

    @classmethod
    def classifies(cls, q: Public) -> bool:
        """Whether it learns from labels −1 and +1 only."""
        return cls.measured_loss(q) not in OF_REAL_LABELS

    @classmethod
    def adds_intercept(cls, q: Public) -> bool:
        """Whether a feature that is always 1 is added to the rows."""
        return bool(q.get("fit_intercept"))  # which is not there if it has no effect

    @classmethod
    def overshoots(cls, q: Public, square: float) -> bool:
        """Whether rows of this mean ‖x‖² are so long beside α that learning is likely poor: in
        directions outside the sketch a step is g/α.
        """
        is_sketched = ALPHA in cls.parameters and "bandwidth" not in cls.defaults()
        return is_sketched and not q.get("diagonal") and square > MOST_RIDGES * q["alpha"]

    @staticmethod
    def joined(state: Any, /) -> Array | None:
        """The rounds, increasing, in which the dictionary's points joined; None if points can
        leave, or if there is no dictionary.
        """
        return None

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        """The most 8-byte numbers that a run's state holds on a stream of this size."""
        return cls.feature_floats * size.d

    @classmethod
    def shared(cls, q: Public, size: StreamSize) -> Shared:
        """What it holds together with other runs on the same rows."""
        return Shared()

    @classmethod
    def usual_curvature(cls, loss: str, clip: float) -> float:
        """The default curvature; 0 if there is none."""
        return cls.curvature_share * curvature_of(loss, clip)

    @classmethod
    def parameter(cls, name: str) -> Parameter:
        """The declaration of a parameter."""
        named = {parameter.name: parameter for parameter in cls.parameters}
        if name not in named:
            raise WrongInput(
                f"{cls.__name__} has no parameter {name!r}{nearest(name, list(named))}"
            )
        return named[name]

    @classmethod
    def complete(cls, given: dict[str, Any]) -> Public:
        """All parameters in order: the given ones, checked, and defaults for the others."""
        return cls.refilled({name: cls.parameter(name).check(q) for name, q in given.items()})

    @classmethod
    def refilled(cls, reduced: Public) -> Public:
        """All parameters in order, from the checked ones of a run. No curvature becomes the default
        one, and 0 is refused.
        """
        public = {**cls.defaults(), **reduced}
        if "curvature" not in cls.defaults() or "curvature" in cls.irrelevant(public):
            return public
        if public["curvature"] is None:
            public["curvature"] = cls.usual_curvature(str(public["loss"]), public["clip"])
        if public["curvature"] == 0.0:
            raise WrongInput(
                f"the {public['loss']} loss with clip {public['clip']:g} has no"
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
    def identifying(cls, public: Public) -> Public:
        """The parameters in a run's identity: those with an effect."""
        return {name: public[name] for name in public if name not in cls.irrelevant(public)}
