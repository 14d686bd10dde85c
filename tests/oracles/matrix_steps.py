"""Learners that step by a function of the matrix of all gradients, or of frequent directions of it:
w ← w − step·f(SᵀS)g, dense, with the eigenvectors made anew from the rows in every round.

An empty row changes nothing, not even t.
"""

import numpy as np

from tests.oracles.exact_algebra import eigen_of_rows

NEW_AT = 1000  # roundings of ‖x‖: what is longer outside the span of the others is a new direction


def reciprocal(x):
    """1/x, and 0 for 0."""
    return np.where(x > 0, 1 / np.where(x > 0, x, 1), 0 * x)


# f of the eigenvalues, given α or δ
ROOTS = {
    "RFDSON": lambda values, alpha: reciprocal(values + alpha),
    "SAdaGrad": lambda values, alpha: reciprocal(np.sqrt(values + alpha)),
    "AdaFD": lambda values, delta: reciprocal(np.sqrt(values) + delta),
    "AdaGrad": lambda values, delta: reciprocal(np.sqrt(values) + delta),  # of the full matrix
}


class MatrixSteps:
    """`learner` on the rows X (n, d) with labels y (n,).

    size: m, and buffer: the gradients between shrinks; None for the matrix of all gradients. floor:
    α_0, or δ. growth: the share of ρ that a shrink adds to it. After `run`: predictions (n,),
    products uᵀx (n,) before they are bounded, weights (d,), floor, shrinks and their ρ, S (its rows
    orthogonal), and `matrix`, the sum of all ĝĝᵀ.
    """

    def __init__(
        self,
        learner,
        *,
        clip,
        slope,
        size=None,
        buffer=None,
        step_size=1.0,
        floor=0.0,
        growth=0.0,
        curvature=1.0,
        decreasing=False,
        projection="prediction",
        dtype=float,
    ):
        self.f, self.clip, self.slope, self.size = ROOTS[learner], dtype(clip), slope, size
        self.buffer = buffer or size
        self.step_size, self.floor, self.growth = dtype(step_size), dtype(floor), dtype(growth)
        self.curvature, self.decreasing = dtype(curvature), decreasing
        self.projection, self.dtype, self.t, self.rhos = projection, dtype, 0, []
        self.predictions, self.products, self.dependent, self.raw = [], [], 0, 0

    def run(self, X, y):
        """All rounds. Returns itself."""
        X, y = X.astype(self.dtype), y.astype(self.dtype)
        d = X.shape[1]
        self.S, self.weights, self.matrix = X[:0], np.zeros(d, self.dtype), np.zeros((d, d))
        for x, label in zip(X, y, strict=True):
            self.round(x, label)
        return self

    def round(self, x, label):
        """One round; returns ρ if the sketch shrank in it."""
        if not x.any():
            self.predictions.append(x[0])
            self.products.append(x[0])
            return None
        self.t += 1
        values, V = eigen_of_rows(self.S)
        outside = x - V.T @ (V @ x)
        outside -= V.T @ (V @ outside)
        if outside @ outside <= (NEW_AT * np.finfo(self.dtype).eps) ** 2 * (x @ x):
            outside = 0 * x
        z = self.weights @ x
        y_hat = np.clip(z, -self.clip, self.clip)
        if self.projection == "weights" and y_hat != z:
            if self.floor == 0 and outside.any():
                direction = outside
            else:
                inside = V.T @ ((V @ x) / (values + self.floor))
                direction = inside + outside * reciprocal(self.floor)
            self.weights = self.weights - (z - y_hat) / (x @ direction) * direction
        self.predictions.append(y_hat)
        self.products.append(z)
        g = self.slope(y_hat, label) * x
        scale = np.sqrt(self.curvature / (np.sqrt(self.dtype(self.t)) if self.decreasing else 1))
        if not (scale * g).any():
            return None
        self.matrix += (scale * scale * np.outer(g, g)).astype(float)
        if not outside.any():
            self.dependent += 1
            g = V.T @ (V @ g)
        self.raw += 1
        values, V = eigen_of_rows(np.vstack([self.S, scale * g]))
        rho = None
        if self.raw == self.buffer:
            self.raw, rho = 0, values[self.size] if len(values) > self.size else 0 * values[0]
            self.rhos.append(rho)
            self.floor = self.floor + self.growth * rho
            values, V = values[: self.size] - rho, V[: self.size]
            kept = values > 1e-14 * (values[0] + rho)
            values, V = values[kept], V[kept]
        self.S = np.sqrt(values)[:, None] * V
        inside = V @ g
        change = V.T @ (self.f(values, self.floor) * inside)
        if rho is not None:
            change = change + self.f(0 * rho, self.floor) * (g - V.T @ inside)
        self.weights = self.weights - self.step_size * change
        return rho
