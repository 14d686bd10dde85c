"""The bound on the regret of an online Newton step, for a run's own rows: Theorem 1 of the ICML 2017 paper (`koco_stream.theory`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flows.figures.rows import matrix_of
from koco_stream.cache import private_folder
from koco_stream.files import content_hash, write_text
from koco_stream.linalg import Array
from koco_stream.losses import curvature_of
from koco_stream.places import Where
from koco_stream.runs import Stream
from koco_stream.stream import StreamReader
from koco_stream.theory import best_in_hindsight, effective_dimension, theorem_1_curved

EXACT = ("ONS", "KONS")  # learners whose second-order matrix is not sketched: those that the theorem is about
MOST_ROUNDS = 2_000  # a kernel matrix of so many rows is decomposed in seconds
VERSION = 1


@dataclass(frozen=True)
class Bound:
    """At the rounds `t`: Σ (f(x_s) − y_s)² of the competitor f, and the bound on how far above it the learner's loss may be."""

    t: list[int]
    competitor: list[float]
    bound: list[float]


def why_not(learner: str, params: dict[str, Any], rounds: int) -> str | None:
    """Why the theorem says nothing of such a run, in words; None if it does."""
    if learner not in EXACT:
        return f"{learner} is not an exact online Newton step"
    if params.get("loss") != "squared" or params.get("curvature_schedule") != "constant":
        return f"{learner}: it is computed here for the squared loss with a constant curvature"
    if params["curvature"] > curvature_of("squared", params["clip"]) * (1 + 1e-12):
        return (
            f"{learner}: its curvature {params['curvature']:g} is above the loss's, 1/(8C²) = {curvature_of('squared', params['clip']):g}"
        )
    return f"{learner}: {rounds:,} rounds, and it is computed for up to {MOST_ROUNDS:,}" if rounds > MOST_ROUNDS else None


def bound_of(store: Where, stream: Stream, params: dict[str, Any], rounds: Sequence[int]) -> Bound | None:
    """The bound after each of `rounds` (increasing) on a stream, from the cache folder if it was computed before; None if a label is beyond
    the clip, which the theorem does not allow."""
    told = {"stream": stream.identity(), "params": params, "rounds": list(rounds), "version": VERSION}
    path = Path(private_folder("bounds")) / f"{content_hash(told)}.json"
    if not path.is_file():
        block = StreamReader(store, stream).whole()
        found = None
        if np.abs(block.labels).max(initial=0.0) <= params["clip"]:
            found = newton_bound(kernel_matrix(matrix_of(block.rows).toarray().astype(np.float64), params), block.labels, params, rounds)
        write_text(path, json.dumps(found and vars(found)))
    kept = json.loads(path.read_text())
    return kept and Bound(**kept)


def newton_bound(K: Array, y: Array, params: dict[str, Any], rounds: Sequence[int]) -> Bound:
    """`theorem_1_curved` (corrected: docs/errata.md, K10) for the first t rows, against all rows' best function, shrunk into the clip.

    K (n, n) is the rows' kernel matrix. The theorem wants k(x, x) ≤ 1: where a value is larger the rows, and α with them, are scaled down,
    which changes no prediction of the learner.
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


def kernel_matrix(X: Array, params: dict[str, Any]) -> Array:
    """The kernel matrix (n, n) of the rows X (n, d), for the kernel that the parameters say (none: linear), the intercept included."""
    products = X @ X.T + (1.0 if params.get("fit_intercept") else 0.0)
    kind = params.get("kernel", "linear")
    if kind == "gaussian":
        norms = np.diag(products)
        return np.exp(-np.maximum(norms[:, None] + norms - 2.0 * products, 0.0) / (2.0 * params["bandwidth"] ** 2))
    return (products + 1.0) ** params["degree"] if kind == "polynomial" else products
