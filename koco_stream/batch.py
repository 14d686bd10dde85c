"""The best linear function in hindsight in a learner's features: the row "BATCH" of the poster's
tables (Calandriello, Lazaric, Valko, NIPS 2017).

min_w Σ ℓ(wᵀφ_t, y_t) + α‖w‖² is the poster's L*: scikit-learn's C is 1/(2α), its ridge α. Newton's
method with a line search stops when only rounding lowers f, or when ‖∇f(w)‖²/(4α), or for the hinge
loss, smoothed over a width μ → 0, the duality gap is small. The last digits depend on the machine.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.special import expit

from koco_stream.errors import WrongInput
from koco_stream.learners.spec import ALPHA
from koco_stream.losses import LOSSES, OF_REAL_LABELS, check_labels
from koco_stream.one_at_a_time import OneAtATime
from koco_stream.streams.inputs import as_labels
from koco_stream.types import Array

# Each call starts a new pass, which yields the features (k, r) and labels (k,) of blocks of rows.
Blocks = Callable[[], Iterable[tuple[Array, Array]]]

BLOCK_ROWS = 4096
# Features of up to this many values (400 MB) are kept between passes, others are recomputed.
HELD_VALUES = 50_000_000
MOST_STEPS = 500
TOLERANCE = 1e-12  # relative to the minimum, for losses with a slope everywhere
GAP = 1e-6  # relative to the minimum, for the hinge loss
# The step sizes of the line search: 1 to 2^−55.
STEPS = 0.5 ** np.concatenate([np.arange(16), np.arange(16, 58, 3)])


def best_linear(blocks: Blocks, loss: str, alpha: float) -> Array:
    """The weights w (r,) that minimise Σ ℓ(wᵀφ_t, y_t) + α‖w‖², or `ArithmeticError`."""
    if loss not in LOSSES:
        raise WrongInput(f"no loss is called {loss!r}; there are {', '.join(LOSSES)}")
    ALPHA.check(alpha)
    rank = None
    for features, y in blocks():
        check_labels(loss, y)
        rank = features.shape[1]
    if rank is None:
        raise WrongInput("there are no rows to find the best function on")
    w = np.zeros(rank)
    # with this width all rows have curvature at w = 0
    width, tolerance = (2.0, GAP) if loss == "hinge" else (0.0, TOLERANCE)
    for _ in range(MOST_STEPS):
        value, gradient, hessian, exact, gap = _seen_at(w, blocks, loss, alpha, width)
        if gap <= tolerance * exact:
            return w
        if gradient @ gradient > 4.0 * alpha * 0.1 * tolerance * value:
            direction = _newton_step(hessian, gradient, alpha)
            values = _along(direction, w, blocks, loss, alpha, width)
            best = int(values.argmin())
            if values[best] < value * (1.0 - 1e-15):
                w = w + STEPS[best] * direction
                continue
        if loss != "hinge":  # limited by rounding
            return w
        if width < 1e-12:
            break
        width /= 10.0
    raise ArithmeticError(
        f"Newton's method did not solve the {loss} loss with alpha = {alpha:g}; try a larger alpha"
    )


def _seen_at(
    w: Array, blocks: Blocks, loss: str, alpha: float, width: float
) -> tuple[float, Array, Array, float, float]:
    """The objective at w, smoothed, its gradient and Hessian; without smoothing, and how far that
    is above its minimum at most.
    """
    value = exact = alpha * float(w @ w)
    gradient, hessian = 2.0 * alpha * w, 2.0 * alpha * np.eye(w.size)
    squares = 0.0
    for features, y in blocks():
        scores = features @ w
        losses, slopes, curves = derivatives(loss, scores, y, width)
        value += float(losses.sum())
        exact += float(derivatives(loss, scores, y)[0].sum())
        squares += float(slopes @ slopes)
        gradient = gradient + slopes @ features
        curved = np.flatnonzero(curves)
        weighted = features[curved] * np.sqrt(curves[curved])[:, None]
        hessian += weighted.T @ weighted
    # 2α-strongly convex, the smoothed objective is at most ‖∇‖²/(4α) above its minimum. The dual
    # bounds the other from below: max Σa − ‖Σ a_t y_t φ_t‖²/(4α) over a in [0, 1], from which
    # smoothing takes Σ μa²/2; the slopes are −a_t y_t.
    above = float(gradient @ gradient) / (4.0 * alpha) - 0.5 * width * squares
    return value, gradient, hessian, exact, exact - value + above


def _along(
    direction: Array, w: Array, blocks: Blocks, loss: str, alpha: float, width: float
) -> Array:
    """The smoothed objective after each of `STEPS`."""
    values: Array = alpha * np.square(w + STEPS[:, None] * direction).sum(axis=1)
    for features, y in blocks():
        scores, change = features @ w, features @ direction
        values += derivatives(loss, scores + STEPS[:, None] * change, y, width)[0].sum(axis=1)
    return values


def derivatives(
    loss: str, scores: Array, y: Array, width: float = 0.0
) -> tuple[Array, Array, Array]:
    """A loss and its first and second derivative in the score, (n,) each.

    A hinge is smoothed over `width` μ: z²/(2μ) for z = 1 − yŷ in [0, μ], and z − μ/2 beyond.
    """
    if loss in OF_REAL_LABELS:
        error, second = scores - y, 2.0 if loss == "squared" else 1.0
        return 0.5 * second * error * error, second * error, np.full(error.shape, second)
    margins = y * scores
    if loss == "logistic":
        p = expit(-margins)
        return np.logaddexp(0.0, -margins), -y * p, p * (1.0 - p)
    short = np.maximum(1.0 - margins, 0.0)
    if loss == "squared_hinge":
        return short * short, -2.0 * y * short, np.where(short > 0.0, 2.0, 0.0)
    if width == 0.0:
        return short, np.where(short > 0.0, -y, 0.0), np.zeros(short.shape)
    inside = np.minimum(short, width)
    curve = np.where((short > 0.0) & (short < width), 1.0 / width, 0.0)
    return inside * inside / (2.0 * width) + (short - inside), -y * inside / width, curve


def _newton_step(hessian: Array, gradient: Array, alpha: float) -> Array:
    try:
        return cho_solve(cho_factor(hessian), -gradient)
    except LinAlgError:
        values, vectors = eigh(hessian)
        return -vectors @ ((vectors.T @ gradient) / np.maximum(values, 2.0 * alpha))


class Batch(OneAtATime):
    """The best function in hindsight in the features of a kernel learner, for the learner's loss.

    Parameters
    ----------
    learner : object
        Has `partial_fit(X, y)`, `features(X)` → (n, r), `loss` and `clip`. `fit` first lets it
        learn from the rows if it is not fitted.
    alpha : float
        α > 0 in min_w Σ ℓ(wᵀφ_t, y_t) + α‖w‖².

    Attributes
    ----------
    weights_ : ndarray of shape (r,)
        The minimiser over all w.
    mean_loss_, error_rate_ : float
        Of the predictions on the rows, truncated to [−clip, clip]. The error rate is None unless
        all labels are −1 or +1; a prediction of 0 counts as +1.
    largest_ : float
        The largest |prediction| before truncation.
    """

    def __init__(self, learner: Any, alpha: float = 1.0) -> None:
        self.learner = learner
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> Self:
        """Find the weights for the rows of X (n, d) with labels y (n,)."""
        X = X if hasattr(X, "shape") else np.asarray(X)
        X = X.tocsr() if hasattr(X, "tocsr") else X
        labels = as_labels(y, X.shape[0])
        if not self.learner.__sklearn_is_fitted__():
            self.learner.partial_fit(X, labels)
        blocks = self._blocks(X, labels)
        loss, clip = self.learner.loss, self.learner.clip
        self.weights_ = best_linear(blocks, loss, self.alpha)
        scores = np.concatenate([features @ self.weights_ for features, _ in blocks()])
        predictions = np.clip(scores, -clip, clip)
        wrong = (predictions >= 0.0) != (labels >= 0.0)
        self.largest_ = float(np.abs(scores).max())
        self.mean_loss_ = float(derivatives(loss, predictions, labels)[0].mean())
        self.error_rate_ = float(wrong.mean()) if (np.abs(labels) == 1.0).all() else None
        return self

    def predict(self, X: Any) -> Array:
        """Predictions (n,) for the rows of X (n, d), truncated to [−clip, clip]."""
        if not hasattr(self, "weights_"):
            raise AttributeError("this Batch is not fitted yet: call fit first")
        scores = np.asarray(self.learner.features(X)) @ self.weights_
        return np.clip(scores, -self.learner.clip, self.learner.clip)

    def _blocks(self, X: Any, labels: Array) -> Blocks:
        def read() -> Iterator[tuple[Array, Array]]:
            for first in range(0, labels.size, BLOCK_ROWS):
                these = slice(first, min(first + BLOCK_ROWS, labels.size))
                yield np.asarray(self.learner.features(X[these]), np.float64), labels[these]

        first_block = next(read(), None)
        if first_block is not None and first_block[0].shape[1] * labels.size <= HELD_VALUES:
            held = list(read())
            return lambda: held
        return read
