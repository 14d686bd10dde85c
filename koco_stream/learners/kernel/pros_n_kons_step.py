"""PROS-N-KONS, CON-KONS and B-KONS: exact Newton steps in the span of a dictionary.

KORS samples the dictionary, or with a threshold a row joins if k(x, x) − ‖φ̃‖² is above that share
of k(x, x): approximate linear dependence (N1). A round takes O(J² + Js) for J points and a row of s
non-zeros.

Calandriello, Lazaric, Valko: Efficient Second-Order Online Kernel Learning with Adaptive Embedding
(NIPS 2017). Labels like P3 refer to docs/errata.md. The three share their step. When a point joins,
PROS-N-KONS and B-KONS restart from ω = 0, A = αI; CON-KONS keeps both, or keeps ω and resets A to
αI.

The embedding is Lφ̃ = k with LLᵀ = K_I (P3). L is lower triangular, so a point that joins adds a
coordinate and leaves the others unchanged. Keeping the solution (P4) is then simply ω ← (ω,
0), A ← diag(A, α). A⁻¹ is stored in factors, see koco_stream.learners.kernel.inverse.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, add_point, kernel_row, panels
from koco_stream.kernels.kernel import GAUSSIAN
from koco_stream.learners.kernel import kors
from koco_stream.learners.kernel.base import append_row, count_doubt, held, note_step
from koco_stream.learners.kernel.inverse import (
    LOST,
    OMEGA,
    PHI,
    U,
    absorb,
    add_coordinate,
    blur_of,
    spread_of,
)
from koco_stream.losses import curvature_at, hinge_gap, loss_slope
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import BLOCK, add_scaled, panel_dot, substitute
from koco_stream.types import Array

# A point whose pivot k(x, x) − ‖φ̃‖² is below this share of k(x, x) adds no coordinate (P3).
NO_COORDINATE = 1e-12
ROUNDING = 1e-15  # the share of a sum's terms by which rounding may move it
MOST_CLIPS = 1e9  # as `losses.MOST_CLIPS`, in explicit coordinates
# What A⁻¹ in factors leaves of the length of a step for rounding, as a share of the largest
# √k(x_i, x_i)/pivot_i, as measured. Without a coin and with that below √WELL no step is too long.
LEFT, WELL = 1e-5, 1e4
BOTH, WEIGHTS, NOTHING = range(3)  # codes of `carry`


class Params(NamedTuple):
    """Parameters of the compiled step.

    loss: its code. alpha: α. clip: C. curvature: the coefficient of g gᵀ in A, and the code of its
    schedule. kors: KORS's parameters. threshold: of approximate linear dependence; 0 if KORS
    decides. carry: what stays when a point joins: A and ω, ω, or neither, so that A = αI and ω = 0.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    curvature_schedule: int
    kors: kors.Params
    threshold: float = 0.0
    carry: int = NOTHING


