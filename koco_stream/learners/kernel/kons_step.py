"""The step of KONS and Sketched-KONS: the kernel online Newton step.

It takes O(B² + t) per round for B points in the sketch, besides the kernel values.

Calandriello, Lazaric, Valko (ICML 2017), Algorithms 1 and 3. Labels like K4 refer to
docs/errata.md. KONS is the special case in which the sketch contains all points.

The weights are w_t = A⁻¹ Σ_s c_s φ_s minus the projection, with coefficients on φ (K2, K3). With D
= diag(ġ_i√η_i) over the sketch's points and LLᵀ and v as in koco_stream.learners.kernel.sketch:
φᵀÃ⁻¹φ = (k(x, x) − ‖v‖²)/α, and y̆ is vᵀb with Lb = D⁻¹c over the sketch's points, plus (kᵀc −
vᵀs)/α with Ls = DKc over the other rows (K4). A point that joins adds a row to L and numbers to b
and s. KORS sees ġ_t√η_t φ_t (K5) and has a sketch of its own.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.kernels.earlier_rows import History, no_rows
from koco_stream.kernels.kernel import Kernel
from koco_stream.learners.kernel import sketch
from koco_stream.learners.kernel.base import LEAST, count_doubt, held, note_step
from koco_stream.learners.kernel.sketch import B, S, Sketch, V, solve
from koco_stream.losses import curvature_at, hinge_gap, loss_slope
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.instructions.point_panels import BLOCK, add_scaled, panel_dot
from koco_stream.numerics.random import uniform
from koco_stream.types import Array


class Params(NamedTuple):
    """Parameters of the compiled step: the loss's code, α, the clip C, the curvature η (divided by
    √t if `decreasing`), the kernel, whether all points join (`exact`, KONS), the estimate's factor
    (1 + ε or 1 − ε), β, and the smallest probability (`floor`, the paper's γ).
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    kernel: Kernel
    exact: bool
    factor: float
    beta: float
    floor: float


class State(NamedTuple):
    """The state of KONS, Sketched-KONS or KAWV.

    t: () rounds. doubtful_rounds: () how often. longest_step: () so far. seed: () of the coins.
    history: the rows. c (room of rows,): coefficients of those that are not in the sketch. sums (2,
    16): Σ c_s k(x_s, x_r) over the rows before the tile, over even s and over odd s. sketch, kors:
    the sampled points. Of the last round, () each: inclusion_probability, included, in_kors
    (whether KORS took it), dictionary_size.
    """

    t: Array
    doubtful_rounds: Array
    longest_step: Array
    seed: Array
    history: History
    c: Array
    sums: Array
    sketch: Sketch
    kors: Sketch
    inclusion_probability: Array
    included: Array
    in_kors: Array
    dictionary_size: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: c = 0 and no points."""
    return State(
        t=np.zeros((), np.int64),
        doubtful_rounds=np.zeros((), np.int64),
        longest_step=np.zeros(()),
        seed=np.array(seed, np.uint64),
        history=no_rows(),
        c=np.zeros(0),
        sums=np.zeros((2, BLOCK)),
        sketch=sketch.no_points(),
        kors=sketch.no_points(),
        inclusion_probability=np.zeros(()),
        included=np.zeros((), np.int64),
        in_kors=np.zeros((), np.int64),
        dictionary_size=np.zeros((), np.int64),
    )


def with_room(params: Params, s: State) -> State:
    return s._replace(sketch=sketch.with_room(s.sketch), kors=sketch.with_room(s.kors))


@inlined
def look_ahead(params: Params, s: State, tile: Array, rows: int) -> None:
    sketch.look_ahead(s.sketch, tile, rows)
    if not params.exact:
        sketch.look_ahead(s.kors, tile, rows)


@inlined
def expansion(s: State, tile: Array, r: int, first: int) -> float:
    """kᵀc for row r of the tile, whose first row is number `first`; c of this round is still 0."""
    even, odd = s.sums[0, r], s.sums[1, r]
    for i in range(first, s.t[()]):
        if i % 2 == 0:
            even += tile[i, r] * s.c[i]
        else:
            odd += tile[i, r] * s.c[i]
    return even + odd


@inlined
def breve(
    params: Params, s: State, tile: Array, r: int, first: int, k_tt: float
) -> tuple[float, float, float]:
    """Sketched-KONS, lines 5 and 6: y̆ for row r of the tile, what of it is of rows that are not
    in the sketch (K4), and q = α·φᵀÃ⁻¹φ. Leaves v in the sketch's scratch.
    """
    a, n = s.sketch.a, int(s.sketch.n[()])
    q = solve(s.sketch, tile, r, k_tt)
    others = (expansion(s, tile, r, first) - panel_dot(a[V], 0, a[S], 0, n)) / params.alpha
    return panel_dot(a[V], 0, a[B], 0, n) + others, others, q


@inlined
def forward(params: Params, s: State, tile: Array, r: int, first: int, k_tt: float) -> float:
    return breve(params, s, tile, r, first, k_tt)[0]


@inlined
def step(params: Params, s: State, tile: Array, r: int, first: int, k_tt: float, y: float) -> float:
    """Sketched-KONS, lines 4 to 11, on row r of the tile with label y; returns the prediction ỹ."""
    t = s.t[()] + 1
    s.t[()] = t
    s.inclusion_probability[()] = 1.0 if params.exact else params.floor
    s.included[()] = s.in_kors[()] = False
    if k_tt == 0.0:
        return 0.0  # φ = 0: the row has no effect
    y_breve, others, q = breve(params, s, tile, r, first, k_tt)
    y_hat = held(y_breve, params.clip)  # line 7: ỹ = y̆ − h(y̆)
    if not q > LEAST * k_tt:
        s.doubtful_rounds[()] += 1
        return y_hat
    slope = loss_slope(params.loss, y_hat, y)
    count_doubt(s, k_tt, y_breve, params.clip, hinge_gap(params.loss, slope, y_hat, y))
    g = math.sqrt(curvature_at(params.curvature, params.decreasing, t)) * slope
    joins = params.exact or sampled(params, s, tile, r, t, g, k_tt)
    s.included[()] = joins
    along = (y_breve - y_hat) * params.alpha / q
    shrink = params.alpha / (params.alpha + g * g * q) if joins else 1.0
    note_step(s, slope, shrink, along, k_tt, params.alpha)
    learn(params, s, t, joins, slope, g, y_breve - y_hat, others, q)
    return y_hat


@inlined
def sampled(params: Params, s: State, tile: Array, r: int, t: int, g: float, k_tt: float) -> bool:
    """Sketched-KONS, lines 8 to 10: whether row r of the tile, that of round t, joins the sketch.

    One coin decides for the sketch and for KORS, which sees ġ_t√η_t φ_t and has the ridge α (K5,
    equation 4).
    """
    q = max(solve(s.kors, tile, r, k_tt), 0.0)
    share = g * g * q / (params.alpha + g * g * q)
    p = min(params.beta * params.factor * share, 1.0)
    coin = uniform(s.seed[()], t)
    s.inclusion_probability[()] = max(p, params.floor)
    s.in_kors[()] = coin < p
    if coin < p:  # with the weight 1/p; the row is the sketch's next point too
        sketch.add_point(s.kors, t, g / math.sqrt(p), params.alpha, q)
    return coin < max(p, params.floor)


@inlined
def learn(
    params: Params,
    s: State,
    t: int,
    joins: bool,
    slope: float,
    g: float,
    h: float,
    others: float,
    q: float,
) -> None:
    """Sketched-KONS, line 11, and c_t = z η ġ² ỹ − ġ − h/(φᵀÃ⁻¹φ), with h/(φᵀÃ⁻¹φ) = hα/q (K3)."""
    a, n = s.sketch.a, int(s.sketch.n[()])
    if joins and g * g > 0.0:  # a zero gradient adds nothing and no point
        pivot = sketch.add_point(s.sketch, t, g, params.alpha, q)
        a[S, n] = params.alpha * g * others / pivot
        a[B, n] = (g * others - slope / g) / pivot - h * pivot / (q * g)
        s.dictionary_size[()] = n + 1
    else:
        s.c[t - 1] = -slope - h * params.alpha / q
        add_scaled(s.c[t - 1], a[V], 0, a[S], 0, n)
