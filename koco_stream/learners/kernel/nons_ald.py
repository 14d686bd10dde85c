"""NONS-ALD: CON-KONS whose dictionary grows by approximate linear dependence.

Li, Liao: Nearly optimal algorithms with sublinear computational complexity for online kernel
regression (ICML 2023). Labels like N1 refer to docs/errata.md.
"""

from dataclasses import replace

from koco_stream.learners.growth import Sampling
from koco_stream.learners.kernel.base import sampling_of
from koco_stream.learners.kernel.pros_n_kons import PROSNKONS, Params
from koco_stream.learners.spec import (
    ALPHA,
    CURVATURE,
    CURVATURE_SCHEDULE,
    KERNEL_SHAPE,
    SHARED,
    Parameter,
    Public,
    real,
)


class NONSALD(PROSNKONS):
    """CON-KONS on the rows that are not nearly in the span of those before them; O(J² + Js).

    A row joins if k(x, x) − k_IᵀK_I⁻¹k_I > threshold·k(x, x). It keeps its solution when a point
    joins, and draws no random numbers.

    Notes
    -----
    NONS-ALD of Li, Liao (ICML 2023).
    """

    parameters = (
        *SHARED,
        ALPHA,
        Parameter(
            "threshold",
            float,
            "the share of k(x, x) outside the span of the dictionary above which a row joins it",
            low=1e-6,
            high=0.99,
            note="The least is for the digits of A.",
        ),
        replace(
            CURVATURE, note="By default 1/(4C² + 4) for the squared loss (docs/errata.md, N2)."
        ),
        CURVATURE_SCHEDULE,
        *KERNEL_SHAPE,
    )
    curvature_share = 1.0
    restart = always_stochastic = False

    def __init__(
        self,
        alpha: float = 1.0,
        *,
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
    def to_params(cls, q: Public) -> Params:
        """The parameters of the compiled step, of which those of KORS are not used."""
        return super().to_params({**PROSNKONS.defaults(), **q})

    @classmethod
    def sampling(cls, q: Public) -> Sampling:
        """What decides whether rows join the dictionary: the threshold."""
        threshold = real(q, "threshold")
        return sampling_of(q, threshold / 2.0, 1.0)._replace(threshold=threshold)

    @classmethod
    def usual_curvature(cls, loss: str, clip: float) -> float:
        """The default curvature: for the squared loss the paper's (N2)."""
        if loss != "squared":
            return super().usual_curvature(loss, clip)
        return 1.0 / (4.0 * clip * clip + 4.0)
