"""Coin betting as Orabona and Tommasi print it (NIPS 2017, Algorithm 1), a feature after the other,
with sums of rewards. What is not known before, L, is the largest gradient so far, and a bet is
settled as if it had been known.
"""

import math

import numpy as np

CELLS = [{}, {"initial_wealth": 1e-3}, {"initial_wealth": 100.0}]


class Feature:
    """One feature's Algorithm 1, whose gradients are g = −ℓ'(ŷ)x."""

    def __init__(self, initial_wealth, dtype):
        self.epsilon, self.number = dtype(initial_wealth), dtype
        self.gradients, self.Reward, self.w = [], dtype(0), dtype(0)

    def bet(self, L, before):
        """Lines 6, 8, 9, 10: the weight that follows these gradients."""
        G, theta = L + sum(map(abs, before)), sum(before)
        sigma = 1 / (1 + np.exp(-self.number(2) * theta / (G + L)))
        beta = (2 * sigma - 1) / L
        return beta * (self.epsilon * L + self.Reward)

    def receive(self, g):
        if g == 0:
            return
        before, self.gradients = self.gradients, [*self.gradients, g]
        L = max(map(abs, self.gradients))
        self.Reward += g * self.bet(L, before)
        self.w = self.bet(L, self.gradients)
        assert self.epsilon * L + self.Reward > 0


def predicted(X, y, *, initial_wealth, clip, slope, dtype=float):
    """Predictions (n,), truncated, and the weights (d,)."""
    X, y, clip = X.astype(dtype), y.astype(dtype), dtype(clip)
    features = [Feature(initial_wealth, dtype) for _ in X.T]
    predictions = []
    for x, label in zip(X, y, strict=True):
        z = sum((f.w * value for f, value in zip(features, x, strict=True)), start=dtype(0))
        predictions.append(min(max(z, -clip), clip))
        downhill = -slope(predictions[-1], label)
        if abs(z) <= clip or math.copysign(1, z) * downhill < 0:  # else the clip is in the way
            for f, value in zip(features, x, strict=True):
                f.receive(downhill * value)
    return np.array(predictions), np.array([f.w for f in features])
