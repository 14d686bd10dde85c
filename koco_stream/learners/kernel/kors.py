"""KORS: kernel online row sampling.

A round takes O(J² + Js) for a dictionary of J points and a row of s non-zeros.

Calandriello, Lazaric, Valko: Second-Order Kernel Online Convex Optimization with Adaptive Sketching
(ICML 2017), Algorithm 2 and equation 4. Labels like K7 refer to docs/errata.md. KORS predicts
nothing: in each round it decides whether the row joins the dictionary.

The estimate is τ̃ = (1 ± ε) φᵀ(ΦSSᵀΦᵀ + φφᵀ + γI)⁻¹φ = (1 ± ε) q/(γ + q), with q = k(x, x) − ‖v‖²,
where Lv = Sᵀk and LLᵀ = SᵀKS + γI. A point that joins adds a row to L, so no matrix is ever
factored again.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from koco_stream.kernels.dictionary import (
    FIRST_ROOM,
    Points,
    add_point,
    grown,
    kernel_row,
    lacks_room,
    no_points,
    padded,
    panels,
)
from koco_stream.kernels.kernel import Kernel
from koco_stream.learners.kernel.base import LEAST_SHRINK, OpenDictionaryLearner, append_row
from koco_stream.learners.spec import (
    CLIP,
    FIT_INTERCEPT,
    KERNEL_SHAPE,
    LOSS,
    NEVER,
    SAMPLING,
    Parameter,
)
from koco_stream.losses import MOST_CLIPS
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.point_panels import BLOCK, panel_dot, substitute
from koco_stream.numerics.random import uniform
from koco_stream.scikit_learn import estimator_tags
from koco_stream.streams.inputs import as_rows
from koco_stream.types import Array

ROUNDING = 1e-15  # the share of k(x, x) by which q, a difference, may be off
ICML, POSTER = range(2)  # codes of `estimate`
K, V, SK = range(3)  # lines of `a`: k, the kernel values of the row with the points; v; Sᵀk


class Params(NamedTuple):
    """Parameters of the compiled step.

    kernel: the kernel. ridge: γ. epsilon: ε. estimate: its code. beta: β. max_dictionary: the
    largest number of points, or 0. clip: not used.
    """

    kernel: Kernel
    ridge: float = 1.0
    epsilon: float = 0.5
    estimate: int = ICML
    beta: float = 1.0
    max_dictionary: int = 0
    clip: float = math.inf


class State(NamedTuple):
    """The state of KORS.

    t: () rounds. doubtful_rounds: () how often, for KORS by itself. seed: () of the coins. points:
    the dictionary. roots (room,): 1/√p̃ of each point. L (panels, room, 16), by columns. a (3,
    room): scratch. inclusion_probability, included: () p̃_t and z_t of the last round.
    """

    t: Array
    doubtful_rounds: Array
    seed: Array
    points: Points
    roots: Array
    L: Array
    a: Array
    inclusion_probability: Array
    included: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: an empty dictionary."""
    return State(
        t=np.zeros((), np.int64),
        doubtful_rounds=np.zeros((), np.int64),
        seed=np.array(seed, np.uint64),
        points=no_points(n_features),
        roots=np.zeros(FIRST_ROOM),
        L=panels(FIRST_ROOM, FIRST_ROOM),
        a=np.zeros((3, FIRST_ROOM)),
        inclusion_probability=np.zeros(()),
        included=np.zeros((), np.int64),
    )


