"""Coin betting as Orabona and Tommasi print it (NIPS 2017, Algorithm 1), a feature after the other,
with sums of rewards. What is not known before, L, is the largest gradient so far, and a bet is
settled as if it had been known.
"""

import math

import numpy as np

from tests.oracles.linear_text import LinearText

CELLS = [{}, {"initial_wealth": 1e-3}, {"initial_wealth": 100.0}]


class Feature:
    """One feature's Algorithm 1, whose gradients are g = −ℓ'(ŷ)x."""

    def __init__(self, initial_wealth, number):
        self.epsilon, self.number = initial_wealth, number
        self.gradients, self.Reward, self.w = [], number(0), number(0)

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


class Coin(LinearText):
    def begin(self):
        self.features = [Feature(self.initial_wealth, self.number) for _ in self.w]

    def learn(self, x, z, y_hat, slope):
        if abs(z) <= self.clip or math.copysign(1, z) * -slope < 0:  # else the clip is in the way
            for feature, value in zip(self.features, x, strict=True):
                feature.receive(-slope * value)
            self.w = np.array([feature.w for feature in self.features])
