"""The losses: value, slope and curvature.

`ŷ` is the prediction `wᵀx`, `y` the label (a real number for the squared loss, −1 or +1 for the
others).

| loss          | ℓ(ŷ, y)              | ℓ'(ŷ, y)            | σ for \\|ŷ\\|, \\|y\\| ≤ C    |
| ------------- | -------------------- | ------------------- | ----------------------- |
| squared       | (ŷ − y)²             | 2(ŷ − y)            | 1/(8C²)                 |
| half_squared  | (ŷ − y)²/2           | ŷ − y               | 1/(4C²)                 |
| logistic      | log(1 + exp(−yŷ))    | −y/(1 + exp(yŷ))    | exp(−C)                 |
| squared_hinge | max(0, 1 − yŷ)²      | −2y·max(0, 1 − yŷ)  | 1/(2(1 + C)²)           |
| hinge         | max(0, 1 − yŷ)       | −y if yŷ < 1 else 0 | 0                       |

σ is the constant of Assumption 2 of Luo et al. (2016): for all u, v in [−C, C],
ℓ(v) ≥ ℓ(u) + ℓ'(u)(v − u) + (σ/2)(ℓ'(u)(v − u))².

- squared: ℓ(v) − ℓ(u) − ℓ'(u)(v − u) = (v − u)², and (ℓ'(u)(v − u))² ≤ (4C)²(v − u)²: any σ ≤
  1/(8C²) does.
- half of it, as Vowpal Wabbit has it: both sides have a factor ½ instead of 1, and (ℓ'(u)(v − u))²
  ≤ (2C)²(v − u)².
- logistic: exp(−βℓ) is concave where βℓ'² ≤ ℓ'', that is for β ≤ (1 − p)/p with p = 1/(1 +
  exp(yŷ)), at least exp(−C); but that gives only half of β (Hazan et al., 2007, Lemma 3).
  With z = yv, a = yu and p at a, the claim is log(1 + e^{−z}) − log(1 + e^{−a}) + p(z − a) ≥ (σ/2)
  p²(z − a)². The left side has the second derivative p(1 − p) at z = a and is at least half of
  exp(−C) p² (z − a)² on [−C, C]: checked on a grid by the tests, C from 0.1 to 20.
- squared hinge: for yu ≥ 1 the slope is 0. Else, with r = 1 − yu ≤ 1 + C and δ = y(v − u): the left
  minus the linear term is δ² where yv ≤ 1, and (2rδ − r²) ≥ r² beyond, where δ ≥ r. (ℓ'δ)² = 4r²δ².
  In the first case 1/(2r²) does; in the second 2rδ − r² ≥ 2σ r²δ² must hold for r ≤ δ ≤ 2C, and
  since rδ ≤ 2rδ − r² it is enough that 2σ rδ ≤ 1, that is σ ≤ 1/(4C(1 + C)). The smaller of the two
  over C is taken below.
- hinge: piecewise linear, no curvature.
"""

import math
from collections.abc import Callable

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.numerics.compiler import jit
from koco_stream.types import Array

SQUARED, LOGISTIC, SQUARED_HINGE, HINGE, HALF_SQUARED = 0, 1, 2, 3, 4
LOSSES = {
    "squared": SQUARED,
    "logistic": LOGISTIC,
    "squared_hinge": SQUARED_HINGE,
    "hinge": HINGE,
    "half_squared": HALF_SQUARED,
}
OF_REAL_LABELS = ("squared", "half_squared")  # the others need labels −1 and +1


# The curvature σ as a function of the clip C, for the losses that have one.
CURVATURES: dict[str, Callable[[float], float]] = {
    "squared": lambda C: 1.0 / (8.0 * C * C),
    "half_squared": lambda C: 1.0 / (4.0 * C * C),
    "logistic": lambda C: math.exp(-C),
    "squared_hinge": lambda C: min(1.0 / (2.0 * (1.0 + C) ** 2), 1.0 / (4.0 * C * (1.0 + C))),
}


def curvature_of(loss: str, clip: float) -> float:
    """A loss's curvature σ for values in [−clip, clip]; 0 if it has none or `clip` is infinite.

    Raises `WrongInput` for a clip so small that σ is larger than any number.
    """
    if loss not in CURVATURES or not math.isfinite(clip):
        return 0.0
    try:
        return CURVATURES[loss](clip)
    except ZeroDivisionError:
        raise WrongInput(
            f"clip {clip:g} is so small that the curvature of the {loss} loss is larger than any"
            " number; give a larger clip, or a curvature"
        ) from None


