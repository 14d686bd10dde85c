"""The public classes, one a learner. Their constructors come from what the registry declares (see
`Model`).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.kernels.dictionary import Points
from koco_stream.learners.embedding import embedded
from koco_stream.learners.kernel import fogd, nogd, pros_n_kons
from koco_stream.learners.linear import fd_son, oja_son
from koco_stream.learners.model import Model
from koco_stream.numerics.lazy_maps import refresh
from koco_stream.numerics.linear_algebra import Array
from koco_stream.scikit_learn import regressor_tags
from koco_stream.streams.rows import as_rows


class OGD(Model):
    """Projected online gradient descent, w ← w − step_size·g (Zinkevich, 2003; projection of Luo et
    al., 2016, Lemma 1).

    `loss`: squared, half_squared, logistic, squared_hinge or hinge. `clip`: C, the bound on
    predictions. `projection`: how they are bounded: "weights", these are projected onto {w : |wᵀx|
    ≤ C} before each prediction, as in the paper; "prediction", it is truncated to [−C, C].
    `step_size` > 0. `fit_intercept`: add a feature that is always 1. `seed`: not used.
    """

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.w.copy()


class AdaGrad(Model):
    """AdaGrad with a diagonal matrix, w_j ← w_j − step_size·g_j/√(Σ g_j²) (Duchi, Hazan, Singer,
    2011).

    Arguments as for `OGD`; predictions are truncated to [−clip, clip].
    """

    @property
    def coef_(self) -> Array:
        """The weights (d,), with the intercept's last if there is one."""
        return self._state.wG[:, 0].copy()


class OjaSON(Model):
    """Sketched online Newton with Oja's sketch (Luo et al., 2016, Algorithms 4 and 5), O(m² + ms) a
    round.

    `sketch_size`: m, 0 for projected gradient descent. `alpha`: α > 0, the ridge; 1/α is the step
    off the sketch. `curvature`: the coefficient of g gᵀ in A, by default the loss's σ for `clip`;
    divided by √t if `curvature_schedule="decreasing"`. `sketch_rate`: c in the sketch's rate
    min(c/t, 1), 1 in the paper, for rows as they are; rows that were scaled down turn the sketch
    less, and then 16 to 128 work better (docs/errata.md, S8). `sketch_start`: "gradients" (the
    first m gradients, orthonormalised) or "random" (drawn from `seed`). `diagonal`: feed D^(−1/2) x
    (section 5.2), with D_jj = 0.1 + Σ g_j²: True, the D of the rounds before, as printed;
    "updated", predict so, and update the sketch and the weights with this round's g in D too, as
    Vowpal Wabbit does (S7). `loss`, `clip`, `projection`, `fit_intercept` as for `OGD`.
    """

    @property
    def sketch_(self) -> Array:
        """V (m, d), the sketch's orthonormal rows; zero where a row has not started."""
        m = int(self.sketch_size)
        F = self._lines(oja_son.F)[:m, :m]
        return self._state.zw[:, :m].dot(F.T).T

    @property
    def eigenvalues_(self) -> Array:
        """tΛ (m,), the estimated eigenvalues of Σ ĝĝᵀ."""
        return self._lines(oja_son.TLAM)[0, : int(self.sketch_size)].copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one (of the rescaled features
        if `diagonal`).
        """
        m = int(self.sketch_size)
        return self._state.zw[:, m] + self.sketch_.T @ self._lines(oja_son.BETA)[0, :m]

    def _lines(self, first: int) -> Array:
        """The small vectors and F, a line each, from this one on."""
        return self._state.a.reshape(-1, len(self._params.lanes))[first:]


class ONS(Model):
    """The Online Newton Step with the full matrix (Luo et al., 2016, equations 1 and 2), O(d²) a
    round and in memory.

    `alpha`: as for `OjaSON`, or 0: then A's pseudo-inverse is used, and predictions do not change
    when all rows are mapped by an invertible matrix (docs/errata.md, S22). `curvature`,
    `curvature_schedule`, `loss`, `clip`, `projection`, `fit_intercept` as for `OjaSON`. `seed`: not
    used.
    """

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one."""
        return self._state.u.copy()


class RPSON(Model):
    """Sketched online Newton with random projections (Luo et al., 2016, Algorithm 1 and section 3),
    O(m² + ms) a round.

    `sketch_size`: m ≥ 1. `alpha`, `curvature`, `curvature_schedule`, `diagonal`, `loss`, `clip`,
    `projection`, `fit_intercept` as for `OjaSON`. `seed`: of the projections.
    """

    @property
    def sketch_(self) -> Array:
        """S (m, d), the sketch."""
        return self._state.sw[:, : int(self.sketch_size)].T.copy()

    @property
    def coef_(self) -> Array:
        """The weights u (d,), with the intercept's last if there is one (of the rescaled features
        if `diagonal`).
        """
        m = int(self.sketch_size)
        return self._state.sw[:, m] + self._state.sw[:, :m] @ self._state.a[:m]


