"""Online gradient descent, AdaGrad, NAG and FTRL-Proximal as they are written down, in double or
long double.
"""

import numpy as np


def ogd(
    X, y, *, step_size, clip, slope, projection="weights", step_schedule="constant", dtype=float
):
    """w ← w − step·g; w is projected onto {|wᵀx| ≤ C} first, or only the prediction is held there.
    The step is step_size divided by 1, √t or t for the t-th row that is not empty.

    Returns the predictions (n,) and the weights (d,).
    """
    X, y, step_size, clip = X.astype(dtype), y.astype(dtype), dtype(step_size), dtype(clip)
    w, predictions = np.zeros(X.shape[1], dtype), []
    divisor = {"constant": np.ones_like, "sqrt": np.sqrt, "linear": np.copy}[step_schedule]
    steps = step_size / divisor(np.maximum(np.cumsum(X.any(axis=1)), 1).astype(dtype))
    for x, label, step in zip(X, y, steps, strict=True):
        z = w @ x
        y_hat = np.clip(z, -clip, clip)
        if projection == "weights" and y_hat != z:
            w = w - (z - y_hat) / (x @ x) * x
        predictions.append(y_hat)
        w = w - step * slope(y_hat, label) * x
    return np.array(predictions), w


def adagrad(X, y, *, step_size, clip, slope, dtype=float):
    """w_j ← w_j − step·g_j/√(Σ g_j²), and 0/0 is 0; predictions are truncated.

    Returns the predictions (n,) and the weights (d,).
    """
    X, y, step_size, clip = X.astype(dtype), y.astype(dtype), dtype(step_size), dtype(clip)
    w, squares, predictions = np.zeros(X.shape[1], dtype), np.zeros(X.shape[1], dtype), []
    for x, label in zip(X, y, strict=True):
        y_hat = np.clip(w @ x, -clip, clip)
        predictions.append(y_hat)
        g = slope(y_hat, label) * x
        squares = squares + g * g
        for j in np.flatnonzero(squares):
            w[j] -= step_size * g[j] / np.sqrt(squares[j])
    return np.array(predictions), w


def nag(X, y, *, step_size, clip, slope, dtype=float):
    """NAG as printed, on the weights of the features as they are: w_j is rescaled when |x_j| > s_j.
    Empty rows are not counted; predictions are truncated; 0/0 is 0.

    Returns the predictions (n,) and the weights (d,).
    """
    X, y, step_size, clip = X.astype(dtype), y.astype(dtype), dtype(step_size), dtype(clip)
    w, s, squares = (np.zeros(X.shape[1], dtype) for _ in range(3))
    t, N, predictions = 0, dtype(0), []
    for x, label in zip(X, y, strict=True):
        for i in np.flatnonzero(np.abs(x) > s):
            w[i] = w[i] * s[i] / np.abs(x[i])
            s[i] = np.abs(x[i])
        y_hat = np.clip(w @ x, -clip, clip)
        predictions.append(y_hat)
        if not x.any():
            continue
        t += 1
        for i in np.flatnonzero(s):
            N += x[i] ** 2 / s[i] ** 2
        g = slope(y_hat, label) * x
        squares = squares + g * g
        for i in np.flatnonzero(squares):
            w[i] -= step_size * np.sqrt(t / N) * g[i] / (s[i] * np.sqrt(squares[i]))
    return np.array(predictions), w


def ftrl_proximal(X, y, *, step_size, damping, l1, l2, clip, slope, dtype=float):
    """FTRL-Proximal as the minimiser that it follows, of all that it has seen: before each round,
    w_j = argmin over v of Σ_s g_s v + Σ_s σ_s/2·(v − w_s)² + (damping/step + λ₂)/2·v² + λ₁|v|,
    by bisection of the derivative. Predictions are truncated.

    Returns the predictions (n,) and the weights (d,).
    """
    X, y, step_size, clip = X.astype(dtype), y.astype(dtype), dtype(step_size), dtype(clip)
    ridge, squares = dtype(damping) / step_size + dtype(l2), np.zeros(X.shape[1], dtype)
    gradients, sigmas, centres, predictions = [], [], [], []
    for x, label in zip(X, y, strict=True):
        w = proximal_leader(gradients, sigmas, centres, ridge, dtype(l1), squares)
        y_hat = np.clip(w @ x, -clip, clip)
        predictions.append(y_hat)
        g = slope(y_hat, label) * x
        gradients.append(g)
        sigmas.append((np.sqrt(squares + g * g) - np.sqrt(squares)) / step_size)
        centres.append(w)
        squares = squares + g * g
    w = proximal_leader(gradients, sigmas, centres, ridge, dtype(l1), squares)
    return np.array(predictions), w


def proximal_leader(gradients, sigmas, centres, ridge, l1, like):
    """The minimiser (d,); `like` has its form."""
    zero = np.zeros_like(like)
    if not gradients:
        return zero
    g, sigma, centre = np.array(gradients), np.array(sigmas), np.array(centres)
    # The derivative of all but λ₁|v| is of first degree in v.
    at_zero, bend = np.sum(g - sigma * centre, axis=0), np.sum(sigma, axis=0) + ridge
    side, free = -np.sign(at_zero), np.abs(at_zero) > l1
    low, high = zero, zero + 1
    while (short := free & (bend * high + side * at_zero + l1 < 0)).any():
        high = np.where(short, 2 * high, high)
    for _ in range(64):
        middle = (low + high) / 2
        short = bend * middle + side * at_zero + l1 < 0
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.where(free, side * high, zero)
