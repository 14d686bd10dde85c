"""Sketched online Newton: Algorithm 1 of Luo et al. (2016), in its order, for every sketch.

A sketch is a file with a `State`: its fields, and as methods what the algorithm asks of it
(`Sketch`). `params` is a learner's `Params`, and `x` a row's values as they are fed.

Diagonal adaptation (section 5.2; docs/errata.md, S7) feeds D^(−1/2) x instead of x, where D_jj is
0.1 and the squares of g_j = ℓ'x_j so far. D is a column of a sketch's table, so a round finds it in
the row that it reads anyway; a zero there stands for 0.1, so that a new table is all zeros.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from koco_stream.learners.spec import Public, StreamSize, newton_params
from koco_stream.losses import curvature_at, hinge_gap, in_doubt, loss_slope
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import over_roots, shape_for
from koco_stream.types import Array

FIRST_D = 0.1
# Steps so far times the length of a row, in units of C, above which errors of predictions pass
# 10⁻⁶ C, as measured beside long double (docs/reliability.md)
MOST_CLIPS = 5e8
# `params.diagonal`: no adaptation, or which D the sketch and the weights see
NONE, BEFORE, UPDATED = range(3)
DIAGONAL_FORMS = {False: NONE, True: BEFORE, "updated": UPDATED}


class Diagnostics(NamedTuple):
    """How often so far, (): what a sketch does not do stays 0. longest_step: () so far."""

    folds: Array
    cleanings: Array
    dense_rounds: Array
    shrinks: Array
    doubtful_rounds: Array
    longest_step: Array


def no_diagnostics() -> Diagnostics:
    """Those before the first round."""
    return Diagnostics(*(np.zeros((), kind) for kind in (*[np.int64] * 5, np.float64)))


class AsTheyAre(NamedTuple):
    """Rows are fed as they are. scaled: (0,)."""

    scaled: Array

    @jit
    def feed(f: Any, params: Any, table: Array, idx: Array, val: Array, out: Array) -> Array:
        """x, what the sketch sees of the row (idx, val). What is returned has to be an argument."""
        return val


class Rescaled(NamedTuple):
    """Diagonal adaptation. scaled: (d,) scratch for D^(−1/2) x."""

    scaled: Array

    @jit
    def feed(f: Any, params: Any, table: Array, idx: Array, val: Array, out: Array) -> Array:
        """out ← D^(−1/2) x of the row (idx, val)."""
        over_roots(table, params.d_column, idx, val, FIRST_D, out)
        return out


Feeding = AsTheyAre | Rescaled


def feeding(params: Any, n_features: int) -> Feeding:
    """How rows are fed. It is part of the state's type, so that each way is compiled by need."""
    if params.diagonal == NONE:
        return AsTheyAre(np.zeros(0))
    return Rescaled(np.zeros(n_features))


class Sketch(Protocol):
    """A sketch's state: u = w̄ + what the sketch has of it.

    t: () rounds. table: (d, W), row j has w̄_j at `params.sketch_size`, and D_jj at
    `params.d_column` if `diagonal`. fed: how rows are fed.
    """

    t: Array
    table: Array
    fed: Feeding
    diagnostics: Diagnostics

    def inspect(self, params: Any, idx: Array, x: Array) -> tuple[float, float]:
        """uᵀx and ‖x‖² of the row (idx, x), and x̂ = Sx, which the state keeps for the round."""

    def residual(self, params: Any, idx: Array, x: Array, n2: float) -> float:
        """What the sketch leaves of the row's ‖x‖² = `n2`: ‖x‖² − ‖Vx‖² for Oja's orthonormal
        rows, αxᵀA⁻¹x for the others.
        """

    def ridge(self, params: Any) -> float:
        """α: a step is ‖g‖/α long where the sketch knows nothing."""

    def project(self, params: Any, excess: float, residual: float) -> float:
        """w ← u − γA⁻¹x with γ = excess/(xᵀA⁻¹x), but for w̄'s multiple of x, which is returned."""

    def update(
        self,
        params: Any,
        idx: Array,
        x: Array,
        c: float,
        slope: float,
        w_x: float,
        residual: float,
        n2: float,
    ) -> None:
        """Lines 8 and 9: the sketch with ĝ = cx, u ← w − A⁻¹g with g = slope·x, where w̄ is still
        to change by w_x·x.
        """


@inlined
def predict(params: Any, s: Sketch, margin: float, residual: float) -> tuple[float, float]:
    """Algorithm 1, lines 5 and 6: ŷ = wᵀx, where w is u projected onto {w : |wᵀx| ≤ C}, or ŷ is
    truncated. Returns ŷ and the multiple of x that w̄ is still to change by. `margin` is uᵀx.
    """
    excess = abs(margin) - params.clip
    nearest, w_x = margin, 0.0
    if excess > 0.0:
        nearest = math.copysign(params.clip, margin)
        if params.project_weights:
            w_x = s.project(params, margin - nearest, residual)
    return nearest, w_x