def enlarge(params: Params, s: State, features: int) -> State:
    points = grown(s.points, features)
    room = points.rounds.size
    return s._replace(
        points=points,
        roots=padded(s.roots, room),
        L=padded(s.L, room // BLOCK, room, BLOCK),
        a=padded(s.a, len(s.a), room),
    )


@inlined
def full(params: Params, s: State, features: int) -> bool:
    return bool(accepts(params, s) and lacks_room(s.points, features))


@inlined
def accepts(params: Params, s: State) -> bool:
    """Whether another point may join."""
    return bool(params.max_dictionary == 0 or s.points.n[()] < params.max_dictionary)


@inlined
def factor(params: Any) -> float:
    """The factor of leverage score estimates: 1 + ε, or the poster's 1 − ε."""
    return 1.0 + params.epsilon if params.estimate == ICML else 1.0 - params.epsilon


@inlined
def probability(params: Params, s: State, k_tt: float) -> tuple[float, float]:
    """KORS, lines 4 and 5: the probability p̃ with which a row joins, from the estimate of its
    leverage score, and the estimate's q, the part of k(x, x) that the points do not explain.

    The row's kernel values are in the scratch. Leaves v there. A full dictionary accepts no rows.
    """
    n, v = int(s.points.n[()]), s.a[V]
    if not accepts(params, s):
        return 0.0, 0.0
    for p in range(n):
        s.a[SK, p] = s.roots[p] * s.a[K, p]
    substitute(s.L, 0, n, s.a[SK], v)
    q = max(k_tt - panel_dot(v, 0, v, 0, n), 0.0)
    return min(params.beta * factor(params) * (q / (params.ridge + q)), 1.0), q


@jit
def offer(params: Params, s: State, k_tt: float) -> tuple[bool, bool]:
    """KORS, lines 4 to 6: draw z ~ B(p̃). Returns z, and whether rounding may have decided it.

    Leaves what `probability` does, and p̃ and z in `inclusion_probability` and `included`.
    """
    t = s.t[()] + 1
    s.t[()] = t
    p, q = probability(params, s, k_tt)
    coin = uniform(s.seed[()], t)
    z = coin < p
    s.inclusion_probability[()] = p
    s.included[()] = z
    return z, accepts(params, s) and is_rounding(params, k_tt, q, coin)


@inlined
def is_rounding(params: Params, k_tt: float, q: float, coin: float) -> bool:
    """Whether with a q that is larger or smaller by the rounding of k(x, x) the row would be
    refused or taken.
    """
    low, high = max(q - ROUNDING * k_tt, 0.0), q + ROUNDING * k_tt
    share = coin / (params.beta * factor(params))
    return low / (params.ridge + low) <= share < high / (params.ridge + high)


@jit
def join(params: Params, s: State, idx: Array, val: Array, k_tt: float, n2: float) -> None:
    """KORS, line 6: add the row with weight 1/p̃ to the dictionary."""
    n, v = int(s.points.n[()]), s.a[V]
    root = 1.0 / math.sqrt(s.inclusion_probability[()])
    q = max(k_tt - panel_dot(v, 0, v, 0, n), 0.0)
    pivot = math.sqrt(root * root * q + params.ridge)
    append_row(s.L, n, v, root, pivot)
    s.roots[n] = root
    add_point(s.points, n, idx, val, n2, s.t[()])


@inlined
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    """Always 0, since KORS predicts nothing."""
    return 0.0


@inlined
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """KORS, lines 3 to 6, on the row (idx, val); returns 0, or NaN if a kernel value overflowed."""
    k_tt, n2 = kernel_row(params.kernel, s.points, idx, val, s.a[K])
    joins, _ = offer(params, s, k_tt)
    p = s.inclusion_probability[()]
    # The estimate is 1 − γ/(γ + q), in which the rounding of q, a share of k(x, x), fades.
    rest = 1.0 - p / (params.beta * factor(params)) if p < 1.0 else 0.0
    s.doubtful_rounds[()] += k_tt * max(rest * rest, LEAST_SHRINK) > MOST_CLIPS * params.ridge
    if joins:
        join(params, s, idx, val, k_tt, n2)
    return 0.0 * float(s.inclusion_probability[()])


class KORS(OpenDictionaryLearner):
    """Kernel online row sampling: a growing dictionary of rows, and no predictions; O(J² + Js).

    `progressive` returns zeros, and y is optional.

    Notes
    -----
    Calandriello, Lazaric, Valko (ICML 2017), Algorithm 2.
    """

    parameters = (
        replace(LOSS, matters_if=NEVER),
        replace(CLIP, matters_if=NEVER),
        FIT_INTERCEPT,
        *SAMPLING,
        Parameter(
            "max_dictionary",
            int,
            "the largest number of points; no limit if None",
            low=1,
            high=100_000,
            optional=True,
        ),
        *KERNEL_SHAPE,
    )
    predicts, params_type, matrices = False, Params, 1
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    full, enlarge = staticmethod(full), staticmethod(enlarge)

    def __init__(
        self,
        ridge: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
        max_dictionary: int | None = None,
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
    def weights_(self) -> Array:
        """The weights 1/p̃ (J,) of the points."""
        return self._state.roots[: int(self._state.points.n)] ** 2

    def __sklearn_tags__(self) -> Any:
        return estimator_tags("regressor", target_required=False)

    def progressive(self, X: Any, y: Any = None) -> Array:
        """Sample from the rows of X (n, d) in order; returns zeros (n,)."""
        return super().progressive(X, np.zeros(as_rows(X).n_rows) if y is None else y)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Sample from the rows of X (n, d) in order, continuing from the last call."""
        return super().partial_fit(X, y)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Empty the dictionary, then sample from the rows of X (n, d) in order."""
        return super().fit(X, np.zeros(as_rows(X).n_rows) if y is None else y)

    def record(self, X: Any, y: Any = None) -> Any:
        """Sample like `progressive`, but return an Arrow table of each round's sampling
        decision.
        """
        return super().record(X, np.zeros(as_rows(X).n_rows) if y is None else y)
