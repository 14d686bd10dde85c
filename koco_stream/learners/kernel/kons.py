"""KONS and Sketched-KONS: the kernel online Newton step, exact or with a sketch of sampled points.

Calandriello, Lazaric, Valko: Second-Order Kernel Online Convex Optimization with Adaptive Sketching
(ICML 2017), Algorithms 1 and 3. Both are koco_stream.learners.kernel.kons_step.
"""

from typing import ClassVar

from koco_stream.learners.growth import Growth, Sampling
from koco_stream.learners.kernel import kons_step
from koco_stream.learners.kernel.base import (
    EVERY_ROW,
    PLANNED_POINTS,
    SPARE,
    USUAL_POINTS,
    capacity,
    kernel_of,
    sampling_of,
)
from koco_stream.learners.kernel.kons_step import Params
from koco_stream.learners.kernel.kors import estimate_factor
from koco_stream.learners.shared_kernel_scan import SharedKernelLearner, kernel_values
from koco_stream.learners.spec import (
    ALPHA,
    BETA,
    CURVATURE,
    CURVATURE_SCHEDULE,
    EPSILON,
    ESTIMATE,
    KERNEL_SHAPE,
    SHARED,
    Cost,
    Parameter,
    Public,
    StreamSize,
    newton_params,
    real,
)
from koco_stream.losses import LOSSES, OF_REAL_LABELS, loss_slope
from koco_stream.numerics.instructions.point_panels import BLOCK
from koco_stream.types import Array


def a_round(growth: Growth) -> float:
    """The mean time of a round in nanoseconds, as measured for 500 to 4,000 points."""
    return growth.a_round(lambda points: 500.0 + 3.0 * points + 0.05 * points**2)


class KernelNewtonStep(SharedKernelLearner):
    """The base of KONS, where all points join the sketch, and Sketched-KONS, where some do."""

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
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        T, shared = size.rounds, kernel_values(q, size, size.rounds / 2)
        if cls.exact:
            growth = Growth((0.0, float(T)), (0.0, float(T)))
            return Cost(2 * T + 3 * (T + 16) ** 2 + 128 * T, a_round(growth) + 0.15 * T / 2, shared)
        floor = real(q, "sampling_floor")
        growth = size.growth or Growth.assumed(T, min(T, USUAL_POINTS + floor * T / 2))
        most = SPARE * growth.last if size.growth else max(PLANNED_POINTS, 1.2 * floor * T)
        n = capacity(min(T, int(most) + BLOCK))
        # KORS's dictionary, too, is as large as the sketch only if no other rows join.
        ns = a_round(growth) * (1.0 if floor > 0.0 else 2.0) + 0.15 * T / 2
        return Cost(2 * T + int(2.5 * n * n) + 128 * n, ns, shared)

    @classmethod
    def sampling(cls, q: Public) -> Sampling:
        """What decides whether rows join the sketch; the ridge is that of the prediction 0."""
        if cls.exact:
            return sampling_of(q, real(q, "alpha"), 1.0, EVERY_ROW)
        label = min(real(q, "clip"), 1e100) if q["loss"] in OF_REAL_LABELS else 1.0
        slope = loss_slope(LOSSES[str(q["loss"])], 0.0, label)
        weight = max(float(q["curvature"] or 0.0) * slope * slope, 1e-300)
        factor = real(q, "beta") * estimate_factor(q)
        floor, ridge = real(q, "sampling_floor"), real(q, "alpha") / weight
        return sampling_of(q, ridge, factor, floor)._replace(of_gradients=True)

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
