"""Parameters, declared once: their type, range, default and meaning.

The Python classes, the sweep file, the identity of a run and the columns of the `runs` table all
come from here.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.kernels.kernel import KERNELS
from koco_stream.losses import LOSSES

Value = float | int | bool | str | None


@dataclass(frozen=True)
class Parameter:
    """One parameter of a learner. `low` and `high` are inclusive unless `above` says that the value
    must exceed `low`.

    A parameter that is true or false may have words beside these, its `choices`. `later`: it was
    added when there were runs: at its default it is no part of a run's identity, so that runs made
    before keep theirs.
    """

    name: str
    kind: type
    default: Value
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    choices: tuple[str, ...] = ()
    optional: bool = False
    later: bool = False

    def check(self, value: Any) -> Value:
        """The value in its own type. Raises `WrongInput` naming the parameter, the value and what
        is allowed.
        """
        if value is None and self.optional:
            return None
        if self.kind is bool:
            if isinstance(value, bool) or type(value).__name__ == "bool_":
                return bool(value)
            if isinstance(value, str) and value in self.choices:
                return value
            words = "".join(f" or {choice!r}" for choice in self.choices)
            raise WrongInput(f"{self.name} must be true or false{words}, not {value!r}")
        if self.kind is str:
            if isinstance(value, str) and value in self.choices:
                return value
            raise WrongInput(f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}")
        try:
            number = (
                operator.index(value) if hasattr(value, "__index__") else float(value)
            )  # a large whole number stays exact
            finite = math.isfinite(number)
        except (TypeError, ValueError, OverflowError):
            number, finite = math.nan, False
        if isinstance(value, bool | str) or not finite:
            raise WrongInput(
                f"{self.name} must be a {'whole' if self.kind is int else 'finite'} number, not"
                f" {value!r}"
            )
        if self.kind is int and number != math.floor(number):
            raise WrongInput(f"{self.name} must be a whole number, not {value!r}")
        if number < self.low or number > self.high or (self.above and number == self.low):
            bounds = f"{'greater than' if self.above else 'at least'} {self.low:g}"
            if math.isfinite(self.high):
                bounds += f" and at most {self.high:g}"
            raise WrongInput(f"{self.name} must be {bounds}, not {value!r}")
        return int(number) if self.kind is int else float(number)


LOSS = Parameter("loss", str, "squared", "the loss", choices=tuple(LOSSES))
CLIP = Parameter("clip", float, 1.0, "C, the bound on predictions", low=0, above=True)
FIT_INTERCEPT = Parameter("fit_intercept", bool, False, "add a feature that is always 1")
SHARED = (LOSS, CLIP, FIT_INTERCEPT)
PROJECTION = Parameter(
    "projection",
    str,
    "weights",
    "how predictions are bounded: the weights are projected, or the prediction is truncated",
    choices=("weights", "prediction"),
    later=True,
)

SEED = Parameter("seed", int, 0, "the seed of what a learner draws", low=0, high=2**63 - 1)

ALPHA = Parameter(
    "alpha", float, 1.0, "α, the ridge; 1/α is the step off the sketch", low=0, above=True
)
ALPHA_OR_ZERO = Parameter("alpha", float, 1.0, "α, the ridge; 0 for the pseudo-inverse", low=0)
STEP_SIZE = Parameter("step_size", float, 1.0, "the step size", low=0, above=True)
CURVATURE = Parameter(
    "curvature",
    float,
    None,
    "the coefficient of g gᵀ; by default the loss's σ for `clip`",
    low=0,
    optional=True,
)
CURVATURE_SCHEDULE = Parameter(
    "curvature_schedule",
    str,
    "constant",
    "how `curvature` changes: not, or as 1/√t",
    choices=("constant", "decreasing"),
)
SKETCH_SIZE = Parameter(
    "sketch_size",
    int,
    10,
    "m, the rows of the sketch (FDSON: those that a shrink leaves); 0: none",
    low=0,
    high=1023,
)
# At the printed rate the first gradients err less on 37 of 65 streams, random rows on 11
# (docs/sketch-start.md); and they cost less.
SKETCH_START = Parameter(
    "sketch_start",
    str,
    "gradients",
    "the sketch's first rows: the first gradients, or random",
    choices=("random", "gradients"),
)
DIAGONAL = Parameter(
    "diagonal",
    bool,
    False,
    "rescale features by the diagonal of past gradients' squares; updated: this round's too, once"
    " it has predicted",
    choices=("updated",),
)
ROWS = Parameter(
    "sketch_size",
    int,
    10,
    "m, the rows of the sketch (FDSON: those that a shrink leaves)",
    low=1,
    high=1023,
)
SKETCH_RATE = Parameter(
    "sketch_rate", float, 1.0, "c in the sketch's rate min(c/t, 1)", low=0, above=True
)

KERNEL = Parameter("kernel", str, "gaussian", "the kernel", choices=tuple(KERNELS))
BANDWIDTH = Parameter(
    "bandwidth",
    float,
    1.0,
    "of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²))",
    low=0,
    above=True,
)
DEGREE = Parameter("degree", int, 2, "of the polynomial kernel (xᵀx' + 1)^degree", low=1, high=16)
KERNEL_SHAPE = (KERNEL, BANDWIDTH, DEGREE)
RIDGE = Parameter("ridge", float, 1.0, "γ, the ridge of KORS", low=0, above=True)
BETA = Parameter(
    "beta",
    float,
    1.0,
    "β, how many times a point's leverage score its probability is",
    low=0,
    above=True,
)
EPSILON = Parameter(
    "epsilon", float, 0.5, "ε, the accuracy of KORS's estimate", low=0, high=1, above=True
)
ESTIMATE = Parameter(
    "estimate",
    str,
    "icml",
    "the factor of KORS's estimate: 1 + ε (icml) or 1 − ε (poster)",
    choices=("icml", "poster"),
)
MAX_DICTIONARY = Parameter(
    "max_dictionary",
    int,
    None,
    "the most points; none if not given",
    low=1,
    high=100_000,
    optional=True,
)
J_MAX = Parameter("max_dictionary", int, 100, "J_max, the most points", low=1, high=100_000)
SAMPLING = (RIDGE, BETA, EPSILON, ESTIMATE)
CARRY = Parameter(
    "carry",
    str,
    "both",
    "what stays when a point joins: the weights and A, or the weights only",
    choices=("both", "weights"),
    later=True,
)

N_FREQUENCIES = Parameter(
    "n_frequencies",
    int,
    400,
    "D, the random frequencies; each is a cosine and a sine",
    low=1,
    high=100_000,
)
BUDGET = Parameter("budget", int, 100, "B, the points that are kept", low=1, high=4096)
RANK = Parameter(
    "rank", int, 20, "k, the Nyström features; at most the budget counts", low=1, high=4096
)
TUBE = Parameter("tube", float, 0.0, "squared loss: no update while |ŷ - y| is within it", low=0)
REGULARISATION = Parameter("regularisation", float, 1e-3, "λ in λ/2·‖f‖² + loss", low=0, above=True)
SAMPLING_FLOOR = Parameter(
    "sampling_floor",
    float,
    0.0,
    "the paper's γ, the least probability of a point in the sketch",
    low=0,
    high=1,
)
NU = Parameter(
    "tube",
    float,
    0.0,
    "NORMA: ν of the soft margin, with the hinge loss; 0 for the hinge loss itself",
    low=0,
    high=1,
)
DECAY = Parameter("regularisation", float, 1e-3, "λ in λ/2·‖f‖² + loss", low=0)
