"""PROS-N-KONS, CON-KONS, B-KONS and NONS-ALD: exact Newton steps in the span of a dictionary.

Calandriello, Lazaric, Valko: Efficient Second-Order Online Kernel Learning with Adaptive Embedding
(NIPS 2017); Li, Liao: Nearly optimal algorithms with sublinear computational complexity for online
kernel regression (ICML 2023). Labels like P1 and N1 refer to docs/errata.md. The step is
koco_stream.learners.kernel.pros_n_kons_step; the learners differ in what decides that a row joins
the dictionary, and in what stays when one does.
"""

from dataclasses import replace
from typing import Any, ClassVar

from koco_stream.learners.kernel.inverse import SpanLearner
from koco_stream.learners.kernel.pros_n_kons_step import BOTH, Params, forward, init, step
from koco_stream.learners.spec import (
    ALPHA,
    CURVATURE,
    CURVATURE_SCHEDULE,
    KERNEL_SHAPE,
    SAMPLING,
    SHARED,
    Parameter,
    Public,
)


class PROSNKONS(SpanLearner):
    """Newton steps in the span of KORS's dictionary, restarted when a point joins; O(J² + Js).

    Notes
    -----
    PROS-N-KONS of Calandriello, Lazaric, Valko (NIPS 2017).
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        *SHARED,
        ALPHA,
        *SAMPLING,
        replace(CURVATURE, note="Here by default half of σ (docs/errata.md, P1)."),
        CURVATURE_SCHEDULE,
        *KERNEL_SHAPE,
    )
    curvature_share, params_type = 0.5, Params
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        alpha: float = 1.0,
        ridge: float = 1.0,
        *,
        beta: float = 1.0,
        epsilon: float = 0.5,
        estimate: str = "icml",
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


class CONKONS(PROSNKONS):
    """PROS-N-KONS that keeps its solution when a point joins, instead of restarting; O(J² + Js).

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
            note="The NIPS text keeps both; `weights` fits the poster's table better"
            " (docs/errata.md, P4).",
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
        carry: str = "both",
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


class BKONS(PROSNKONS):
    """PROS-N-KONS whose dictionary stops growing at `max_dictionary` points; O(J² + Js) a round.

    It then continues to learn in their span. Until then its results are bit-identical to those of
    `PROSNKONS`.

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
    always_stochastic = False

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
    def to_params(cls, q: Public) -> Any:
        """The parameters of the compiled step, of which those of KORS are not used."""
        return super().to_params(q)._replace(carry=BOTH)

    @classmethod
    def usual_curvature(cls, loss: str, clip: float) -> float:
        """The default curvature: for the squared loss the paper's (N2)."""
        if loss != "squared":
            return super().usual_curvature(loss, clip)
        return 1.0 / (4.0 * clip * clip + 4.0)
