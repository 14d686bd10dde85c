"""KONS and Sketched-KONS: the kernel online Newton step, exact or with a sketch of sampled points.

Calandriello, Lazaric, Valko: Second-Order Kernel Online Convex Optimization with Adaptive Sketching
(ICML 2017), Algorithms 1 and 3. Both are koco_stream.learners.kernel.kons_step.
"""

from typing import ClassVar

from koco_stream.learners.kernel import kons_step
from koco_stream.learners.kernel.base import kernel_of
from koco_stream.learners.kernel.kons_step import Params
from koco_stream.learners.kernel.kors import estimate_factor
from koco_stream.learners.shared_kernel_scan import SharedKernelLearner
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
    Public,
    StreamSize,
    newton_params,
    real,
)
from koco_stream.numerics.instructions.point_panels import BLOCK
from koco_stream.types import Array


class KernelNewtonStep(SharedKernelLearner):
    """The base of KONS, where all points join the sketch, and Sketched-KONS, where some do."""

    open_ended = True
    exact: ClassVar[bool]
    init, step = staticmethod(kons_step.init), staticmethod(kons_step.step)
    forward, look_ahead = staticmethod(kons_step.forward), staticmethod(kons_step.look_ahead)
    with_room = staticmethod(kons_step.with_room)

    @classmethod
    def to_params(cls, q: Public) -> Params:
        return Params(
            **newton_params(q),
            kernel=kernel_of(q),
            exact=cls.exact,
            factor=1.0 if cls.exact else estimate_factor(q),
            beta=0.0 if cls.exact else real(q, "beta"),
            floor=0.0 if cls.exact else real(q, "sampling_floor"),
        )

    @classmethod
    def floats(cls, q: Public, size: StreamSize) -> int:
        return 130 * size.rounds + 3 * (size.rounds + BLOCK) ** 2

    @staticmethod
    def joined(state: kons_step.State) -> Array:
        """The rounds in which the sketch's points joined, increasing."""
        return state.sketch.rows[: int(state.sketch.n)] + 1


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