def of_log_odds(scores: Array) -> Array:
    """The probabilities (2, …) of −1 and +1 of which predictions with the logistic loss are the
    log-odds.
    """
    ratio = np.exp(-np.abs(scores))  # which does not overflow
    rising = np.stack([ratio, np.ones_like(ratio)]) / (1.0 + ratio)
    return np.where(scores >= 0.0, rising, rising[::-1])


def check_labels(loss: str, labels: Array) -> None:
    """Raise `WrongInput` if the loss needs labels −1 and +1 and `labels` (n,) has others."""
    if loss not in OF_REAL_LABELS and not (np.abs(labels) == 1.0).all():
        wrong = labels[np.abs(labels) != 1.0][0]
        raise WrongInput(f"the {loss} loss needs labels -1 and +1, but one is {wrong:g}")


@jit
def curvature_at(curvature: float, decreasing: bool, t: int) -> float:
    """The coefficient of g gᵀ in round t: `curvature`, or `curvature`/√t if `decreasing`."""
    return curvature / math.sqrt(t) if decreasing else curvature


STEP_SCHEDULES = {"constant": 0, "sqrt": 1, "linear": 2}
CONSTANT, SQRT, LINEAR = STEP_SCHEDULES.values()


@jit
def step_at(step_size: float, schedule: int, t: float) -> float:
    """The step of round t, from 1: `step_size`, or divided by √t or t."""
    if schedule == SQRT:
        return step_size / math.sqrt(t)
    return step_size / t if schedule == LINEAR else step_size


@jit
def loss_value(loss: int, y_hat: float, y: float) -> float:
    """The loss ℓ(ŷ, y), without overflow for any finite ŷ of moderate size."""
    if loss == SQUARED:
        return (y_hat - y) * (y_hat - y)
    if loss == HALF_SQUARED:
        return 0.5 * (y_hat - y) * (y_hat - y)
    margin = y * y_hat
    if loss == LOGISTIC:
        return math.log1p(math.exp(-abs(margin))) - min(margin, 0.0)  # exp does not overflow
    short = 1.0 - margin
    if short <= 0.0:
        return 0.0
    return short * short if loss == SQUARED_HINGE else short


# When a prediction meets a label, or a margin 1, rounding is left: relative to what cancels, less
# than this.
NO_DIFFERENCE = 1e-12


@jit
def loss_slope(loss: int, y_hat: float, y: float) -> float:
    """The derivative ℓ'(ŷ, y) of the loss in ŷ; 0 where it would be a difference of rounding, so
    that the last digit of a prediction does not decide whether there is a gradient.
    """
    if loss == SQUARED or loss == HALF_SQUARED:
        rest = y_hat - y
        if abs(rest) <= NO_DIFFERENCE * (abs(y_hat) + abs(y)):
            return 0.0
        return 2.0 * rest if loss == SQUARED else rest
    margin = y * y_hat
    if loss == LOGISTIC:
        if margin > 0.0:
            e = math.exp(-margin)
            return -y * e / (1.0 + e)
        return -y / (1.0 + math.exp(margin))
    short = 1.0 - margin
    if short <= NO_DIFFERENCE * (1.0 + abs(margin)):
        return 0.0
    return -2.0 * y * short if loss == SQUARED_HINGE else -y


# Rounding moves a prediction by about 10⁻¹⁶ of the largest step, times 1 to 70 as measured
# (docs/reliability.md): within 10⁻⁶ of the clip for steps up to this many clips.
MOST_CLIPS = 2e8


UNCERTAIN = 1e-15  # by so much of the longest step rounding may move a prediction


@jit
def hinge_gap(loss: int, slope: float, y_hat: float, y: float) -> float:
    """How far a margin is below 1, where a hinge's `slope` begins; infinite for other losses."""
    return 1.0 - y * y_hat if loss == HINGE and slope != 0.0 else math.inf


@jit
def in_doubt(reach: float, excess: float, most: float, gap: float) -> bool:
    """Whether double precision cannot vouch for six digits of a prediction, or of the next: if
    `reach`, the longest step of the weights so far times the length of the row, is above `most`, or
    if a hinge has a slope (`gap`, see `hinge_gap`) that rounding may have made.

    `excess` is how far uᵀx lies beyond [−C, C]: where rounding cannot bring it back, the prediction
    is C whatever its digits.
    """
    beyond = reach > most and not excess > UNCERTAIN * reach
    return beyond or gap <= UNCERTAIN * reach
