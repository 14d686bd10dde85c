"""CON-KONS: PROS-N-KONS that keeps its solution when a point joins the dictionary."""

from koco_stream.learners.kernel.pros_n_kons import PROSNKONS
from koco_stream.learners.spec import Parameter


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
