"""The papers' kernel formulas, literal and slow. They share nothing with the code they check.

The online Newton step is written in an explicit feature space (or one got from the eigenvectors of
the kernel matrix), with dense solves. `curvature` is the coefficient of g gᵀ in A, a number or one
for each round, and `slope(ŷ, y)` is ℓ'. h(z) = sign(z)·max(|z| − C, 0), and a row is projected only
where h ≠ 0, so a row whose features are all zero needs no division by φᵀA⁻¹φ = 0.
"""

import numpy as np


def squared_slope(y_hat, y):
    return 2.0 * (y_hat - y)


def gram(kernel, X, Z, bandwidth=None):
    """Kernel values of all rows of X with all rows of Z."""
    row = {
        "linear": lambda x: Z @ x,
        "quadratic": lambda x: (Z @ x + 1.0) ** 2,
        "gaussian": lambda x: np.exp(-np.sum((Z - x) ** 2, axis=1) / (2.0 * bandwidth**2)),
    }[kernel]
    return np.array([row(x) for x in X]).reshape(len(X), len(Z))


def feature_map(kernel, X, bandwidth=None):
    """One row of features for each row of X, with the kernel as their inner product.

    linear: x itself. quadratic, (xᵀx' + 1)²: the monomials 1, √2 x_i, x_i², √2 x_i x_j. gaussian:
    the symmetric square root of the kernel matrix of all rows (exact for these rows, which is all a
    stream needs).
    """
    if kernel == "linear":
        return X.copy()
    if kernel == "quadratic":
        n, d = X.shape
        pairs = [np.sqrt(2.0) * X[:, i] * X[:, j] for i in range(d) for j in range(i)]
        return np.column_stack([np.ones(n), np.sqrt(2.0) * X, X**2, *pairs])
    values, vectors = np.linalg.eigh(gram(kernel, X, X, bandwidth))
    return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


def beyond(z, clip):
    """h(z): how much z is above C or below −C."""
    return np.sign(z) * max(abs(z) - clip, 0.0)


def project(u, phi, A, clip):
    """Eq. 1 of the ICML paper: the point of |φᵀw| ≤ C nearest to u in the norm of A."""
    if beyond(phi @ u, clip) == 0.0:
        return u
    direction = np.linalg.solve(A, phi)
    return u - beyond(phi @ u, clip) / (phi @ direction) * direction


def kons_primal(Phi, y, *, alpha, curvature, clip, slope=squared_slope, coins=None):
    """Algorithms 1 (no coins) and 3 as the Newton step they stand for, in feature space:
    (predictions, slopes).

    w_t = Π(u_t), A_t = A_{t−1} + z_t η_t g gᵀ, u_{t+1} = w_t − A_t⁻¹ g. Order of the round: the new
    A (with this round's gradient, if the coin says so) is already used in this round's step, as Eq.
    1 has it.
    """
    n, d = Phi.shape
    eta, coins = np.broadcast_to(curvature, n), np.ones(n) if coins is None else coins
    A, u, predictions, slopes = alpha * np.eye(d), np.zeros(d), [], []
    for t in range(n):
        w = project(u, Phi[t], A, clip)
        predictions.append(Phi[t] @ w)
        slopes.append(slope(predictions[t], y[t]))
        g = slopes[t] * Phi[t]
        A = A + coins[t] * eta[t] * np.outer(g, g)
        u = w - np.linalg.solve(A, g)
    return np.array(predictions), np.array(slopes)


def _lemma_4(K, y, alpha, curvature, clip, slope, coins, coin_in_the_coefficient):
    n = len(K)
    eta, coins = np.broadcast_to(curvature, n), np.ones(n) if coins is None else coins
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
        g = slope(predictions[t], y[t])
        D[t] = g * np.sqrt(eta[t])
        k_bar = D[t] * (k * D[:t])[R]
        rest = D[t] ** 2 * K[t, t] - k_bar @ np.linalg.solve(E, k_bar)
        fit = coins[t] * predictions[t] if coin_in_the_coefficient else predictions[t]
        b[t] = D[t] * (fit - alpha * beyond(y_breve, clip) / rest) - 1.0 / np.sqrt(eta[t])
    return np.array(predictions)


def lemma_4_literal(K, y, *, alpha, curvature, clip, slope=squared_slope, coins=None):
    """Predictions by Lemma 4 as printed, but for K1 (the last term is −1/√η, and k_{i,i} is the
    rescaled k̄_{i,i}).

    The coin is not in the coefficient: with coins that are not all 1 these are not Algorithm 3's
    predictions (K3); with coins all 1 this is Lemma 2. Slopes must not be zero: the lemma divides
    by ġ² (K2 does not).
    """
    return _lemma_4(K, y, alpha, curvature, clip, slope, coins, False)


def lemma_4_with_coin(K, y, *, alpha, curvature, clip, slope=squared_slope, coins=None):
    """Lemma 4 with K1 and K3: z_t ŷ_t in place of ŷ_t in the coefficient."""
    return _lemma_4(K, y, alpha, curvature, clip, slope, coins, True)
