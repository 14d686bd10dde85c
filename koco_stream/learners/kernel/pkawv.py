"""PKAWV: the kernel ridge forecaster in a dictionary's span. Its step is in ridge_step.py."""

from typing import Any

import numpy as np

from koco_stream.kernels.dictionary import FIRST_ROOM, enlarged, lengthened, panels
from koco_stream.kernels.past_rows import lacks_past, more_past, no_past
from koco_stream.learners.growth import Sampling
from koco_stream.learners.kernel import kors
from koco_stream.learners.kernel.base import (
    DictionaryLearner,
    dictionary_cost,
    joined,
    past_rows_cost,
)
from koco_stream.learners.kernel.ridge_step import Params, State, embed, forward, step
from koco_stream.learners.spec import (
    ALPHA,
    KERNEL_SHAPE,
    SAMPLING,
    SHARED,
    Cost,
    Public,
    StreamSize,
    loss_and_clip,
    real,
)
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.types import Array


def init(params: Params, n_features: int, seed: int) -> State:
    """The initial state: an empty dictionary and no rows."""
    return State(
        kors=kors.init(params.kors, n_features, seed),
        past=no_past(n_features),
        L=panels(FIRST_ROOM, FIRST_ROOM),
        inverse=panels(FIRST_ROOM, FIRST_ROOM),
        a=np.zeros((5, FIRST_ROOM + BLOCK)),
    )


def enlarge(params: Params, s: State, features: int) -> State:
    """The same state with room for one more row, and point, with `features` non-zeros."""
    if kors.full(params.kors, s.kors, features):
        inner = kors.enlarge(params.kors, s.kors, features)
        room = inner.a.shape[1]
        L, inverse = enlarged(s.L, room, room), enlarged(s.inverse, room, room)
        past = more_past(s.past, features, room)
        return State(inner, past, L, inverse, lengthened(s.a, room + BLOCK))
    return s._replace(past=more_past(s.past, features, s.kors.a.shape[1]))


@inlined
def full(params: Params, s: State, features: int) -> bool:
    """Whether the next round may lack room for a row with `features` non-zeros."""
    return kors.full(params.kors, s.kors, features) or lacks_past(s.past, features)


class PKAWV(DictionaryLearner):
    """The kernel ridge forecaster in the span of KORS's dictionary.

    It learns by least squares with ridge α from all rows so far, and adds this round's row with the
    label 0 before it predicts. A round takes O(J²), one in which a point joins O(t(J + s)).

    Parameters
    ----------
    alpha : float
        α, the ridge of the regression (the paper's λ).
    ridge : float
        γ, the ridge of KORS (the paper's μ).
    beta : float
        β, the ratio of a point's probability to its leverage score.
    epsilon : float
        ε, the accuracy of KORS's leverage score estimates.
    estimate : {"icml", "poster"}
        The estimate's factor: 1 + ε or 1 − ε.
    kernel : {"gaussian", "polynomial", "linear"}
        The kernel.
    bandwidth : float
        The bandwidth of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²)).
    degree : int
        The degree of the polynomial kernel (xᵀx' + 1)^degree.
    loss : {"squared", "half_squared", "logistic", "squared_hinge", "hinge"}
        The loss that is measured. It learns by least squares whatever the loss.
    clip : float
        C > 0, the bound on predictions. It learns from the labels and not from predictions.
    fit_intercept : bool
        Add a feature that is always 1.
    seed : int
        The seed of the random choices.

    Attributes
    ----------
    dictionary_ : ndarray of shape (J,)
        The row numbers of the dictionary's points, counted from 0 over all rows learnt from.

    Notes
    -----
    PKAWV of Jézéquel, Gaillard, Rudi (NeurIPS 2019), with KORS's dictionary.
    """

    parameters = (*SHARED, ALPHA, *SAMPLING, *KERNEL_SHAPE)
    always_stochastic = True
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)
    grows, full, enlarge = True, staticmethod(full), staticmethod(enlarge)
    joined, embed = staticmethod(joined), staticmethod(embed)

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
    def to_params(cls, q: Public) -> Params:
        """The parameters of the compiled step, from the complete public parameters `q`."""
        return Params(**loss_and_clip(q), alpha=real(q, "alpha"), kors=kors.KORS.to_params(q))

    @classmethod
    def sampling(cls, q: Public) -> Sampling:
        """What decides whether rows join the dictionary: that of its KORS."""
        return kors.KORS.sampling(q)

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        """The approximate cost of a run on a stream of this size, for the planner."""
        points, rows = dictionary_cost(q, size, 3), past_rows_cost(size)
        return Cost(points.floats + rows.floats, points.nanoseconds + rows.nanoseconds)

    def features(self, X: Any) -> Array:
        """The embedding (n, J) of the rows of X (n, d) in the span of the dictionary: see P3."""
        return self._embedded(X, int(self._state.kors.points.n))