@inlined
def gradient(params: Any, s: Sketch, margin: float, y_hat: float, y: float, n2: float) -> float:
    """Algorithm 1, line 7: ℓ'(ŷ, y), with which g = ℓ'x.

    Notes a doubtful round, and the longest step, as long as it is where the sketch knows nothing.
    """
    slope, length, so_far = loss_slope(params.loss, y_hat, y), math.sqrt(n2), s.diagnostics
    excess, gap = abs(margin) - params.clip, math.inf
    if params.project_weights:  # only a projection puts a prediction onto a margin
        gap = hinge_gap(params.loss, slope, y_hat, y)
    reach = so_far.longest_step[()] * length
    so_far.doubtful_rounds[()] += in_doubt(reach, excess, params.most_clips * params.clip, gap)
    so_far.longest_step[()] = max(so_far.longest_step[()], abs(slope) * length / s.ridge(params))
    return slope


@inlined
def to_sketch(params: Any, s: Sketch, slope: float) -> float:
    """Algorithm 1, line 7: c, with which the to-sketch vector is ĝ = √(σ_t + η_t)·g = cx."""
    t = s.t[()] + 1
    s.t[()] = t
    return math.sqrt(curvature_at(params.curvature, params.decreasing, t)) * slope


@inlined
def step(params: Any, s: Sketch, idx: Array, val: Array, y: float) -> float:
    """Algorithm 1, lines 4 to 9: a round on the row (idx, val), fed as (idx, x), with label y.

    Updates `s`; returns ŷ, which is 0 for a row of norm 0.
    """
    x = s.fed.feed(params, s.table, idx, val, s.fed.scaled[: idx.size])
    margin, n2 = s.inspect(params, idx, x)
    if n2 == 0.0:
        return 0.0
    if math.isinf(margin):
        return math.nan
    residual = s.residual(params, idx, x, n2)
    y_hat, w_x = predict(params, s, margin, residual)
    slope = gradient(params, s, margin, y_hat, y, n2)
    if params.diagonal == UPDATED:
        # The projection was along x as D was; the sketch and the gradient have x as D is now.
        add_to_weights(params, s, idx, x, w_x)
        adapt(params, s, idx, val, slope)
        x = s.fed.feed(params, s.table, idx, val, s.fed.scaled[: idx.size])
        w_x, n2 = 0.0, s.inspect(params, idx, x)[1]
        if n2 == 0.0:
            return y_hat
        residual = s.residual(params, idx, x, n2)
    c = to_sketch(params, s, slope)
    s.update(params, idx, x, c, slope, w_x, residual, n2)
    if params.diagonal == BEFORE:
        adapt(params, s, idx, val, slope)
    return y_hat


@inlined
def forward(params: Any, s: Sketch, idx: Array, val: Array) -> float:
    """uᵀx for the row (idx, val), before it is held within [−C, C]. Learns nothing."""
    x = s.fed.feed(params, s.table, idx, val, s.fed.scaled[: idx.size])
    y_hat, n2 = s.inspect(params, idx, x)
    return 0.0 if n2 == 0.0 else y_hat


@jit
def adapt(params: Any, s: Sketch, idx: Array, val: Array, slope: float) -> None:
    """D_jj ← D_jj + g_j² for the row's features, with g = ℓ'x of the unscaled x."""
    for i in range(idx.size):
        g, D = slope * np.float64(val[i]), s.table[idx[i], params.d_column]
        s.table[idx[i], params.d_column] = (FIRST_D if D == 0.0 else D) + g * g


@jit
def add_to_weights(params: Any, s: Sketch, idx: Array, x: Array, w_x: float) -> None:
    """w̄ ← w̄ + w_x·x."""
    for i in range(idx.size if w_x != 0.0 else 0):
        s.table[idx[i], params.sketch_size] += w_x * np.float64(x[i])


def sketch_params(q: Public) -> dict[str, Any]:
    """The entries of `Params` that all sketches share."""
    return {
        **newton_params(q),
        "sketch_size": q["sketch_size"],
        "diagonal": DIAGONAL_FORMS[q["diagonal"]],
        "project_weights": q["projection"] == "weights",
        "most_clips": MOST_CLIPS,
    }


def table_floats(q: Public, size: StreamSize, numbers: int) -> int:
    """The numbers in a table with so many a feature, and one more if `diagonal`."""
    diagonal = bool(q["diagonal"])
    width = len(shape_for(numbers + diagonal))
    return (size.d + width + 16) * width + diagonal * size.d
