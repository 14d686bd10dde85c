"""KONS in NumPy by blocks of sixteen rows, as someone who knows both would write it: the peer that
`make bench` times ours against.

T = L⁻¹D is kept, where LLᵀ = DKD + αI over the rows that have joined and D has the roots of their
weights. For those from before a block, its products with all rows of the block are two matrix
products. For Sketched-KONS the peer is told which rows join, and need not estimate it.
"""

import numpy as np

ROWS = 16
PANEL = 512  # lines of the lower triangular factor in a product, so that few zeros are multiplied


def numpy_kons(
    X: np.ndarray,
    y: np.ndarray,
    joins: np.ndarray,
    *,
    alpha: float,
    bandwidth: float,
    curvature: float,
    clip: float = 1.0,
) -> np.ndarray:
    """The predictions (n,) with the squared loss for the rows X (n, d) with targets y (n,), of
    which those with `joins` (n,) join the sketch.
    """
    n, size, known = len(y), int(joins.sum()), 0
    T, s, points = np.zeros((size, size)), np.zeros(size), np.zeros(size, np.int64)
    c, predictions, squares = np.zeros(n), np.zeros(n), (X**2).sum(1)
    for first in range(0, n, ROWS):
        end, m = min(first + ROWS, n), known
        distances = squares[:end, None] + squares[first:end] - 2.0 * X[:end] @ X[first:end].T
        K = np.exp(-np.maximum(distances, 0.0) / (2.0 * bandwidth**2))
        near = K[points[:m]]
        V, W = np.zeros((size, end - first)), np.zeros((m, end - first))
        panels = [(low, min(low + PANEL, m)) for low in range(0, m, PANEL)]
        for low, high in panels:
            V[low:high] = T[low:high, :high] @ near[:high]
        if joins[first:end].any():
            for low, high in panels:
                W[:high] += T[low:high, :high].T @ V[low:high]
        for t in range(first, end):
            k, v, own = K[:t, t - first], V[:known, t - first], K[t, t - first]
            v[m:] = T[m:known, :known] @ k[points[:known]]
            kc = k @ c[:t]
            value, q = (kc - v @ s[:known]) / alpha, own - v @ v
            held = min(max(value, -clip), clip)
            slope = 2.0 * (held - y[t])
            c[t] = joins[t] * curvature * slope**2 * held - slope - (value - held) * alpha / q
            s[:known] += c[t] * v
            if joins[t]:
                g = np.sqrt(curvature) * slope
                pivot = np.sqrt(g * g * q + alpha)
                T[known, :m] = W[:, t - first]
                T[known, :known] += v[m:] @ T[m:known, :known]
                T[known, :known] *= -g / pivot
                T[known, known] = g / pivot
                s[known] = g * (kc + own * c[t] - v @ s[:known]) / pivot
                points[known] = t
                known += 1
            predictions[t] = held
    return predictions
