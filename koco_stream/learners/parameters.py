"""Declarations of learners' parameters: type, range and meaning.

Defaults are those of the constructors.

The checks of sweep files, the identity of a run and the columns of the table `runs` are derived
from them. Parameters that several learners share are declared here, others beside their learner.
"""

import math
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.kernels.kernel import KERNELS
from koco_stream.losses import LOSSES, OF_REAL_LABELS

Value = float | int | bool | str | None


@dataclass(frozen=True)
class Parameter:
    """The declaration of one parameter of a learner.

    The range from `low` to `high` is inclusive; with `above`, `low` itself is excluded. `choices`
    are the allowed words, also as alternatives to true and false. With `matters_if`, a parameter's
    name and some of its values, this parameter has an effect only if the other one has such a
    value. `later` marks a parameter that was introduced after runs had been stored: at its default
    it is not part of a run's identity, so that stored runs keep theirs.
    """

    name: str
    kind: type
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    choices: tuple[str, ...] = ()
    optional: bool = False
    matters_if: tuple[str, tuple[Value, ...]] | None = None
    later: bool = False

    def check(self, value: Any) -> Value:
        """The value, converted to the parameter's type.

        Raises `WrongInput` with the parameter, the value and what is allowed.
        """
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
            raise WrongInput(f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}")
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


LOSS = Parameter("loss", str, "the loss", choices=tuple(LOSSES))
CLIP = Parameter("clip", float, "C, the bound on predictions", low=0, above=True)
FIT_INTERCEPT = Parameter("fit_intercept", bool, "add a feature that is always 1")
SHARED = (LOSS, CLIP, FIT_INTERCEPT)
SEED = Parameter("seed", int, "the seed of what a learner draws", low=0, high=2**63 - 1)

STEP_SIZE = Parameter("step_size", float, "the step size", low=0, above=True)
ALPHA = Parameter("alpha", float, "α, the ridge; 1/α is the step off the sketch", low=0, above=True)
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
    "how `curvature` changes: not, or as 1/√t",
    choices=("constant", "decreasing"),
)
NEWTON_STEP = (ALPHA, CURVATURE, CURVATURE_SCHEDULE)
PROJECTION = Parameter(
    "projection",
    str,
    "how predictions are bounded: the weights are projected, or the prediction is truncated",
    choices=("weights", "prediction"),
    later=True,
)
SKETCH_SIZE = Parameter(
    "sketch_size",
    int,
    "m, the rows of the sketch (FDSON: those that a shrink leaves)",
    low=1,
    high=1023,
)
DIAGONAL = Parameter(
    "diagonal",
    bool,
    "rescale features by the diagonal of past gradients' squares; updated: this round's too, once"
    " it has predicted",
    choices=("updated",),
)

BANDWIDTH = Parameter(
    "bandwidth", float, "of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²))", low=0, above=True
)
KERNEL_SHAPE = (
    Parameter("kernel", str, "the kernel", choices=tuple(KERNELS)),
    replace(BANDWIDTH, matters_if=("kernel", ("gaussian",))),
    Parameter(
        "degree",
        int,
        "of the polynomial kernel (xᵀx' + 1)^degree",
        low=1,
        high=16,
        matters_if=("kernel", ("polynomial",)),
    ),
)
BETA = Parameter(
    "beta",
    float,
    "β, how many times a point's leverage score its probability is",
    low=0,
    above=True,
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
SAMPLING = (
    Parameter("ridge", float, "γ, the ridge of KORS", low=0, above=True),
    BETA,
    EPSILON,
    ESTIMATE,
)
N_FREQUENCIES = Parameter(
    "n_frequencies",
    int,
    "D, the random frequencies; each is a cosine and a sine",
    low=1,
    high=100_000,
)
BUDGET = Parameter("budget", int, "B, the points that are kept", low=1, high=4096)
TUBE = Parameter(
    "tube",
    float,
    "squared loss: no update while |ŷ - y| is within it",
    low=0,
    matters_if=("loss", OF_REAL_LABELS),
)
