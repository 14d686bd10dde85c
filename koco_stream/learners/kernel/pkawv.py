"""PKAWV: the kernel ridge forecaster in a fixed or growing span. Its step is in ridge_forms.py."""

from typing import Any

from koco_stream.learners.growth import Sampling
from koco_stream.learners.kernel import kors, ridge_forms, ridge_step, taylor_ridge
from koco_stream.learners.kernel.base import (
    DictionaryLearner,
    dictionary_cost,
    joined,
    past_rows_cost,
)
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
from koco_stream.types import Array


class PKAWV(DictionaryLearner):
    """The kernel ridge forecaster in the span of KORS's dictionary, or over Taylor features.

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
    dictionary : {"kors", "taylor"}
        "taylor": fixed Taylor features of a Gaussian kernel instead of KORS's dictionary, for at
        most 5 features. Nothing is random then.
    taylor_degree : int
        M, their largest degree: there are (d + M choose M), at most 4096.
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
    PKAWV of Jézéquel, Gaillard, Rudi (NeurIPS 2019), with KORS's dictionary or Taylor features.
    """

    parameters = (*SHARED, ALPHA, *SAMPLING, *taylor_ridge.TAYLOR, *KERNEL_SHAPE)
    init, step = staticmethod(ridge_forms.init), staticmethod(ridge_forms.step)
    forward, embed = staticmethod(ridge_forms.forward), staticmethod(ridge_forms.embed)
    grows, full, enlarge = True, staticmethod(ridge_forms.full), staticmethod(ridge_forms.enlarge)
    joined = staticmethod(joined)

    def __init__(
        self,
        alpha: float = 1.0,
        ridge: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
        dictionary: str = "kors",
        taylor_degree: int = taylor_ridge.USUAL_DEGREE,
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
    def to_params(cls, q: Public) -> ridge_forms.Params:
        """The parameters of the compiled step, from the complete public parameters `q`."""
        shared, degree = loss_and_clip(q), taylor_ridge.degree_of(q)
        ridge = ridge_step.Params(**shared, alpha=real(q, "alpha"), kors=kors.KORS.to_params(q))
        return ridge_forms.Params(**shared, degree=degree, ridge=ridge)

    @classmethod
    def refilled(cls, reduced: Public) -> Public:
        """All parameters in order. Raises `WrongInput` for Taylor features of another kernel."""
        public = super().refilled(reduced)
        taylor_ridge.has_taylor(public)
        return public

    @classmethod
    def irrelevant(cls, q: Public) -> set[str]:
        """As for others, and what KORS has if it is not there."""
        return super().irrelevant(q) | (
            {p.name for p in SAMPLING} if taylor_ridge.has_taylor(q) else set()
        )

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """Whether KORS draws coins."""
        return not taylor_ridge.has_taylor(q)

    @classmethod
    def check_features(cls, q: Public, d: int) -> None:
        """Raise `WrongInput` if Taylor features of so many cannot be made."""
        taylor_ridge.check_taylor(d, taylor_ridge.degree_of(q))

    @classmethod
    def sampling(cls, q: Public) -> Sampling | None:
        """What decides whether rows join the dictionary: that of its KORS, if it has one."""
        return None if taylor_ridge.has_taylor(q) else kors.KORS.sampling(q)

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        """The approximate cost of a run on a stream of this size, for the planner."""
        if taylor_ridge.has_taylor(q):
            return taylor_ridge.taylor_cost(q, size.d)
        points, rows = dictionary_cost(q, size, 3), past_rows_cost(size)
        return Cost(points.floats + rows.floats, points.nanoseconds + rows.nanoseconds)

    def features(self, X: Any) -> Array:
        """The embedding (n, J) of the rows of X (n, d) in the span of the dictionary: see P3. Or
        their Taylor features (n, r).
        """
        s = self._state
        return self._embedded(X, int(s.kors.points.n) or s.taylor.features.parents.size)
