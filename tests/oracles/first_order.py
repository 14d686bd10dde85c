"""Online gradient descent, AdaGrad, NAG and FTRL-Proximal as they are written down."""

import numpy as np

from tests.oracles.linear_text import LinearText


class OGD(LinearText):
    """w ← w − step·g; w is projected onto {|wᵀx| ≤ C} first, or only the prediction is held there.
    The step is step_size divided by 1, √t or t.
    """

    def learn(self, x, z, y_hat, slope):
        if self.projection == "weights" and y_hat != z:
            self.w = self.w - (z - y_hat) / (x @ x) * x
        t = self.number(self.t)
        step = self.step_size / {"constant": 1, "sqrt": np.sqrt(t), "linear": t}[self.step_schedule]
        self.w = self.w - step * slope * x


class AdaGrad(LinearText):
    """w_j ← w_j − step·g_j/√(Σ g_j²), and 0/0 is 0."""

    squares = 0

    def learn(self, x, z, y_hat, slope):
        g = slope * x
        self.squares = self.squares + g * g
        for j in np.flatnonzero(self.squares):
            self.w[j] -= self.step_size * g[j] / np.sqrt(self.squares[j])


class NAG(LinearText):
    """NAG as printed, on the weights of the features as they are: w_j is rescaled when |x_j| > s_j,
    and 0/0 is 0.
    """

    squares, N = 0, 0

    def begin(self):
        self.s = 0 * self.w

    def product(self, x):
        for i in np.flatnonzero(np.abs(x) > self.s):
            self.w[i] = self.w[i] * self.s[i] / np.abs(x[i])
            self.s[i] = np.abs(x[i])
        return super().product(x)

    def learn(self, x, z, y_hat, slope):
        for i in np.flatnonzero(self.s):
            self.N += x[i] ** 2 / self.s[i] ** 2
        g = slope * x
        self.squares = self.squares + g * g
        for i in np.flatnonzero(self.squares):
            root = self.s[i] * np.sqrt(self.squares[i])
            self.w[i] -= self.step_size * np.sqrt(self.t / self.N) * g[i] / root


class FTRLProximal(LinearText):
    """FTRL-Proximal as the minimiser that it follows, of all that it has seen: before each round,
    w_j = argmin over v of Σ_s g_s v + Σ_s σ_s/2·(v − w_s)² + (damping/step + λ₂)/2·v² + λ₁|v|,
    by bisection of the derivative.
    """

    squares = 0

    def begin(self):
        self.seen = []

    def learn(self, x, z, y_hat, slope):
        g = slope * x
        more = np.sqrt(self.squares + g * g) - np.sqrt(self.squares)
        self.squares = self.squares + g * g
        self.seen.append((g, more / self.step_size, self.w))
        self.w = self.leader(*map(np.array, zip(*self.seen, strict=True)))

    def leader(self, g, sigma, centre):
        """The minimiser (d,)."""
        # The derivative of all but λ₁|v| is of first degree in v.
        at_zero = np.sum(g - sigma * centre, axis=0)
        bend = np.sum(sigma, axis=0) + self.damping / self.step_size + self.l2
        side, free = -np.sign(at_zero), np.abs(at_zero) > self.l1
        low, high = 0 * self.w, 0 * self.w + 1
        while (short := free & (bend * high + side * at_zero + self.l1 < 0)).any():
            high = np.where(short, 2 * high, high)
        for _ in range(64):
            middle = (low + high) / 2
            short = bend * middle + side * at_zero + self.l1 < 0
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.where(free, side * high, 0 * high)
