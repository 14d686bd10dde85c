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
    w, width = np.zeros(rank), 2.0  # with this width all rows have curvature at w = 0
    if rank == 0:
        return w
    for _ in range(MOST_STEPS):
        here = _Point(blocks, loss, alpha, w, width)
        if loss == "hinge" and here.gap <= GAP * here.hinge:
            return w
        solved = here.gradient @ here.gradient <= 4.0 * alpha * here.value * (
            0.1 * GAP if loss == "hinge" else TOLERANCE
        )
        if not solved:
            direction = _newton_step(here.hessian, here.gradient, alpha)
            values = here.along(direction)
            best = int(values.argmin())
            if values[best] < here.value * (1.0 - 1e-15):
                w = w + STEPS[best] * direction
                continue
        if loss != "hinge":  # solved, or limited by rounding
            return w
        if width < 1e-12:
            break
        width /= 10.0
    raise ArithmeticError(
        f"Newton's method did not solve the {loss} loss with alpha = {alpha:g}; try a larger alpha"
    )


class _Point:
    def __init__(self, blocks: Blocks, loss: str, alpha: float, w: Array, width: float) -> None:
        self.blocks, self.loss, self.alpha, self.w, self.width = blocks, loss, alpha, w, width
        r, norm2 = w.size, float(w @ w)
        total, hinge, duals = 0.0, 0.0, 0.0
        slopes, self.hessian = np.zeros(r), 2.0 * alpha * np.eye(r)
        for features, y in blocks():
            scores = features @ w
            value, slope, curve = derivatives(loss, scores, y, width)
            total += float(value.sum())
            slopes += slope @ features
            curved = np.flatnonzero(curve)
            weighted = features[curved] * np.sqrt(curve[curved])[:, None]
            self.hessian += weighted.T @ weighted
            if loss == "hinge":
                hinge += float(np.maximum(1.0 - y * scores, 0.0).sum())
                duals += float(np.abs(slope).sum())
        self.value = total + alpha * norm2
        self.gradient = slopes + 2.0 * alpha * w
        self.hinge = hinge + alpha * norm2
        # The dual of the hinge: max Σa − ‖Σ a_t y_t φ_t‖²/(4α) over a in [0, 1]; the smoothed
        # slopes are −a_t y_t.
        self.gap = self.hinge - duals + float(slopes @ slopes) / (4.0 * alpha)

    def along(self, direction: Array) -> Array:
        values = np.zeros(STEPS.size)
        for features, y in self.blocks():
            scores, change = features @ self.w, features @ direction
            for k, s in enumerate(STEPS):
                values[k] += derivatives(self.loss, scores + s * change, y, self.width)[0].sum()
        return values + self.alpha * np.square(self.w + STEPS[:, None] * direction).sum(axis=1)


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
        total, mistakes, self.largest_ = 0.0, 0, 0.0
        for features, y_of_block in blocks():
            scores = features @ self.weights_
            self.largest_ = max(self.largest_, float(np.abs(scores).max(initial=0.0)))
            predictions = np.clip(scores, -clip, clip)
            total += float(derivatives(loss, predictions, y_of_block)[0].sum())
            mistakes += int(((predictions >= 0.0) != (y_of_block >= 0.0)).sum())
        self.mean_loss_ = total / labels.size
        self.error_rate_ = mistakes / labels.size if (np.abs(labels) == 1.0).all() else None
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
                stop = min(first + BLOCK_ROWS, labels.size)
                rows = X.slice(first, stop - first) if hasattr(X, "slice") else X[first:stop]
                yield np.asarray(self.learner.features(rows), np.float64), labels[first:stop]

        first_block = next(read(), None)
        if first_block is not None and first_block[0].shape[1] * labels.size <= HELD_VALUES:
            held = list(read())
            return lambda: held
        return read
