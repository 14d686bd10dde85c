"""Metrics, windows and predictions of runs: what a sweep's tables have is what the predictions of
the learner give, for one class or all.
"""

from dataclasses import replace

import numpy as np
import pytest

import koco_stream
from koco_stream.losses import LOSSES, loss_value
from koco_stream.metrics import METRICS, Measurement
from koco_stream.runs.run import Measured, Seen
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.rows import with_intercept
from tests.helpers.examples import make
from tests.helpers.sweeps import all_classes, cohort_on, undisturbed

TWO = ("auc", "balanced_accuracy", "f1", "kappa", "log_loss")
KINDS = {
    "two": (TWO, "classification"),
    "four": (TWO[1:], "classification"),
    "real": (("mae", "r2", "rmse"), "regression"),
}
# of which three share kernel values, and on signs four
LEARNERS = [("OjaSON", {}, 1), ("AdaGrad", {"fit_intercept": True}, 1)]
LEARNERS += [("KONS", {}, 1), ("KAWV", {}, 1), ("NORMA", {}, 1)]
OF_SIGNS = [("SketchedKONS", {"beta": 2.0, "loss": "logistic"}, 2), ("OGD", {"loss": "hinge"}, 1)]
CLASSES = (2.0, 3.0, 7.0, 11.0)


def cohort_of(store, name):
    """A cohort whose runs have all metrics, windows and predictions."""
    cohort = cohort_on(store, LEARNERS if name == "real" else LEARNERS + OF_SIGNS, name=name)
    if name == "four":
        cohort = all_classes(cohort)
    measured = Measured(KINDS[name][0], 40, True)
    return replace(cohort, runs=tuple(replace(run, measured=measured) for run in cohort.runs))


def predictions_of(store, run):
    """The learner's predictions (1, n) or (K, n) of the whole stream, and the labels like them."""
    found, learnt = [], []
    for one in CLASSES if run.stream.multiclass else (None,):
        stream = replace(run.stream, multiclass=None, positive_class=one)
        block = StreamReader(store, stream).whole()
        rows = with_intercept(block.rows) if run.adds_intercept else block.rows
        learner, predictions = run.learner_class, np.empty(block.labels.size)
        params = learner.to_params(learner.refilled(run.params))
        state = learner.init(params, rows.n_features, run.learner_seed or 0)
        learner.advance(params, state, rows, block.labels, predictions)
        found.append(predictions)
        learnt.append(block.labels)
    return np.array(found), np.array(learnt)


def curve_of_all_classes(run, scores, signs, points):
    """The run's curve at these rounds, from the predictions (K, n) of a run for each class."""
    total, mistakes, curve = 0.0, 0, []
    for t in range(300):
        of_round = 0.0  # not by sum(), which since Python 3.12 does not round each addition
        for score, sign in zip(scores[:, t], signs[:, t], strict=True):
            of_round += loss_value(LOSSES[run.loss], score, sign)
        total += of_round / len(CLASSES)
        mistakes += int(signs[scores[:, t].argmax(), t] != 1.0)
        if t + 1 in points:
            curve.append((t + 1, total, mistakes))
    return curve


@pytest.mark.parametrize("name", KINDS)
def test_tables__are_what_the_learner_s_predictions_give(store, name):
    cohort = cohort_of(store, name)
    for run, row in zip(cohort.runs, undisturbed(store, cohort), strict=True):
        scores, learnt = predictions_of(store, run)
        classes = CLASSES if name == "four" else ()
        seen = Seen(6, 300, task=KINDS[name][1], classes=classes)
        numbers = learnt.argmax(0) if name == "four" else np.zeros(0, np.int64)
        wanted = Measurement(run.metered(seen))
        wanted.add(scores, learnt, numbers, 300)
        wanted.finish()
        assert {name: row[name] for name in wanted.values()} == wanted.values()
        absent = METRICS.keys() - set(wanted.values())
        assert {row[name] for name in absent} == {None}
        assert row["window"] == 40
        ends = [(window["first"], window["last"]) for window in row["windows"]]
        assert ends == [(first, min(first + 39, 300)) for first in range(1, 300, 40)]
        for metric, column in wanted.windows().items():
            found = [window[metric] for window in row["windows"]]
            found = [np.nan if value is None else value for value in found]
            assert np.array_equal(found, column, equal_nan=True), metric
        shown = scores[0] if name != "four" else np.array(classes)[scores.argmax(0)]
        found = [(one["t"], one["prediction"]) for one in row["predictions"]]
        assert found == list(enumerate(shown.tolist(), 1))
        if name == "four":
            curve = [(one["t"], one["cumulative_loss"], one["mistakes"]) for one in row["curve"]]
            assert curve == curve_of_all_classes(run, scores, learnt, [t for t, *_ in curve])
            assert (row["mean_loss"], row["error_rate"]) == (curve[-1][1] / 300, curve[-1][2] / 300)
            assert (row["status"], row["regret"]) == ("ok", None)
            assert (row["dictionary_size"] is None) == (run.learner in ("OjaSON", "AdaGrad", "OGD"))


@pytest.mark.parametrize("learner", ["CONKONS", "KORS", "SketchedKONS"])
def test_curve__has_the_dictionary_with_the_point_that_joined_in_its_round(store, learner):
    cohort = cohort_on(store, [(learner, {"bandwidth": 0.3}, 1)], name="two", order="as-stored")
    (row,) = undisturbed(store, cohort)
    rows = koco_stream.stream(store, "two").whole()
    sizes = make(learner, bandwidth=0.3, seed=1).record(*rows).column("dictionary_size")
    found = {point["t"]: point["dictionary_size"] for point in row["curve"]}
    assert found == {t: sizes[t - 1].as_py() for t in found}
    assert len(set(found.values())) > 5


def test_nothing_asked_for__changes_no_identity_and_writes_no_table(store):
    cohort = cohort_on(store, LEARNERS, name="two")
    assert [run.run_id for run in cohort.runs] == [
        replace(run, measured=Measured()).run_id for run in cohort.runs
    ]
    with_metrics = cohort_of(store, "two")
    assert not {run.run_id for run in cohort.runs} & {run.run_id for run in with_metrics.runs}
    rows = undisturbed(store, cohort)
    assert not [row for row in rows if {"windows", "predictions"} & set(row)]
    assert {row[name] for row in rows for name in METRICS} == {None}
