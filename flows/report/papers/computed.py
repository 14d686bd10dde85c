"""Tables that experiments need beside the views: what only a learner or a solver can compute."""

import json
from functools import partial

import numpy as np
import pyarrow as pa

import koco_stream
from flows.charts import Row
from flows.report.rows import READ, kernel_matrix, rows_of_stream, stream_of
from flows.views.views import Views, quoted, table_of
from koco_stream import OjaSON
from koco_stream.batch import Batch
from koco_stream.io.cache import computed_once
from koco_stream.io.files import canonical_json
from koco_stream.io.paths import AnyPath
from koco_stream.losses import curvature_of
from koco_stream.runs.run import configuration_of
from koco_stream.runs.schemas import curve_points
from koco_stream.streams.stream import Stream
from koco_stream.theory.bounds import best_in_hindsight
from koco_stream.types import Array

# defaults that were other ones before they were chosen
BEFORE: dict[str, dict[str, float]] = {
    "OjaSON": {"alpha": 1.0},
    "FDSON": {"alpha": 1.0},
    "RFDSON": {"alpha": 0.0},
    "RPSON": {"alpha": 1.0},
    "SAdaGrad": {"step_size": 1.0},
    "AdaFD": {"step_size": 1.0},
}
FIRST_ROUND = 30  # earlier, the tenth eigenvalue of a sum of few outer products says little
STARTS = 7  # number of random starts, between which an error varies by a factor of several
# largest product of rows and dictionary points for which `batch` has a value
MOST_BATCH_VALUES = 15_000_000
OF_A_RUN = quoted((*READ, "learner", "learner_seed", "params", "rounds"))
BATCHES = f"""
FROM (SELECT dataset AS name, alpha AS published, run_id FROM best_own
      WHERE learner = 'Batch' AND size * rounds <= {MOST_BATCH_VALUES}) b
JOIN (SELECT run_id, {OF_A_RUN} FROM runs) r USING (run_id)
"""
# the paper's algorithm with the figure's sketch size
BEST_SKETCHES = """
SELECT run_id, dataset, dataset_hash, params, rounds, condition_number, data_seed
FROM runs JOIN sources USING (dataset)
WHERE status = 'ok' AND learner = 'OjaSON' AND condition_number IS NOT NULL AND sketch_size = 10
    AND lower(coalesce(diagonal::VARCHAR, 'false')) = 'false'
    AND coalesce(projection, 'weights') = 'weights'
QUALIFY row_number() OVER (PARTITION BY condition_number, data_seed ORDER BY error_rate, params) = 1
ORDER BY condition_number, data_seed
"""


def recovery_errors(X: Array, y: Array, model: OjaSON, rounds: Array) -> Array:
    """Largest relative error of the sketch's eigenvalues, max_i |tΛ_i − λ_i|/λ_i, at some rounds
    (k,).

    λ are the largest eigenvalues of Σ ĝĝᵀ, ĝ = √curvature · 2(ŷ − y) x, for the squared loss
    without diagonal adaptation.
    """
    curvature = curvature_of(model.loss, model.clip) if model.curvature is None else model.curvature
    gram = np.zeros((X.shape[1], X.shape[1]))
    errors = []
    ends = rounds.astype(np.int64)
    for rows, labels in zip(np.split(X, ends)[:-1], np.split(y, ends)[:-1], strict=True):
        sketched = (
            np.sqrt(curvature) * 2.0 * (model.progressive(rows, labels) - labels)[:, None] * rows
        )
        gram += sketched.T @ sketched
        true = np.linalg.eigvalsh(gram)[-model.eigenvalues_.size :]
        errors.append(np.max(np.abs(np.sort(model.eigenvalues_) - true) / true))
    return np.array(errors)


def recovery_of(store: AnyPath, run: Row) -> list[tuple[float, float]]:
    rounds = [t for t in (FIRST_ROUND, 500, *curve_points(run["rounds"])) if t >= FIRST_ROUND]
    points = np.unique([float(t) for t in rounds if t <= run["rounds"]])

    def compute() -> list[float]:
        X, y = rows_of_stream(store, Stream(run["dataset"], run["dataset_hash"]))
        models = [OjaSON(**json.loads(run["params"]), seed=seed) for seed in range(STARTS)]
        errors = [recovery_errors(X.toarray(), y, model, points) for model in models]
        return np.mean(errors, axis=0).tolist()

    identity = {"run_id": run["run_id"], "rounds": points.tolist(), "starts": STARTS, "version": 2}
    return list(zip(points.tolist(), computed_once("recovery", identity, compute), strict=True))


def recovery(views: Views) -> tuple[str, pa.Table]:
    found = [
        (run["condition_number"], run["data_seed"], t, error)
        for run in views.rows(BEST_SKETCHES)
        for t, error in recovery_of(views.store, run)
    ]
    return "recovery", table_of(found, condition_number=float, data_seed=int, t=float, error=float)


def hindsight(views: Views) -> tuple[str, pa.Table]:
    """Cumulative loss Σ (f(x_t) − y_t)² of the best f in hindsight, in KONS's space."""
    rows = views.rows(
        f"SELECT {OF_A_RUN} FROM runs WHERE status = 'ok' AND learner IN ('KONS', 'SketchedKONS')"
        " AND loss = 'squared'"
        " QUALIFY row_number() OVER (PARTITION BY dataset, order_seed ORDER BY run_id) = 1"
    )
    found = []
    for run in rows:
        params = json.loads(run["params"])
        X, y = rows_of_stream(views.store, stream_of(run))
        best, _ = best_in_hindsight(kernel_matrix(X, params), y, params["alpha"], params["clip"])
        found.append((run["dataset"], run["order_seed"], float(((best - y) ** 2).sum())))
    return "hindsight", table_of(found, dataset=str, order_seed=int, loss=float)


def batch_of(store: AnyPath, run: Row) -> float:
    X, y = rows_of_stream(store, stream_of(run))
    params = json.loads(run["params"])
    learner = getattr(koco_stream, run["learner"])(**params, seed=run["learner_seed"] or 0)
    learner.partial_fit(X, y)
    best = Batch(learner, params["alpha"]).fit(X, y)
    return float(best.mean_loss_ if best.error_rate_ is None else best.error_rate_)


def batch(views: Views) -> tuple[str, pa.Table]:
    """The mean loss, or the error rate, of the best function in the span of a run's dictionary."""
    found = [
        (run["name"], run["published"], computed_once("batch", [run["run_id"], 2], compute))
        for run in views.rows(f"SELECT b.name, b.published, r.* {BATCHES}")
        for compute in [partial(batch_of, views.store, run)]
    ]
    return "batch", table_of(found, dataset=str, alpha=float, value=float)


def defaults(views: Views) -> tuple[str, pa.Table]:
    """Each learner's default configuration, and the one of before its default was chosen."""
    found = [
        (name, canonical_json(configuration_of(name, given, 0)[1]), before)
        for name in views.column("SELECT DISTINCT learner FROM runs WHERE learner <> 'Mixture'")
        for before, given in ((False, {}), (True, BEFORE.get(name, {})))
    ]
    return "defaults", table_of(found, learner=str, params=str, before=bool)


# the tables of experiments, by their names
COMPUTED = {
    "son-figure-2": recovery,
    "sampling-floor": hindsight,
    "pros-n-kons-table": batch,
    "defaults": defaults,
}
