"""Algorithm 1 of Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), one round as another.

A sketch has A_t = αI + SᵀS and knows three things: the `direction` in which line 5 projects, the
`step` of line 9, both A⁻¹v where nothing else is said, and what a to-sketch vector ĝ does to it.
Everything is d-sized and dense.
"""

from typing import NamedTuple

import numpy as np

from tests.oracles.exact_algebra import eigen_of_rows, gram_schmidt, outside, solve
from tests.oracles.linear_text import LinearText

FIRST_D = 0.1  # footnote 6: D_1 = 0.1·I
NEW_ROW_AT = 1e-6  # a gradient starts a row of V if ‖its residual‖² is above this share of ‖x‖²
OUTSIDE_AT = 1e-8  # x lies in A's range if ‖its residual‖ is below this share of ‖x‖
NEW_AT = 1000  # roundings of ‖x‖: what is longer outside the span of the others is a new direction


class SketchedNewton(LinearText):
    """Algorithm 1, from a new `sketch`.

    Line 5 is Lemma 1, A⁻¹x being the paper's (x − SᵀHx̂)/α; `projection="prediction"` leaves the
    weights only and truncates ŷ. `diagonal=True` feeds D^(−½)x (section 5.2), `"updated"` adds
    g_j² to D between the prediction and the update.

    `noise`, a random generator, shows what rounding can do to the stream: each row's non-zeros are
    wrong by the double rounding of its norm, and the weights by that of the largest so far, and of
    the largest x/α and g/α, which lines 5 and 9 subtract from again.
    """

    alpha, curvature, step_size, diagonal, noise = 0.0, 1.0, 1.0, False, None
    curvature_schedule, projection = "constant", "weights"

    def begin(self):
        self.sketch.init(self.number(self.alpha), self.w.size, self.number)
        self.D, self.largest = np.full(self.w.size, FIRST_D, self.number), self.number(0)
        self.rounding = np.finfo(float).eps

    def read(self, X):
        if self.noise is None:
            return X
        norms = np.sqrt(np.sum(X * X, axis=1, keepdims=True))
        return X + (X != 0) * norms * self.rounding * self.noise.uniform(-1, 1, X.shape)

    def fed(self, x):
        return x / np.sqrt(self.D) if self.diagonal else x

    def product(self, row):
        """uᵀx. If A says nothing about x: what no linear map of the features changes, 0."""
        x = self.fed(row)
        free = self.sketch.off_range(x)
        if free.any():
            self.w = self.w - self.w @ x / (free @ x) * free
            return self.number(0)
        return self.w @ x

    def learn(self, row, z, y_hat, slope):
        # Line 5. If |uᵀx| > C, Lemma 1 makes wᵀx exactly C with uᵀx's sign.
        x, w, terms = self.fed(row), self.w, []
        if self.projection == "weights" and y_hat != z:
            direction = self.sketch.direction(x)
            step = (z - y_hat) / (x @ direction)
            w = w - step * direction
            terms = [step * x]

        # Lines 6 and 7.
        if self.diagonal == "updated":
            self.D = self.D + (slope * row) ** 2
            x = self.fed(row)
        g, eta = slope * x, self.number(self.curvature)
        if self.curvature_schedule == "decreasing":
            eta = eta / np.sqrt(self.number(self.t))

        # Lines 8 and 9.
        self.sketch.update(np.sqrt(eta) * g, x)
        self.w = w - self.step_size * self.sketch.step(g)
        if self.noise is not None:
            self.blur(w, [*terms, g])
        if self.diagonal is True:
            self.D = self.D + (slope * row) ** 2

    def blur(self, w, terms):
        terms = [term / self.alpha for term in terms] if self.alpha > 0 else []
        self.largest = max([self.largest, *(np.abs(v).max() for v in (w, self.w, *terms))])
        self.w = self.w + self.largest * self.rounding * self.noise.uniform(-1, 1, w.size)


