"""The step of KONS and Sketched-KONS: the kernel online Newton step.

It takes O(B² + t) per round for B points in the sketch, besides the kernel values.

Calandriello, Lazaric, Valko (ICML 2017), Algorithms 1 and 3. Labels like K4 refer to
docs/errata.md. KONS is the special case in which the sketch contains all points.

The weights are w_t = A⁻¹ Σ_s c_s φ_s minus the projection, with coefficients on φ (K2, K3). With D
= diag(ġ_i√η_i) over the sketch's points, LLᵀ = DKD + αI and Lv = Dk: φᵀÃ⁻¹φ = (k(x, x) − ‖v‖²)/α,
and y̆ is vᵀb with Lb = D⁻¹c over the sketch's points, plus (kᵀc − vᵀs)/α with Ls = DKc over the
other rows (K4). A point that joins adds a row to L and numbers to b and s. KORS sees ġ_t√η_t φ_t
(K5) and has a factor of its own.

A round reads its kernel values from a tile (see koco_stream.kernels.earlier_rows), whose rows are
those of the stream. L is read from memory once for all rows of a tile, for the points that were
there before them. A round adds the points that have joined since, in the same order of sums.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, more_room, padded, panels
from koco_stream.kernels.earlier_rows import History, no_rows
from koco_stream.kernels.kernel import Kernel
from koco_stream.learners.growth import Growth, Sampling
from koco_stream.learners.kernel.base import (
    EVERY_ROW,
    LEAST,
    PLANNED_POINTS,
    SPARE,
    USUAL_POINTS,
    append_row,
    capacity,
    count_doubt,
    held,
    kernel_of,
    note_step,
    sampling_of,
)
from koco_stream.learners.kernel.kors import estimate_factor
from koco_stream.learners.shared_kernel_scan import SharedKernelLearner, kernel_values
from koco_stream.learners.spec import Cost, Public, StreamSize, newton_params, real
from koco_stream.losses import LOSSES, OF_REAL_LABELS, curvature_at, hinge_gap, loss_slope
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.instructions.point_panels import (
    BLOCK,
    add_scaled,
    panel_dot,
    substitute,
    substitute_tile,
)
from koco_stream.numerics.random import uniform
from koco_stream.types import Array

# Lines of `a` (sketch's points): Dk, v, s, b. Lines of `b` (KORS's points): Dk, v.
K, V, S, B = range(4)

FEWEST = 4  # rows of a tile for which reading L once for all is faster than for each


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


class Samples(NamedTuple):
    """The points of a sampled dictionary.

    n: () points. rows (room,): their row numbers. scales (room,): ġ_p√η_p, for KORS times the
    square root of the weight. L (panels, room, 16), by columns. Of the present tile, empty before
    the first one: known (1,): the number of points before it, or 0 if nothing is computed for all
    its rows; ahead (room, 16): v of its rows with these points.
    """

    n: Array
    rows: Array
    scales: Array
    L: Array
    known: Array
    ahead: Array


class State(NamedTuple):
    """The state of KONS or Sketched-KONS.

    t: () rounds. doubtful_rounds: () how often. longest_step: () so far. seed: () of the coins.
    history: the rows. c (room of rows,): coefficients of those that are not in the sketch. sums (2,
    16): Σ c_s k(x_s, x_r) over the rows before the block, over even s and over odd s. sketch, kors:
    the dictionaries. a (4, room), b (2, room): see above. Of the last round, () each:
    inclusion_probability, included, in_kors (whether KORS took it), dictionary_size.
    """

    t: Array
    doubtful_rounds: Array
    longest_step: Array
    seed: Array
    history: History
    c: Array
    sums: Array
    sketch: Samples
    kors: Samples
    a: Array
    b: Array
    inclusion_probability: Array
    included: Array
    in_kors: Array
    dictionary_size: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: c = 0 and empty dictionaries."""
    return State(
        t=np.zeros((), np.int64),
        doubtful_rounds=np.zeros((), np.int64),
        longest_step=np.zeros(()),
        seed=np.array(seed, np.uint64),
        history=no_rows(),
        c=np.zeros(0),
        sums=np.zeros((2, BLOCK)),
        sketch=_no_samples(),
        kors=_no_samples(),
        a=np.zeros((4, FIRST_ROOM)),
        b=np.zeros((2, FIRST_ROOM)),
        inclusion_probability=np.zeros(()),
        included=np.zeros((), np.int64),
        in_kors=np.zeros((), np.int64),
        dictionary_size=np.zeros((), np.int64),
    )


def _no_samples() -> Samples:
    return Samples(
        n=np.zeros((), np.int64),
        rows=np.zeros(FIRST_ROOM, np.int64),
        scales=np.zeros(FIRST_ROOM),
        L=panels(FIRST_ROOM, FIRST_ROOM),
        known=np.zeros(0, np.int64),
        ahead=np.zeros((0, BLOCK)),
    )


