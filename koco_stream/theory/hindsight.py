"""The best function in hindsight, by kernel ridge regression."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from koco_stream.errors import WrongInput
from koco_stream.types import Array


class Hindsight(NamedTuple):
    """A function f = Σ a_i k(x_i, ·) on the rows it was made from.

    Attributes
    ----------
    coefficients : ndarray of shape (n,)
        a.
    predictions, labels : ndarray of shape (n,)
        f(x_t) and y_t.
    norm2 : float
        ‖f‖².
    """

    coefficients: Array
    predictions: Array
    labels: Array
    norm2: float

    @property
    def loss(self) -> float:
        """The sum of squared errors, Σ (f(x_t) − y_t)²."""
        return float(((self.predictions - self.labels) ** 2).sum())

    @property
    def largest(self) -> float:
        """The largest prediction, max |f(x_t)|."""
        return float(np.abs(self.predictions).max(initial=0.0))

    def scaled_into(self, clip: float) -> "Hindsight":
        """The function multiplied by a factor such that |f(x_t)| ≤ `clip` on all rows.

        It is feasible, but not the best feasible function.
        """
        factor = clip / self.largest if self.largest > clip else 1.0
        # Clipped, because a product may round to a value beyond the clip.
        predictions = np.clip(factor * self.predictions, -clip, clip)
        return Hindsight(
            factor * self.coefficients, predictions, self.labels, factor * factor * self.norm2
        )


def best_in_hindsight(K: Array, y: Array, alpha: float) -> Hindsight:
    """Kernel ridge regression: argmin_f Σ (f(x_t) − y_t)² + α‖f‖², a = (K + αI)⁻¹y.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    y : ndarray of shape (n,)
        The labels.
    alpha : float
        α.

    Returns
    -------
    Hindsight
        The function. Its predictions are not clipped: see `Hindsight.scaled_into`.

    Raises
    ------
    WrongInput
        For a ridge that is not positive, or a K that is not a kernel matrix.
    """
    if not alpha > 0.0:
        raise WrongInput(f"the ridge must be positive, not {alpha!r}")
    labels = np.asarray(y, np.float64)
    try:
        a = cho_solve(cho_factor(K + alpha * np.eye(len(labels)), lower=True), labels)
    except LinAlgError:
        raise WrongInput(
            f"K + {alpha:g} I is not positive definite: K is not a kernel matrix, or the ridge is"
            " smaller than its rounding error"
        ) from None
    predictions = labels - alpha * a
    return Hindsight(a, predictions, labels, float(a @ predictions))
