"""S-AdaGrad ("Sketchy"): full-matrix AdaGrad with frequent directions, with no constant to tune.

Feinberg, Chen, Sun, Anil, Hazan (NeurIPS 2023): (S, ρ) = FD(S, g), α ← α + ρ,
w ← w − step·(SᵀS + αI)^(−½) g. What a shrink takes from the sketch comes back in all directions.
With α_0 = 0 the root is that of the pseudo-inverse until the first shrink. Predictions are
truncated to [−C, C] before the loss is taken; the weights are not projected. See eigen_sketch.py
for the sketch.
"""

import math

from koco_stream.learners import spec
from koco_stream.learners.linear.eigen_round import (
    FIRST_ALPHA,
    EigenSketchLearner,
    Params,
    adagrad_params,
    with_inverse,
)
from koco_stream.numerics.compiler import jit


@jit
def inverse(eigenvalue: float, alpha: float) -> float:
    """(λ + α)^(−½), or 0 where that is 1/0."""
    return 1.0 / math.sqrt(eigenvalue + alpha) if eigenvalue + alpha > 0.0 else 0.0


class SAdaGrad(EigenSketchLearner):
    """Full-matrix AdaGrad with frequent directions, w ← w − step_size·(SᵀS + αI)^(−½) g, in
    O(m³ + ms) a round.

    Notes
    -----
    Feinberg, Chen, Sun, Anil, Hazan (NeurIPS 2023). The sketch shrinks after up to
    ⌈2m/3⌉ gradients, instead of in every round (docs/errata.md, S23). While no shrink takes
    anything, it is AdaGrad with the full matrix.
    """

    parameters = (*spec.SHARED, spec.SKETCH_SIZE, spec.STEP_SIZE, FIRST_ALPHA)
    step = staticmethod(with_inverse("s_adagrad", inverse))

    def __init__(
        self,
        sketch_size: int = 10,
        step_size: float = 1.0,
        alpha: float = 0.0,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: spec.Public) -> Params:
        return adagrad_params(q, "alpha", growth=1.0)

    @property
    def alpha_(self) -> float:
        """α now: α_0, and what the shrinks took from the eigenvalues."""
        return float(self._state.floor)
