"""B-KONS: PROS-N-KONS with a limit on the size of its dictionary."""

from koco_stream.learners.kernel.pros_n_kons import PROSNKONS
from koco_stream.learners.spec import Parameter


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
