"""Regret of the best configurations, beside bounds that are computed from the rows of a stream."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from flows.charts import Row
from flows.pages import Figure
from flows.report.rows import kernel_matrix, rows_of_stream
from flows.report.sections import Sections
from flows.scores import mean
from koco_stream.io.cache import computed_once
from koco_stream.io.files import canonical_json
from koco_stream.learners.mixing import learning_rate
from koco_stream.losses import OF_REAL_LABELS, curvature_of
from koco_stream.streams.stream import AS_STORED, Stream
from koco_stream.theory.bounds import (
    best_in_hindsight,
    effective_dimension,
    son_theorem_2,
    son_theorem_3,
    spectrum_of,
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
    "Mixture": "Vovk (1998), ln K/η against the best of its K members (docs/errata.md, M1)",
}
MOST_ROUNDS = 2_000  # the kernel matrix of so many rows is decomposed within seconds
EVERY = 4  # every fourth recorded round has a bound: two a decade
LOSSES = """
    SELECT t, list(cumulative_loss) AS losses FROM stored_curves
    WHERE run_id IN (SELECT unnest(?)) GROUP BY t ORDER BY t"""
PLACE = ("dataset_hash", "order", "order_seed", "positive_class", "multiclass", "max_rows")
ENDED = """
    SELECT dataset_hash, "order", order_seed, positive_class, multiclass, max_rows,
        run_id, params,
        learner || coalesce('@' || learner_code, '') AS learner, learner_seed,
        mean_loss * rounds AS loss
    FROM runs WHERE status = 'ok'"""
BOTH = {"": "regret", ", bound": "bound"}  # how lines are called, and what they show


def regret(sections: Sections) -> Iterator[Figure]:
    rows = [(row, *bounded(sections, row)) for row in sections.rows("regrets")]
    table = [
        {
            "stream": row["stream"],
            "learner": row["learner"],
            "regret against the best linear predictor": row["regret"],
            "std": row["deviation"],
            "its largest prediction": row["largest"],
            "regret against the bound's competitor": found[-1]["regret"] if found else None,
            "bound": found[-1]["bound"] if found else None,
        }
        for row, _, found in rows
        if row["regret"] is not None or found
    ]
    if not table:
        return
    points = [one for row, _, found in rows if row["order"] == AS_STORED for one in found]
    lines = [
        {
            "stream": one["stream"],
            "learner": one["learner"] + said,
            "round t": one["t"],
            "regret": one[kind],
        }
        for said, kind in BOTH.items()
        for one in points
    ]
    drawn = {
        "title": "Regret and its bound",
        "rows": lines,
        "x": "round t",
        "y": "regret",
        "log": "xy",
        "names": [name + said for said in BOTH for name in sections.varied],
    }
    theorems = "; ".join(
        dict.fromkeys(f"{row['learner']}: {THEOREMS[row['learner']]}" for row, _, of in rows if of)
    )
    reasons = "; ".join(dict.fromkeys(why for _, why, _ in rows if why))
    note = [
        "Regret is the cumulative squared loss above that of the best linear predictor in"
        " hindsight, which may predict beyond the clip.",
        f"Bound, computed from the rows: {theorems}. It is of the regret against the best function"
        " in the learner's own space, shrunk into the clip, which the chart and the last two"
        " columns have."
        if theorems
        else "",
        f"No bound: {reasons}." if reasons else "",
    ]
    yield Figure(
        "Regret", [sections.chart(drawn)] if lines else [], rows=table, note="\n".join(note)
    )


def why_not(row: Row, params: dict[str, Any], is_there: bool) -> str:
    """Why no regret bound applies; empty if one does."""
    learner = row["learner"]
    rounds = row["rounds"]
    curvature = params.get("curvature") or 0.0
    if learner not in THEOREMS:
        return f"{learner}: no theorem here is about it"
    most = curvature_of("squared", params.get("clip", math.inf))
    reasons = (
        (row["datasets"] > 1, "a bound is for one dataset, and the stream has several data seeds"),
        (not is_there, "the dataset is no longer in the store"),
        (
            row["max_rows"] and row["order"] != AS_STORED,
            "the first rows of a shuffle differ from seed to seed",
        ),
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
        (params.get("alpha") == 0.0, "the theorem is computed here for a positive alpha"),
        (
            bool(params.get("diagonal")),
            "with the diagonal adaptation the rows that it learns from are not those of the"
            " dataset",
        ),
        (rounds > MOST_ROUNDS, f"{rounds:,} rounds, and it is computed for up to {MOST_ROUNDS:,}"),
        (row["multiclass"] is not None, "it is computed here for one label"),
    )
    return next((f"{learner}: {reason}" for applies, reason in reasons if applies), "")


def bounded(sections: Sections, row: Row) -> tuple[str, list[Row]]:
    """Why there is no bound; or the regret and its bound at some rounds, and at the end."""
    learner = row["learner"]
    params = json.loads(row["params"])
    if learner == "Mixture" and row["dataset_hash"] in sections.manifests:
        return against_members(sections, row, params)
    if why := why_not(row, params, row["dataset_hash"] in sections.manifests):
        return why, []
    losses = {one["t"]: one["losses"] for one in sections.views.rows(LOSSES, [row["run_ids"]])}
    rounds = [*losses][-1:]
    if row["order"] == AS_STORED:
        rounds = [t for t in [*losses][::-EVERY] if t >= 10][::-1] or rounds
    read = {name: row[name] for name in ("dataset", "dataset_hash", "positive_class", "max_rows")}
    identity = [Stream(**read).identity(), learner, params, rounds, "version 2"]
    bounds = computed_once(
        "bounds",
        identity,
        lambda: bounds_of(
            *rows_of_stream(sections.views.store, Stream(**read)), learner, params, rounds
        ),
    )
    if bounds is None:
        return f"{learner}: a label is beyond the clip", []
    return "", [
        {
            "stream": row["stream"],
            "learner": learner,
            "t": t,
            "bound": bound,
            "regret": mean(loss - competitor for loss in losses[t]),
        }
        for t, competitor, bound in bounds
    ]


def against_members(sections: Sections, row: Row, params: dict[str, Any]) -> tuple[str, list[Row]]:
    """The regret of a mixture against the best of its members, if all of them are runs too."""
    bound = math.log(len(params["members"])) / learning_rate(params["loss"], params["clip"])
    facts = sections.manifests[row["dataset_hash"]].statistics
    is_real = row["positive_class"] is None and row["multiclass"] is None
    largest = max(abs(facts["label_min"]), abs(facts["label_max"])) if is_real else 1.0
    if params["loss"] in OF_REAL_LABELS and largest > params["clip"]:
        return "Mixture: a label is beyond the clip", []
    runs = sections.views.rows(ENDED)
    losses = {
        (*(run[name] for name in PLACE), run["learner"], run["params"], run["learner_seed"]): run
        for run in runs
    }
    regrets = []
    for run in (one for one in runs if one["run_id"] in row["run_ids"]):
        members = []
        for table in params["members"]:
            given = {name: value for name, value in table.items() if name not in ("name", "seed")}
            one = (*(run[name] for name in PLACE), table["name"], canonical_json(given))
            seed = table.get("seed", run["learner_seed"])
            members.append(losses.get((*one, None)) or losses.get((*one, seed)))
        if None in members:
            said = f"it is at most {bound:.3g} against its best member; run all of them to see it"
            return f"Mixture: {said}", []
        regrets.append(run["loss"] - min(member["loss"] for member in members if member))
    return "", [
        {
            "stream": row["stream"],
            "learner": row["learner"],
            "t": row["rounds"],
            "bound": bound,
            "regret": mean(regrets),
        }
    ]


def bounds_of(
    X: csr_array, y: Array, learner: str, params: dict[str, Any], rounds: Sequence[int]
) -> list[tuple[int, float, float]] | None:
    """Losses Σ (f(x_s) − y_s)² of the best f in hindsight after each of `rounds`, with bounds."""
    alpha = params["alpha"]
    clip = params["clip"]
    curvature = params["curvature"]
    if np.abs(y).max(initial=0.0) > clip:
        return None
    K = kernel_matrix(X, params)
    lipschitz = 4.0 * clip
    if learner == "KONS":
        # The theorem requires k(x, x) ≤ 1. The rows and α are scaled down to that, which leaves the
        # learner's predictions unchanged.
        scale = max(1.0, float(np.diag(K).max(initial=0.0)))
        K = K / scale
        alpha = alpha / scale
    predictions, w_norm2 = best_in_hindsight(K, y, alpha, clip)
    given = {"alpha": alpha, "w_norm2": w_norm2, "lipschitz": lipschitz}
    rows = csr_array(hstack([X, np.ones((len(y), int(params.get("fit_intercept", False))))]))
    # The coefficient of g gᵀ is σ + η: σ is the loss's curvature and η the excess. If the
    # coefficient decreases (ONS only), all of it is η.
    is_constant = params["curvature_schedule"] == "constant"
    sigma = min(curvature, curvature_of("squared", clip)) if is_constant else 0.0
    times = np.ones(len(y)) if is_constant else np.sqrt(np.arange(1, len(y) + 1))

    def bound(t: int) -> float:
        if learner == "KONS":
            d_eff = effective_dimension(K[:t, :t], alpha / (curvature * lipschitz**2))
            return theorem_1_curved(**given, d_eff=d_eff, rounds=t, curvature=curvature)
        steps = curvature / times[:t] - sigma
        of_son = {**given, "step_sizes": steps, "curvature": sigma, "clip": clip}
        if learner == "ONS":
            norms2 = lipschitz**2 * float(rows[:t].power(2).sum())
            return son_theorem_2(n_features=min(t, rows.shape[1]), gradient_norms2=norms2, **of_son)
        spectrum = spectrum_of(lipschitz * np.sqrt(curvature) * rows[:t])
        return son_theorem_3(sketch_size=params["sketch_size"], spectrum=spectrum, **of_son)

    losses = np.cumsum((predictions - y) ** 2)
    return [(t, float(losses[t - 1]), bound(t)) for t in rounds]
