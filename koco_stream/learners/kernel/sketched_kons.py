"""Sketched-KONS: the kernel online Newton step with a sketch of sampled points."""

from koco_stream.learners.kernel.newton_step import KernelNewtonStep
from koco_stream.learners.spec import (
    ALPHA,
    BETA,
    CURVATURE,
    CURVATURE_SCHEDULE,
    EPSILON,
    ESTIMATE,
    KERNEL_SHAPE,
    SHARED,
    Parameter,
)
from koco_stream.types import Array


class SketchedKONS(KernelNewtonStep):
    """The kernel online Newton step with a sketch of B sampled points, in O(B² + ts) a round.

    It stores all rows and takes O(B² + t) per round for B points, and O(td) for kernel values,
    which runs of a sweep share.

    Notes
    -----
    Calandriello, Lazaric, Valko (ICML 2017), Algorithm 3.
    """

    parameters = (
        *SHARED,
        ALPHA,
        BETA,
        EPSILON,
        ESTIMATE,
        Parameter(
            "sampling_floor",
            float,
            "the paper's γ, the least probability of a point in the sketch",
            low=0,
            high=1,
            note="1 keeps all points.",
        ),
        CURVATURE,
        CURVATURE_SCHEDULE,
        *KERNEL_SHAPE,
    )
    exact, always_stochastic = False, True

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
        sampling_floor: float = 0.0,
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

    @property
    def dictionary_(self) -> Array:
        """The row numbers (B,) of the sketch's points, counted from 0 over all rows learnt from."""
        return self._state.sketch.rows[: int(self._state.sketch.n)].copy()
