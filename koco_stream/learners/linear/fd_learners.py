"""FD-SON, RFD-SON, S-AdaGrad and Ada-FD: a step by a function of frequent directions.

One round (online_newton.py), one sketch (frequent_directions.py), u = w − step·f(SᵀS)g:

- FD-SON: Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), Algorithms 1 and 2.
- RFD-SON: Luo, Chen, Zhang, Li, Zhang (JMLR 2019). A shrink takes ρ from every direction of the
  sketch; half of it comes back as ridge, so that SᵀS + αI is as near to Σ ĝĝᵀ as a sketch of this
  size can be.
- S-AdaGrad ("Sketchy"): Feinberg, Chen, Sun, Anil, Hazan (NeurIPS 2023). All of ρ comes back.
- Ada-FD: Wan, Zhang (IJCAI 2018). None does, and δ is added to the roots.

With α_0 = 0 inverses are pseudo-inverses until the first shrink that takes something.
"""

import math
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple

import numpy as np

from koco_stream.learners import spec
from koco_stream.learners.base import Learner
from koco_stream.learners.linear import frequent_directions as sketch
from koco_stream.learners.linear.fd_basis import Vectors
from koco_stream.learners.linear.online_newton import forward, sketch_params, step
from koco_stream.numerics.instructions.feature_rows import shape_for
from koco_stream.numerics.lazy_maps import refresh_used
from koco_stream.streams.rows import Rows
from koco_stream.types import Array

FIRST_ALPHA = spec.Parameter(
    "alpha", float, "α_0, the ridge before the first shrink; 0 for the pseudo-inverse", low=0
)
# What a learner is given that lacks the parameter
OTHERWISE: spec.Public = {
    **{"step_size": 1.0, "alpha": 0.0, "delta": 0.0, "curvature": 1.0, "diagonal": False},
    **{"curvature_schedule": "constant", "projection": "prediction"},
}
LARGEST_BUFFER = 14  # of raw rows: each makes Q longer, and with it every rank-one change


class Variant(NamedTuple):
    """f(λ): 1/(λ + α), with `root` (λ + α)^(−½) or 1/(√λ + δ). growth: the share of ρ that a shrink
    adds to α. lazy: whether eigenvectors are found only when S shrinks, every m gradients, or
    known in every round, and S shrinks every min(⌈2m/3⌉, 14). most_clips: see `in_doubt`; nothing
    cancels where a row's part outside Q is known by itself, and roots lose half as many digits.
    """

    root: bool
    growth: float
    lazy: bool
    most_clips: float


class Params(NamedTuple):
    """The fields of `sketch_params` and of `Variant`. step_size, delta: δ. buffer: b. shape: as
    long as a row of the table; out_shape: as one after a shrink. d_column: where D is in it.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    sketch_size: int
    diagonal: int
    project_weights: bool
    root: bool
    growth: float
    lazy: bool
    most_clips: float
    step_size: float
    delta: float
    buffer: int
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    d_column: int


class FrequentDirectionsLearner(Learner):
    """What the four share."""

    init, step, forward = staticmethod(sketch.init), staticmethod(step), staticmethod(forward)
    variant: ClassVar[Variant]

    @classmethod
    def to_params(cls, q: spec.Public) -> Params:
        given: spec.Public = {**OTHERWISE, **q}
        m, diagonal = q["sketch_size"], bool(given["diagonal"])
        buffer = m if cls.variant.lazy else min(math.ceil(2 * m / 3), LARGEST_BUFFER)
        numbers = m + buffer + 2 + diagonal
        whole = shape_for(numbers if cls.variant.lazy else 8 * math.ceil(numbers / 8))
        return Params(
            **(sketch_params(given) | cls.variant._asdict()),
            step_size=given["step_size"],
            delta=given["delta"],
            buffer=buffer,
            shape=whole,  # rank-one changes take eight numbers at once
            out_shape=shape_for(m + 1),
            d_column=m + buffer + 1,
        )

    @classmethod
    def floats(cls, q: spec.Public, size: spec.StreamSize) -> int:
        return sketch.state_floats(cls.to_params(q), size.d)

    @property
    def coef_(self) -> Array:
        """The weights u (d,), the intercept's last; of the rescaled features if `diagonal`."""
        return self._table() @ self._vectors().beta

    @classmethod
    def expect(cls, params: Any, state: Any, rows: Rows) -> Array:
        # Materialising a column now and again later rounds otherwise than doing it once: so it is
        # done on a copy.
        return super().expect(params, deepcopy(state), rows)

    def _vectors(self) -> Vectors:
        return Vectors(*self._state.small)

    def _table(self) -> Array:
        """The columns of R̄ (d, W), all up to date; their epochs and D are left out."""
        state = deepcopy(self._state)
        refresh_used(state.maps, state.table, self._params.out_shape)
        state.table[:, state.maps.maps.shape[1] :] = 0.0
        return state.table


