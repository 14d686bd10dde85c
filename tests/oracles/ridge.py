"""The kernel ridge forecasters as their paper defines them (Jézéquel, Gaillard, Rudi, NeurIPS
2019), slow and literal: every round solves its least squares problem anew. Nothing is shared with
the library.

They learn the labels by least squares whatever the loss. `seen` counts what happened.
"""

from collections import Counter
from copy import deepcopy

import numpy as np

from tests.oracles import exact_algebra
from tests.oracles.kernel_learners import held, solve


class Kawv:
    """ŷ_t = k_tᵀ(K_t + λI)⁻¹(y_1, …, y_{t−1}, 0), the paper's closed form, by one linear system a
    round. `phi` are features whose inner products are the kernel's values."""

    def __init__(self, *, alpha, clip):
        self.alpha, self.C, self.seen = alpha, clip, Counter()
        self.rows, self.labels = [], []

    def f(self, phi):
        rows = np.array([*self.rows, phi])
        y = np.array([*self.labels, 0.0], rows.dtype)
        K = rows @ rows.T
        return K[-1] @ solve(K + self.alpha * np.eye(len(K), dtype=K.dtype), y)

    def predict(self, phi):
        return held(self.f(phi), self.C)

    def learn(self, phi, y):
        z = self.f(phi)
        self.seen["truncated"] += abs(z) > self.C
        self.seen["φ = 0"] += not phi.any()
        self.seen["a repeated row"] += any((phi == row).all() for row in self.rows)
        self.rows.append(phi)
        self.labels.append(y)
        return held(z, self.C)

    def is_clear(self):
        """No decision hangs on rounding: there is none, but for KORS's coins."""
        return True


# The share of a point's k(x, x) that is added to its diagonal entry of K_I (V4).
JITTER = 1e-12


class Pkawv(Kawv):
    """f(x_t) of the f = Σ a_i k(x_i, ·) over the points of KORS's dictionary with the least Σ_{s<t}
    (f(x_s) − y_s)² + f(x_t)² + λ‖f‖². KORS sees x_t first, and x_t is a point if it joins.

    V4 adds λρ Σ a_i² k(x_i, x_i). So a point has a feature of its own beside φ_i, √(ρk(x_i, x_i)),
    which no row has, and f is in the span of these. Every round takes a new orthonormal basis.
    """

    def __init__(self, *, kors, alpha, clip):
        super().__init__(alpha=alpha, clip=clip)
        self.kors, self.points = kors, kors.points
        self.probabilities, self.included = [], []

    def embedded(self, rows, points):
        """The coordinates (n, J) of rows in an orthonormal basis of the points' span."""
        points = np.array(points)
        own = np.diag(np.sqrt(points.dtype.type(JITTER) * (points * points).sum(1)))
        both = np.hstack([points, own])
        exact = both.dtype == np.float64
        basis = np.linalg.qr(both.T)[0].T if exact else exact_algebra.gram_schmidt(both)
        return np.array(rows) @ basis[:, : points.shape[1]].T

    def f(self, phi, points):
        """The minimiser's value at φ = φ_t."""
        if not points:
            return 0.0
        Z = self.embedded([*self.rows, phi], points)
        y = np.array([*self.labels, 0.0], Z.dtype)
        return Z[-1] @ solve(Z.T @ Z + self.alpha * np.eye(len(points), dtype=Z.dtype), Z.T @ y)

    def learn(self, phi, y):
        p, joins, _ = self.kors.offer(phi)
        self.probabilities.append(float(p))
        self.included.append(joins)
        self.seen["past rows gain a coordinate"] += joins and bool(self.rows)
        z = self.f(phi, self.kors.taken)
        self.seen["truncated"] += abs(z) > self.C
        self.seen["φ = 0"] += not phi.any()
        self.rows.append(phi)
        self.labels.append(y)
        return held(z, self.C)

    def predict(self, phi):
        """In the next round, with its coin."""
        kors = deepcopy(self.kors)
        self.seen["a row to predict would join"] += kors.offer(phi)[1]
        return held(self.f(phi, kors.taken), self.C)
