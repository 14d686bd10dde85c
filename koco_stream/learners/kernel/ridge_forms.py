"""The two forms of PKAWV: in the span of KORS's dictionary, or over fixed Taylor features.

See koco_stream.learners.kernel.ridge_step and koco_stream.learners.kernel.taylor_ridge.
"""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, enlarged, lengthened, panels
from koco_stream.kernels.past_rows import lacks_past, more_past, no_past
from koco_stream.kernels.taylor import taylor_row
from koco_stream.learners.kernel import kors, ridge_step
from koco_stream.learners.kernel.taylor_ridge import (
    TaylorState,
    inspect,
    learn,
    no_regression,
    regression,
)
from koco_stream.losses import loses_digits
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.types import Array


class Params(NamedTuple):
    """loss: of the measured loss. clip: C. degree: M, or 0 with KORS's dictionary. ridge: the
    parameters of the form with KORS's dictionary.
    """

    loss: int
    clip: float
    degree: int
    ridge: ridge_step.Params


class State(NamedTuple):
    """ridge: the state with KORS's dictionary. taylor: that with Taylor features. The one that is
    not used stays empty.
    """

    ridge: ridge_step.State
    taylor: TaylorState

    @property
    def kors(self) -> kors.State:
        """The state of KORS."""
        return self.ridge.kors


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: an empty dictionary and no rows. Raises `WrongInput` for too many
    features.
    """
    ridge = ridge_step.State(
        kors=kors.init(params.ridge.kors, n_features, seed),
        past=no_past(n_features),
        L=panels(FIRST_ROOM, FIRST_ROOM),
        inverse=panels(FIRST_ROOM, FIRST_ROOM),
        a=np.zeros((5, FIRST_ROOM + BLOCK)),
    )
    if not params.degree:
        return State(ridge, no_regression())
    kernel, alpha = params.ridge.kors.kernel, params.ridge.alpha
    return State(ridge, regression(kernel, n_features, params.degree, alpha))


def enlarge(params: Params, state: State, features: int) -> State:
    """The same state with room for one more row, and point, with `features` non-zeros."""
    s, room = state.ridge, state.kors.a.shape[1]
    if kors.full(params.ridge.kors, s.kors, features):
        inner = kors.enlarge(params.ridge.kors, s.kors, features)
        room = inner.a.shape[1]
        L, inverse = enlarged(s.L, room, room), enlarged(s.inverse, room, room)
        s = s._replace(kors=inner, L=L, inverse=inverse, a=lengthened(s.a, room + BLOCK))
    return state._replace(ridge=s._replace(past=more_past(s.past, features, room)))


@inlined
def full(params: Params, s: State, features: int) -> bool:
    """Whether the next round may lack room for a row with `features` non-zeros."""
    if params.degree:
        return False
    kors_lacks = kors.full(params.ridge.kors, s.ridge.kors, features)
    return bool(kors_lacks or lacks_past(s.ridge.past, features))


@jit
def forward(params: Params, s: State, idx: Array, val: Array) -> float:
    """The prediction for the row (idx, val) in the next round, before it is truncated to [−C, C].
    Does not learn.
    """
    if not params.degree:
        return ridge_step.forward(params.ridge, s.ridge, idx, val)
    f, spread = inspect(params.ridge.kors.kernel, s.taylor, idx, val)
    return f / (1.0 + spread)


@jit
def step(params: Params, s: State, idx: Array, val: Array, y: float) -> float:
    """One round on the row (idx, val) with label y. Updates `s`; returns the prediction ŷ, or NaN
    if the digits of later rounds would be lost.
    """
    if not params.degree:
        return ridge_step.step(params.ridge, s.ridge, idx, val, y)
    if loses_digits(1.0 / params.ridge.alpha, 1.0):
        return math.nan
    f, spread = inspect(params.ridge.kors.kernel, s.taylor, idx, val)
    learn(s.taylor, f, spread, y)
    y_hat = f / (1.0 + spread)
    return math.copysign(params.clip, y_hat) if abs(y_hat) > params.clip else y_hat


@jit
def embed(params: Params, s: State, idx: Array, val: Array, out: Array) -> None:
    """Compute the embedding of the row (idx, val), φ̃ or φ, into `out`."""
    if not params.degree:
        ridge_step.embed(params.ridge, s.ridge, idx, val, out)
    else:
        taylor_row(params.ridge.kors.kernel, s.taylor.features, idx, val, out)