def with_room(params: Params, s: State) -> State:
    """The same state with room for one more block, and for the points that join from it."""
    sketch, kors = _enlarged(s.sketch), _enlarged(s.kors)
    if sketch is s.sketch and kors is s.kors:
        return s
    return s._replace(
        sketch=sketch,
        kors=kors,
        a=padded(s.a, len(s.a), sketch.rows.size),
        b=padded(s.b, len(s.b), kors.rows.size),
    )


def _enlarged(samples: Samples) -> Samples:
    room = samples.rows.size
    if samples.n[()] + BLOCK > room:
        room = more_room(room)
        samples = samples._replace(
            rows=padded(samples.rows, room),
            scales=padded(samples.scales, room),
            L=padded(samples.L, room // BLOCK, room, BLOCK),
        )
    if len(samples.ahead) == room:
        return samples
    return samples._replace(known=np.zeros(1, np.int64), ahead=np.zeros((room, BLOCK)))


def joined(s: State) -> Array:
    """The rounds in which the dictionary's points joined, increasing."""
    return s.sketch.rows[: int(s.sketch.n)] + 1


@inlined
def look_ahead(params: Params, s: State, tile: Array, rows: int) -> None:
    """Compute v of all rows of the tile, of which there are `rows`, with the points."""
    _look_ahead(s.sketch, tile, rows)
    if not params.exact:
        _look_ahead(s.kors, tile, rows)


@inlined
def _look_ahead(d: Samples, tile: Array, rows: int) -> None:
    n = int(d.n[()])
    d.known[0] = n if rows >= FEWEST else 0
    if d.known[0] > 0:
        for p in range(n):
            for row in range(BLOCK):
                d.ahead[p, row] = d.scales[p] * tile[d.rows[p], row]
        substitute_tile(d.L, n, d.ahead)


@inlined
def solve(d: Samples, tile: Array, r: int, k: Array, v: Array) -> None:
    """Solve Lv = Dk for row r of the tile. Leaves Dk of the points that are new in it in k."""
    n, known = int(d.n[()]), int(d.known[0])
    whole = known - known % BLOCK  # points join the next panel
    for p in range(whole):
        v[p] = d.ahead[p, r]
    for p in range(whole, n):
        k[p] = d.scales[p] * tile[d.rows[p], r]
    substitute(d.L, whole, n, k, v)


@inlined
def expansion(s: State, tile: Array, r: int, block: int) -> float:
    """kᵀc for row r of the tile, whose block begins at row `block`.

    The coefficient c of this round is still 0.
    """
    even, odd = s.sums[0, r], s.sums[1, r]
    for i in range(block, s.t[()]):
        if i % 2 == 0:
            even += tile[i, r] * s.c[i]
        else:
            odd += tile[i, r] * s.c[i]
    return even + odd


@inlined
def breve(params: Params, s: State, tile: Array, r: int, block: int) -> tuple[float, float]:
    """y̆ for row r of the tile, whose block begins at row `block`, and what of it comes from rows
    that are not in the sketch (K4). Leaves v in the scratch.
    """
    n, v = int(s.sketch.n[()]), s.a[V]
    solve(s.sketch, tile, r, s.a[K], v)
    others = (expansion(s, tile, r, block) - panel_dot(v, 0, s.a[S], 0, n)) / params.alpha
    return panel_dot(v, 0, s.a[B], 0, n) + others, others


@inlined
def forward(params: Params, s: State, tile: Array, r: int, block: int, k_tt: float) -> float:
    """The prediction y̆ for row r of the tile, before it is truncated to [−C, C].

    Does not learn.
    """
    return breve(params, s, tile, r, block)[0]


@inlined
def step(params: Params, s: State, tile: Array, r: int, block: int, k_tt: float, y: float) -> float:
    """One round of Algorithm 3 on row r of the tile, with label y. Updates `s`; returns the
    prediction ỹ.
    """
    t = s.t[()] + 1
    s.t[()] = t
    s.inclusion_probability[()] = 1.0 if params.exact else params.floor
    s.included[()] = s.in_kors[()] = False
    if k_tt == 0.0:
        return 0.0  # φ = 0: the row has no effect

    # Lines 4 to 7: ỹ = y̆ − h(y̆).
    y_breve, others = breve(params, s, tile, r, block)
    y_hat = held(y_breve, params.clip)
    q = residual(s.sketch.n[()], s.a[V], k_tt)
    if not q > LEAST * k_tt:
        s.doubtful_rounds[()] += 1
        return y_hat
    slope = loss_slope(params.loss, y_hat, y)
    count_doubt(s, k_tt, y_breve, params.clip, hinge_gap(params.loss, slope, y_hat, y))
    eta = curvature_at(params.curvature, params.decreasing, t)
    g = math.sqrt(eta) * slope

    # Lines 8 to 11. K3: c_t = z η ġ² ỹ − ġ − h/(φᵀÃ⁻¹φ), with h/(φᵀÃ⁻¹φ) = (y̆ − ỹ)α/q.
    joins = params.exact or sampled(params, s, tile, r, t, g, k_tt)
    s.included[()] = joins
    along = (y_breve - y_hat) * params.alpha / q
    shrink = params.alpha / (params.alpha + g * g * q) if joins else 1.0
    note_step(s, slope, shrink, along, k_tt, params.alpha)
    n = int(s.sketch.n[()])
    if joins and g * g > 0.0:  # a zero gradient adds nothing and no point
        pivot = add_sample(params, s.sketch, t, g, s.a[V], q)
        s.a[S, n] = params.alpha * g * others / pivot
        s.a[B, n] = (g * others - slope / g) / pivot - (y_breve - y_hat) * pivot / (q * g)
        s.dictionary_size[()] = n + 1
    else:
        s.c[t - 1] = -slope - along
        add_scaled(s.c[t - 1], s.a[V], 0, s.a[S], 0, n)
    return y_hat


@inlined
def residual(n: int, v: Array, k_tt: float) -> float:
    """k(x, x) − ‖v‖² = α·φᵀÃ⁻¹φ over n points."""
    return k_tt - panel_dot(v, 0, v, 0, n)


@inlined
def sampled(params: Params, s: State, tile: Array, r: int, t: int, g: float, k_tt: float) -> bool:
    """Whether row r of the tile, that of round t, joins the sketch (lines 8 to 10 of Algorithm 3).

    One coin decides for the sketch and for KORS, which sees ġ_t√η_t φ_t and has the ridge α (K5,
    equation 4).
    """
    v = s.b[V]
    solve(s.kors, tile, r, s.b[K], v)
    q = max(residual(s.kors.n[()], v, k_tt), 0.0)
    share = g * g * q / (params.alpha + g * g * q)
    p = min(params.beta * params.factor * share, 1.0)
    coin = uniform(s.seed[()], t)
    s.inclusion_probability[()] = max(p, params.floor)
    s.in_kors[()] = coin < p
    if coin < p:  # with the weight 1/p; the row is the sketch's next point too
        add_sample(params, s.kors, t, g / math.sqrt(p), v, q)
    return coin < max(p, params.floor)


@inlined
def add_sample(params: Params, d: Samples, t: int, scale: float, v: Array, q: float) -> float:
    """Add the row of round t to a dictionary, whose L gains a row. Returns the pivot of L."""
    n = int(d.n[()])
    pivot = math.sqrt(scale * scale * q + params.alpha)
    append_row(d.L, n, v, scale, pivot)
    d.rows[n] = t - 1
    d.scales[n] = scale
    d.n[()] = n + 1
    return pivot


def a_round(growth: Growth) -> float:
    """The mean time of a round in nanoseconds, as measured for 500 to 4,000 points."""
    return growth.a_round(lambda points: 500.0 + 3.0 * points + 0.05 * points**2)


class KernelNewtonStep(SharedKernelLearner):
    """The base of KONS, where all points join the sketch, and Sketched-KONS, where some do."""

    exact: ClassVar[bool]
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    with_room, joined = staticmethod(with_room), staticmethod(joined)
    look_ahead = staticmethod(look_ahead)

    @classmethod
    def to_params(cls, q: Public) -> Params:
        return Params(
            **newton_params(q),
            kernel=kernel_of(q),
            exact=cls.exact,
            factor=1.0 if cls.exact else estimate_factor(q),
            beta=0.0 if cls.exact else real(q, "beta"),
            floor=0.0 if cls.exact else real(q, "sampling_floor"),
        )

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        T, shared = size.rounds, kernel_values(q, size, size.rounds / 2)
        if cls.exact:
            growth = Growth((0.0, float(T)), (0.0, float(T)))
            return Cost(2 * T + 3 * (T + 16) ** 2 + 128 * T, a_round(growth) + 0.15 * T / 2, shared)
        floor = real(q, "sampling_floor")
        growth = size.growth or Growth.assumed(T, min(T, USUAL_POINTS + floor * T / 2))
        most = SPARE * growth.last if size.growth else max(PLANNED_POINTS, 1.2 * floor * T)
        n = capacity(min(T, int(most) + BLOCK))
        # KORS's dictionary, too, is as large as the sketch only if no other rows join.
        ns = a_round(growth) * (1.0 if floor > 0.0 else 2.0) + 0.15 * T / 2
        return Cost(2 * T + int(2.5 * n * n) + 128 * n, ns, shared)

    @classmethod
    def sampling(cls, q: Public) -> Sampling:
        """What decides whether rows join the sketch; the ridge is that of the prediction 0."""
        if cls.exact:
            return sampling_of(q, real(q, "alpha"), 1.0, EVERY_ROW)
        label = min(real(q, "clip"), 1e100) if q["loss"] in OF_REAL_LABELS else 1.0
        slope = loss_slope(LOSSES[str(q["loss"])], 0.0, label)
        weight = max(float(q["curvature"] or 0.0) * slope * slope, 1e-300)
        factor = real(q, "beta") * estimate_factor(q)
        floor, ridge = real(q, "sampling_floor"), real(q, "alpha") / weight
        return sampling_of(q, ridge, factor, floor)._replace(of_gradients=True)
