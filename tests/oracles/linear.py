"""Slow, literal references. They share nothing with the code they check."""

import numpy as np


def squared_slope(y_hat, y):
    return 2.0 * (y_hat - y)


def oja_son_dense(
    X, y, V, *, alpha, curvature, clip, rate, slope=squared_slope, decreasing=False, record=False
):
    """Algorithms 1 and 3 of Luo et al. word by word: d-sized vectors, explicit S and H, a QR step
    each round.

    A row of zeros is a round that changes nothing.
    """
    V = V.copy()
    m, d = V.shape
    u, lam, S, H, t = np.zeros(d), np.zeros(m), np.zeros((m, d)), np.eye(m) / alpha, 0
    predictions = []
    for x, label in zip(X, y, strict=True):
        if not x.any():
            predictions.append(0.0)
            continue
        x_hat = S @ x
        z = u @ x
        gamma_p = np.sign(z) * max(abs(z) - clip, 0.0) / (x @ x - x_hat @ H @ x_hat)
        w = u - gamma_p * (x - S.T @ H @ x_hat)
        y_hat = w @ x
        predictions.append(y_hat)
        t += 1
        g = slope(y_hat, label) * x
        g_hat = np.sqrt(curvature / np.sqrt(t) if decreasing else curvature) * g
        gamma = min(rate / t, 1.0)
        lam = (1 - gamma) * lam + gamma * (V @ g_hat) ** 2
        Q, R = np.linalg.qr((V + gamma * np.outer(V @ g_hat, g_hat)).T)
        V = (Q * np.sign(np.diag(R))).T
        S = np.sqrt(t * lam)[:, None] * V
        H = np.diag(1.0 / (alpha + t * lam))
        u = w - (g - S.T @ (H @ (S @ g))) / alpha
    return np.array(predictions), V, t * lam, u


def ogd_dense(X, y, *, step_size, clip, slope=squared_slope):
    """u ← w − step·g with the Euclidean projection onto |wᵀx| ≤ C."""
    u = np.zeros(X.shape[1])
    predictions = []
    for x, label in zip(X, y, strict=True):
        w = u
        if x.any():
            w = u - np.sign(u @ x) * max(abs(u @ x) - clip, 0.0) / (x @ x) * x
        predictions.append(w @ x)
        u = w - step_size * slope(w @ x, label) * x
    return np.array(predictions)


slopes = {
    "squared": squared_slope,
    "logistic": lambda y_hat, y: -y / (1.0 + np.exp(y * y_hat)),
    "squared_hinge": lambda y_hat, y: -2.0 * y * max(0.0, 1.0 - y * y_hat),
}


def ons_dense(X, y, *, alpha, curvature, clip, slope=squared_slope):
    """Equations (1) and (2): A itself is kept, and solved with."""
    A, u, predictions = alpha * np.eye(X.shape[1]), np.zeros(X.shape[1]), []
    for x, label in zip(X, y, strict=True):
        w = u
        if x.any():
            direction = np.linalg.solve(A, x)
            w = u - np.sign(u @ x) * max(abs(u @ x) - clip, 0.0) / (x @ direction) * direction
        predictions.append(w @ x)
        g = slope(w @ x, label) * x
        A += curvature * np.outer(g, g)
        u = w - np.linalg.solve(A, g)
    return np.array(predictions)


def rp_son_primal(X, y, *, R, alpha, curvature, clip):
    """Algorithm 1 with S ← S + r ĝᵀ, row t of R (n, m) being r_t, and A = αI + SᵀS solved with: for
    streams whose rows span all d dimensions; squared loss, no empty rows.
    """
    S, u, predictions = np.zeros((R.shape[1], X.shape[1])), np.zeros(X.shape[1]), []
    for x, label, r in zip(X, y, R, strict=True):
        direction = np.linalg.solve(alpha * np.eye(X.shape[1]) + S.T @ S, x)
        w = u - np.sign(u @ x) * max(abs(u @ x) - clip, 0.0) / (x @ direction) * direction
        predictions.append(w @ x)
        g = squared_slope(w @ x, label) * x
        S = S + np.outer(r, np.sqrt(curvature) * g)
        u = w - np.linalg.solve(alpha * np.eye(X.shape[1]) + S.T @ S, g)
    return np.array(predictions)
