"""Slow, literal references. They share nothing with the code they check."""

import numpy as np


def squared_slope(y_hat, y):
    return 2.0 * (y_hat - y)


def oja_son_dense(X, y, V, *, alpha, curvature, clip, rate, slope=squared_slope, decreasing=False, record=False):
    """Algorithms 1 and 3 of Luo et al. word by word: d-sized vectors, explicit S and H, a QR step each round.

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


def adagrad_dense(X, y, *, step_size, clip, slope=squared_slope):
    """Diagonal AdaGrad with truncated predictions; 0/0 is 0."""
    w, gradients, predictions = np.zeros(X.shape[1]), [], []
    for x, label in zip(X, y, strict=True):
        y_hat = np.clip(w @ x, -clip, clip)
        predictions.append(y_hat)
        gradients.append(slope(y_hat, label) * x)
        root = np.sqrt(np.sum(np.square(gradients), axis=0))
        w = w - step_size * np.divide(gradients[-1], root, out=np.zeros_like(root), where=root > 0)
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


def _sketched_round(x, u, S, alpha, clip):
    """Lines 5 and 6 of Algorithm 1 with H = (αI + SSᵀ)⁻¹ made from scratch: (w, ŷ)."""
    H = np.linalg.inv(alpha * np.eye(len(S)) + S @ S.T)
    z, x_hat = u @ x, S @ x
    w = u - np.sign(z) * max(abs(z) - clip, 0.0) / (x @ x - x_hat @ H @ x_hat) * (x - S.T @ H @ x_hat)
    return w, w @ x


def _sketched_step(g, w, S, alpha):
    """Line 9 of Algorithm 1."""
    return w - (g - S.T @ np.linalg.solve(alpha * np.eye(len(S)) + S @ S.T, S @ g)) / alpha


def rp_son_dense(X, y, *, m, seed, alpha, curvature, clip, slope=squared_slope):
    """Algorithm 1 with S ← S + r ĝᵀ; the normals are those of the learner, by (seed, place)."""
    from koco_stream.random import normal

    S, u, predictions, t = np.zeros((m, X.shape[1])), np.zeros(X.shape[1]), [], 0
    for x, label in zip(X, y, strict=True):
        if not x.any():
            predictions.append(0.0)
            continue
        w, y_hat = _sketched_round(x, u, S, alpha, clip)
        predictions.append(y_hat)
        t += 1
        g = slope(y_hat, label) * x
        r = np.array([normal(np.uint64(seed), t * m + i) for i in range(m)]) / np.sqrt(m)
        S = S + np.outer(r, np.sqrt(curvature) * g)
        u = _sketched_step(g, w, S, alpha)
    return np.array(predictions), S, u


def rp_son_primal(X, y, *, m, seed, alpha, curvature, clip):
    """The same with A = αI + SᵀS solved with, for streams whose rows span all d dimensions; squared loss, no empty rows."""
    from koco_stream.random import normal

    S, u, predictions = np.zeros((m, X.shape[1])), np.zeros(X.shape[1]), []
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        direction = np.linalg.solve(alpha * np.eye(X.shape[1]) + S.T @ S, x)
        w = u - np.sign(u @ x) * max(abs(u @ x) - clip, 0.0) / (x @ direction) * direction
        predictions.append(w @ x)
        g = squared_slope(w @ x, label) * x
        r = np.array([normal(np.uint64(seed), t * m + i) for i in range(m)]) / np.sqrt(m)
        S = S + np.outer(r, np.sqrt(curvature) * g)
        u = w - np.linalg.solve(alpha * np.eye(X.shape[1]) + S.T @ S, g)
    return np.array(predictions)


def fd_son_dense(X, y, *, m, alpha, curvature, clip, slope=squared_slope):
    """Algorithms 1 and 2 with m kept rows and a buffer of m: an SVD of all rows whenever the buffer is full, shrunk by λ_{m+1}.

    A gradient that is zero but for rounding is no row: at a label equal to the clip the slope is exactly 0.
    """
    d = X.shape[1]
    kept, buffer, u, predictions = np.zeros((m, d)), np.zeros((0, d)), np.zeros(d), []
    for x, label in zip(X, y, strict=True):
        if not x.any():
            predictions.append(0.0)
            continue
        w, y_hat = _sketched_round(x, u, np.vstack([kept, buffer]), alpha, clip)
        predictions.append(y_hat)
        g = slope(y_hat, label) * x
        if np.abs(g).max() > 1e-12:
            buffer = np.vstack([buffer, np.sqrt(curvature) * g])
        u = _sketched_step(g, w, np.vstack([kept, buffer]), alpha)
        if len(buffer) == m:
            _, singular, Vt = np.linalg.svd(np.vstack([kept, buffer]), full_matrices=False)
            squares = np.append(singular**2, np.zeros(2 * m))
            k = min(m, len(singular))
            kept = np.zeros((m, d))
            kept[:k] = np.sqrt(np.maximum(squares[:k] - squares[m], 0.0))[:, None] * Vt[:k]
            buffer = np.zeros((0, d))
    return np.array(predictions), kept, buffer, u
