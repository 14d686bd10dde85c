"""Ada-FD: full-matrix AdaGrad with frequent directions and a constant δ.

Wan, Zhang (IJCAI 2018): S = FD(S, g), w ← w − step·((SᵀS)^½ + δI)⁻¹ g. Predictions are truncated to
[−C, C] before the loss is taken; the weights are not projected. See eigen_sketch.py for the sketch.
"""

import math

from koco_stream.learners import spec
from koco_stream.learners.linear.eigen_round import (
    EigenSketchLearner,
    Params,
    adagrad_params,
    with_inverse,
)
from koco_stream.numerics.compiler import jit


@jit
def inverse(eigenvalue: float, delta: float) -> float:
    """1/(√λ + δ)."""
    return 1.0 / (math.sqrt(eigenvalue) + delta)


class AdaFD(EigenSketchLearner):
    """Full-matrix AdaGrad with frequent directions, w ← w − step_size·((SᵀS)^½ + δI)⁻¹ g, in
    O(m³ + ms) a round.

    Notes
    -----
    Wan, Zhang (IJCAI 2018). The sketch shrinks after up to ⌈2m/3⌉ gradients, instead of in every
    round (docs/errata.md, S23). While no shrink takes anything, it is AdaGrad with the full matrix.
    """

    parameters = (*spec.SHARED, spec.SKETCH_SIZE, spec.STEP_SIZE, spec.DELTA)
    step = staticmethod(with_inverse("ada_fd", inverse))

    def __init__(
        self,
        sketch_size: int = 10,
        step_size: float = 1.0,
        delta: float = 1.0,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: spec.Public) -> Params:
        return adagrad_params(q, "delta", growth=0.0)
