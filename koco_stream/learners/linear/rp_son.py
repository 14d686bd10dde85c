"""RP-SON: sketched online Newton with random projections, O(m² + ms) a round at s non-zeros.

Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), Algorithm 1 (online_newton.py) and section 3
(rp_sketch.py).
"""

from typing import Any, NamedTuple

import numpy as np

from koco_stream.learners import spec
from koco_stream.learners.base import Learner
from koco_stream.learners.linear.online_newton import (
    feeding,
    forward,
    no_diagnostics,
    sketch_params,
    step,
    table_floats,
)
from koco_stream.learners.linear.rp_sketch import State, Vectors
from koco_stream.numerics.instructions.feature_rows import aligned_zeros, shape_for
from koco_stream.types import Array


class Params(NamedTuple):
    """loss: its code. alpha: α. clip: C. curvature: the coefficient of g gᵀ in A, divided by √t if
    `decreasing`. sketch_size: m. diagonal: NONE, BEFORE or UPDATED (S7). project_weights: whether u
    is projected, or only its prediction truncated. shape: its length
    is W, the width of a line.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    sketch_size: int
    diagonal: int
    project_weights: bool
    most_clips: float
    shape: tuple[int, ...]
    d_column: int


def init(params: Any, n_features: int, seed: int) -> State:
    """w = 0, S = 0, H = I/α."""
    m, W = params.sketch_size, len(params.shape)
    H = aligned_zeros(W, W)
    H[range(m), range(m)] = 1.0 / params.alpha
    return State(
        t=np.zeros((), np.int64),
        seed=np.array(seed, np.uint64),
        table=aligned_zeros(n_features, W),
        small=aligned_zeros(len(Vectors._fields), W),
        H=H,
        K=aligned_zeros(W, W),
        L=aligned_zeros(W, W),
        trace=np.zeros(()),
        solves=np.zeros((), np.int64),
        terms=np.zeros(()),
        fed=feeding(params, n_features),
        diagnostics=no_diagnostics(),
    )


class RPSON(Learner):
    """Sketched online Newton with random projections, in O(m² + ms) a round.

    Notes
    -----
    Luo et al. (NIPS 2016), Algorithm 1 and section 3.
    """

    parameters = (*spec.SHARED, spec.SKETCH_SIZE, *spec.NEWTON_STEP, spec.DIAGONAL, spec.PROJECTION)
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 30.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
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
        return Params(**sketch_params(q), shape=shape_for(m + 1 + diagonal), d_column=m + 1)

    @classmethod
    def stochastic(cls, q: spec.Public) -> bool:
        return True

    @classmethod
    def floats(cls, q: spec.Public, size: spec.StreamSize) -> int:
        m = q["sketch_size"]
        return table_floats(q, size, m + 1) + 2 * len(shape_for(m + 2)) ** 2

    @property
    def sketch_(self) -> Array:
        """S (m, d), the sketch."""
        return self._state.table[:, : self._params.sketch_size].T.astype(np.float64)

    @property
    def coef_(self) -> Array:
        """The weights u (d,), the intercept's last; of the rescaled features if `diagonal`."""
        m = self._params.sketch_size
        return self._state.table[:, m] + self._state.table[:, :m] @ self._state.small[0, :m]
