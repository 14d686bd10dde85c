"""Algorithm 1 of Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), one round as another.

A sketch has A_t = αI + SᵀS and knows two things: A⁻¹v, and what a to-sketch vector ĝ does to it.
Everything is d-sized and dense. All arithmetic is in `dtype`: double, or long double, which says
how well a stream is conditioned. An empty row changes nothing, not even t.
"""

import numpy as np

from tests.oracles.exact_algebra import eigen_of_rows, gram_schmidt, solve

FIRST_D = 0.1  # footnote 6: D_1 = 0.1·I
NEW_ROW_AT = 1e-6  # a gradient starts a row of V if ‖its residual‖² is above this share of ‖x‖²
OUTSIDE_AT = 1e-8  # x lies in A's range if ‖its residual‖ is below this share of ‖x‖


def sketched_newton(
    X,
    y,
    sketch,
    *,
    alpha,
    curvature,
    clip,
    slope,
    decreasing=False,
    projection="weights",
    diagonal=False,
    dtype=float,
    noise=None,
):
    """Algorithm 1 on the rows X (n, d) with labels y (n,), from a new `sketch`.

    Line 5 is Lemma 1, A⁻¹x being the paper's (x − SᵀHx̂)/α; `projection="prediction"` leaves the
    weights only and truncates ŷ. `diagonal=True` feeds D^(−½)x (section 5.2), `"updated"` adds
    g_j² to D between the prediction and the update. Returns the predictions (n,), the weights u
    (d,) after the last round, the sketch, and uᵀx (n,) before it is bounded.

    `noise`, a random generator, shows what rounding can do to the stream: each row's non-zeros are
    wrong by the double rounding of its norm, and the weights by that of the largest so far, and of
    the largest x/α and g/α, which lines 5 and 9 subtract from again.
    """
    X, y, clip = X.astype(dtype), y.astype(dtype), dtype(clip)
    d = X.shape[1]
    sketch.init(dtype(alpha), d, dtype)
    u, D, t, predictions, products = np.zeros(d, dtype), np.full(d, FIRST_D, dtype), 0, [], []
    largest, rounding = dtype(0), np.finfo(float).eps
    if noise is not None:
        norms = np.sqrt(np.sum(X * X, axis=1, keepdims=True))
        X = X + (X != 0) * norms * rounding * noise.uniform(-1, 1, X.shape)
    for row, label in zip(X, y, strict=True):
        if not row.any():
            predictions.append(dtype(0))
            products.append(dtype(0))
            continue
        x = row / np.sqrt(D) if diagonal else row

        # Line 5. If |uᵀx| > C, Lemma 1 makes wᵀx exactly C with uᵀx's sign.
        z, w, terms = u @ x, u, []
        free = sketch.off_range(x)
        if (
            free.any()
        ):  # A says nothing about x: the prediction that no linear map of the features changes is 0
            w, z = u - z / (free @ x) * free, dtype(0)
        y_hat = np.clip(z, -clip, clip)
        if projection == "weights" and y_hat != z:
            direction = sketch.inverse(x)
            step = (z - y_hat) / (x @ direction)
            w = u - step * direction
            terms = [step * x]

        # Lines 6 and 7.
        predictions.append(y_hat)
        products.append(z)
        t += 1
        slope_t = slope(y_hat, label)
        gradient = slope_t * row
        if diagonal == "updated":
            D = D + gradient**2
            x = row / np.sqrt(D)
        g = slope_t * x
        curvature_t = dtype(curvature) / np.sqrt(dtype(t)) if decreasing else dtype(curvature)

        # Lines 8 and 9.
        sketch.update(np.sqrt(curvature_t) * g, x)
        u = w - sketch.inverse(g)
        if noise is not None:
            terms = [term / alpha for term in (*terms, g)] if alpha > 0 else []
            largest = max([largest, *(np.abs(v).max() for v in (w, u, *terms))])
            u = u + largest * rounding * noise.uniform(-1, 1, d)
        if diagonal is True:
            D = D + gradient**2
    return np.array(predictions), u, sketch, np.array(products)


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
        r = x - self.Q.T @ (self.Q @ x)
        r = r - self.Q.T @ (self.Q @ r)
        return r if np.sqrt(r @ r) > OUTSIDE_AT * np.sqrt(x @ x) else 0 * r

    def inverse(self, v):
        """A⁻¹v, or A⁺v."""
        Q = self.Q
        return solve(self.A, v) if self.alpha > 0 else Q.T @ solve(Q @ self.A @ Q.T, Q @ v)

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
        self.alpha, self.dtype = alpha, dtype
        self.eigenvalues, self.V = np.zeros(0, dtype), np.zeros((0, d), dtype)
        self.S = np.zeros((self.m, d), dtype)

    def inverse(self, v):
        """A⁻¹v."""
        p = self.V @ v
        residual = v - self.V.T @ p
        return residual / self.alpha + self.V.T @ (p / (self.alpha + self.eigenvalues))

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
        self.t = 0
        if self.start is not None:
            self.V = gram_schmidt(self.start.astype(dtype)) if len(self.start) else self.V
        self.Lambda = np.zeros(len(self.V), dtype)
        self.eigenvalues = self.Lambda

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
        self.V = gram_schmidt(self.V + gamma * np.outer(q, g_hat))
        self.eigenvalues = self.t * self.Lambda
        self.S = np.sqrt(self.eigenvalues)[:, None] * self.V


class BufferedFrequentDirections(Sketch):
    """Algorithm 2 with m kept rows and a buffer of m: a round that fills it replaces all 2m by m.

    The shrink is by ρ, the (m + 1)-th eigenvalue, and comes before the weight step. A ĝ of 0 is no
    row.
    """

    def __init__(self, m):
        self.m = m

    def init(self, alpha, d, dtype):
        super().init(alpha, d, dtype)
        self.buffer = np.zeros((0, d), dtype)

    def update(self, g_hat, x):
        if not g_hat.any():
            return
        self.buffer = np.vstack([self.buffer, g_hat])
        values, V = eigen_of_rows(np.vstack([self.S, self.buffer]))
        if len(self.buffer) == self.m:
            rho = values[self.m] if len(values) > self.m else 0 * self.alpha
            values, V, self.buffer = values[: self.m] - rho, V[: self.m], self.buffer[:0]
            self.S = np.zeros_like(self.S)
            self.S[: len(values)] = np.sqrt(values)[:, None] * V
        self.eigenvalues, self.V = values, V


class RandomProjection(Sketch):
    """S_t = S_{t−1} + r_t ĝᵀ, where row t of `R` (n, m) is r_t."""

    def __init__(self, R):
        self.R, self.m = R, R.shape[1]

    def init(self, alpha, d, dtype):
        super().init(alpha, d, dtype)
        self.t = 0

    def update(self, g_hat, x):
        self.S = self.S + np.outer(self.R[self.t].astype(self.dtype), g_hat)
        self.eigenvalues, self.V = eigen_of_rows(self.S)
        self.t += 1
