"""KONS and Sketched-KONS: the online Newton step on kernels, O(B² + t) a round for B points in the
sketch, beside the kernel values.

Calandriello, Lazaric, Valko (ICML 2017), Algorithms 1 and 3. Entries like K4 are of docs/errata.md.
KONS is the sketch of all points.

The weights are w_t = A⁻¹ Σ_s c_s φ_s minus the projection, with coefficients on φ (K2, K3). With D
= diag(ġ_i√η_i) over the sketch's points, LLᵀ = DKD + αI, T = L⁻¹D (kept by columns), v = Tk and s =
L⁻¹q, q_i = ġ_i√η_i Σ_s k_is c_s: y̆ = (kᵀc − vᵀs)/α and φᵀÃ⁻¹φ = (k(x, x) − ‖v‖²)/α (K4). A point
that joins adds a row to T and a number to s. KORS sees ġ_t√η_t φ_t (K5) and keeps its own factor.

A round reads its kernel values from a tile (see koco_stream.kernels.earlier_rows), whose rows are
those of the stream.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, enlarged, lengthened, more_room, panels
from koco_stream.kernels.earlier_rows import History, no_rows
from koco_stream.kernels.kernel import Kernel
from koco_stream.learners.kernel.base import PLANNED_POINTS, irrelevant_of_kernel, kernel_of
from koco_stream.learners.kernel.kors import add_row
from koco_stream.learners.parameters import (
    ALPHA,
    BETA,
    CURVATURE,
    CURVATURE_SCHEDULE,
    EPSILON,
    ESTIMATE,
    KERNEL_SHAPE,
    SHARED,
    Parameter,
)
from koco_stream.learners.shared_kernel_learner import SharedKernelLearner, kernel_values
from koco_stream.learners.spec import Cost, Public, StreamSize, newton_params
from koco_stream.losses import curvature_at, loss_slope
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.point_panels import BLOCK, add_scaled, apply, dot
from koco_stream.numerics.random import uniform
from koco_stream.types import Array

SAMPLING_FLOOR = Parameter(
    "sampling_floor",
    float,
    "the paper's γ, the least probability of a point in the sketch",
    low=0,
    high=1,
)
# Of points, on average, of whose factors the processor's cache holds all: some 30 MB at the end.
CACHED_SQUARE = 750.0**2

# α·φᵀÃ⁻¹φ is positive; where rounding has left nothing of it, this share of k(x, x) is taken
LEAST = 1e-15
K, V, S = range(3)  # lines of `a`, over the sketch's points: k(x, x_p), v = Tk, s
KORS_K, KORS_V = range(2)  # lines of `b`, over KORS's points: the same


class Params(NamedTuple):
    """loss: its code. alpha: α. clip: C. curvature: η, divided by √t if `decreasing`. kernel.
    exact: all points join (KONS). factor: 1 + ε or 1 − ε. beta: β. floor: the paper's γ, the least
    probability.
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
    """n: () points. rows (room,): their rows. scales (room,): ġ_p√η_p, for KORS times the weight's
    root. place (room,): where they are in the sketch. T (panels, room, 16), by columns.
    """

    n: Array
    rows: Array
    scales: Array
    place: Array
    T: Array


class State(NamedTuple):
    """t: () rounds. seed: () of the coins. history: the rows. c (room of rows,): coefficients. sums
    (2, 16): Σ c_s k(x_s, x_r) over the rows before the block, even and odd s apart. sketch, kors:
    the dictionaries. a (3, room), b (2, room): see above. inclusion_probability, included, in_kors
    (whether KORS took it), dictionary_size: () of the last round.
    """

    t: Array
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
    """c = 0, empty dictionaries."""
    return State(
        t=np.zeros((), np.int64),
        seed=np.array(seed, np.uint64),
        history=no_rows(),
        c=np.zeros(0),
        sums=np.zeros((2, BLOCK)),
        sketch=_no_samples(),
        kors=_no_samples(),
        a=np.zeros((3, FIRST_ROOM)),
        b=np.zeros((2, FIRST_ROOM)),
        inclusion_probability=np.zeros(()),
        included=np.zeros((), np.int64),
        in_kors=np.zeros((), np.int64),
        dictionary_size=np.zeros((), np.int64),
    )


def _no_samples() -> Samples:
    room = FIRST_ROOM
    return Samples(
        np.zeros((), np.int64),
        np.zeros(room, np.int64),
        np.zeros(room),
        np.zeros(room, np.int64),
        panels(room, room),
    )


def with_room(params: Params, s: State) -> State:
    """The same state with room for the points of another block."""
    sketch, kors = _enlarged(s.sketch), _enlarged(s.kors)
    if sketch is s.sketch and kors is s.kors:
        return s
    return s._replace(
        sketch=sketch,
        kors=kors,
        a=lengthened(s.a, sketch.rows.size),
        b=lengthened(s.b, kors.rows.size),
    )


