"""A round of the sketched online Newton step: Algorithm 1 of Luo et al. (2016), the same for every
sketch.

A learner's file has what is particular to its sketch, as five functions; `with_sketch` puts them
into the algorithm's lines:

- `inspect(params, s, idx, val)` → (uᵀx, ‖x‖²), with what it gathered in the scratch;
- `residual_of(params, s, n2)` → what the sketch leaves of the row that was inspected last, which
  the other two are given: ‖x‖² − ‖Vx‖² for Oja's orthonormal rows, αxᵀA⁻¹x for the others;
- `project(params, s, excess, residual)` → the multiple of x that w̄ changes by when u is projected
  (line 5);
- `learn(params, s, idx, val, slope, w_coef, residual, n2)`: the new sketch and the new weights
  (lines 7 to 9);
- `columns_of(params, s)` → the table, and where in its lines w̄ and D are.

Diagonal adaptation (section 5.2; docs/errata.md, S7) feeds D^(−1/2) x instead of x, where D_jj is
0.1 and the squares of g_j = ℓ'x_j so far. D lies in a column of a learner's table, so a round finds
it in the line that it reads anyway; a zero there stands for 0.1, so that a new table is all zeros.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from koco_stream.learners.spec import Cost, Public, StreamSize, newton_params, whole
from koco_stream.losses import hinge_gap, in_doubt, loss_slope
from koco_stream.numerics.compiler import Later, inlined, intrinsic, jit, jit_with
from koco_stream.numerics.instructions.feature_rows import over_roots, shape_for
from koco_stream.types import Array

FIRST_D = 0.1
# Steps so far times the length of a row, in units of C, above which errors of predictions pass
# 10⁻⁶ C, as measured beside long double (docs/reliability.md)
MOST_CLIPS = 5e8
# `params.diagonal`: no adaptation, or which D the sketch and the weights see
NONE, BEFORE, UPDATED = range(3)
DIAGONAL_FORMS = {False: NONE, True: BEFORE, "updated": UPDATED}


def _read_only(typing_context: Any, array: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    kind = Later("numba.core.types").Array
    return kind(array.dtype, array.ndim, array.layout, readonly=True)(array), emit


# A row's values are read-only. What is fed instead is called so too, so that nothing is compiled
# twice.
read_only = intrinsic(_read_only, lambda array: array)


@inlined
def diagonal_of(table: Array, column: int, j: int) -> float:
    """D_jj."""
    D = table[j, column]
    return FIRST_D if D == 0.0 else D


@inlined
def rescale(table: Array, column: int, idx: Array, val: Array, scaled: Array) -> None:
    """scaled ← D^(−1/2) x for the row (idx, val)."""
    over_roots(table, column, idx, val, FIRST_D, scaled)


@jit
def adapt(table: Array, column: int, idx: Array, val: Array, slope: float) -> None:
    """D_jj ← D_jj + g_j² for the row's features, with g = ℓ'x of the unscaled x."""
    for i in range(idx.size):
        g = slope * np.float64(val[i])
        table[idx[i], column] = diagonal_of(table, column, idx[i]) + g * g


def unbound(*arguments: Any) -> Any:
    """Stands for what is particular to a sketch; `with_sketch` binds the name to a learner's."""
    raise AssertionError("with_sketch binds this name")


inspect: Callable[..., tuple[float, float]] = unbound
residual_of: Callable[..., float] = unbound
project: Callable[..., float] = unbound
learn: Callable[..., None] = unbound
# The table, and where in its lines w̄ and D are
columns_of: Callable[..., tuple[Array, int, int]] = unbound


