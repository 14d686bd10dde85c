"""RFD-SON: sketched online Newton with robust frequent directions, whose ridge tunes itself.

Luo, Chen, Zhang, Li, Zhang (JMLR 2019): (S, ρ) = FD(S, √curvature·g), α ← α + ρ/2,
u = w − (SᵀS + αI)⁻¹g, then the projection of Lemma 1 of Luo et al. (NIPS 2016). A shrink takes ρ
from every direction of the sketch; half of it comes back as ridge, so that SᵀS + αI is as near to
Σ ĝĝᵀ as a sketch of this size can be. With α_0 = 0 the inverse is the pseudo-inverse until the
first shrink. See eigen_sketch.py for the sketch.
"""

from koco_stream.learners import spec
from koco_stream.learners.linear import eigen_sketch
from koco_stream.learners.linear.eigen_round import (
    FIRST_ALPHA,
    MOST_CLIPS,
    EigenSketchLearner,
    Params,
    with_inverse,
)
from koco_stream.numerics.compiler import jit


@jit
def inverse(eigenvalue: float, alpha: float) -> float:
    """1/(λ + α), or 0 where that is 1/0."""
    return 1.0 / (eigenvalue + alpha) if eigenvalue + alpha > 0.0 else 0.0


class RFDSON(EigenSketchLearner):
    """Sketched online Newton with robust frequent directions, without a ridge to tune; O(m³ + ms).

    Notes
    -----
    Luo, Chen, Zhang, Li, Zhang (JMLR 2019). The sketch shrinks after up to ⌈2m/3⌉
    gradients, instead of in every round (docs/errata.md, S23).
    """

    parameters = (
        *spec.SHARED,
        spec.SKETCH_SIZE,
        FIRST_ALPHA,
        spec.CURVATURE,
        spec.CURVATURE_SCHEDULE,
        spec.PROJECTION,
    )
    step = staticmethod(with_inverse("rfd_son", inverse))

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 0.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: spec.Public) -> Params:
        newton = spec.newton_params(q)
        return Params(
            floor=newton.pop("alpha"),
            **newton,
            step_size=1.0,
            growth=0.5,
            most_clips=MOST_CLIPS,
            project_weights=q["projection"] == "weights",
            **eigen_sketch.shape_params(spec.whole(q, "sketch_size")),
        )

    @property
    def alpha_(self) -> float:
        """α now: α_0, and half of what the shrinks took from the eigenvalues."""
        return float(self._state.floor)
