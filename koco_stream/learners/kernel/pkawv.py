"""PKAWV: kernel ridge regression in the span of KORS's dictionary, over all past rows.

Jézéquel, Gaillard, Rudi: Efficient online learning with kernels for adversarial large scale
problems (NeurIPS 2019). Labels like V3 refer to docs/errata.md. In round t the prediction is f(x_t)
of the f in the dictionary's span with the least Σ_{s<t} (f(x_s) − y_s)² + f(x_t)² + α‖f‖².

The embedding is φ̃ = L⁻¹k with LLᵀ = K_I + ρ diag K_I (V4). With A = αI + Σ_{s<t} φ̃_sφ̃_sᵀ and ω =
A⁻¹ Σ_{s<t} y_sφ̃_s, this is ŷ = φ̃ᵀω/(1 + φ̃ᵀA⁻¹φ̃). A⁻¹ is stored in factors, see
koco_stream.learners.kernel.inverse: a round takes O(J²) for J points.
A row that joins does so before its prediction (V3). It adds a coordinate z_s to all past rows, in
O(t(J + s)). With c = A⁻¹ Σ z_sφ̃_s and S = α(1 + ‖c‖²) + Σ (z_s − cᵀφ̃_s)², a sum of positive terms,
A⁻¹ gains (c, −1)(c, −1)ᵀ/S, and ω gains −γ(c, −1) with γ = Σ y_s (z_s − cᵀφ̃_s)/S.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.kernels import earlier_rows
from koco_stream.kernels.dictionary import FIRST_ROOM, kernel_row, panels
from koco_stream.kernels.earlier_rows import PastRows
from koco_stream.learners.kernel import inverse, kors
from koco_stream.learners.kernel.base import append_row, capacity, count_doubt, held, note_step
from koco_stream.learners.kernel.inverse import (
    DF,
    LOST,
    OMEGA,
    PHI,
    D,
    F,
    SpanLearner,
    U,
    absorb,
    blur_of,
    spread_of,
)
from koco_stream.learners.spec import ALPHA, KERNEL_SHAPE, SAMPLING, SHARED, Public, StreamSize
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import (
    BLOCK,
    add_scaled,
    apply,
    panel_dot,
    substitute,
)
from koco_stream.numerics.random import uniform
from koco_stream.types import Array

# Lines of `a` besides those of `inverse`: Σ z_sφ̃_s and (c, −1).
SUMS, C = LOST + 1, LOST + 2
# As `losses.MOST_CLIPS`, measured here: what is learnt does not depend on predictions, so that no
# error grows from round to round.
MOST_CLIPS = 5e9
LEFT = 0.005  # as `pros_n_kons.LEFT`
JITTER = 1e-12  # ρ, the share of k(x, x) that is added to a point's diagonal entry of K_I (V4)


class Params(NamedTuple):
    """loss: of the measured loss. clip: C. alpha: α. kors: KORS's parameters."""

    loss: int
    clip: float
    alpha: float
    kors: kors.Params


