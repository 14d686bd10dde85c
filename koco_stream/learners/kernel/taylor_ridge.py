"""Ridge regression over the Taylor features of koco_stream.kernels.taylor: a form of PKAWV.

With the features φ, A = αI + Σ_{s≤t} φ_sφ_sᵀ and b = Σ_{s<t} y_sφ_s, the prediction is ŷ = φᵀA⁻¹b
(V5 in docs/errata.md). The inverse over the rows before x_t and ω, its product with b, are stored,
so this is ŷ = φᵀω/(1 + φᵀA⁻¹φ), and a round takes O(r²) for r features.
"""

from typing import NamedTuple

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.kernels.dictionary import panels
from koco_stream.kernels.kernel import Kernel
from koco_stream.kernels.taylor import Taylor, n_taylor, no_taylor, taylor_features, taylor_row
from koco_stream.learners.spec import Cost, Parameter, Public, whole
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.point_panels import (
    BLOCK,
    add_scaled,
    apply,
    panel_dot,
    room_for,
    subtract_outer,
)
from koco_stream.types import Array

PHI, U, OMEGA = range(3)  # lines of `a`: φ, A⁻¹φ, ω
MOST_D = 5  # features of a row
MOST_TAYLOR = 4096  # Taylor features
USUAL_DEGREE = 6

TAYLOR = (
    Parameter(
        "dictionary",
        str,
        "what spans the functions: KORS's dictionary, or fixed Taylor features",
        choices=("kors", "taylor"),
    ),
    Parameter(
        "taylor_degree",
        int,
        "M, the largest degree of the Taylor features",
        low=1,
        high=20,
        matters_if=("dictionary", ("taylor",)),
    ),
)


class TaylorState(NamedTuple):
    """features: the r features. inverse (panels, room, 16): A⁻¹. a (3, room): see above."""

    features: Taylor
    inverse: Array
    a: Array


def no_regression() -> TaylorState:
    """An empty state, for the other form."""
    return TaylorState(no_taylor(), panels(0, 0), np.zeros((3, 0)))


def check_taylor(d: int, degree: int) -> None:
    """Raise `WrongInput` if there are too many features, or too many Taylor features of them; a
    degree of 0 makes none.
    """
    if degree and d > MOST_D:
        raise WrongInput(
            f'PKAWV: dictionary = "taylor" takes rows of at most {MOST_D} features, and these have'
            f' {d} (an intercept counts); take dictionary = "kors", or fewer features'
        )
    r = n_taylor(d, degree)
    if r > MOST_TAYLOR:
        raise WrongInput(
            f"PKAWV: taylor_degree {degree} makes {r} Taylor features of {d} features, and at most"
            f" {MOST_TAYLOR} are possible; take a smaller taylor_degree"
        )


def regression(kernel: Kernel, d: int, degree: int, alpha: float) -> TaylorState:
    """The state before the first row."""
    check_taylor(d, degree)
    r = n_taylor(d, degree)
    inverse, every = panels(room_for(r), room_for(r)), np.arange(r)
    inverse[every // BLOCK, every, every % BLOCK] = 1.0 / alpha
    return TaylorState(taylor_features(kernel, d, degree), inverse, np.zeros((3, room_for(r))))


@inlined
def inspect(kernel: Kernel, s: TaylorState, idx: Array, val: Array) -> tuple[float, float]:
    """φᵀω and φᵀA⁻¹φ of the row (idx, val). Leaves φ and A⁻¹φ in the scratch."""
    r = s.features.parents.size
    taylor_row(kernel, s.features, idx, val, s.a[PHI])
    apply(s.inverse, False, 0, r, s.a[PHI], 0, s.a[U], 0)
    return panel_dot(s.a[OMEGA], 0, s.a[PHI], 0, r), panel_dot(s.a[PHI], 0, s.a[U], 0, r)


@inlined
def learn(s: TaylorState, f: float, spread: float, y: float) -> None:
    """Add the row that was inspected, with its label y, to A⁻¹ and ω."""
    r = s.features.parents.size
    subtract_outer(s.inverse, r, 1.0 / (1.0 + spread), s.a[U], 0)
    add_scaled((y - f) / (1.0 + spread), s.a[U], 0, s.a[OMEGA], 0, r)


def has_taylor(q: Public) -> bool:
    """Whether the learner has Taylor features. Raises `WrongInput` if its kernel has none."""
    if q.get("dictionary") != "taylor":
        return False
    if q["kernel"] != "gaussian":
        raise WrongInput(
            f'dictionary = "taylor" is for the gaussian kernel only, not for the {q["kernel"]}'
            ' one; take kernel = "gaussian", or dictionary = "kors"'
        )
    return True


def degree_of(q: Public) -> int:
    """M, or 0 without Taylor features."""
    return whole(q, "taylor_degree") if has_taylor(q) else 0


def taylor_cost(q: Public, d: int) -> Cost:
    """The approximate cost of a run on rows with d features, measured for up to 3,003 Taylor
    features. A larger A⁻¹ exceeds the processor's nearer caches.
    """
    r = n_taylor(min(d, MOST_D), degree_of(q))
    each = float(np.interp(8.0 * r * r, [6e6, 1.3e7, 7.2e7], [0.19, 0.23, 0.8]))
    return Cost(room_for(r) ** 2 + 6 * room_for(r) + 4096, 180.0 + each * r * r)
