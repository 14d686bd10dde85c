"""Kernel values, and the predictions of KONS by its paper's Lemma 4: literal and slow.

They share nothing with the code they check. h(z) = sign(z)·max(|z| − C, 0).
"""

import numpy as np

from tests.oracles.kernel_learners import beyond


def gram(kernel, X, bandwidth=None):
    """The kernel's values of all rows of X with each other."""
    row = {
        "linear": lambda x: X @ x,
        "quadratic": lambda x: (X @ x + 1.0) ** 2,
        "gaussian": lambda x: np.exp(-np.sum((X - x) ** 2, axis=1) / (2.0 * bandwidth**2)),
    }[kernel]
    return np.array([row(x) for x in X])


def lemma_4(K, y, *, alpha, curvature, clip, slope, coins, with_coin):
    """Predictions by Lemma 4 as printed, but for K1 (the last term is −1/√η, and k_{i,i} is the
    rescaled k̄_{i,i}); `curvature` is η.

    Without the coin in the coefficient, and coins that are not all 1, these are not Algorithm 3's
    predictions (K3: z_t ŷ_t instead of ŷ_t); with coins all 1 this is Lemma 2. Slopes must not be
    zero: the lemma divides by ġ² (K2 does not).
    """
    n = len(K)
    D, b, predictions = np.zeros(n), np.zeros(n), []
    for t in range(n):
        past, R = np.arange(t), np.flatnonzero(coins[:t])
        K_bar = D[past, None] * K[:t, :t] * D[past]
        E = K_bar[np.ix_(R, R)] + alpha * np.eye(len(R))
        k = K[:t, t]
        y_breve = (
            k @ (D[:t] * b[:t]) - (k * D[:t])[R] @ np.linalg.solve(E, K_bar[R] @ b[:t])
        ) / alpha
        predictions.append(y_breve - beyond(y_breve, clip))
        D[t] = slope(predictions[t], y[t]) * np.sqrt(curvature)
        k_bar = D[t] * (k * D[:t])[R]
        rest = D[t] ** 2 * K[t, t] - k_bar @ np.linalg.solve(E, k_bar)
        fit = coins[t] * predictions[t] if with_coin else predictions[t]
        b[t] = D[t] * (fit - alpha * beyond(y_breve, clip) / rest) - 1.0 / np.sqrt(curvature)
    return np.array(predictions)
