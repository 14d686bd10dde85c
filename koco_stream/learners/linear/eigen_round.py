"""A round of a learner that steps by a function of the sketched matrix: u = w − step·f(SᵀS)g, where
f acts on the eigenvalues (eigen_sketch.py). A learner's file has its f.

The matrix has this round's gradient in it when f is applied, and if it shrinks in this round, it
has shrunk before (docs/errata.md, S21).
"""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.linear import eigen_sketch as sketch
from koco_stream.learners.linear.eigen_sketch import COEF, EACH, LAMBDA, LINE, State, Z
from koco_stream.learners.spec import Parameter, Public, StreamSize, loss_and_clip, real, whole
from koco_stream.losses import curvature_at, hinge_gap, in_doubt, loss_slope
from koco_stream.numerics.compiler import jit, jit_with
from koco_stream.numerics.instructions.feature_rows import row_at
from koco_stream.numerics.lazy_maps import end_epoch, refresh_used, scatter_lines
from koco_stream.types import Array

# As `online_newton.MOST_CLIPS`. Nothing cancels here, since a row's part outside Q is known by
# itself; and roots of eigenvalues lose half as many digits.
MOST_CLIPS, MOST_CLIPS_OF_ROOTS = 1e14, 1e24

FIRST_ALPHA = Parameter(
    "alpha", float, "α_0, the ridge before the first shrink; 0 for the pseudo-inverse", low=0
)


class Params(NamedTuple):
    """loss: its code. clip: C. curvature: of the to-sketch vectors √curvature·g, divided by √t if
    `decreasing`. step_size: the step. floor: α_0, or Ada-FD's δ. growth: the share of ρ that a
    shrink adds to it. most_clips: see `in_doubt`. project_weights: whether u is projected, or only
    its prediction truncated. sketch_size: m. buffer: b. shape: its length is W, the width of a
    line; out_shape: that of a line after a shrink.
    """

    loss: int
    clip: float
    curvature: float
    decreasing: bool
    step_size: float
    floor: float
    growth: float
    most_clips: float
    project_weights: bool
    sketch_size: int
    buffer: int
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]


def adagrad_params(q: Public, floor: str, growth: float) -> Params:
    """The parameters of a learner that steps by a root of the sketched matrix of gradients, where
    the public parameter `floor` is its floor.
    """
    return Params(
        **loss_and_clip(q),
        curvature=1.0,
        decreasing=False,
        step_size=real(q, "step_size"),
        floor=real(q, floor),
        growth=growth,
        most_clips=MOST_CLIPS_OF_ROOTS,
        project_weights=False,
        **sketch.shape_params(whole(q, "sketch_size")),
    )


def inverse(eigenvalue: float, floor: float) -> float:
    """Stands for a learner's f; `with_inverse` binds the name to it."""
    raise AssertionError("with_inverse binds this name")


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    y_hat, n2 = sketch.inspect(params, s, idx, val)
    return 0.0 if n2 == 0.0 else y_hat


def project(
    params: Params, s: State, excess: float, outside: float, exact: bool
) -> tuple[float, float]:
    """w = u − excess·A⁻¹x/(xᵀA⁻¹x), as Lemma 1 of Luo et al. has it. Returns w̄'s component of x,
    and that of `rest`, where it has what of x lies outside Q (`exact`).

    Where A is singular this is the limit of smaller and smaller ridges: w differs from u by what A
    does not weigh, if x has a part there.
    """
    a, W = s.a, len(params.shape)
    floor = float(s.floor[()])
    free = floor == 0.0 and outside > 0.0
    f_0 = 1.0 if free else inverse(0.0, floor)
    of_x = 0.0 if exact else f_0  # what all of x is multiplied by; taken back inside
    product = f_0 * outside
    for i in range(s.kept[()] + s.filled[()]):
        z = a[Z * W + i]
        f = 0.0 if free else inverse(a[LAMBDA * W + i], floor)
        product += f * z * z
        a[EACH * W + i] = (f - of_x) * z
    for i in range(s.kept[()] + s.filled[()]):
        a[EACH * W + i] *= -excess / product
    sketch.add_weights(params, s)
    return -excess / product * of_x, -excess / product * (f_0 - of_x)


