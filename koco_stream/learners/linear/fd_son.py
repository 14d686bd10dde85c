"""FD-SON: sketched online Newton with frequent directions; a round's cost does not grow with d.

Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), Algorithms 1 and 2, with a buffer: S has m kept
rows and up to m raw to-sketch vectors ĝ. The ĝ that fills the buffer has the 2m rows replaced by
m, S ← (Σ − λ_{m+1}I)^½ V with the m largest eigenvalues of SᵀS (docs/errata.md, S6, S13), before
the weights are updated, as Algorithm 1 has it (S21): see frequent_directions.py.

The weights are w = w̄ + Sᵀβ; a shrink moves Sᵀβ into w̄, which therefore is one more number of the
column that the shrinks' maps act on. H = (αI + SSᵀ)⁻¹ is used through
the Cholesky factor of αI + SSᵀ: diagonal for the kept rows, one more row for each ĝ.
"""

import math
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from koco_stream.learners import spec
from koco_stream.learners.base import Learner
from koco_stream.learners.linear import frequent_directions as directions
from koco_stream.learners.linear.frequent_directions import BETA, COEF, HX, LINE, ROOT, X_HAT, Y
from koco_stream.learners.linear.online_newton import (
    Diagnostics,
    forward,
    no_diagnostics,
    sketch_params,
    step,
)
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import (
    aligned_zeros,
    gather,
    gather_current,
    row_at,
    shape_for,
)
from koco_stream.numerics.lazy_maps import (
    Maps,
    current_epoch,
    empty_maps,
    end_epoch,
    is_current,
    maps_floats,
    refresh,
    refresh_used,
    scatter_lines,
)
from koco_stream.types import Array

PERIOD = 2048  # shrinks, after which all columns are brought up to date