class FDSON(Model):
    """Sketched online Newton with frequent directions (Luo et al., 2016, Algorithms 1 and 2), with
    a buffer of m gradients.

    `sketch_size`: m ≥ 1, the rows that a shrink leaves. Until the next one up to m gradients are
    kept as they are, so that the sketch has from m to 2m − 1 rows, and a shrink comes every m
    rounds; the paper's m rows have one each round (docs/errata.md, S21). The round that fills the
    buffer shrinks first, then updates the weights. `alpha`, `curvature`, `curvature_schedule`,
    `diagonal`, `loss`, `clip`, `projection`, `fit_intercept` as for `OjaSON`. `seed`: not used.
    """

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
        """The weights u (d,), with the intercept's last if there is one (of the rescaled features
        if `diagonal`).
        """
        m, table, beta = (
            int(self.sketch_size),
            self._table(),
            self._state.a[: 2 * int(self.sketch_size)],
        )
        return table[:, m] + table[:, :m] @ beta[:m] + table[:, m + 1 : 2 * m + 1] @ beta[m:]

    def _readable_state(self) -> fd_son.State:
        # Bringing a column up to date now and again later rounds otherwise than doing it once: so
        # it is done on a copy.
        return deepcopy(self._state)

    def _table(self) -> Array:
        """The columns, all brought up to date."""
        m, state = int(self.sketch_size), self._readable_state()
        for j in range(state.sw.shape[0]):
            refresh(state.maps, state.sw, j, 2 * m + 1, m + 1, self._params.out_lanes)
        return state.sw


class KernelModel(Model):
    """What learners with a dictionary share."""

    @property
    def _points(self) -> Points:
        return getattr(self._state, "kors", self._state).points

    @property
    def dictionary_(self) -> Array:
        """The row numbers (J,) of the dictionary's points, counted from 0 over all rows learnt
        from.
        """
        return self._points.rounds[: int(self._points.n)] - 1


class KORS(KernelModel):
    """Kernel online row sampling (Calandriello, Lazaric, Valko, ICML 2017, Algorithm 2): a
    dictionary that grows with the rows.

    `ridge`: γ, the algorithm's α. `epsilon`: ε. `beta`: β; the guarantee needs 3·log(T/δ)/ε²,
    published experiments use 1. `estimate`: the factor 1 + ε ("icml") or 1 − ε ("poster").
    `kernel`: gaussian (with `bandwidth`), polynomial (with `degree`) or linear. `max_dictionary`:
    take no more points. `seed`: of the coins. It predicts nothing: `progressive` returns zeros, and
    y may be left out.
    """

    @property
    def weights_(self) -> Array:
        """The weights 1/p̃ (J,) of the points."""
        return self._state.roots[: int(self._points.n)] ** 2

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks before it runs its checks."""
        return regressor_tags(target_required=False)

    def progressive(self, X: Any, y: Any = None) -> Array:
        """Offer the rows in order; returns zeros (n,)."""
        return super().progressive(X, np.zeros(as_rows(X).n_rows) if y is None else y)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Offer the rows in order."""
        self.progressive(X, y)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then offer the rows in order."""
        return super().fit(X, np.zeros(as_rows(X).n_rows) if y is None else y)

    def record(self, X: Any, y: Any = None) -> Any:
        """As `Model.record`: `inclusion_probability`, `included` and `dictionary_size` after each
        row.
        """
        return super().record(X, np.zeros(as_rows(X).n_rows) if y is None else y)


class PROSNKONS(KernelModel):
    """Exact Newton steps in the span of KORS's dictionary, begun again whenever a point joins
    (PROS-N-KONS, NIPS 2017).

    `alpha`: α, the ridge of A_0. `ridge`: the poster's γ, that of KORS. `curvature`: the
    coefficient of g̃g̃ᵀ, by default half the loss's σ for `clip` (docs/errata.md, P1). `beta`,
    `epsilon`, `estimate`, `kernel`, `bandwidth`, `degree`: as for `KORS`. `loss`, `clip`,
    `curvature_schedule`, `fit_intercept` as for `OjaSON`. `seed`: of the coins.
    """

    def features(self, X: Any) -> Array:
        """The embedding (n, J) of the rows of X (n, d) in the span of the dictionary: φ̃ = L⁻¹k
        with LLᵀ = K_I, zero for repeated points.
        """
        rows = self._rows_of(X)
        return embedded(
            pros_n_kons, self._params, self._readable_state(), rows, int(self._points.n)
        )


class CONKONS(PROSNKONS):
    """PROS-N-KONS that carries its solution across when a point joins (CON-KONS, NIPS 2017).
    Arguments as for `PROSNKONS`, and `carry`.

    `carry`: "both" maps the weights and A into the larger space, as the NIPS text says; "weights"
    maps the weights and begins again from A = αI, which fits the poster's table better
    (docs/errata.md, P4).
    """


class BKONS(PROSNKONS):
    """PROS-N-KONS that takes no more than `max_dictionary` points and then goes on learning
    (B-KONS, NIPS 2017).

    Until then it is `PROSNKONS`, bit for bit. Arguments as for `PROSNKONS`.
    """


class SketchedKONS(Model):
    """The online Newton step on kernels with a sketch of sampled points (Calandriello, Lazaric,
    Valko, ICML 2017, Algorithm 3).

    `alpha`: α, also the ridge of its KORS. `sampling_floor`: the paper's γ, the least probability
    of a point; 1 keeps all. `curvature`: η, by default the loss's σ for `clip`. `beta`, `epsilon`,
    `estimate`, `kernel`, `bandwidth`, `degree` as for `KORS`; `loss`, `clip`, `curvature_schedule`,
    `fit_intercept` as for `OjaSON`. `seed`: of the coins. It remembers all rows: O(B² + t) a round,
    and O(td) for kernel values, which runs of a sweep share.
    """

    @property
    def dictionary_(self) -> Array:
        """The row numbers (B,) of the sketch's points, counted from 0 over all rows learnt from."""
        return self._state.sketch.rows[: int(self._state.sketch.n)].copy()


