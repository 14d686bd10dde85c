"""The kernel ridge forecasters as their paper defines them (Jézéquel, Gaillard, Rudi, NeurIPS
2019), slow and literal: every round solves its least squares problem anew. Nothing is shared with
the library.

They learn the labels by least squares whatever the loss. `seen` counts what happened.
"""

from collections import Counter

import numpy as np

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
        """No decision hangs on rounding: there is none."""
        return True
