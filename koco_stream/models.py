"""The public classes, one a learner. Their arguments are declared in `koco_stream.parameters`; a test holds the two together."""

from __future__ import annotations

from koco_stream.learners import oja_son
from koco_stream.linalg import Array
from koco_stream.model import Model


class OGD(Model):
    """Projected online gradient descent, w ← w − step_size·g (Zinkevich, 2003; projection of Luo et al., 2016, Lemma 1).

    `loss`: squared, logistic, squared_hinge or hinge. `clip`: C, the bound on predictions. `step_size` > 0. `fit_intercept`: add a
    feature that is always 1. `seed`: not used.
    """

    def __init__(
        self,
        step_size: float = 1.0,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self.step_size = step_size
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.seed = seed

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.w.copy()


class AdaGrad(Model):
    """AdaGrad with a diagonal matrix, w_j ← w_j − step_size·g_j/√(Σ g_j²) (Duchi, Hazan, Singer, 2011).

    Arguments as for `OGD`; predictions are truncated to [−clip, clip].
    """

    def __init__(
        self,
        step_size: float = 1.0,
        *,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self.step_size = step_size
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.seed = seed

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.wG[:, 0].copy()


class OjaSON(Model):
    """Sketched online Newton with Oja's sketch (Luo et al., 2016, Algorithms 4 and 5), O(m² + ms) a round.

    `sketch_size`: m, 0 for projected gradient descent. `alpha`: α > 0, the ridge; 1/α is the step off the sketch. `curvature`: the
    coefficient of g gᵀ in A, by default the loss's σ for `clip`; divided by √t if `curvature_schedule="decreasing"`. `sketch_rate`: c in
    the sketch's rate min(c/t, 1), 1 in the paper; 16 to 128 work better on rows of unit mean square (docs/errata.md, S8). `loss`, `clip`,
    `fit_intercept` as for `OGD`. `seed`: of the sketch's start.
    """

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        sketch_rate: float = 1.0,
        sketch_start: str = "random",
        diagonal: bool = False,
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self.sketch_size = sketch_size
        self.alpha = alpha
        self.curvature = curvature
        self.curvature_schedule = curvature_schedule
        self.sketch_rate = sketch_rate
        self.sketch_start = sketch_start
        self.diagonal = diagonal
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.seed = seed

    @property
    def sketch_(self) -> Array:
        """V (m, d), the sketch's orthonormal rows; zero where a row has not started."""
        return self._state.zw[:, : int(self.sketch_size)].dot(self._small(oja_son.F).T).T

    @property
    def eigenvalues_(self) -> Array:
        """tΛ (m,), the estimated eigenvalues of Σ ĝĝᵀ."""
        return self._small(oja_son.TLAM)[0].copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one (of the rescaled features if `diagonal`)."""
        return self._state.zw[:, int(self.sketch_size)] + self.sketch_.T @ self._small(oja_son.BETA)[0]

    def _small(self, first: int) -> Array:
        m, width = int(self.sketch_size), len(self._params.lanes)
        return self._state.a.reshape(-1, width)[first : first + max(m, 1), :m]
