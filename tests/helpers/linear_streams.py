"""Rows and labels for the linear learners."""

import numpy as np


def stream(seed, n=300, d=20, density=0.3, noise=0.1):
    """Rows of unit mean square with some empty ones, labels in [−1, 1]."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d)) * (draw.random((n, d)) < density)
    X[draw.random(n) < 0.05] = 0.0
    X /= np.sqrt((X**2).sum(1).mean())
    y = np.clip(X @ draw.standard_normal(d) + noise * draw.standard_normal(n), -1, 1)
    return X, y
