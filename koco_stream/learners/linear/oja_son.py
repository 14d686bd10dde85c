"""Oja-SON: sketched online Newton with Oja's sketch, O(m² + ms) a round on rows of s non-zeros.

Luo, Agarwal, Cesa-Bianchi, Langford: Efficient Second Order Online Learning by Sketching (NIPS
2016), Algorithms 1, 3, 4 and 5. Numbers like S9 are entries of docs/errata.md. Algorithm 1 is in
online_newton.py, the sketch in oja_sketch.py.

The paper keeps V = FZ (orthonormal rows, Z changed only where the row is non-zero) and w = w̄ +
Zᵀb. Here w = w̄ + Vᵀβ (S9), the orthonormalisation is a triangular factor known in closed form
(S2), and every formula is written without cancellation (S12).
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from koco_stream.learners import spec
from koco_stream.learners.base import Learner
from koco_stream.learners.linear.oja_basis import FOLDS, Vectors, materialise_copies
from koco_stream.learners.linear.oja_sketch import State
from koco_stream.learners.linear.online_newton import (
    feeding,
    forward,
    no_diagnostics,
    sketch_params,
    step,
    table_floats,
)
from koco_stream.numerics.instructions.feature_rows import aligned_zeros, shape_for
from koco_stream.numerics.lazy_maps import empty_maps, maps_floats
from koco_stream.numerics.linear_algebra import gram_schmidt
from koco_stream.streams.rows import Rows, frozen
from koco_stream.types import Array

SKETCH_SIZE = spec.Parameter(
    "sketch_size", int, "m, the number of rows of the sketch; 0: no sketch", low=0, high=1023
)

WITH_A_SKETCH = "sketch_size", range(1, 1024)
SKETCH_RATE = spec.Parameter(
    "sketch_rate",
    float,
    "c in the sketch's rate min(c/t, 1)",
    low=0,
    above=True,
    matters_if=WITH_A_SKETCH,
)
# At the printed rate the first gradients err less on 37 of 65 streams, random rows on 11
# (docs/findings.md); and they cost less.
SKETCH_START = spec.Parameter(
    "sketch_start",
    str,
    "how the sketch starts: from the first gradients, or from random rows",
    choices=("random", "gradients"),
    matters_if=WITH_A_SKETCH,
)

DRAW_AT = 1000  # features for each row of the sketch, from which on random rows are drawn by need


class Params(NamedTuple):
    """loss: its code. alpha: α. clip: C. curvature: the coefficient of g gᵀ in A, divided by √t if
    `decreasing`. rate: c in the sketch's rate γ_t = min(c/t, 1) (S8). from_gradients: how the
    sketch starts (S10). diagonal: NONE, BEFORE or UPDATED (S7). project_weights: whether u is
    projected, or only its prediction truncated. shape: its length is W, the table's
    width. d_column: where in the table's rows D is.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    rate: float
    sketch_size: int
    from_gradients: bool
    diagonal: int
    project_weights: bool
    most_clips: float
    shape: tuple[int, ...]
    d_column: int


def init(params: Any, n_features: int, seed: int) -> State:
    """w = 0; V is all zero and still to be found, or Gaussian rows drawn from `seed`.

    Few features' rows are orthonormalised. Of many, a feature's numbers are drawn at its first use
    with variance 1/d, so that VVᵀ is I in expectation and within about √(m/d) of it.
    """
    W, m = len(params.shape), params.sketch_size
    found = 0 if params.from_gradients else min(m, n_features)
    by_need = found > 0 and n_features >= DRAW_AT * m
    small, F = aligned_zeros(len(Vectors._fields), W), aligned_zeros(W, W)
    Vectors(*small).I_minus_D[:] = 1.0
    F[range(m), range(m)] = 1.0
    state = State(
        t=np.zeros((), np.int64),
        found=np.array(found),
        table=aligned_zeros(n_features, W),
        small=small,
        F=F,
        maps=empty_maps(n_features, m + 1, m + 1, params.shape, FOLDS),
        growth=np.ones(()),
        orthonormality_error=np.ones(()),
        scale=np.array(1.0 / math.sqrt(n_features) if by_need else 0.0),
        seed=np.array(seed, np.uint64),
        fed=feeding(params, n_features),
        diagnostics=no_diagnostics(),
    )
    if found and not by_need:
        drawn, draw = aligned_zeros(n_features, W), np.random.default_rng([seed, 0x0A])
        drawn[:, :found] = draw.standard_normal((n_features, found))
        for _ in range(2):
            gram_schmidt(drawn, found, np.empty(found))
        state.table[:, :found], state.table[:, -1] = drawn[:, :found], 1.0
        state.maps.used[:] = range(n_features)
        state.maps.n_used[()] = n_features
    return state


