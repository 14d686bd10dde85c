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
