"""PROS-N-KONS in NumPy, as someone who knows both would write it: the peer that `make bench` times
ours against.

Between dictionary changes everything that can be kept is kept. A round is one matrix-vector product
or one triangular solve a line: no loop over points, no matrix made anew. (Ã + curvature·g̃g̃ᵀ)⁻¹ is
kept up by Sherman and Morrison's formula. KORS's estimate is made with the factor of S̄ᵀKS̄ +
ridge·I without the row itself, and the row joins in closed form: for q = φᵀA⁻¹φ without it, q/(1 +
q) with it.
"""

import numpy as np
from scipy.linalg import solve_triangular


class Dictionary:
    """The accepted rows and what is kept with them until the next one is accepted.

    A row borders both Cholesky factors by a line, which the round has already solved for.
    """

    def __init__(self, ridge: float, inverses: bool) -> None:
        self.ridge, self.inverses = ridge, inverses
        self.rows: list[int] = []
        self.coordinates: list[int] = []  # which of them add a coordinate
        self.roots = np.zeros(0)
        self.kors, self.span = Factor(), Factor()

    def add(
        self,
        X: np.ndarray,
        squares: np.ndarray,
        t: int,
        p: float,
        solved: np.ndarray,
        phi: np.ndarray,
    ) -> None:
        """Row t, with probability p, from what `embed` gave for it."""
        root, residual = 1.0 / np.sqrt(p), 1.0 - phi @ phi
        self.kors.border(
            root * solved, np.sqrt(root * root * (1.0 - solved @ solved) + self.ridge), root
        )
        if residual >= 1e-12:
            self.coordinates.append(len(self.rows))
            self.span.border(phi, np.sqrt(residual), 1.0)
        self.rows.append(t)
        self.roots = np.append(self.roots, root)
        self.points, self.squares = X[self.rows], squares[self.rows]
        self.dense = len(self.rows) == len(self.coordinates)

    def embed(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """KORS's L⁻¹S̄ᵀk and the embedding L⁻¹k."""
        own = k if self.dense else k[self.coordinates]
        if self.inverses:
            return self.kors.inverse @ k, self.span.inverse @ own
        return self.kors.solve(self.roots * k), self.span.solve(own)


class Factor:
    """A lower triangular matrix L that grows by a line at a time, and L⁻¹ with its columns scaled,
    in room that doubles.
    """

    def __init__(self) -> None:
        self.size, self.room = 0, np.zeros((2, 0, 0))

    @property
    def inverse(self) -> np.ndarray:
        """L⁻¹, its columns scaled."""
        return self.room[1, : self.size, : self.size]

    def solve(self, b: np.ndarray) -> np.ndarray:
        """L⁻¹b."""
        L = self.room[0, : self.size, : self.size]
        return solve_triangular(L, b, lower=True, check_finite=False)

    def border(self, line: np.ndarray, pivot: float, scale: float) -> None:
        """Add the line (line, pivot) to L. `scale` is that of the new column of L⁻¹."""
        n = self.size
        if n == self.room.shape[1]:
            self.room = np.pad(self.room, ((0, 0), (0, n + 16), (0, n + 16)))
        L, inverse = self.room
        L[n, :n], L[n, n] = line, pivot
        inverse[n, :n], inverse[n, n] = line @ inverse[:n, :n] / -pivot, scale / pivot
        self.size += 1


def numpy_pros(
    X,
    y,
    *,
    alpha,
    ridge,
    beta,
    epsilon,
    estimate,
    curvature,
    clip,
    bandwidth,
    coins,
    inverses=False,
):
    """(predictions, dictionary) for the gaussian kernel and the squared loss. Row t is included
    where coins[t] < p̃_t.

    `curvature` is the coefficient of g gᵀ. With `inverses` the inverses of the two Cholesky factors
    are kept, and a solve is a matrix-vector product.
    """
    factor = {"icml": 1.0 + epsilon, "poster": 1.0 - epsilon}[estimate]
    twice, squares = X / bandwidth**2, np.einsum("ij,ij->i", X, X) * (0.5 / bandwidth**2)
    predictions = np.zeros(len(X))
    dictionary = Dictionary(ridge, inverses)
    nothing = omega = np.zeros(0)
    A_inverse = np.zeros((0, 0))
    for t in range(len(X)):
        if dictionary.rows:
            k = np.exp(dictionary.points @ twice[t] - dictionary.squares - squares[t])
            v, phi = dictionary.embed(k)
            z, a = omega @ phi, A_inverse @ phi
            leverage = phi @ a
            excess = z - clip if z > clip else z + clip if z < -clip else 0.0
            predictions[t] = z - excess
            # A⁻¹g with the new A is slope·a/(1 + curvature·slope²·leverage)
            slope = 2.0 * (z - excess - y[t])
            bend = curvature * slope * slope
            shrink = 1.0 / (1.0 + bend * leverage)
            omega -= (slope * shrink + (excess / leverage if excess else 0.0)) * a
            A_inverse -= (bend * shrink * a)[:, None] * a
        else:
            k = v = phi = nothing
        q = (1.0 - v @ v) / ridge
        p = min(beta * factor * (q / (1.0 + q)), 1.0)
        if coins[t] < p:
            dictionary.add(X, squares, t, p, v, phi)
            A_inverse, omega = (
                np.eye(len(dictionary.coordinates)) / alpha,
                np.zeros(len(dictionary.coordinates)),
            )
    return predictions, dictionary.rows