def materialised(params: Any, s: State, features: Array) -> State:
    """A copy of the state with the table's rows of these features only, brought up to date.

    Bringing a row up to date now and again later rounds otherwise than doing it once.
    """
    table = aligned_zeros(features.size, len(params.shape))
    table[:] = s.table[features]
    maps = type(s.maps)(*(field.copy() for field in s.maps))
    maps.n_used[()] = 0
    copied = s._replace(table=table, maps=maps._replace(used=np.zeros(features.size, np.int32)))
    materialise_copies(params, copied, features.astype(np.int64))
    return copied


class OjaSON(Learner):
    """Sketched online Newton with Oja's sketch, in O(m² + ms) a round.

    Notes
    -----
    Luo et al. (NIPS 2016), Algorithms 4 and 5.

    Examples
    --------
    >>> from koco_stream import OjaSON
    >>> OjaSON(2, alpha=1.0).progressive([[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 0.667]
    """

    parameters = (
        *spec.SHARED,
        SKETCH_SIZE,
        spec.ALPHA,
        replace(spec.CURVATURE, matters_if=WITH_A_SKETCH),
        replace(spec.CURVATURE_SCHEDULE, matters_if=WITH_A_SKETCH),
        SKETCH_RATE,
        SKETCH_START,
        spec.DIAGONAL,
        spec.PROJECTION,
    )
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 30.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        sketch_rate: float = 1.0,
        sketch_start: str = "gradients",
        diagonal: bool | str = False,
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: spec.Public) -> Params:
        m, diagonal = q["sketch_size"], bool(q["diagonal"])
        return Params(
            **sketch_params(q),
            rate=q["sketch_rate"],
            from_gradients=q["sketch_start"] == "gradients",
            shape=shape_for(m + 2 + diagonal),
            d_column=m + 1,
        )

    @classmethod
    def stochastic(cls, q: spec.Public) -> bool:
        return q["sketch_size"] != 0 and q["sketch_start"] == "random"

    @classmethod
    def floats(cls, q: spec.Public, size: spec.StreamSize) -> int:
        n = q["sketch_size"] + 1
        width = len(shape_for(n + 1 + bool(q["diagonal"])))
        return table_floats(q, size, n + 1) + maps_floats(size.d, n, n, width, FOLDS)

    @classmethod
    def expect(cls, params: Params, state: State, rows: Rows) -> Array:
        """Predictions (n,) for rows, each as if it came in the next round."""
        features, indices = np.unique(rows.indices, return_inverse=True)
        return super().expect(
            params,
            materialised(params, state, features),
            rows._replace(indices=frozen(indices, np.int32), n_features=features.size),
        )

    @property
    def sketch_(self) -> Array:
        """V (m, d), the sketch's orthonormal rows; zero where a row has not started."""
        return self._sketch_of(self._table())

    @property
    def eigenvalues_(self) -> Array:
        """tΛ (m,), the estimated eigenvalues of Σ ĝĝᵀ."""
        return self._vectors().tlam[: self._params.sketch_size].copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), the intercept's last; of the rescaled features if `diagonal`."""
        m, table = self._params.sketch_size, self._table()
        return table[:, m] + self._sketch_of(table).T @ self._vectors().beta[:m]

    def _table(self) -> Array:
        """A copy of the table, all brought up to date."""
        features = np.arange(self._state.table.shape[0])
        return materialised(self._params, self._state, features).table

    def _sketch_of(self, table: Array) -> Array:
        """V (m, d) from the table."""
        m = self._params.sketch_size
        return table[:, :m].dot(self._state.F[:m, :m].T).T

    def _vectors(self) -> Vectors:
        return Vectors(*self._state.small)