class State(NamedTuple):
    """The state of PROS-N-KONS, CON-KONS or B-KONS.

    kors: the dictionary's state. L, factor (panels, room, 16): L and U by columns. a (8, room): see
    `inverse`. most_lost: () the largest k(x_i, x_i)/pivot_i². restarts, doubtful_rounds: () how
    often. longest_step: () so far.
    """

    kors: kors.State
    L: Array
    factor: Array
    a: Array
    most_lost: Array
    restarts: Array
    doubtful_rounds: Array
    longest_step: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: an empty dictionary and ω = 0."""
    return State(
        kors=kors.init(params.kors, n_features, seed),
        L=panels(FIRST_ROOM, FIRST_ROOM),
        factor=panels(FIRST_ROOM, FIRST_ROOM),
        a=np.zeros((LOST + 1, FIRST_ROOM)),
        most_lost=np.ones(()),
        restarts=np.zeros((), np.int64),
        doubtful_rounds=np.zeros((), np.int64),
        longest_step=np.zeros(()),
    )


@inlined
def inspect(params: Params, s: State, idx: Array, val: Array) -> tuple[float, float, float]:
    """Poster, line 11: the embedding φ̃ = L⁻¹k of the row x = (idx, val); returns ṽᵀφ̃, k(x, x) and
    ‖x‖².

    Leaves k and φ̃ in the scratch lines of the state, in which ω is ṽ between rounds (line 12).
    """
    n, k, phi = int(s.kors.points.n[()]), s.kors.a[kors.K], s.a[PHI]
    k_tt, n2 = kernel_row(params.kors.kernel, s.kors.points, idx, val, k)
    substitute(s.L, 0, n, k, phi)
    if params.kors.kernel.kind != GAUSSIAN:
        drop_rounding(s, n, k, phi)
    return panel_dot(s.a[OMEGA], 0, phi, 0, n), k_tt, n2


@jit
def drop_rounding(s: State, n: int, k: Array, phi: Array) -> None:
    """Let 0 be what rounding has made of coordinates that are 0 (P9).

    That of (k_p − Σ L_pj φ̃_j)/L_pp is a share of the sizes of its terms, of which the lengths of
    φ̃ and of L's row are a bound that costs nothing.
    """
    length2 = panel_dot(phi, 0, phi, 0, n)
    for p in range(n):
        if phi[p] != 0.0 and phi[p] * phi[p] <= ROUNDING * ROUNDING * 4.0 * length2 * s.a[LOST, p]:
            size = abs(k[p])
            for j in range(p):
                size += abs(s.L[p // BLOCK, j, p % BLOCK] * phi[j])
            if abs(phi[p]) <= ROUNDING * size * s.L[p // BLOCK, p, p % BLOCK]:
                phi[p] = 0.0


@inlined
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    return inspect(params, s, idx, val)[0]


@inlined
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """Poster, lines 4 to 17: one round on the row (idx, val) with label y; returns ỹ.

    Ã⁻¹φ̃ is u/(1 + c²xAx) after line 17, with u = Ã⁻¹φ̃ before it.
    """
    n = int(s.kors.points.n[()])
    z, k_tt, n2 = inspect(params, s, idx, val)
    joins, by_rounding = offer(params, s, k_tt)
    xAx, n2_phi = spread_of(s.factor, s.a, s.a[PHI], n), panel_dot(s.a[PHI], 0, s.a[PHI], 0, n)
    y_hat = held(z, params.clip)  # line 15, after the projection
    along = 0.0 if y_hat == z else (y_hat - z) / xAx  # line 13: ω̃ = ṽ + along·u
    slope = loss_slope(params.loss, y_hat, y)  # line 16: g̃ = slope·φ̃
    c2 = curvature_at(params.curvature, params.curvature_schedule, s.kors.t[()]) * slope * slope
    shrink = 1.0 / (1.0 + c2 * xAx)
    absorb(s.factor, s.a, n, c2)  # line 17
    blur = 2.0 * blur_of(s.a, n, params.alpha)
    if by_rounding and decides(params, s, k_tt):
        blur = math.inf
    well = params.threshold > 0.0 and s.most_lost[()] < WELL
    left = 0.0 if well else LEFT * math.sqrt(s.most_lost[()])
    gap = hinge_gap(params.loss, slope, y_hat, y)
    count_doubt(s, left * left * n2_phi, z, params.clip, gap, blur, MOST_CLIPS)
    note_step(s, slope, shrink, along, n2_phi, params.alpha)
    add_scaled(along - slope * shrink, s.a[U], 0, s.a[OMEGA], 0, n)  # the next round's line 12
    if joins:
        enter(params, s, k_tt)
        if params.threshold > 0.0:
            add_point(s.kors.points, n, idx, val, n2, s.kors.t[()])
        else:
            kors.join(params.kors, s.kors, idx, val, k_tt, n2)
    return y_hat if math.isfinite(k_tt) else math.nan


@inlined
def offer(params: Params, s: State, k_tt: float) -> tuple[bool, bool]:
    """Poster, lines 4 and 5: whether the row joins the dictionary, by KORS's coin or by the
    threshold (N1), and whether rounding may have decided the coin.
    """
    if params.threshold == 0.0:
        return kors.offer(params.kors, s.kors, k_tt)
    n, phi = int(s.kors.points.n[()]), s.a[PHI]
    joins = k_tt - panel_dot(phi, 0, phi, 0, n) > params.threshold * k_tt
    s.kors.t[()] += 1
    s.kors.inclusion_probability[()] = 1.0 if joins else 0.0
    s.kors.included[()] = joins
    return joins, False


@inlined
def decides(params: Params, s: State, k_tt: float) -> bool:
    """Whether KORS's coin decides predictions: a point in the span of the others adds no
    coordinate, so that it changes nothing where all is carried.
    """
    n, phi = int(s.kors.points.n[()]), s.a[PHI]
    return params.carry != BOTH or k_tt - panel_dot(phi, 0, phi, 0, n) > NO_COORDINATE * k_tt


@jit
def enter(params: Params, s: State, k_tt: float) -> None:
    """Poster, lines 6 to 9 of the next round: the embedding has a coordinate for this round's row,
    and ω̃ = 0, Ã = αI where the learner restarts (P3, P4).
    """
    n, phi = int(s.kors.points.n[()]), s.a[PHI]
    pivot2 = k_tt - panel_dot(phi, 0, phi, 0, n)
    if pivot2 > NO_COORDINATE * k_tt:
        append_row(s.L, n, phi, 1.0, math.sqrt(pivot2))
        s.a[LOST, n] = k_tt / pivot2
        s.most_lost[()] = max(s.most_lost[()], k_tt / pivot2)
    if params.carry == NOTHING:
        s.restarts[()] += 1
        s.longest_step[()] = 0.0
        s.a[OMEGA, :n] = 0.0
    if params.carry != BOTH:
        s.factor[:, :n] = 0.0
        for i in range(n):
            add_coordinate(s.factor, s.a, i, 1.0 / params.alpha)
    add_coordinate(s.factor, s.a, n, 1.0 / params.alpha)
