"""The public classes, one a learner. Their arguments are declared in `koco_stream.parameters`; a test holds the two together."""

from __future__ import annotations

from copy import deepcopy

from koco_stream.lazy_maps import refresh
from koco_stream.learners import fd_son, oja_son
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
    the sketch's rate min(c/t, 1), 1 in the paper; 16 to 128 work better on rows of unit mean square (docs/errata.md, S8). `sketch_start`:
    "gradients" (the first m gradients, orthonormalised) or "random" (drawn from `seed`). `diagonal`: feed D^(−1/2) x (section 5.2).
    `loss`, `clip`, `fit_intercept` as for `OGD`.
    """

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        sketch_rate: float = 1.0,
        sketch_start: str = "gradients",
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


class ONS(Model):
    """The Online Newton Step with the full matrix (Luo et al., 2016, equations 1 and 2), O(d²) a round and in memory.

    `alpha`, `curvature`, `curvature_schedule`, `loss`, `clip`, `fit_intercept` as for `OjaSON`. `seed`: not used.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.curvature = curvature
        self.curvature_schedule = curvature_schedule
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.seed = seed

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one."""
        return self._state.u.copy()


class RPSON(Model):
    """Sketched online Newton with random projections (Luo et al., 2016, Algorithm 1 and section 3), O(m² + ms) a round.

    `sketch_size`: m ≥ 1. `alpha`, `curvature`, `curvature_schedule`, `diagonal`, `loss`, `clip`, `fit_intercept` as for
    `OjaSON`. `seed`: of the projections."""

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
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
        self.diagonal = diagonal
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.seed = seed

    @property
    def sketch_(self) -> Array:
        """S (m, d), the sketch."""
        return self._state.sw[:, : int(self.sketch_size)].T.copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one (of the rescaled features if `diagonal`)."""
        m = int(self.sketch_size)
        return self._state.sw[:, m] + self._state.sw[:, :m] @ self._state.a[:m]


class FDSON(Model):
    """Sketched online Newton with frequent directions (Luo et al., 2016, Algorithms 1 and 2), with a buffer of m gradients.

    `sketch_size`: m ≥ 1. `alpha`, `curvature`, `curvature_schedule`, `diagonal`, `loss`, `clip`, `fit_intercept` as for
    `OjaSON`. `seed`: not used."""

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
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
        self.diagonal = diagonal
        self.loss = loss
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.seed = seed

    @property
    def sketch_(self) -> Array:
        """S (m, d), the kept rows."""
        return self._table()[:, : int(self.sketch_size)].T.copy()

    @property
    def buffer_(self) -> Array:
        """The to-sketch vectors since the last shrink (k, d), k < m."""
        m = int(self.sketch_size)
        return self._table()[:, m + 1 : m + 1 + int(self._state.filled)].T.copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one (of the rescaled features if `diagonal`)."""
        m, table, beta = int(self.sketch_size), self._table(), self._state.a[: 2 * int(self.sketch_size)]
        return table[:, m] + table[:, :m] @ beta[:m] + table[:, m + 1 : 2 * m + 1] @ beta[m:]

    def _readable_state(self) -> fd_son.State:
        # Bringing a column up to date now and again later rounds otherwise than doing it once: so it is done on a copy.
        return deepcopy(self._state)

    def _table(self) -> Array:
        """The columns, all brought up to date."""
        m, state = int(self.sketch_size), self._readable_state()
        for j in range(state.sw.shape[0]):
            refresh(state.maps, state.sw, j, 2 * m + 1, m + 1, self._params.out_lanes)
        return state.sw