class Params(NamedTuple):
    """loss: its code. alpha: α. clip: C. curvature: the coefficient of g gᵀ in A, divided by √t if
    `decreasing`. sketch_size: m. diagonal: NONE, BEFORE or UPDATED (S7). project_weights: whether u
    is projected, or only its prediction truncated. shape: its length
    is W, the width of a line; out_shape: that of a line after a shrink.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    sketch_size: int
    diagonal: int
    project_weights: bool
    shape: tuple[int, ...]
    d_column: int
    out_shape: tuple[int, ...]


class State(NamedTuple):
    """t: () rounds. filled: () rows in the buffer. trace: () of SSᵀ.
    table: (d, W), line j = the kept rows' column j (m numbers), w̄_j, the buffer's column j (m
    numbers), then D_jj if `diagonal`; last the column's epoch. a: the small vectors and matrices.
    maps: the shrinks to be applied to columns. scaled: (d,) scratch for D^(−1/2) x, or (0,).
    """

    t: Array
    filled: Array
    trace: Array
    table: Array
    a: Array
    maps: Maps
    scaled: Array
    diagnostics: Diagnostics

    @jit
    def inspect(s: Any, params: Params, idx: Array, x: Array) -> tuple[float, float]:
        """uᵀx and ‖x‖² for the row (idx, x); leaves x̂ = Sx in the scratch, and brings the row's
        columns up to date.
        """
        a, m, W = s.a, params.sketch_size, len(params.shape)
        n2 = gather_current(
            s.table, params.shape, idx, x, row_at(a, LINE * W, params.shape), current_epoch(s.maps)
        )
        if n2 < 0.0:
            for i in range(idx.size):
                if not is_current(s.maps, s.table, idx[i]):
                    refresh(s.maps, s.table, np.int64(idx[i]), 2 * m + 1, m + 1, params.out_shape)
            n2 = gather(s.table, params.shape, idx, x, row_at(a, LINE * W, params.shape))
            a[new_lines(W)] = 0.0
        margin = a[LINE * W + m]  # w̄ᵀx
        for i in range(m):
            a[X_HAT * W + i] = a[LINE * W + i]
            a[X_HAT * W + m + i] = a[LINE * W + m + 1 + i]
        for i in range(m + s.filled[()]):
            margin += a[BETA * W + i] * a[X_HAT * W + i]
        return margin, n2

    @jit
    def residual(s: Any, params: Params, n2: float) -> float:
        """αxᵀA⁻¹x = ‖x‖² − x̂ᵀHx̂, with H = L⁻ᵀL⁻¹; leaves L⁻¹x̂ in the scratch."""
        a, m, W = s.a, params.sketch_size, len(params.shape)
        rows, L, trace = m + s.filled[()], (directions.FIRST_MATRIX + 2 * m) * W, float(s.trace[()])
        for i in range(m):
            a[Y * W + i] = a[X_HAT * W + i] * a[ROOT * W + i]
        for i in range(m, rows):
            total = a[X_HAT * W + i]
            for k in range(i):
                total -= a[L + i * W + k] * a[Y * W + k]
            a[Y * W + i] = total / a[L + i * W + i]
        xHx = 0.0
        for i in range(rows):
            xHx += a[Y * W + i] * a[Y * W + i]
        # Never less than what the largest possible eigenvalue of A leaves of it.
        return max(n2 - xHx, n2 * params.alpha / (params.alpha + trace))

    @jit
    def project(s: Any, params: Params, excess: float, residual: float) -> float:
        """Line 5: γ_p = τ_C(uᵀx)/(αxᵀA⁻¹x), w ← u − γ_p(x − SᵀHx̂). Returns −γ_p, w̄'s
        component of x.
        """
        a, m, W = s.a, params.sketch_size, len(params.shape)
        rows, w_coef = m + s.filled[()], -excess / residual
        directions.solve_transposed(a, W, m, rows)
        for i in range(rows):
            a[BETA * W + i] -= w_coef * a[HX * W + i]
        return w_coef

    @jit
    def update(
        s: Any,
        params: Params,
        idx: Array,
        x: Array,
        c: float,
        slope: float,
        w_coef: float,
        residual: float,
        n2: float,
    ) -> None:
        """Lines 7 to 9 for the row that was looked at last: the sketch, then the weights."""
        alpha, m, W = params.alpha, params.sketch_size, len(params.shape)
        a, filled = s.a, s.filled[()]
        rows = m + filled
        G, L = directions.FIRST_MATRIX * W, (directions.FIRST_MATRIX + 2 * m) * W
        for k in range(W):
            a[COEF * W + k] = 0.0
        # Line 8: ĝ becomes a row of the buffer; G and L get the row that belongs to it.
        if c != 0.0:
            for i in range(rows):
                a[G + rows * W + i] = c * a[X_HAT * W + i]
                a[L + rows * W + i] = c * a[Y * W + i]
            pivot = math.sqrt(alpha + c * c * residual)
            a[G + rows * W + rows] = c * c * n2
            a[L + rows * W + rows] = pivot
            a[X_HAT * W + rows] = c * n2  # S_t x and L⁻¹S_t x have one more number
            a[Y * W + rows] = c * residual / pivot
            a[BETA * W + rows] = 0.0
            a[COEF * W + m + 1 + filled] = c
            s.trace[()] += c * c * n2
            s.filled[()] = filled + 1
            rows += 1
        # Line 9: u ← w − (g − SᵀHSg)/α. The shrink takes Sᵀβ into w̄, whichever of the two changes
        # comes first.
        a[COEF * W + m] = w_coef - slope / alpha
        coefficients = row_at(a, COEF * W, params.shape)
        scatter_lines(s.maps, s.table, params.shape, idx, x, coefficients, a[new_lines(W)])
        if rows == 2 * m:
            s.trace[()] = directions.shrink(
                a, s.maps, params.shape, len(params.out_shape), m, alpha
            )
            s.filled[()] = 0
            s.diagnostics.shrinks[()] += 1
            s.diagnostics.folds[()] += end_epoch(
                s.maps, s.table, 2 * m + 1, m + 1, params.out_shape
            )
            for i in range(m):
                a[BETA * W + i] = slope / alpha * (a[Y * W + i] * a[ROOT * W + i] * a[ROOT * W + i])
        elif slope != 0.0:
            directions.solve_transposed(a, W, m, rows)
            for i in range(rows):
                a[BETA * W + i] += slope / alpha * a[HX * W + i]


def init(params: Params, n_features: int, seed: int) -> State:
    m, width = params.sketch_size, len(params.shape)
    state = State(
        t=np.zeros((), np.int64),
        filled=np.zeros((), np.int64),
        trace=np.zeros(()),
        table=aligned_zeros(n_features, width),
        a=aligned_zeros(directions.FIRST_MATRIX + 6 * m, width).reshape(-1),
        maps=empty_maps(n_features, 2 * m + 1, m + 1, params.out_shape, PERIOD),
        scaled=np.zeros(n_features if params.diagonal else 0),
        diagnostics=no_diagnostics(),
    )
    state.a[ROOT * width : ROOT * width + m] = 1.0 / math.sqrt(params.alpha)
    return state


@inlined
def new_lines(W: int) -> int:
    """Where in `a` the number of the row's lines is that were never used."""
    return (LINE + 1) * W - 1


