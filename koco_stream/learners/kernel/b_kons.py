"""B-KONS: PROS-N-KONS with a largest dictionary."""

from koco_stream.learners.kernel.pros_n_kons import PROSNKONS
from koco_stream.learners.parameters import (
    ALPHA,
    CURVATURE,
    CURVATURE_SCHEDULE,
    KERNEL_SHAPE,
    SAMPLING,
    SHARED,
    Parameter,
)

J_MAX = Parameter("max_dictionary", int, "J_max, the most points", low=1, high=100_000)


class BKONS(PROSNKONS):
    """PROS-N-KONS that takes no more than `max_dictionary` points and then goes on learning.

    Until then it is `PROSNKONS`, bit for bit.

    Parameters
    ----------
    alpha : float
        α, the ridge of A_0.
    ridge : float
        The poster's γ, the ridge of KORS.
    beta : float
        β, how many times its leverage score a point's probability is. The guarantee needs
        3·log(T/δ)/ε²; published experiments use 1.
    epsilon : float
        ε, the accuracy of KORS's estimate.
    estimate : {"icml", "poster"}
        The estimate's factor: 1 + ε or 1 − ε.
    max_dictionary : int
        J_max, the most points.
    curvature : float, optional
        The coefficient of g gᵀ in A. By default half the loss's σ for `clip` (docs/errata.md, P1).
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
    dictionary_ : ndarray of shape (J,)
        The row numbers of the dictionary's points, counted from 0 over all rows learnt from.

    Notes
    -----
    B-KONS of Calandriello, Lazaric, Valko (NIPS 2017).
    """

    parameters = (*SHARED, ALPHA, *SAMPLING, J_MAX, CURVATURE, CURVATURE_SCHEDULE, *KERNEL_SHAPE)

    def __init__(
        self,
        alpha: float = 1.0,
        ridge: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
        max_dictionary: int = 100,
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