class State(NamedTuple):
    """kors: the dictionary's state. past: the rows so far. L, factor (panels, room, 16): L and U by
    columns. a (10, room + 16): see above; a row to predict may need one more coordinate.
    doubtful_rounds: () how often. longest_step: () so far.
    """

    kors: kors.State
    past: PastRows
    L: Array
    factor: Array
    a: Array
    doubtful_rounds: Array
    longest_step: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: an empty dictionary and no rows."""
    return State(
        kors=kors.init(params.kors, n_features, seed),
        past=earlier_rows.no_past(n_features),
        L=panels(FIRST_ROOM, FIRST_ROOM),
        factor=panels(FIRST_ROOM, FIRST_ROOM),
        a=np.zeros((C + 1, FIRST_ROOM + BLOCK)),
        doubtful_rounds=np.zeros((), np.int64),
        longest_step=np.zeros(()),
    )


def enlarge(params: Params, s: State, features: int) -> State:
    s = inverse.enlarge(params, s, features)
    return s._replace(past=earlier_rows.more_past(s.past, features, s.L.shape[1]))


@inlined
def full(params: Params, s: State, features: int) -> bool:
    return inverse.full(params, s, features) or earlier_rows.lacks_past(s.past, features)


class Row(NamedTuple):
    """What is known of a row before its prediction: ωᵀφ̃ and φ̃ᵀA⁻¹φ̃, the number n of its
    coordinates, and if it joins, the pivot of K_I, S, γ and (c, −1)ᵀφ̃.
    """

    f: float
    spread: float
    n: int
    pivot: float
    S: float
    gain: float
    along: float


@jit
def inspect(
    params: Params, s: State, idx: Array, val: Array, k_tt: float, n2: float, joins: bool
) -> Row:
    """What is known of the row (idx, val), in the span that it enlarges if it joins.

    The row's kernel values and φ̃ are in the scratch. Leaves φ̃, Uᵀφ̃ and (c, −1) there, and the
    coordinate that it adds to past rows.
    """
    n, phi, c = int(s.kors.points.n[()]), s.a[PHI], s.a[C]
    f = panel_dot(s.a[OMEGA], 0, phi, 0, n)
    if not joins:
        spread = spread_of(s.factor, s.a, phi, n)
        return Row(f, spread, n, 0.0, params.alpha, 0.0, 0.0)
    rest = max(k_tt - panel_dot(phi, 0, phi, 0, n), 0.0)
    pivot = math.sqrt(rest + JITTER * k_tt)
    earlier_rows.values_with_past(s.past, params.kors.kernel, idx, val, n2)
    earlier_rows.new_coordinates(s.past, phi, n, pivot, s.a[SUMS])
    spread_of(s.factor, s.a, s.a[SUMS], n)
    apply(s.factor, s.a[DF], n, c, n)
    squares, labels = earlier_rows.unexplained(s.past, c, n)
    S = params.alpha * (1.0 + panel_dot(c, 0, c, 0, n)) + squares
    phi[n], c[n] = rest / pivot, -1.0
    along, gain = panel_dot(c, 0, phi, 0, n + 1), labels / S
    spread = spread_of(s.factor, s.a, phi, n) + along * (along / S)
    return Row(f - gain * along, spread, n + 1, pivot, S, gain, along)


@inlined
def embedded(params: Params, s: State, idx: Array, val: Array) -> tuple[float, float]:
    """k(x, x) and ‖x‖² of the row x = (idx, val). Leaves its kernel values and φ̃ in the scratch."""
    k = s.kors.a[kors.K]
    k_tt, n2 = kernel_row(params.kors.kernel, s.kors.points, idx, val, k)
    substitute(s.L, 0, int(s.kors.points.n[()]), k, s.a[PHI])
    return k_tt, n2


@inlined
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    """The prediction for the row (idx, val) in the next round, with the coin of that round, before
    it is truncated to [−C, C]. Does not learn.
    """
    k_tt, n2 = embedded(params, s, idx, val)
    coin = uniform(s.kors.seed[()], s.kors.t[()] + 1)
    p, _ = kors.probability(params.kors, s.kors, k_tt)
    row = inspect(params, s, idx, val, k_tt, n2, coin < p)
    return row.f / (1.0 + row.spread)


@inlined
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    k_tt, n2 = embedded(params, s, idx, val)
    joins, by_rounding = kors.offer(params.kors, s.kors, k_tt)
    if k_tt == 0.0:
        return 0.0  # φ = 0: the row has no effect
    row = inspect(params, s, idx, val, k_tt, n2, joins)
    y_hat = row.f / (1.0 + row.spread)
    if joins:
        enter(params, s, row, k_tt)
        kors.join(params.kors, s.kors, idx, val, k_tt, n2)
    absorb(s.factor, s.a, row.n, 1.0)
    blur = 0.2 * blur_of(s.a, row.n, params.alpha)
    blur = math.inf if by_rounding else blur
    count_doubt(s, LEFT * LEFT * k_tt, y_hat, params.clip, blur=blur, most=MOST_CLIPS)
    note_step(s, y - row.f, 1.0 / (1.0 + row.spread), 0.0, k_tt, params.alpha)
    add_scaled((y - row.f) / (1.0 + row.spread), s.a[U], 0, s.a[OMEGA], 0, row.n)
    earlier_rows.append(s.past, idx, val, n2, s.a[PHI], row.n, y)
    return held(y_hat, params.clip) if math.isfinite(k_tt) else math.nan


@jit
def enter(params: Params, s: State, row: Row, k_tt: float) -> None:
    """Add the coordinate of this round's row to the embedding, A⁻¹, ω and the past rows."""
    append_row(s.L, row.n - 1, s.a[PHI], 1.0, row.pivot)
    s.a[LOST, row.n - 1] = k_tt / (row.pivot * row.pivot)
    for i in range(row.n):
        s.factor[i // BLOCK, row.n - 1, i % BLOCK] = -s.a[C, i]
    s.a[D, row.n - 1] = 1.0 / row.S
    s.a[F, row.n - 1], s.a[DF, row.n - 1] = -row.along, -row.along / row.S
    add_scaled(-row.gain, s.a[C], 0, s.a[OMEGA], 0, row.n)
    earlier_rows.store_new_coordinates(s.past, row.n - 1)


class PKAWV(SpanLearner):
    """The kernel ridge forecaster in the span of KORS's dictionary, in O(J² + Js) a round.

    It learns by least squares with ridge α from all rows so far, and adds this round's row with the
    label 0 before it predicts. A round takes O(J²), one in which a point joins O(t(J + s)).

    Notes
    -----
    PKAWV of Jézéquel, Gaillard, Rudi (NeurIPS 2019).
    """

    parameters = (*SHARED, ALPHA, *SAMPLING, *KERNEL_SHAPE)
    params_type = Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    full, enlarge = staticmethod(full), staticmethod(enlarge)

    def __init__(
        self,
        alpha: float = 1.0,
        ridge: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
        kernel: str = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        rows = capacity(size.rounds)
        coordinates = int(1.5 * rows * rows + rows * (6 + 3.0 * size.s)) + size.d
        return super().floats(q, size) + coordinates
