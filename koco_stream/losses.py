"""The losses ℓ(ŷ, y) for the prediction ŷ = wᵀx and the label y, and their curvature σ.

σ is the constant of Assumption 2 of Luo et al. (2016) for u, v in [−C, C]: ℓ(v) ≥ ℓ(u) + ℓ'(u)(v −
u) + (σ/2)(ℓ'(u)(v − u))².

- squared: (ŷ − y)², σ = 1/(8C²), since (ℓ'(u)(v − u))² ≤ (4C)²(v − u)².
- half_squared: (ŷ − y)²/2, σ = 1/(4C²).
- logistic: log(1 + exp(−yŷ)), σ = exp(−C), twice what exp-concavity gives (Hazan et al., 2007,
  Lemma 3); the tests check it on a grid of C from 0.1 to 20.
- squared_hinge: max(0, 1 − yŷ)². With r = 1 − yu in [0, 1 + C] and δ = y(v − u) it needs σ ≤
  1/(2r²) where yv ≤ 1, and 2σrδ ≤ 1 with δ ≤ 2C beyond: σ = min(1/(2(1 + C)²), 1/(4C(1 + C))).
- hinge: max(0, 1 − yŷ), σ = 0.
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
    """A loss's curvature σ for values in [−clip, clip]; 0 if it has none or `clip` is infinite."""
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
    """The probabilities (2, …) of −1 and +1 from their log-odds, predictions with the logistic
    loss.
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
    """The step size of round t, from 1: `step_size`, or divided by √t or t."""
    if schedule == SQRT:
        return step_size / math.sqrt(t)
    return step_size / t if schedule == LINEAR else step_size


@jit
def loss_value(loss: int, y_hat: float, y: float) -> float:
    """The loss ℓ(ŷ, y), without overflow for any ŷ of moderate size."""
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
    """The derivative ℓ'(ŷ, y) in ŷ, and 0 where it would be a difference of rounding."""
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
    """Whether double precision cannot vouch for six digits of a prediction, or of the next.

    So it is if `reach`, the longest step so far times ‖x‖, is above `most`, or if rounding may have
    made a hinge's slope (`gap`); not if uᵀx is beyond [−C, C] by an `excess` it cannot undo.
    """
    beyond = reach > most and not excess > UNCERTAIN * reach
    return beyond or gap <= UNCERTAIN * reach
