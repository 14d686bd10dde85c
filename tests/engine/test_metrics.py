"""Metrics, windows and predictions of runs: what a sweep's tables have is what the predictions of
the learner give, for any block, after any cut, and for one class or all.
"""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import koco_stream
from koco_stream.engine.checkpoint import checkpoint_of
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_path
from koco_stream.metrics import METRICS, Measurement
from koco_stream.runs.run import Measured, Seen
from koco_stream.streams.reader import StreamReader
from storage.results import read_predictions, read_windows
from tests.helpers.examples import make
from tests.helpers.sweeps import MEASURED, all_classes, cohort_on, die_after, undisturbed

TWO = ("auc", "balanced_accuracy", "f1", "kappa", "log_loss")
KINDS = {
    "two": (TWO, "classification"),
    "four": (TWO[1:], "classification"),
    "real": (("mae", "r2", "rmse"), "regression"),
}
LEARNERS = [("OjaSON", {}, 1), ("KONS", {}, 1), ("AdaGrad", {"fit_intercept": True}, 1)]


def cohort_of(store, name, every=0, keep=True, window=40):
    """A cohort whose runs have all metrics, windows and predictions."""
    cohort = cohort_on(store, LEARNERS, every, name=name)
    if name == "four":
        cohort = all_classes(cohort)
    measured = Measured(KINDS[name][0], window, keep)
    return replace(cohort, runs=tuple(replace(run, measured=measured) for run in cohort.runs))


def results(store, cohort):
    """The rows of the cohort's result file, its windows and its predictions; all are removed."""
    runs = pq.read_table(result_path(store, cohort).path).drop_columns(MEASURED)
    ids = [run.run_id for run in cohort.runs]
    found = runs.to_pylist(), read_windows(store, ids), read_predictions(store, ids)
    result_path(store, cohort).path.unlink()
    for name in ("windows", "predictions"):
        (store / "results" / name / f"{cohort.cohort_id}.parquet").unlink(missing_ok=True)
    return found


def predictions_of(store, run):
    """The learner's predictions (1, n) or (K, n) of the whole stream, and the labels like them."""
    classes = (2.0, 3.0, 7.0, 11.0) if run.stream.multiclass else (None,)
    found, learnt = [], []
    for one in classes:
        stream = replace(run.stream, multiclass=None, positive_class=one)
        block = StreamReader(store, stream).whole()
        rows = block.rows
        if run.adds_intercept:
            from koco_stream.streams.rows import with_intercept

            rows = with_intercept(rows)
        learner, predictions = run.learner_class, np.empty(block.labels.size)
        params = learner.to_params(learner.refilled(run.params))
        learner.advance(
            params, learner.init(params, rows.n_features, 1), rows, block.labels, predictions
        )
        found.append(predictions)
        learnt.append(block.labels)
    return np.array(found), np.array(learnt)


@pytest.mark.parametrize("name", KINDS)
def test_tables__are_what_the_learner_s_predictions_give(store, name):
    cohort = cohort_of(store, name)
    run_cohort(str(store), "try", cohort)
    rows, windows, kept = results(store, cohort)
    for run in cohort.runs:
        (row,) = (row for row in rows if row["run_id"] == run.run_id)
        scores, learnt = predictions_of(store, run)
        classes = (2.0, 3.0, 7.0, 11.0) if name == "four" else ()
        seen = Seen(6, 300, task=KINDS[name][1], classes=classes)
        numbers = learnt.argmax(0) if name == "four" else np.zeros(0, np.int64)
        wanted = Measurement(run.metered(seen))
        wanted.add(scores, learnt, numbers, 300)
        wanted.finish()
        assert {name: row[name] for name in wanted.values()} == wanted.values()
        absent = METRICS.keys() - set(wanted.values())
        assert {row[name] for name in absent} == {None}
        assert row["window"] == 40
        mine = windows.filter(windows["run_id"].to_numpy() == run.run_id).to_pydict()
        assert mine["first"] == list(range(1, 300, 40))
        assert mine["last"] == [*range(40, 300, 40), 300]
        for metric, column in wanted.windows().items():
            found = [np.nan if value is None else value for value in mine[metric]]
            assert np.array_equal(found, column, equal_nan=True), metric
        of_run = kept.filter(kept["run_id"].to_numpy() == run.run_id).to_pydict()
        assert of_run["t"] == list(range(1, 301))
        shown = scores[0] if name != "four" else np.array(classes)[scores.argmax(0)]
        assert of_run["prediction"] == shown.tolist()


@pytest.mark.parametrize("learner", ["CONKONS", "KORS", "SketchedKONS"])
def test_curve__has_the_dictionary_with_the_point_that_joined_in_its_round(store, learner):
    cohort = cohort_on(store, [(learner, {"bandwidth": 0.3}, 1)], name="two", order="as-stored")
    (row,) = undisturbed(store, cohort)
    rows = koco_stream.stream(store, "two").whole()
    sizes = make(learner, bandwidth=0.3, seed=1).record(*rows).column("dictionary_size")
    found = {point["t"]: point["dictionary_size"] for point in row["curve"]}
    assert found == {t: sizes[t - 1].as_py() for t in found}
    assert len(set(found.values())) > 5


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rows_in_a_block", [1, 7, 1000, 65_536])
def test_any_block_and_any_cut__has_the_same_bits(store, name, rows_in_a_block, monkeypatch):
    cohort = cohort_of(store, name, 90)
    run_cohort(str(store), "try", replace(cohort, checkpoint_rounds=0), 64)
    whole = results(store, cohort)
    die_after(monkeypatch, store, cohort, 2)
    assert checkpoint_of(store, cohort).is_file()
    receipt = run_cohort(str(store), "try", cohort, rows_in_a_block)
    assert receipt.rounds == (300 - 180) * len(LEARNERS)
    found = results(store, cohort)
    assert found[0] == whole[0]
    assert found[1].equals(whole[1])
    assert found[2].equals(whole[2])


def test_nothing_asked_for__changes_no_identity_and_writes_no_table(store):
    cohort = cohort_on(store, LEARNERS, name="two")
    assert [run.run_id for run in cohort.runs] == [
        replace(run, measured=Measured()).run_id for run in cohort.runs
    ]
    with_metrics = cohort_of(store, "two")
    assert not {run.run_id for run in cohort.runs} & {run.run_id for run in with_metrics.runs}
    run_cohort(str(store), "try", cohort)
    rows, windows, kept = results(store, cohort)
    assert windows.num_rows == kept.num_rows == 0
    assert {row[name] for row in rows for name in METRICS} == {None}
