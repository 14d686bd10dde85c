"""Regret bounds of KONS, ONS and FD-SON, evaluated on a run's own rows (`koco_stream.theory`).

They hold for the squared loss, whose derivative is at most L = 4C. L replaces the derivatives of a
run, which are not recorded. The bounds therefore depend only on the rows: they are equal for all
seeds and, after the last round, for all orders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from flows.report.rows import kernel_matrix, rows_of_stream
from koco_stream.io.cache import computed_once
from koco_stream.io.paths import AnyPath
from koco_stream.losses import curvature_of
from koco_stream.streams.stream import Stream
from koco_stream.theory.bounds import (
    Hindsight,
    best_in_hindsight,
    effective_dimension,
    son_theorem_2,
    son_theorem_3,
    spectrum,
    theorem_1_curved,
)
from koco_stream.types import Array

# Learners with a regret bound, and its theorem.
THEOREMS = {
    "KONS": (
        "Theorem 1 of Calandriello, Lazaric, Valko (ICML 2017), second form, as corrected in"
        " docs/errata.md (K10)"
    ),
    "ONS": "Theorem 2 of Luo et al. (NIPS 2016)",
    "FDSON": (
        "Theorem 3 of Luo et al. (NIPS 2016), for the learner's buffer (docs/errata.md, S17), with"
        " its best k"
    ),
}
# Related learners without a regret bound.
WITHOUT = {
    "OjaSON": "no bound is known for Oja's sketch (docs/errata.md, S18)",
    "RPSON": "the bound for random projections is not computed here (docs/errata.md, S18)",
}
MOST_ROUNDS = 2_000  # the kernel matrix of so many rows is decomposed within seconds
VERSION = 1


@dataclass(frozen=True)
class Bound:
    """Bound on a learner's regret against a competitor f, at rounds `t`.

    It has the competitor's cumulative loss Σ (f(x_s) − y_s)², and how far the learner's may exceed
    it.
    """

    t: list[int]
    competitor: list[float]
    bound: list[float]


def why_not(learner: str, params: dict[str, Any], rounds: int) -> str | None:
    """Why no regret bound applies to a run, in words; None if one does."""
    if learner not in THEOREMS:
        other = "it is not an online Newton step that a theorem here is about"
        return f"{learner}: {WITHOUT.get(learner, other)}"
    curvature, most = params.get("curvature") or 0.0, curvature_of("squared", params["clip"])
    reasons = (
        (params.get("loss") != "squared", "it is computed here for the squared loss"),
        (
            learner != "ONS" and params.get("curvature_schedule") != "constant",
            "it is computed here for a constant curvature",
        ),
        (
            learner == "KONS" and curvature > most * (1 + 1e-12),
            f"its curvature {curvature:g} is above the loss's, 1/(8C²) = {most:g}",
        ),
        (
            params.get("projection", "weights") != "weights",
            "its predictions are truncated, and the theorem is about projected weights",
        ),
        (params["alpha"] == 0.0, "the theorem is computed here for a positive alpha"),
        (
            bool(params.get("diagonal")),
            "with the diagonal adaptation the rows that it learns from are not those of the"
            " dataset",
        ),
        (rounds > MOST_ROUNDS, f"{rounds:,} rounds, and it is computed for up to {MOST_ROUNDS:,}"),
    )
    return next((f"{learner}: {reason}" for applies, reason in reasons if applies), None)


def bound_of(
    store: AnyPath, stream: Stream, learner: str, params: dict[str, Any], rounds: Sequence[int]
) -> Bound | None:
    """Regret bound of a run after each of `rounds`, cached in the cache folder.

    None if a label exceeds the clip, which the theorems do not allow, or if it is not finite.
    """
    identity = {
        "stream": stream.identity(),
        "learner": learner,
        "params": params,
        "rounds": list(rounds),
        "version": VERSION,
    }

    def computed() -> dict[str, Any] | None:
        X, y = rows_of_stream(store, stream)
        if np.abs(y).max(initial=0.0) > params["clip"]:
            return None
        return vars(
            newton_bound(kernel_matrix(X, params), y, params, rounds)
            if learner == "KONS"
            else son_bound(X, y, learner, params, rounds)
        )

    found = computed_once("bounds", identity, computed)
    whole = found and None not in (*found["competitor"], *found["bound"])
    return Bound(**found) if whole else None


def newton_bound(K: Array, y: Array, params: dict[str, Any], rounds: Sequence[int]) -> Bound:
    """Regret bound of KONS for the first t rows, from `theorem_1_curved` (docs/errata.md, K10).

    The competitor is the best function on all rows, shrunk into the clip. K (n, n) is the rows'
    kernel matrix. The theorem requires k(x, x) ≤ 1; for larger values the rows and α are scaled
    down, which leaves the learner's predictions unchanged.
    """
    scale = max(1.0, float(np.diag(K).max(initial=0.0)))
    K, alpha, clip, sigma = K / scale, params["alpha"] / scale, params["clip"], params["curvature"]
    lipschitz = 4.0 * clip
    best = best_in_hindsight(K, y, alpha).scaled_into(clip)
    bounds = [
        theorem_1_curved(
            alpha=alpha,
            w_norm2=best.norm2,
            d_eff=effective_dimension(K[:t, :t], alpha / (sigma * lipschitz**2)),
            rounds=t,
            curvature=sigma,
            lipschitz=lipschitz,
        )
        for t in rounds
    ]
    return Bound(list(rounds), losses_of(best, rounds), bounds)


def losses_of(best: Hindsight, rounds: Sequence[int]) -> list[float]:
    """Cumulative loss Σ (f(x_s) − y_s)² of a competitor after each of `rounds`."""
    return np.cumsum((best.predictions - best.labels) ** 2)[np.array(rounds) - 1].tolist()


def son_bound(
    X: Array | csr_array, y: Array, learner: str, params: dict[str, Any], rounds: Sequence[int]
) -> Bound:
    """Regret bound of ONS (`son_theorem_2`) or FD-SON (`son_theorem_3`, with the best k).

    It is for the first t rows X (n, d) and the competitor of `newton_bound`. The coefficient of g
    gᵀ is σ + η: σ is the loss's curvature and η the excess. If the coefficient decreases (ONS
    only), all of it is η.
    """
    rows = csr_array(X)
    if params.get("fit_intercept"):
        rows = csr_array(hstack([rows, np.ones((rows.shape[0], 1))]))
    alpha, clip = params["alpha"], params["clip"]
    best = best_in_hindsight(kernel_matrix(rows, {}), y, alpha).scaled_into(clip)
    lipschitz, most = 4.0 * clip, curvature_of("squared", clip)
    decreasing = params["curvature_schedule"] == "decreasing"
    sigma = 0.0 if decreasing else min(params["curvature"], most)
    coefficients = params["curvature"] / (
        np.sqrt(np.arange(1, len(y) + 1)) if decreasing else np.ones(len(y))
    )
    given = {
        "alpha": alpha,
        "w_norm2": best.norm2,
        "curvature": sigma,
        "clip": clip,
        "lipschitz": lipschitz,
    }

    def bound(t: int) -> float:
        steps = coefficients[:t] - sigma
        if learner == "ONS":
            norms2, d = lipschitz**2 * float(rows[:t].power(2).sum()), min(t, rows.shape[1])
            return son_theorem_2(**given, step_sizes=steps, n_features=d, gradient_norms2=norms2)
        values, m = (
            spectrum(lipschitz * np.sqrt(params["curvature"]) * rows[:t]),
            params["sketch_size"],
        )
        return min(
            son_theorem_3(
                **given,
                step_sizes=steps,
                sketch_size=m,
                k=k,
                omega_k=values[k:].sum(),
                sketch_trace=values.sum(),
            )
            for k in range(m + 1)
        )

    return Bound(list(rounds), losses_of(best, rounds), [float(bound(t)) for t in rounds])