def _enlarged(samples: Samples) -> Samples:
    room = samples.rows.size
    if samples.n[()] + BLOCK <= room:
        return samples
    room = more_room(room)
    rows, scales, place = (
        lengthened(x, room) for x in (samples.rows, samples.scales, samples.place)
    )
    return Samples(samples.n, rows, scales, place, enlarged(samples.T, room, room))


def joined(s: State) -> Array:
    """The rounds in which the dictionary's points joined, increasing."""
    return s.sketch.rows[: int(s.sketch.n)] + 1


@inlined
def inspect(
    params: Params, s: State, tile: Array, r: int, block: int, k_tt: float
) -> tuple[float, float, float]:
    """(kᵀc, y̆, α·φᵀÃ⁻¹φ) for row r of the tile, whose block begins at row `block`; leaves k and v
    in the scratch.
    """
    even, odd = s.sums[0, r], s.sums[1, r]
    for i in range(block, s.t[()]):
        if i % 2 == 0:
            even += tile[i, r] * s.c[i]
        else:
            odd += tile[i, r] * s.c[i]
    kc = even + odd
    B, room = int(s.sketch.n[()]), s.a.shape[1]
    for p in range(B):
        s.a[K, p] = tile[s.sketch.rows[p], r]
    apply(s.sketch.T, True, B, s.a, K * room, s.a, V * room)
    left = max(k_tt - dot(s.a, V * room, s.a, V * room, B), LEAST * k_tt)
    return kc, (kc - dot(s.a, V * room, s.a, S * room, B)) / params.alpha, left


@inlined
def forward(params: Params, s: State, tile: Array, r: int, block: int, k_tt: float) -> float:
    """y̆ for row r of the tile, before it is held within [−C, C]. Learns nothing."""
    return inspect(params, s, tile, r, block, k_tt)[1]


@inlined
def step(params: Params, s: State, tile: Array, r: int, block: int, k_tt: float, y: float) -> float:
    """One round of Algorithm 3 on row r of the tile, with label y. Updates `s`; returns the
    prediction ỹ.
    """
    C = params.clip
    row = int(s.t[()])
    s.t[()] = row + 1
    s.inclusion_probability[()] = 1.0 if params.exact else params.floor
    s.included[()] = s.in_kors[()] = False
    if k_tt == 0.0:
        return 0.0  # φ = 0: nothing to predict from, nothing to learn

    # Lines 4 to 7: ỹ = y̆ − h(y̆).
    kc, y_hat, left = inspect(params, s, tile, r, block, k_tt)
    projected = 0.0
    if abs(y_hat) > C:
        projected = (y_hat - math.copysign(C, y_hat)) * params.alpha / left  # h/(φᵀÃ⁻¹φ)
        y_hat = math.copysign(C, y_hat)
    slope = loss_slope(params.loss, y_hat, y)
    eta = curvature_at(params.curvature, params.decreasing, row + 1)
    g = math.sqrt(eta) * slope

    # Lines 8 to 10: one coin decides for KORS and for the sketch (K5).
    joins = params.exact
    if not params.exact:
        p = kors_probability(params, s, g, k_tt)
        u = uniform(s.seed[()], row + 1)
        joins = u < max(p, params.floor)
        s.inclusion_probability[()] = max(p, params.floor)
        s.in_kors[()] = u < p
        if u < p:
            join_kors(params, s, row, g, p, k_tt)
    s.included[()] = joins

    # K3: c_t = z η ġ² ỹ − ġ − h/(φᵀÃ⁻¹φ); then s ← s + v c_t.
    c = (eta * slope * slope * y_hat if joins else 0.0) - slope - projected
    s.c[row] = c
    B, room = int(s.sketch.n[()]), s.a.shape[1]
    add_scaled(c, s.a, V * room, s.a, S * room, B)
    # Line 11: Ã ← Ã + z η g gᵀ. A gradient of zero adds nothing, and is no point.
    if joins and g != 0.0:
        pivot = math.sqrt(g * g * left + params.alpha)
        s.a[S, B] = g * (kc + k_tt * c - dot(s.a, V * room, s.a, S * room, B)) / pivot
        add_row(s.sketch.T, B, s.a[V], -g / pivot, g / pivot)
        s.sketch.rows[B] = row
        s.sketch.scales[B] = g
        s.sketch.n[()] = B + 1
        s.dictionary_size[()] = B + 1
    return y_hat


@inlined
def kors_probability(params: Params, s: State, g: float, k_tt: float) -> float:
    """min(βτ̃, 1) for ġ_t√η_t φ_t, with KORS's own weighted dictionary and ridge α (equation 4).
    Leaves its Tk in the scratch.
    """
    n, room = int(s.kors.n[()]), s.b.shape[1]
    for j in range(n):
        s.b[KORS_K, j] = s.a[K, s.kors.place[j]]
    apply(s.kors.T, True, n, s.b, KORS_K * room, s.b, KORS_V * room)
    q = g * g * max(k_tt - dot(s.b, KORS_V * room, s.b, KORS_V * room, n), 0.0)
    return min(params.beta * params.factor * (q / (params.alpha + q)), 1.0)


