"""The first-order kernel baselines, slow and literal: functions are sums over all rounds so far,
never weights of features.
"""

import numpy as np


def slope(loss, y_hat, y):
    if loss == "squared":
        return 2 * (y_hat - y)
    if loss == "logistic":
        return -y / (1 + np.exp(y * y_hat))
    if loss == "squared_hinge":
        return -2 * y * max(1 - y * y_hat, 0)
    return -y if y * y_hat < 1 else 0.0


def gaussian(A, B, bandwidth):
    return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(-1) / (2 * bandwidth**2))


def fourier_kernel(A, B, U):
    """The mean over the frequencies u, the columns of U (d, D), of cos uᵀ(x − x'), which is what
    their features' inner products are.
    """
    return np.cos((A[:, None, :] - B[None, :, :]) @ U).mean(-1)


def fogd(X, y, U, step_size, loss="squared", tube=0.0):
    """Gradient descent in the space of the approximate kernel: f_t = −η Σ_s ℓ'_s κ(x_s, ·).
    Predictions (n,).
    """
    kernel, coefficients, predictions = fourier_kernel(X, X, U), np.zeros(len(y)), np.zeros(len(y))
    for t in range(len(y)):
        predictions[t] = coefficients[:t] @ kernel[:t, t]
        if loss != "squared" or abs(predictions[t] - y[t]) > tube:
            coefficients[t] = -step_size * slope(loss, predictions[t], y[t])
    return predictions


def nogd(X, y, kernel, step_size, budget, rank, loss="squared", tube=0.0):
    """(predictions (n,), all eigenvalues of the budget's kernel matrix or None). `kernel` is a
    function of two matrices of rows.

    Up to the budget f = Σ α_p k(x_p, ·). Then Nyström's kernel κ(x, x') = k(x)ᵀVΛ⁻¹Vᵀk(x'), and f
    is what VVᵀ leaves of it and a sum of κ.
    """
    K, predictions, alpha, points, later = kernel(X, X), np.zeros(len(y)), [], [], np.zeros(len(y))
    nystroem = kept = eigenvalues = None
    for t in range(len(y)):
        if nystroem is None:
            predictions[t] = np.dot(alpha, K[points, t])
        else:
            predictions[t] = kept @ K[points, t] + later[:t] @ nystroem[:t, t]
        g = slope(loss, predictions[t], y[t])
        if g == 0 or K[t, t] == 0 or (loss == "squared" and abs(predictions[t] - y[t]) <= tube):
            continue
        if nystroem is not None:
            later[t] = -step_size * g
            continue
        points.append(t)
        alpha.append(-step_size * g)
        if len(points) == budget:
            eigenvalues, vectors = np.linalg.eigh(K[np.ix_(points, points)])
            top = [
                i
                for i in np.argsort(-eigenvalues)[:rank]
                if eigenvalues[i] > 1e-12 * eigenvalues.max()
            ]
            V = vectors[:, top]
            kept = V @ (V.T @ alpha)
            nystroem = K[:, points] @ V @ np.diag(1 / eigenvalues[top]) @ V.T @ K[points]
    return predictions, eigenvalues


def dual_sgd(X, y, U, bandwidth, regularisation, budget, loss="squared", clip=1.0):
    """f ← (1 − ηλ)f − ηℓ'k(x_t, ·) with η = 1/(λt), every coefficient shrunk each round; removed
    points keep theirs, with the approximate kernel. Predictions (n,).
    """
    exact, approximate = gaussian(X, X, bandwidth), fourier_kernel(X, X, U)
    coefficients, predictions = np.zeros(len(y)), np.zeros(len(y))
    inside, outside = [], []
    for t in range(len(y)):
        y_hat = (
            coefficients[inside] @ exact[inside, t]
            + coefficients[outside] @ approximate[outside, t]
        )
        predictions[t] = np.clip(y_hat, -clip, clip)
        eta = 1 / (regularisation * (t + 1))
        coefficients *= 1 - eta * regularisation
        g = slope(loss, predictions[t], y[t])
        if g == 0:
            continue
        coefficients[t] = -eta * g
        inside.append(t)
        if len(inside) > budget:
            sizes = np.abs(coefficients[inside])
            leaves = inside[
                int(np.argmax(sizes <= sizes.min() * (1 + 1e-9)))
            ]  # of equals the oldest
            inside.remove(leaves)
            outside.append(leaves)
    return predictions
