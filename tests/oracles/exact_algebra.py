"""Dense linear algebra in whatever precision its arguments have: NumPy's own stops at double.

Each is the textbook's algorithm. A matrix is one of rows; no argument is changed.
"""

import numpy as np


def gram_schmidt(V):
    """The rows of V (k, d) orthonormalised in order, twice, so that rounding is removed too.

    This is the QR decomposition of the transpose of V with a positive diagonal.
    """
    V = V.copy()
    for _ in range(2):
        for i in range(len(V)):
            for j in range(i):
                V[i] -= (V[i] @ V[j]) * V[j]
            V[i] /= np.sqrt(V[i] @ V[i])
    return V


def outside(V, x):
    """The component of x orthogonal to the orthonormal rows of V, twice, so that rounding is
    removed too.
    """
    for _ in range(2):
        x = x - V.T @ (V @ x)
    return x


def solve(A, b):
    """A⁻¹b for a symmetric positive definite A, by elimination and substitution."""
    n, lines = len(b), np.column_stack([A, b])
    for i in range(n):
        lines[i + 1 :] -= np.outer(lines[i + 1 :, i] / lines[i, i], lines[i])
    x = np.zeros_like(b)
    for i in reversed(range(n)):
        x[i] = (lines[i, n] - lines[i, i + 1 : n] @ x[i + 1 :]) / lines[i, i]
    return x


def eigen_of_rows(S):
    """The positive eigenvalues (k,) of SᵀS, largest first, and their unit eigenvectors (k, d).

    One-sided Jacobi: pairs of rows are rotated until all are orthogonal, the pairs of a round of a
    tournament at once. In double NumPy's singular values are taken. What is below the rounding of
    the largest row is no eigenvalue.
    """
    R, rounding = S[np.any(S != 0, axis=1)], np.finfo(S.dtype).eps
    if S.dtype == np.float64:
        _, singular, V = np.linalg.svd(R, full_matrices=False)
        k = int(np.sum(singular > rounding * singular.max(initial=0.0)))
        return singular[:k] ** 2, V[:k]
    turned = len(R) > 1
    while turned:
        turned = False
        norms = np.sqrt(np.sum(R * R, axis=1))
        R = R[norms > rounding * norms.max()]
        players = np.arange(len(R) + len(R) % 2)
        for _ in range(len(players) - 1):
            i, j = players[: len(players) // 2], players[::-1][: len(players) // 2]
            i, j = i[np.maximum(i, j) < len(R)], j[np.maximum(i, j) < len(R)]
            a, b, c = (np.sum(R[k] * R[m], axis=1) for k, m in ((i, i), (j, j), (i, j)))
            turn = np.abs(c) > 8 * rounding * np.sqrt(a) * np.sqrt(b)
            if turn.any():
                turned = True
                i, j, middle = i[turn], j[turn], (b - a)[turn] / (2 * c[turn])
                tangent = np.where(middle >= 0, 1, -1) / (np.abs(middle) + np.sqrt(1 + middle**2))
                cosine = (1 / np.sqrt(1 + tangent**2))[:, None]
                sine = cosine * tangent[:, None]
                R[i], R[j] = cosine * R[i] - sine * R[j], sine * R[i] + cosine * R[j]
            players[1:] = np.roll(players[1:], 1)
    values = np.sum(R * R, axis=1)
    order = np.argsort(-values, kind="stable")
    return values[order], R[order] / np.sqrt(values[order])[:, None]