@inlined
def join_kors(params: Params, s: State, row: int, g: float, p: float, k_tt: float) -> None:
    """The round's row joins KORS's dictionary with weight 1/p. It joins the sketch too, as its next
    point.
    """
    n, room = int(s.kors.n[()]), s.b.shape[1]
    scale = g / math.sqrt(p)
    pivot = math.sqrt(
        scale * scale * max(k_tt - dot(s.b, KORS_V * room, s.b, KORS_V * room, n), 0.0)
        + params.alpha
    )
    add_row(s.kors.T, n, s.b[KORS_V], -scale / pivot, scale / pivot)
    s.kors.rows[n] = row
    s.kors.scales[n] = scale
    s.kors.place[n] = s.sketch.n[()]
    s.kors.n[()] = n + 1


class KernelNewtonStep(SharedKernelLearner):
    """What KONS and Sketched-KONS share: all but whether all points join."""

    exact: ClassVar[bool]
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    with_room, joined = staticmethod(with_room), staticmethod(joined)

    @classmethod
    def to_params(cls, q: Public) -> Params:
        """As `Spec.to_params`."""
        epsilon = float(q.get("epsilon") or 0.0)
        return Params(
            **newton_params(q),
            kernel=kernel_of(q),
            exact=cls.exact,
            factor=1.0 - epsilon if q.get("estimate") == "poster" else 1.0 + epsilon,
            beta=float(q.get("beta") or 0.0),
            floor=float(q.get("sampling_floor") or 0.0),
        )

    @classmethod
    def irrelevant(cls, q: Public) -> set[str]:
        """As `Spec.irrelevant`."""
        return irrelevant_of_kernel(q)

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """As `Spec.stochastic`: unless all points join."""
        return not cls.exact

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        """As `Spec.cost`."""
        T, matrices = size.rounds, 1 if cls.exact else 2
        n, mean_square = T, T**2 / 3  # points; the mean of t²
        if not cls.exact:
            floor = float(q["sampling_floor"] or 0.0)
            n = min(T, max(PLANNED_POINTS, int(1.2 * floor * T)))
            mean_square = min(mean_square, (100 + floor * T / 2) ** 2)
        # Measured: from the processor's cache, or from memory.
        each = 0.6 if mean_square < CACHED_SQUARE else 2.5
        return Cost(
            2 * T + matrices * 3 * (n + 16) ** 2 + 16 * n,
            500 + 0.15 * T / 2 + each * mean_square,
            kernel_values(q, size, T / 2),
        )


class SketchedKONS(KernelNewtonStep):
    """The online Newton step on kernels with a sketch of sampled points.

    It remembers all rows: O(B² + t) a round, and O(td) for kernel values, which runs of a sweep
    share.

    Parameters
    ----------
    alpha : float
        α, also the ridge of its KORS.
    beta : float
        β, how many times its leverage score a point's probability is. The guarantee needs
        3·log(T/δ)/ε²; published experiments use 1.
    epsilon : float
        ε, the accuracy of KORS's estimate.
    estimate : {"icml", "poster"}
        The estimate's factor: 1 + ε or 1 − ε.
    sampling_floor : float
        The paper's γ, the least probability of a point; 1 keeps all.
    curvature : float, optional
        The coefficient of g gᵀ in A. By default the loss's σ for `clip`.
    curvature_schedule : {"constant", "decreasing"}
        Whether `curvature` stays, or is divided by √t.
    kernel : {"gaussian", "polynomial", "linear"}
        The kernel.
    bandwidth : float
        Of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²)).
    degree : int
        Of the polynomial kernel (xᵀx' + 1)^degree.
    loss : {"squared", "half_squared", "logistic", "squared_hinge", "hinge"}
        The loss.
    clip : float
        C > 0, the bound on predictions.
    fit_intercept : bool
        Add a feature that is always 1.
    seed : int
        Of the coins.

    Attributes
    ----------
    dictionary_ : ndarray of shape (B,)
        The row numbers of the sketch's points, counted from 0 over all rows learnt from.

    Notes
    -----
    Calandriello, Lazaric, Valko (ICML 2017), Algorithm 3.
    """

    parameters = (
        *SHARED,
        ALPHA,
        BETA,
        EPSILON,
        ESTIMATE,
        SAMPLING_FLOOR,
        CURVATURE,
        CURVATURE_SCHEDULE,
        *KERNEL_SHAPE,
    )
    exact = False

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
        sampling_floor: float = 0.0,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        kernel: str = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @property
    def dictionary_(self) -> Array:
        """The row numbers (B,) of the sketch's points, counted from 0 over all rows learnt from."""
        return self._state.sketch.rows[: int(self._state.sketch.n)].copy()
