"""KONS: the exact kernel online Newton step, whose sketch contains all points."""

from koco_stream.learners.kernel.newton_step import KernelNewtonStep
from koco_stream.learners.spec import ALPHA, CURVATURE, CURVATURE_SCHEDULE, KERNEL_SHAPE, SHARED


class KONS(KernelNewtonStep):
    """The exact kernel online Newton step, in O(t² + ts) a round and O(t²) memory.

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