class KONS(Model):
    """The online Newton step on kernels, exact (Calandriello, Lazaric, Valko, ICML 2017, Algorithm
    1): O(t²) a round and in memory.

    Arguments as for `SketchedKONS`.
    """


class NORMA(Model):
    """Gradient descent on functions with a budget of the most recent points (Kivinen, Smola,
    Williamson, 2004).

    `step_size`: η. `regularisation`: λ. `budget`: the most points; the oldest goes. `tube`: ν of
    the soft margin, with the hinge loss; 0 for the hinge loss itself. Predictions are truncated to
    [−clip, clip]. `kernel`, `bandwidth`, `degree` as for `KORS`; `loss`, `fit_intercept` as for
    `OGD`. `seed`: not used.
    """

    @property
    def dictionary_(self) -> Array:
        """The row numbers of the points, the oldest first, counted from 0 over all rows learnt
        from.
        """
        return np.sort(self._state.rows[: int(self._state.dictionary_size)])


class FOGD(Model):
    """Online gradient descent on random Fourier features of the Gaussian kernel (Lu et al., JMLR
    17(47), 2016).

    `step_size`: of the descent. `n_frequencies`: D; each frequency gives a cosine and a sine, all
    over √D, so that a step means the same whatever D. `bandwidth`: of the kernel. `tube`: with the
    squared loss no update while |ŷ − y| is within it (the paper: 0.1). `seed`: of the frequencies.
    Predictions are not truncated: `clip` does not matter. `loss`, `fit_intercept` as for `OGD`.
    """

    @property
    def coef_(self) -> Array:
        """The weights (2D,) of `features`."""
        n = int(self.n_frequencies)
        return np.sqrt(float(n)) * self._state.a[fogd.WEIGHTS :, :n].reshape(-1)

    def features(self, X: Any) -> Array:
        """The features (n, 2D) of the rows of X (n, d): cosines, then sines, over √D."""
        rows = self._rows_of(X)
        return embedded(fogd, self._params, self._state, rows, 2 * int(self.n_frequencies))


class NOGD(KernelModel):
    """Kernel gradient descent up to `budget` points, then gradient descent on their Nyström
    features (Lu et al., JMLR 17(47), 2016).

    `step_size`: of both. `budget`: B; a point with k(x, x) > 0 joins whenever the loss has a slope
    there. `rank`: k, the eigenvectors of the points' kernel matrix that are kept (at most B; fewer
    if points repeat). `kernel`, `bandwidth`, `degree`: as for `KORS`. `tube`, `loss`,
    `fit_intercept` as for `FOGD`. `seed`: not used. Predictions are not truncated, so `clip` does
    not matter.
    """

    def features(self, X: Any) -> Array:
        """The Nyström features (n, k) of the rows of X (n, d). Raises `WrongInput` while there are
        fewer points than the budget.
        """
        rows = self._rows_of(X)
        if not self._state.mapped:
            raise WrongInput(
                f"{self!r} has {self._points.n} points yet; the features are there once it has"
                f" {int(self.budget)}"
            )
        return embedded(nogd, self._params, self._state, rows, self._params.rank)


class DualSGD(KernelModel):
    """Regularised kernel gradient descent on a budget; points that leave it are kept in random
    Fourier features (Le et al., NIPS 2016).

    `regularisation`: λ > 0 in λ/2·‖f‖² + loss; the step of round t is 1/(λt). `budget`: B, the
    points kept as they are: beyond it, the one with the smallest coefficient leaves, of equals the
    oldest. `n_frequencies`: D. `bandwidth`: of the Gaussian kernel. Predictions are truncated to
    [−clip, clip]. `loss`, `fit_intercept` as for `OGD`. `seed`: of the frequencies.
    """
