"""The bound on a run's regret, for the run's own rows: of KONS, of ONS, and of FD-SON
(`koco_stream.theory`).

For the squared loss, whose slopes are at most L = 4C. The slopes of a run are not recorded, so L
stands for each: the bounds are of the rows alone, and the same for every seed and, after the last
round, for every order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from flows.report.rows import computed_once, kernel_matrix, matrix_of, with_intercept
from koco_stream.io.paths import AnyPath
from koco_stream.losses import curvature_of
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from koco_stream.theory import (
    best_in_hindsight,
    effective_dimension,
    son_theorem_2,
    son_theorem_3,
    spectrum,
    theorem_1_curved,
)
from koco_stream.types import Array

# The learners that a theorem is about, and which.
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
# Those that belong to them, and have none.
WITHOUT = {
    "OjaSON": "no bound is known for Oja's sketch (docs/errata.md, S18)",
    "RPSON": "the bound for random projections is not computed here (docs/errata.md, S18)",
}
MOST_ROUNDS = 2_000  # a kernel matrix of so many rows is decomposed in seconds
VERSION = 2


@dataclass(frozen=True)
class Bound:
    """At the rounds `t`: Σ (f(x_s) − y_s)² of the competitor f, and the bound on how far above it
    the learner's loss may be.
    """

    t: list[int]
    competitor: list[float]
    bound: list[float]


def why_not(learner: str, params: dict[str, Any], rounds: int) -> str | None:
    """Why no theorem says anything of such a run, in words; None if one does."""
    if learner not in THEOREMS:
        other = "it is not an online Newton step that a theorem here is about"
        return f"{learner}: {WITHOUT.get(learner, other)}"
    if params.get("loss") != "squared":
        return f"{learner}: it is computed here for the squared loss"
    if learner != "ONS" and params.get("curvature_schedule") != "constant":
        return f"{learner}: it is computed here for a constant curvature"
    if learner == "KONS" and params["curvature"] > curvature_of("squared", params["clip"]) * (
        1 + 1e-12
    ):
        return (
            f"{learner}: its curvature {params['curvature']:g} is above the loss's, 1/(8C²) ="
            f" {curvature_of('squared', params['clip']):g}"
        )
    if params.get("projection", "weights") != "weights":
        return (
            f"{learner}: its predictions are truncated, and the theorem is about projected weights"
        )
    if params["alpha"] == 0.0:
        return f"{learner}: the theorem is computed here for a positive alpha"
    if params.get("diagonal"):
        return (
            f"{learner}: with the diagonal adaptation the rows that it learns from are not those of"
            " the dataset"
        )
    return (
        f"{learner}: {rounds:,} rounds, and it is computed for up to {MOST_ROUNDS:,}"
        if rounds > MOST_ROUNDS
        else None
    )


def bound_of(
    store: AnyPath, stream: Stream, learner: str, params: dict[str, Any], rounds: Sequence[int]
) -> Bound | None:
    """The bound after each of `rounds` (increasing) on a stream, from the cache folder if it was
    computed before; None if a label is beyond the clip, which the theorems do not allow.
    """
    told = {
        "stream": stream.identity(),
        "learner": learner,
        "params": params,
        "rounds": list(rounds),
        "version": VERSION,
    }

    def computed() -> dict[str, Any] | None:
        block = StreamReader(store, stream).whole()
        if np.abs(block.labels).max(initial=0.0) > params["clip"]:
            return None
        X = matrix_of(block.rows).astype(np.float64)
        if learner == "KONS":
            return vars(newton_bound(kernel_matrix(X, params), block.labels, params, rounds))
        return vars(son_bound(X, block.labels, learner, params, rounds))

    kept = computed_once("bounds", told, computed)
    return kept and Bound(**kept)


def newton_bound(K: Array, y: Array, params: dict[str, Any], rounds: Sequence[int]) -> Bound:
    """`theorem_1_curved` (corrected: docs/errata.md, K10) for the first t rows, against all rows'
    best function, shrunk into the clip.

    K (n, n) is the rows' kernel matrix. The theorem wants k(x, x) ≤ 1: where a value is larger the
    rows, and α with them, are scaled down, which changes no prediction of the learner.
    """
    scale = max(1.0, float(np.diag(K).max(initial=0.0)))
    K, alpha, clip, sigma = K / scale, params["alpha"] / scale, params["clip"], params["curvature"]
    lipschitz = 4.0 * clip
    best = best_in_hindsight(K, y, alpha).scaled_into(clip)
    losses = np.cumsum((best.predictions - best.labels) ** 2)
    bounds = [
        theorem_1_curved(
            alpha=alpha,
            w_norm2=best.norm2,
            d_eff=effective_dimension(K[:t, :t], alpha / (sigma * lipschitz**2)),
            rounds=t,
            curvature=sigma,
            lipschitz=lipschitz,
            printed=False,
        )
        for t in rounds
    ]
    return Bound([int(t) for t in rounds], [float(losses[t - 1]) for t in rounds], bounds)


def son_bound(
    X: Array | csr_array, y: Array, learner: str, params: dict[str, Any], rounds: Sequence[int]
) -> Bound:
    """`son_theorem_2` for ONS, `son_theorem_3` for FDSON with the k of the least bound, for the
    first t rows X (n, d) and the competitor of `newton_bound`.

    The coefficient of g gᵀ is σ + η: what is above the loss's curvature is η, and all of it if it
    decreases (ONS only).
    """
    rows = with_intercept(csr_array(X)) if params.get("fit_intercept") else csr_array(X)
    alpha, clip = params["alpha"], params["clip"]
    best = best_in_hindsight(kernel_matrix(rows, {}), y, alpha).scaled_into(clip)
    losses = np.cumsum((best.predictions - best.labels) ** 2)
    n, lipschitz = len(y), 4.0 * clip
    decreasing = params["curvature_schedule"] == "decreasing"
    coefficients = params["curvature"] / (
        np.sqrt(np.arange(1, n + 1)) if decreasing else np.ones(n)
    )
    sigma = 0.0 if decreasing else min(params["curvature"], curvature_of("squared", clip))
    bounds = []
    for t in rounds:
        given = {
            "alpha": alpha,
            "w_norm2": best.norm2,
            "curvature": sigma,
            "clip": clip,
            "lipschitz": lipschitz,
        }
        given["step_sizes"] = coefficients[:t] - sigma
        if learner == "ONS":
            norms2 = lipschitz**2 * float(rows[:t].power(2).sum())
            bounds.append(
                son_theorem_2(**given, n_features=min(t, rows.shape[1]), gradient_norms2=norms2)
            )
        else:
            values = spectrum(lipschitz * np.sqrt(params["curvature"]) * rows[:t])
            m = params["sketch_size"]
            each = [
                son_theorem_3(
                    **given,
                    sketch_size=m,
                    k=k,
                    omega_k=values[k:].sum(),
                    sketch_trace=values.sum(),
                    printed=False,
                )
                for k in range(m + 1)
            ]
            bounds.append(min(each))
    return Bound(
        [int(t) for t in rounds],
        [float(losses[t - 1]) for t in rounds],
        [float(bound) for bound in bounds],
    )
