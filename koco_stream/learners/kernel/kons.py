"""KONS: the exact kernel online Newton step, whose sketch contains all points."""

from koco_stream.learners.kernel.newton_step import KernelNewtonStep
from koco_stream.learners.spec import ALPHA, CURVATURE, CURVATURE_SCHEDULE, KERNEL_SHAPE, SHARED


class KONS(KernelNewtonStep):
    """The exact kernel online Newton step, in O(t² + ts) a round and O(t²) memory.

    Parameters
    ----------
    alpha : float
        α, the ridge.
    curvature : float, optional
        The coefficient of g gᵀ in A. By default the loss's σ for `clip`.
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
        Not used.

    Notes
    -----
    Calandriello, Lazaric, Valko (ICML 2017), Algorithm 1.
    """

    parameters = (*SHARED, ALPHA, CURVATURE, CURVATURE_SCHEDULE, *KERNEL_SHAPE)
    exact = True

    def __init__(
        self,
        alpha: float = 1.0,
        *,
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
