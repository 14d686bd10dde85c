"""KORS: kernel online row sampling, O(J² + Js) a round for a dictionary of J points and a row of s
non-zeros.

Calandriello, Lazaric, Valko: Second-Order Kernel Online Convex Optimization with Adaptive Sketching
(ICML 2017), Algorithm 2 and equation 4. Entries like K7 are of docs/errata.md. It predicts nothing:
a round looks at a row and may take it into the dictionary.

The estimate is τ̃ = (1 ± ε) φᵀ(ΦSSᵀΦᵀ + φφᵀ + γI)⁻¹φ = (1 ± ε) q/(γ + q), with q = k(x, x) − ‖Tk‖²,
where T = L⁻¹Sᵀ and LLᵀ = SᵀKS + γI. T is kept by columns, and a point that joins adds a row to it
in O(J²): nothing is ever factored anew.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import (
    FIRST_ROOM,
    Points,
    add_point,
    enlarged,
    grown,
    kernel_row,
    lacks_room,
    lengthened,
    no_points,
    panels,
)
from koco_stream.kernels.kernel import Kernel
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.linear_algebra import Array
from koco_stream.numerics.llvm.point_panels import BLOCK, apply, dot
from koco_stream.numerics.random import uniform

K, Q = range(2)  # lines of `a`: k(x, x_p), Tk


class Params(NamedTuple):
    """kernel. ridge: γ. factor: 1 + ε, or the poster's 1 − ε. beta: β. most: the dictionary's
    largest size. clip: not used.
    """

    kernel: Kernel
    ridge: float
    factor: float
    beta: float
    most: int
    clip: float


class State(NamedTuple):
    """t: () rounds. seed: () of the coins. points: the dictionary. roots (room,): 1/√p̃ of each
    point. T (panels, room, 16), by columns. a (2, room): scratch. inclusion_probability, included:
    () of the last round, p̃_t and z_t.
    """

    t: Array
    seed: Array
    points: Points
    roots: Array
    T: Array
    a: Array
    inclusion_probability: Array
    included: Array


def init(params: Params, n_features: int, seed: int) -> State:
    """An empty dictionary."""
    return State(
        t=np.zeros((), np.int64),
        seed=np.array(seed, np.uint64),
        points=no_points(n_features),
        roots=np.zeros(FIRST_ROOM),
        T=panels(FIRST_ROOM, FIRST_ROOM),
        a=np.zeros((2, FIRST_ROOM)),
        inclusion_probability=np.zeros(()),
        included=np.zeros((), np.int64),
    )


def enlarge(params: Params, s: State, features: int) -> State:
    """The same state with room for one more point that has so many features."""
    points = grown(s.points, features)
    room = points.norms.size
    return s._replace(
        points=points,
        roots=lengthened(s.roots, room),
        T=enlarged(s.T, room, room),
        a=lengthened(s.a, room),
    )


def joined(s: State) -> Array:
    """The rounds in which the dictionary's points joined, increasing."""
    return s.points.rounds[: int(s.points.n)]


@inlined
def full(params: Params, s: State, features: int) -> bool:
    """Whether the next round might need more room than there is, for a row with so many features.
    """
    return bool(s.points.n[()] < params.most and lacks_room(s.points, features))


@inlined
def offer(params: Params, s: State, k_tt: float) -> bool:
    """Lines 4 to 6 of Algorithm 2 for the row whose kernel values are in the scratch: estimate,
    then toss the coin of this round.

    Leaves Tk in the scratch and the coin in `inclusion_probability` and `included`. A dictionary at
    its largest size takes nothing more.
    """
    t = s.t[()] + 1
    s.t[()] = t
    n, room = int(s.points.n[()]), s.a.shape[1]
    if n >= params.most:
        s.inclusion_probability[()] = 0.0
        s.included[()] = 0
        return False
    apply(s.T, True, n, s.a, K * room, s.a, Q * room)
    left = max(k_tt - dot(s.a, Q * room, s.a, Q * room, n), 0.0)
    p = min(params.beta * params.factor * (left / (params.ridge + left)), 1.0)
    z = uniform(s.seed[()], t) < p
    s.inclusion_probability[()] = p
    s.included[()] = z
    return z


@inlined
def join(params: Params, s: State, idx: Array, val: Array, k_tt: float, n2: float) -> None:
    """The row of this round becomes a point with weight 1/p̃: T gains the row −lᵀT/d and 1/d, where
    l = s_t·Tk and d is the pivot of L.
    """
    n, room = int(s.points.n[()]), s.a.shape[1]
    root = 1.0 / math.sqrt(s.inclusion_probability[()])
    left = max(k_tt - dot(s.a, Q * room, s.a, Q * room, n), 0.0)
    pivot = math.sqrt(root * root * left + params.ridge)
    add_row(s.T, n, s.a[Q], -root / pivot, root / pivot)
    s.roots[n] = root
    add_point(s.points, idx, val, n2, s.t[()])


@inlined
def add_row(matrix: Array, n: int, left: Array, factor: float, corner: float) -> None:
    """Row n of a lower triangular matrix kept by columns: factor·leftᵀM, then `corner` on the
    diagonal.
    """
    for j in range(n):
        total = 0.0
        for i in range(j, n):
            total += left[i] * matrix[i // BLOCK, j, i % BLOCK]
        matrix[n // BLOCK, j, n % BLOCK] = factor * total
    matrix[n // BLOCK, n, n % BLOCK] = corner


@jit
def predict(params: Params, s: State, idx: Array, val: Array) -> float:
    """0: KORS predicts nothing."""
    return 0.0


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """One round of Algorithm 2 on the row (idx, val). Updates `s`; returns 0, or NaN if a kernel
    value was beyond all numbers.
    """
    k_tt, n2 = kernel_row(params.kernel, s.points, idx, val, s.a, K * s.a.shape[1])
    if offer(params, s, k_tt):
        join(params, s, idx, val, k_tt, n2)
    return 0.0 * float(s.inclusion_probability[()])