class FDSON(Learner):
    """Sketched online Newton with frequent directions; a round's cost grows with s, not d.

    Notes
    -----
    Luo et al. (NIPS 2016), Algorithms 1 and 2. Up to m gradients are kept unchanged until the next
    shrink. So the sketch has m to 2m − 1 rows and shrinks every m rounds; in the paper, it has m
    rows and shrinks in every round (docs/errata.md, S21). The round that fills the buffer first
    shrinks first, then updates the weights.
    """

    parameters = (*spec.SHARED, spec.SKETCH_SIZE, *spec.NEWTON_STEP, spec.DIAGONAL, spec.PROJECTION)
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 1.0,
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
        m, diagonal = spec.whole(q, "sketch_size"), bool(q["diagonal"])
        return Params(
            **sketch_params(q),
            shape=shape_for(2 * m + 2 + diagonal),
            d_column=2 * m + 1,
            out_shape=shape_for(m + 1),
        )

    @classmethod
    def floats(cls, q: spec.Public, size: spec.StreamSize) -> int:
        m, diagonal = spec.whole(q, "sketch_size"), bool(q["diagonal"])
        width, out = len(shape_for(2 * m + 2 + diagonal)), len(shape_for(m + 1))
        floats = (13 + 6 * m + size.d) * width + diagonal * size.d
        return floats + maps_floats(size.d, 2 * m + 1, m + 1, out, PERIOD)

    @property
    def sketch_(self) -> Array:
        """S (m, d), the kept rows."""
        return self._table()[:, : self._params.sketch_size].T.astype(np.float64)

    @property
    def buffer_(self) -> Array:
        """The to-sketch vectors since the last shrink (k, d), k < m."""
        m = self._params.sketch_size
        return self._table()[:, m + 1 : m + 1 + int(self._state.filled)].T.astype(np.float64)

    @property
    def coef_(self) -> Array:
        """The weights u (d,), the intercept's last; of the rescaled features if `diagonal`."""
        m, table = self._params.sketch_size, self._table()
        beta = self._state.a[: 2 * m]
        return table[:, m] + table[:, :m] @ beta[:m] + table[:, m + 1 : 2 * m + 1] @ beta[m:]

    def _readable_state(self) -> State:
        # Bringing a column up to date now and again later rounds otherwise than doing it once: so
        # it is done on a copy.
        return deepcopy(self._state)

    def _table(self) -> Array:
        """The columns, all brought up to date."""
        m, state = self._params.sketch_size, self._readable_state()
        refresh_used(state.maps, state.table, 2 * m + 1, m + 1, self._params.out_shape)
        return state.table
