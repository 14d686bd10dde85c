"""Predictions of several members as one: the aggregating forecaster of Vovk (1990, 1998).

Member k has the weight w_k ∝ exp(−η L_k), where L_k is its loss so far. A loss is η-mixable if for
all such weights there is a prediction whose loss is, for every label, at most that of the mixture,
−ln(Σ w_k exp(−η ℓ(ŷ_k, y)))/η. The forecaster's loss is then at most ln K/η above that of the best
of K members.

The predictions `held` (room, n), and vectors (room,), have a place for each member, and more up to
a multiple of eight, whose losses are infinite.
"""

import math
from collections.abc import Callable

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.losses import LOGISTIC, SQUARED_HINGE, loss_value
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import exponentials, logarithms
from koco_stream.types import Array

# η for predictions and labels in [−C, C]; for the squared hinge, which is exp-concave there, and
# the logistic loss, for labels −1 and +1, where exp(−C) has all its digits.
RATES: dict[str, Callable[[float], float]] = {
    "squared": lambda C: 0.5 / C / C,
    "half_squared": lambda C: 1.0 / C / C,
    "logistic": lambda C: 1.0 if C <= 700.0 else 0.0,
    "squared_hinge": lambda C: 0.5 / (1.0 + C) / (1.0 + C),
}


def learning_rate(loss: str, clip: float) -> float:
    """η of a loss whose predictions are in [−clip, clip]; `WrongInput` if it cannot be mixed."""
    if loss not in RATES:
        raise WrongInput(
            f"the {loss} loss is not mixable: no mixture of predictions is as good as their"
            f" weighted losses; take {', '.join(RATES)}"
        )
    rate = RATES[loss](clip)
    if not 0.0 < rate < math.inf:
        raise WrongInput(f"clip {clip:g} is too {'small' if rate else 'large'} for a mixture")
    return rate


@jit
def predict_round(
    loss: int, clip: float, rate: float, y_hats: Array, losses: Array, work: Array
) -> float:
    """The prediction for a round in which the members predict `y_hats` (room,), with `losses`
    (2, room) so far; NaN if all are infinite. `work` (3, room) is changed.
    """
    best = 0
    for k in range(y_hats.size):
        if losses[0, k] < losses[0, best]:
            best = k
    for k in range(y_hats.size):
        behind = (losses[0, k] - losses[0, best]) + (losses[1, k] - losses[1, best])
        work[0, k] = -rate * behind
    if loss == SQUARED_HINGE:
        y_hat = mean_prediction(y_hats, work)
    elif loss == LOGISTIC:
        y_hat = mean_probability(y_hats, work)
    else:
        y_hat = substituted(clip, y_hats, work)
    return y_hat if abs(y_hat) <= clip or math.isnan(y_hat) else math.copysign(clip, y_hat)


@inlined
def mean_prediction(y_hats: Array, work: Array) -> float:
    """Σ w_k ŷ_k / Σ w_k, for an exp-concave loss."""
    exponentials(work, y_hats.size)
    up = down = 0.0
    for k in range(y_hats.size):
        up += work[0, k] * y_hats[k]
        down += work[0, k]
    return up / down


@inlined
def mean_probability(y_hats: Array, work: Array) -> float:
    """The log-odds of Σ w_k p_k; row 1 of `work` becomes exp(−|ŷ_k|)."""
    for k in range(y_hats.size):
        work[1, k] = -abs(y_hats[k])
    exponentials(work, 2 * y_hats.size)
    up = down = 0.0
    for k in range(y_hats.size):
        larger = work[0, k] / (1.0 + work[1, k])
        smaller = larger * work[1, k]
        up += larger if y_hats[k] >= 0.0 else smaller
        down += smaller if y_hats[k] >= 0.0 else larger
    return math.log(up / down)


@inlined
def substituted(clip: float, y_hats: Array, work: Array) -> float:
    """Vovk's (g(−C) − g(C))/(4C) with g(y) = −ln(Σ w_k exp(−η(ŷ_k − y)²))/η, η = 1/(2C²)."""
    for k in range(y_hats.size):
        u = y_hats[k] / clip  # exp(−(u ∓ 1)²/2) = exp(−(1 + u²)/2)·exp(±u)
        work[0, k] -= 0.5 * (1.0 + u * u)
        work[1, k] = u
    exponentials(work, 2 * y_hats.size)
    up = down = 0.0
    for k in range(y_hats.size):
        up += work[0, k] * work[1, k]
        down += work[0, k] / work[1, k]
    return 0.5 * clip * math.log(up / down)


@jit
def mix_rows(
    loss: int,
    clip: float,
    rate: float,
    held: Array,
    labels: Array,
    losses: Array,
    work: Array,
    predictions: Array,
) -> int:
    """Mix the members' predictions of each row, and learn from the labels who is good; without
    labels, of rows each of which could come next.

    Predictions are held within [−C, C]; one that is NaN is an infinite loss. Fills `predictions`
    (n,) and returns the rounds done, fewer than n if no member is left.
    """
    y_hats = work[2]
    for t in range(predictions.size):
        for k in range(y_hats.size):
            y_hat = held[k, t]
            if math.isnan(y_hat):
                losses[0, k], y_hat = math.inf, 0.0
            y_hats[k] = min(max(y_hat, -clip), clip)
        predictions[t] = predict_round(loss, clip, rate, y_hats, losses, work)
        if not math.isfinite(predictions[t]):
            return t
        if labels.size > 0:
            add_losses(loss, y_hats, labels[t], losses, work)
    return int(predictions.size)


@inlined
def add_losses(loss: int, y_hats: Array, y: float, losses: Array, work: Array) -> None:
    """Add the members' losses of a round. The second number of a sum is what rounding took from
    the first.
    """
    room = y_hats.size
    if loss == LOGISTIC:
        logarithms(work, room, room)
    for k in range(room):
        if loss == LOGISTIC:
            more = work[1, k] - min(y * y_hats[k], 0.0)
        else:
            more = loss_value(loss, y_hats[k], y)
        if losses[0, k] < math.inf:
            total = losses[0, k] + more
            taken = total - losses[0, k]
            losses[1, k] += (losses[0, k] - (total - taken)) + (more - taken)
            losses[0, k] = total


def weights_of(rate: float, losses: Array) -> Array:
    """The weights (room,) in the next round, whose sum is 1."""
    best = losses[:, losses[0].argmin()]
    weights: Array = np.exp(-rate * (losses - best[:, np.newaxis]).sum(axis=0))
    return weights / weights.sum()