def learn(
    params: Params,
    s: State,
    idx: Array,
    val: Array,
    slope: float,
    w_coef: float,
    rest_coef: float,
    outside: float,
    exact: bool,
) -> None:
    """The sketch, then the weights, for the row that was resolved last."""
    a, m, W = s.a, params.sketch_size, len(params.shape)
    t = s.t[()] + 1
    s.t[()] = t
    c = math.sqrt(curvature_at(params.curvature, params.decreasing, t)) * slope
    for k in range(W):
        a[COEF * W + k] = 0.0
    shrinks, raw = False, int(m + 1 + s.filled[()])
    if c != 0.0:
        sketch.add_row(params, s, c, outside, exact)
        shrinks = s.gradients[()] == params.buffer
        rho, kept = 0.0, int(s.kept[()] + s.filled[()])
        if shrinks:
            rho, kept = sketch.shrunk(params, s)
            s.floor[()] += params.growth * rho
        floor, step = float(s.floor[()]), params.step_size * slope
        # What a shrink leaves out is multiplied by f(0), and where features are many, what was too
        # little to be told from rounding: all of x then, which is taken back inside.
        f_0 = inverse(0.0, floor)
        of_x = f_0 if outside == 0.0 and not exact else 0.0
        for i in range(s.kept[()] + s.filled[()]):
            f = inverse(a[LAMBDA * W + i] - rho, floor) if i < kept else f_0
            a[EACH * W + i] = -step * (f - of_x) * a[Z * W + i] / c
        sketch.add_weights(params, s)
        w_coef -= step * of_x
        if shrinks:
            sketch.shrink(params, s, rho, kept)
    a[COEF * W + m] = w_coef
    coefficients = row_at(a, COEF * W, params.shape)
    scatter_lines(s.maps, s.table, params.shape, idx, val, coefficients, a[(LINE + 1) * W - 1])
    if exact and outside > 0.0:
        scale = 1.0 / math.sqrt(outside) if c != 0.0 else 0.0
        sketch.write_rest(params, s, raw, scale, rest_coef)
    if shrinks:
        n_in, n_out = sketch.map_size(params)
        s.folds[()] += end_epoch(s.maps, s.table, n_in, n_out, params.out_shape)


def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    y_hat, n2 = sketch.inspect(params, s, idx, val)
    if n2 == 0.0:
        return 0.0
    outside, exact = sketch.resolve(params, s, idx, val, n2)
    w_coef, rest_coef, excess = 0.0, 0.0, abs(y_hat) - params.clip
    if excess > 0.0:
        if math.isinf(y_hat):
            return math.nan
        nearest = math.copysign(params.clip, y_hat)
        if params.project_weights:
            w_coef, rest_coef = project(params, s, y_hat - nearest, outside, exact)
        y_hat = nearest
    slope, reach = loss_slope(params.loss, y_hat, y), s.longest_step[()] * math.sqrt(n2)
    # Only a projection puts a prediction onto a margin.
    gap = hinge_gap(params.loss, slope, y_hat, y) if params.project_weights else math.inf
    s.doubtful_rounds[()] += in_doubt(reach, excess, params.most_clips * params.clip, gap)
    length = params.step_size * abs(slope) * math.sqrt(n2) * inverse(0.0, float(s.floor[()]))
    s.longest_step[()] = max(s.longest_step[()], length)
    learn(params, s, idx, val, slope, w_coef, rest_coef, outside, exact)
    return y_hat


def with_inverse(learner: str, inverse: Callable[..., float]) -> Callable[..., float]:
    """The `step` of the learner in the file `learner`, from its f."""
    bound = {
        function.__name__: jit_with(function, f"{learner}_{function.__name__}", inverse=inverse)
        for function in (project, learn)
    }
    return jit_with(step, f"{learner}_step", inverse=inverse, **bound)


class EigenSketchLearner(Learner):
    """What the learners with this sketch share: its attributes and its memory."""

    init, forward = staticmethod(sketch.init), staticmethod(forward)

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        return sketch.sketch_floats(whole(q, "sketch_size"), size.d)

    @property
    def eigenvalues_(self) -> Array:
        """The eigenvalues (k,) of SᵀS, decreasing, k < m + b."""
        return self._lines(LAMBDA)[0, : self._directions()].copy()

    @property
    def sketch_(self) -> Array:
        """S (k, d), orthogonal lines: SᵀS has the `eigenvalues_`, k < m + b."""
        n = self._directions()
        directions = self._lines(sketch.FIRST_MATRIX)[:n] @ self._table().T
        return np.sqrt(self.eigenvalues_)[:, np.newaxis] * directions

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one."""
        return self._table() @ self._lines(sketch.BETA)[0]

    def _directions(self) -> int:
        return int(self._state.kept + self._state.filled)

    def _lines(self, first: int) -> Array:
        """The small vectors and M, a line each, from this one on."""
        return self._state.a.reshape(-1, len(self._params.shape))[first:]

    def _readable_state(self) -> State:
        # Bringing a column up to date now and again later rounds otherwise than doing it once: so
        # it is done on a copy.
        return deepcopy(self._state)

    def _table(self) -> Array:
        """The columns of R̄ (d, W), all brought up to date; the epochs are left out."""
        state, (n_in, n_out) = self._readable_state(), sketch.map_size(self._params)
        refresh_used(state.maps, state.table, n_in, n_out, self._params.out_shape)
        state.table[:, -1] = 0.0
        return state.table