class FullMatrix:
    """No sketch: A_t = αI + Σ ĝĝᵀ itself (equation 2), the Online Newton Step.

    For α = 0 the inverse is the pseudo-inverse of A. Its range is the span of the rows so far,
    of which an orthonormal basis Q is kept: A⁺ = Qᵀ(QAQᵀ)⁻¹Q.
    """

    def init(self, alpha, d, dtype):
        self.alpha, self.A, self.Q = alpha, alpha * np.eye(d, dtype=dtype), np.zeros((0, d), dtype)

    def off_range(self, x):
        """The component of x outside A's range; zero if it is rounding."""
        if self.alpha > 0:
            return 0 * x
        r = outside(self.Q, x)
        return r if np.sqrt(r @ r) > OUTSIDE_AT * np.sqrt(x @ x) else 0 * r

    def direction(self, v):
        """A⁻¹v, or A⁺v."""
        Q = self.Q
        return solve(self.A, v) if self.alpha > 0 else Q.T @ solve(Q @ self.A @ Q.T, Q @ v)

    step = direction

    def update(self, g_hat, x):
        """A ← A + ĝĝᵀ."""
        if not g_hat.any():
            return
        if self.alpha == 0 and self.off_range(x).any():
            self.Q = gram_schmidt(np.vstack([self.Q, self.off_range(x)]))
        self.A = self.A + np.outer(g_hat, g_hat)


class Sketch:
    """A = αI + SᵀS with the eigenvalues λ (k,) and orthonormal eigenvectors V (k, d) of SᵀS.

    A⁻¹v is taken as (v − VᵀVv)/α + Vᵀ(Vv/(α + λ)). It is the paper's (v − SᵀHSv)/α, which loses the
    digits of λ/α.
    """

    def init(self, alpha, d, dtype):
        self.alpha, self.dtype, self.t = alpha, dtype, 0
        self.eigenvalues, self.V = np.zeros(0, dtype), np.zeros((0, d), dtype)
        self.S = np.zeros((self.m, d), dtype)

    def direction(self, v):
        """A⁻¹v."""
        p = self.V @ v
        residual = v - self.V.T @ p
        return residual / self.alpha + self.V.T @ (p / (self.alpha + self.eigenvalues))

    step = direction

    def off_range(self, x):
        """The component of x outside A's range, which is all, since α > 0."""
        return 0 * x


class Oja(Sketch):
    """Algorithm 3 with Γ_t = min(rate/t, 1)·I, the rows orthonormalised in order each round.

    `start`: V_0 (m, d) with orthonormal rows, or None: the first m gradients, orthonormalised.
    """

    def __init__(self, m, rate, start=None):
        self.m, self.rate, self.start = m, rate, start

    def init(self, alpha, d, dtype):
        super().init(alpha, d, dtype)
        if self.start is not None:
            self.V = gram_schmidt(self.start.astype(dtype)) if len(self.start) else self.V
        self.eigenvalues = self.Lambda = np.zeros(len(self.V), dtype)

    def update(self, g_hat, x):
        """Equation 4. A gradient that starts a row of V does so first."""
        if self.start is None and len(self.V) < self.m and g_hat.any():
            residual = x - self.V.T @ (self.V @ x)
            if residual @ residual > NEW_ROW_AT * (x @ x):
                self.V = gram_schmidt(np.vstack([self.V, residual]))
                self.Lambda = np.append(self.Lambda, self.dtype(0))
        self.t += 1
        gamma = min(self.dtype(self.rate) / self.t, self.dtype(1))
        q = self.V @ g_hat
        self.Lambda = (1 - gamma) * self.Lambda + gamma * q**2
        self.V = self.orthonormal(gamma, q, g_hat)
        self.eigenvalues = self.t * self.Lambda
        self.S = np.sqrt(self.eigenvalues)[:, None] * self.V

    def orthonormal(self, gamma, q, g_hat):
        """The rows of V + γqĝᵀ, orthonormalised."""
        return gram_schmidt(self.V + gamma * np.outer(q, g_hat))