class FDSON(FrequentDirectionsLearner):
    """Sketched online Newton with frequent directions; a round's cost grows with s, not d.

    Notes
    -----
    Luo et al. (NIPS 2016), Algorithms 1 and 2. Up to m gradients are kept unchanged until the next
    shrink. So the sketch has m to 2m − 1 rows and shrinks every m rounds; in the paper, it has m
    rows and shrinks in every round (docs/errata.md, S21). The round that fills the buffer first
    shrinks first, then updates the weights.
    """

    parameters = (*spec.SHARED, spec.SKETCH_SIZE, *spec.NEWTON_STEP, spec.DIAGONAL, spec.PROJECTION)
    variant = Variant(root=False, growth=0.0, lazy=True, most_clips=5e8)

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 10.0,
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

    @property
    def sketch_(self) -> Array:
        """S (m, d), the kept rows."""
        return self._table()[:, : self._params.sketch_size].T.copy()

    @property
    def buffer_(self) -> Array:
        """The to-sketch vectors since the last shrink (k, d), k < m."""
        first = self._params.sketch_size + 1
        return self._table()[:, first : first + int(self._state.filled)].T.copy()


class EigenvectorLearner(FrequentDirectionsLearner):
    """What the three share that know the eigenvectors in every round."""

    @property
    def eigenvalues_(self) -> Array:
        """The eigenvalues (k,) of SᵀS, decreasing, k < m + b."""
        return self._vectors().values[: int(self._state.kept + self._state.filled)].copy()

    @property
    def sketch_(self) -> Array:
        """S (k, d), orthogonal rows: SᵀS has the `eigenvalues_`, k < m + b."""
        values = self.eigenvalues_
        return np.sqrt(values)[:, np.newaxis] * (self._state.M[: values.size] @ self._table().T)


class RFDSON(EigenvectorLearner):
    """Sketched online Newton with robust frequent directions, whose ridge grows; O(m³ + ms).

    Notes
    -----
    Luo, Chen, Zhang, Li, Zhang (JMLR 2019). The sketch shrinks after up to ⌈2m/3⌉
    gradients, instead of in every round (docs/errata.md, S23).
    """

    parameters = (
        *(*spec.SHARED, spec.SKETCH_SIZE, FIRST_ALPHA),
        *(spec.CURVATURE, spec.CURVATURE_SCHEDULE, spec.PROJECTION),
    )
    variant = Variant(root=False, growth=0.5, lazy=False, most_clips=1e14)

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 3.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @property
    def alpha_(self) -> float:
        """α now: α_0, and the learner's share of what the shrinks took from the eigenvalues."""
        return float(self._state.alpha)


class SAdaGrad(EigenvectorLearner):
    """Full-matrix AdaGrad with frequent directions, w ← w − step_size·(SᵀS + αI)^(−½) g, in
    O(m³ + ms) a round.

    Notes
    -----
    Feinberg, Chen, Sun, Anil, Hazan (NeurIPS 2023). The sketch shrinks after up to
    ⌈2m/3⌉ gradients, instead of in every round (docs/errata.md, S23). While no shrink takes
    anything, it is AdaGrad with the full matrix.
    """

    parameters = (*spec.SHARED, spec.SKETCH_SIZE, spec.STEP_SIZE, FIRST_ALPHA)
    variant = Variant(root=True, growth=1.0, lazy=False, most_clips=1e24)

    def __init__(
        self,
        sketch_size: int = 10,
        step_size: float = 0.3,
        alpha: float = 0.0,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @property
    def alpha_(self) -> float:
        """α now: α_0, and the learner's share of what the shrinks took from the eigenvalues."""
        return float(self._state.alpha)


class AdaFD(EigenvectorLearner):
    """Full-matrix AdaGrad with frequent directions, w ← w − step_size·((SᵀS)^½ + δI)⁻¹ g, in
    O(m³ + ms) a round.

    Notes
    -----
    Wan, Zhang (IJCAI 2018). The sketch shrinks after up to ⌈2m/3⌉ gradients, instead of in every
    round (docs/errata.md, S23). While no shrink takes anything, it is AdaGrad with the full matrix.
    """

    parameters = (*spec.SHARED, spec.SKETCH_SIZE, spec.STEP_SIZE, spec.DELTA)
    variant = Variant(root=True, growth=0.0, lazy=False, most_clips=1e24)

    def __init__(
        self,
        sketch_size: int = 10,
        step_size: float = 0.3,
        delta: float = 1.0,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())
