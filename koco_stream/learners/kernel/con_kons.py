"""CON-KONS: PROS-N-KONS that keeps its solution when a point joins the dictionary."""

from koco_stream.learners.kernel.pros_n_kons import PROSNKONS
from koco_stream.learners.spec import SAMPLING, Parameter, Public

THRESHOLD = Parameter(
    "threshold",
    float,
    "the share of k(x, x) outside the span of the dictionary above which a row joins it",
    low=1e-6,
    high=0.99,
    matters_if=("dictionary", ("ald",)),
)


class CONKONS(PROSNKONS):
    """PROS-N-KONS that keeps its solution when a point joins the dictionary, instead of restarting.

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
    dictionary : {"kors", "ald"}
        Which rows join: those that KORS samples, or by approximate linear dependence those with
        k(x, x) − k_IᵀK_I⁻¹k_I > threshold·k(x, x) (docs/errata.md, N1). The latter draws no random
        numbers, and `ridge`, `beta`, `epsilon` and `estimate` do not matter.
    threshold : float
        The threshold of approximate linear dependence. At least 1e-6, for the digits of A.
    carry : {"both", "weights"}
        "both" maps the weights and A into the larger space, as the NIPS text says. "weights" maps
        the weights and resets A to αI, which fits the poster's table better (docs/errata.md, P4).
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
    CON-KONS of Calandriello, Lazaric, Valko (NIPS 2017).
    """

    parameters = (
        *PROSNKONS.parameters,
        Parameter(
            "carry",
            str,
            "what stays when a point joins: the weights and A, or the weights only",
            choices=("both", "weights"),
        ),
        Parameter(
            "dictionary",
            str,
            "which rows join: KORS's sample, or by approximate linear dependence",
            choices=("kors", "ald"),
        ),
        THRESHOLD,
    )
    restart = False

    def __init__(
        self,
        alpha: float = 1.0,
        ridge: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
        carry: str = "both",
        dictionary: str = "kors",
        threshold: float = 0.01,
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

    @classmethod
    def irrelevant(cls, q: Public) -> set[str]:
        """As for others, and what KORS has if it does not decide."""
        of_kors = {parameter.name for parameter in SAMPLING}
        return super().irrelevant(q) | (of_kors if q.get("dictionary") == "ald" else set())

    @classmethod
    def stochastic(cls, q: Public) -> bool:
        """Whether KORS draws coins."""
        return q.get("dictionary") == "kors"
