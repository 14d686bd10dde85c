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
    """The accepted rows and what is kept with them until the next one is accepted."""

    def __init__(self, ridge: float, inverses: bool) -> None:
        self.ridge, self.inverses = ridge, inverses
        self.rows: list[int] = []
        self.weights: list[float] = []
        self.coordinates: list[int] = []  # which of them add a coordinate
        self.K = np.zeros((0, 0))

    def add(
        self, X: np.ndarray, squares: np.ndarray, t: int, p: float, k: np.ndarray, residual: float
    ) -> None:
        """Row t, with probability p, kernel values k with the points so far, and the component
        of φ_t outside their span.
        """
        if residual >= 1e-12:
            self.coordinates.append(len(self.rows))
        self.rows.append(t)
        self.weights.append(1.0 / p)
        self.points, self.squares = X[self.rows], squares[self.rows]
        self.K = np.block([[self.K, k[:, None]], [k[None, :], np.ones((1, 1))]])
        self.roots = np.sqrt(self.weights)
        self.kors = np.linalg.cholesky(
            self.roots[:, None] * self.K * self.roots + self.ridge * np.eye(len(self.rows))
        )
        self.span = np.linalg.cholesky(self.K[np.ix_(self.coordinates, self.coordinates)])
        self.size, self.dense = len(self.rows), len(self.rows) == len(self.coordinates)
        if self.inverses:  # one matrix for both, so that one product does
            both = np.zeros((self.size + len(self.coordinates), self.size))
            both[: self.size] = solve_triangular(self.kors, np.diag(self.roots), lower=True)
            both[self.size :, self.coordinates] = solve_triangular(
                self.span, np.eye(len(self.span)), lower=True
            )
            self.both = both

    def embed(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """KORS's L⁻¹S̄ᵀk and the embedding L⁻¹k."""
        if self.inverses:
            v = self.both @ k
            return v[: self.size], v[self.size :]
        return (
            solve_triangular(self.kors, self.roots * k, lower=True, check_finite=False),
            solve_triangular(
                self.span, k if self.dense else k[self.coordinates], lower=True, check_finite=False
            ),
        )


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
            dictionary.add(X, squares, t, p, k, 1.0 - phi @ phi)
            A_inverse, omega = (
                np.eye(len(dictionary.coordinates)) / alpha,
                np.zeros(len(dictionary.coordinates)),
            )
    return predictions, dictionary.rows