class RandomProjection(Sketch):
    """S_t = S_{t−1} + r_t ĝᵀ, where row t of `R` (n, m) is r_t."""

    def __init__(self, R):
        self.R, self.m = R, R.shape[1]

    def update(self, g_hat, x):
        self.S = self.S + np.outer(self.R[self.t].astype(self.dtype), g_hat)
        self.eigenvalues, self.V = eigen_of_rows(self.S)
        self.t += 1


class Variant(NamedTuple):
    """What is particular to a learner of frequent directions."""

    root: object  # w ← w − step·root(SᵀS)g, a function of the eigenvalues, given α or δ
    growth: float = 0.0  # the share of ρ that a shrink adds to α


def reciprocal(x):
    """1/x, and 0 for 0."""
    return np.where(x > 0, 1 / np.where(x > 0, x, 1), 0 * x)


VARIANTS = {
    "FDSON": Variant(lambda values, alpha: reciprocal(values + alpha)),
    "RFDSON": Variant(lambda values, alpha: reciprocal(values + alpha), 0.5),
    "SAdaGrad": Variant(lambda values, alpha: reciprocal(np.sqrt(values + alpha)), 1.0),
    "AdaFD": Variant(lambda values, delta: reciprocal(np.sqrt(values) + delta)),
}


class FrequentDirections(Sketch):
    """Algorithm 2 with m rows that are kept and a buffer: a round that fills it replaces all by m,
    made smaller by ρ, the (m + 1)-th eigenvalue, before the weight step. A ĝ of 0 is no row.

    S has the buffer's rows too, so it is made anew each round. α grows with ρ, or is δ.
    """

    def __init__(self, learner, m, length):
        self.variant, self.m, self.length = VARIANTS[learner], m, length

    def init(self, alpha, d, dtype):
        super().init(alpha, d, dtype)
        self.rhos, self.buffer, self.within, self.shrunk = [], self.V, None, False

    def direction(self, x):
        """A⁻¹x; without a ridge what is outside of the others' span counts alone."""
        rest = self.residual(x)
        if self.alpha == 0 and rest.any():
            return rest
        inside = self.V.T @ (self.V @ x / (self.eigenvalues + self.alpha))
        return inside + rest * reciprocal(self.alpha)

    def residual(self, x):
        """What of x is outside the span of the rows so far."""
        rest = outside(self.V, x)
        least = NEW_AT * np.finfo(self.dtype).eps * np.sqrt(x @ x)
        return rest if np.sqrt(rest @ rest) > least else 0 * rest

    def update(self, g_hat, x):
        self.shrunk = False
        if not g_hat.any():
            return
        self.within = None if self.residual(x).any() else self.V
        self.buffer = np.vstack([self.buffer, g_hat])
        values, V = eigen_of_rows(np.vstack([self.S, self.held_within(g_hat)]))
        self.shrunk = len(self.buffer) == self.length
        if self.shrunk:
            rho = values[self.m] if len(values) > self.m else 0 * values[0]
            self.rhos.append(rho)
            self.alpha = self.alpha + self.dtype(self.variant.growth) * rho
            largest, self.buffer = values[0], self.buffer[:0]
            values, V = values[: self.m] - rho, V[: self.m]
            values, V = values[values > 1e-14 * largest], V[values > 1e-14 * largest]
        self.eigenvalues, self.V, self.S = values, V, np.sqrt(values)[:, None] * V

    def held_within(self, g):
        """g without the rounding that a dependent row has outside the others' span."""
        return g if self.within is None else self.within.T @ (self.within @ g)

    def step(self, g):
        """f(SᵀS)g. What no row of S has is left out until a shrink makes it."""
        g = self.held_within(g)
        inside = self.V @ g
        change = self.V.T @ (self.variant.root(self.eigenvalues, self.alpha) * inside)
        if self.shrunk:
            change = change + self.variant.root(0 * self.alpha, self.alpha) * (
                g - self.V.T @ inside
            )
        return change
