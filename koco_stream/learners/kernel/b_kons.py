"""B-KONS: PROS-N-KONS with a limit on the size of its dictionary."""

from koco_stream.learners.kernel.pros_n_kons import PROSNKONS
from koco_stream.learners.spec import Parameter


class BKONS(PROSNKONS):
    """PROS-N-KONS whose dictionary stops growing at `max_dictionary` points; O(J² + Js) a round.

    It then continues to learn in their span. Until then its results are bit-identical to those of
    `PROSNKONS`.

    Parameters
    ----------
    alpha : float
        α, the ridge of A_0.
    ridge : float
        The poster's γ, the ridge of KORS.
    beta : float
        β, the ratio of a point's probability to its leverage score. The guarantee needs
        3·log(T/δ)/ε²; published experiments use 1.
    epsilon : float
        ε, the accuracy of KORS's leverage score estimates.
    estimate : {"icml", "poster"}
        The estimate's factor: 1 + ε or 1 − ε.
    max_dictionary : int
        J_max, the maximum number of points.
    curvature : float, optional
        The coefficient of g gᵀ in A. By default half the loss's σ for `clip` (docs/errata.md, P1).
    curvature_schedule : {"constant", "decreasing"}
        Whether `curvature` is constant, or divided by √t.
    kernel : {"gaussian", "polynomial", "linear"}
        The kernel.
    bandwidth : float
        The bandwidth of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²)).
    degree : int
        The degree of the polynomial kernel (xᵀx' + 1)^degree.
    loss : {"squared", "half_squared", "logistic", "squared_hinge", "hinge"}
        The loss function.
    clip : float
        C > 0, the bound on predictions.
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
    B-KONS of Calandriello, Lazaric, Valko (NIPS 2017).
    """

    parameters = (
        *PROSNKONS.parameters,
        Parameter(
            "max_dictionary", int, "J_max, the largest number of points", low=1, high=100_000
        ),
    )

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
