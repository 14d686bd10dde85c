"""A⁻¹ over the coordinates of a dictionary, in factors: UDUᵀ with U unit upper triangular and D
diagonal.

Along a row that was learnt A⁻¹ is far below 1/α: as a difference from 1/α it would lose its digits,
but in the factors it is a product (Bierman, Factorization Methods for Discrete Sequential
Estimation, 1977; docs/errata.md, P9). An update takes O(J²) for J points.
"""

from typing import Any

from koco_stream.kernels.dictionary import padded
from koco_stream.learners.kernel import kors
from koco_stream.learners.kernel.base import OpenDictionaryLearner
from koco_stream.learners.spec import Public
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.instructions.point_panels import (
    BLOCK,
    panel_dot,
    times_transposed,
    update_factor,
    weighted_size,
)
from koco_stream.types import Array

# Lines of `a`, (8, room), which the learners share: φ̃, f = Uᵀφ̃, Df, D, what an update takes from
# the columns of U, u = A⁻¹φ̃, ω, and k(x_i, x_i)/pivot_i².
PHI, F, DF, D, TAKEN, U, OMEGA, LOST = range(8)


@inlined
def spread_of(factor: Array, a: Array, x: Array, n: int) -> float:
    """xᵀA⁻¹x, for φ̃ or another vector. Leaves f = Uᵀx and Df in the scratch."""
    times_transposed(factor, n, x, a[F])
    for p in range(n):
        a[DF, p] = a[D, p] * a[F, p]
    return panel_dot(a[F], 0, a[DF], 0, n)


@inlined
def absorb(factor: Array, a: Array, n: int, c2: float) -> None:
    """Poster, line 17: A ← A + c² φ̃φ̃ᵀ, for the φ̃ that `spread_of` was given last. Leaves u = A⁻¹φ̃,
    with A as it was, in the scratch.
    """
    before = 1.0
    for p in range(n):
        after = before + c2 * (a[F, p] * a[DF, p])
        a[TAKEN, p] = c2 * a[F, p] / before
        a[D, p] *= before / after
        before = after
    update_factor(factor, n, a[DF], a[TAKEN], a[U])


@inlined
def blur_of(a: Array, n: int, alpha: float) -> float:
    """α Σ |u_i ω_i| k(x_i, x_i)/pivot_i².

    A coordinate's own scale is known to about 10⁻¹⁶ k(x_i, x_i)/pivot_i². This is as if its α were
    another, which moves the prediction by 10⁻¹⁶ of the blur (P4).
    """
    return alpha * weighted_size(a[U], a[OMEGA], a[LOST], n)


@inlined
def add_coordinate(factor: Array, a: Array, n: int, variance: float) -> None:
    """Give A⁻¹ a last coordinate n, which is tied to no other and where A⁻¹ is `variance`."""
    factor[n // BLOCK, n, n % BLOCK] = 1.0
    a[D, n] = variance


@inlined
def full(params: Any, s: Any, features: int) -> bool:
    """Whether the dictionary lacks room."""
    return kors.full(params.kors, s.kors, features)


def enlarge(params: Any, s: Any, features: int) -> Any:
    """The state with room for another point."""
    inner = kors.enlarge(params.kors, s.kors, features)
    room = inner.a.shape[1]
    return s._replace(
        kors=inner,
        L=padded(s.L, room // BLOCK, room, BLOCK),
        factor=padded(s.factor, room // BLOCK, room, BLOCK),
        a=padded(s.a, len(s.a), s.a.shape[1] + room - s.L.shape[1]),
    )


class SpanLearner(OpenDictionaryLearner):
    """A learner with coordinates in the span of KORS's dictionary."""

    full, enlarge = staticmethod(full), staticmethod(enlarge)

    @classmethod
    def to_params(cls, q: Public) -> Any:
        return cls.filled(q, kors=kors.KORS.to_params(q))

    def features(self, X: Any) -> Array:
        """The embedding φ̃ (n, J) of the rows of X (n, d) in the span of the dictionary (P3)."""
        return self._embedded(X, self._state.a[PHI, : int(self._state.kors.points.n)])