def bounded(
    params: Any, s: Any, idx: Array, val: Array, y: float
) -> tuple[float, float, float, float, float]:
    """Lines 5 and 6: (ŷ, the multiple of x that w̄ is still to change by, what `residual_of` gives,
    ‖x‖², ℓ'(ŷ, y)) for the row (idx, val) with label y.

    ŷ is within [−C, C] because u is projected, or because it is truncated. All are zero for a row
    of norm zero. The longest step ‖g‖/α, as long as it is where the sketch knows nothing, is kept.
    """
    y_hat, n2 = inspect(params, s, idx, val)
    if n2 == 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    residual, w_coef, excess = residual_of(params, s, n2), 0.0, abs(y_hat) - params.clip
    if excess > 0.0:
        if math.isinf(y_hat):
            return math.nan, 0.0, 0.0, n2, math.nan
        nearest = math.copysign(params.clip, y_hat)
        if params.project_weights:
            w_coef = project(params, s, y_hat - nearest, residual)
        y_hat = nearest
    slope, reach = loss_slope(params.loss, y_hat, y), s.longest_step[()] * math.sqrt(n2)
    gap = hinge_gap(params.loss, slope, y_hat, y)
    s.doubtful_rounds[()] += in_doubt(reach, excess, MOST_CLIPS * params.clip, gap)
    s.longest_step[()] = max(s.longest_step[()], abs(slope) * math.sqrt(n2) / params.alpha)
    return y_hat, w_coef, residual, n2, slope


def forward(params: Any, s: Any, idx: Array, val: Array) -> float:
    if params.diagonal == NONE:
        y_hat, n2 = inspect(params, s, idx, val)
    else:
        table, _, D = columns_of(params, s)
        rescale(table, D, idx, val, s.scaled)
        y_hat, n2 = inspect(params, s, idx, read_only(s.scaled[: idx.size]))
    return 0.0 if n2 == 0.0 else y_hat


def step(params: Any, s: Any, idx: Array, val: Array, y: float) -> float:
    if params.diagonal == NONE:
        y_hat, w_coef, residual, n2, slope = bounded(params, s, idx, val, y)
        if n2 > 0.0:
            learn(params, s, idx, val, slope, w_coef, residual, n2)
        return y_hat
    table, weights, D = columns_of(params, s)
    rescale(table, D, idx, val, s.scaled)
    x = read_only(s.scaled[: idx.size])
    y_hat, w_coef, residual, n2, slope = bounded(params, s, idx, x, y)
    if n2 == 0.0:
        return y_hat
    if params.diagonal == UPDATED:
        # The projection was along x as D was; the sketch and the gradient have x as D is now.
        if w_coef != 0.0:
            for i in range(idx.size):
                table[idx[i], weights] += w_coef * x[i]
        adapt(table, D, idx, val, slope)
        rescale(table, D, idx, val, s.scaled)
        _, n2 = inspect(params, s, idx, x)
        if n2 > 0.0:
            learn(params, s, idx, x, slope, 0.0, residual_of(params, s, n2), n2)
    else:
        learn(params, s, idx, x, slope, w_coef, residual, n2)
        adapt(table, D, idx, val, slope)
    return y_hat


def with_sketch(
    learner: str, inspect: Any, residual_of: Any, project: Any, learn: Any, columns_of: Any
) -> tuple[Callable[..., float], Callable[..., float]]:
    """The `forward` and `step` of the learner in the file `learner`, from what is particular to its
    sketch.
    """
    own = {"inspect": inspect, "residual_of": residual_of, "columns_of": columns_of}
    bound = jit_with(bounded, f"{learner}_bounded", inline="always", project=project, **own)
    return (
        jit_with(forward, f"{learner}_forward", **own),
        jit_with(step, f"{learner}_step", bounded=bound, learn=learn, **own),
    )


def sketch_params(q: Public) -> dict[str, Any]:
    """The entries of `Params` that all sketches share."""
    return {
        **newton_params(q),
        "sketch_size": whole(q, "sketch_size"),
        "diagonal": DIAGONAL_FORMS[q["diagonal"]],
        "project_weights": q["projection"] == "weights",
    }


def table_cost(q: Public, size: StreamSize, numbers: int) -> Cost:
    """What a learner costs whose table has so many numbers a feature, and one more if
    `diagonal`.
    """
    diagonal = bool(q["diagonal"])
    width, plain = len(shape_for(numbers + diagonal)), len(shape_for(numbers))
    floats = (size.d + width + 16) * width + diagonal * size.d
    return Cost(floats, 50 + (0.35 * size.s + 0.6 * plain + 8) * plain)
