"""All classes in one run: the numbers are those of a run for each class, put together by rows."""

from dataclasses import replace

import numpy as np
import pytest

from koco_stream.errors import WrongInput
from koco_stream.losses import LOSSES, loss_value
from koco_stream.runs.cost_model import Costs
from koco_stream.runs.run import Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from tests.helpers.sweeps import all_classes, cohort_on, sizes_of, stream_of, undisturbed

CLASSES = (2.0, 3.0, 7.0, 11.0)
ONE_VS_REST = "one-vs-rest"


def literal(store, run, curve_rounds):
    """Mean loss, error rate and curve of a run, from a run for each class over the whole stream."""
    stream = replace(run.stream, multiclass=None)
    scores, signs = [], []
    for one in CLASSES:
        block = StreamReader(store, replace(stream, positive_class=one)).whole()
        learner, rows = run.learner_class, block.rows
        params = learner.to_params(learner.refilled(run.params))
        predictions = np.empty(300)
        state = learner.init(params, rows.n_features, run.learner_seed or 0)
        learner.advance(params, state, rows, block.labels, predictions)
        scores.append(predictions)
        signs.append(block.labels)
    total, mistakes, curve = 0.0, 0, []
    for t in range(300):
        of_round = 0.0  # not by sum(), which since Python 3.12 does not round each addition
        for score, sign in zip(scores, signs, strict=True):
            of_round += loss_value(LOSSES[run.loss], score[t], sign[t])
        total += of_round / len(CLASSES)
        column = [float(s[t]) for s in scores]
        winner = column.index(max(column))
        mistakes += signs[winner][t] != 1.0
        if t + 1 in curve_rounds:
            curve.append((t + 1, total, mistakes))
    return total / 300, mistakes / 300, curve


LEARNERS = [
    ("OjaSON", {}, 1),
    ("AdaGrad", {"loss": "logistic"}, 1),
    ("PROSNKONS", {}, 1),
    ("KONS", {}, 1),
    ("SketchedKONS", {"beta": 2.0}, 2),
    ("OGD", {"loss": "hinge", "step_size": 0.1}, 1),
]


@pytest.mark.parametrize("order", ["as-stored", "shuffled"])
def test_numbers__are_those_of_a_run_for_each_class(store, order):
    cohort = all_classes(cohort_on(store, LEARNERS, name="four", order=order))
    rows = {row["run_id"]: row for row in undisturbed(store, cohort)}
    for run in cohort.runs:
        row = rows[run.run_id]
        points = [point["t"] for point in row["curve"]]
        mean_loss, error_rate, curve = literal(store, run, points)
        assert (row["status"], row["multiclass"], row["regret"]) == ("ok", ONE_VS_REST, None)
        assert (row["mean_loss"], row["error_rate"]) == (mean_loss, error_rate)
        found = [
            (point["t"], point["cumulative_loss"], point["mistakes"]) for point in row["curve"]
        ]
        assert found == curve
        assert (row["dictionary_size"] is None) == (run.learner in ("OjaSON", "AdaGrad", "OGD"))


def test_equal_scores__the_smaller_class_wins(store):
    """KORS predicts 0 for every class of every row."""
    cohort = all_classes(cohort_on(store, [("KORS", {}, 1)], name="four"))
    (row,) = undisturbed(store, cohort)
    labels = StreamReader(store, cohort.stream).whole().labels
    assert row["error_rate"] == np.mean(labels != CLASSES[0])


def test_class_whose_prediction_is_not_finite__ends_the_run_by_name(store):
    step = {"clip": 1e300, "step_size": 1e9}
    (row,) = undisturbed(store, all_classes(cohort_on(store, [("OGD", step, 1)], name="four")))
    assert row["status"] == "diverged"
    assert "for class " in row["error"]
    assert row["rounds"] < 300


def test_cost__is_of_a_state_for_each_class(store):
    (run,) = cohort_on(store, [("OjaSON", {}, 1)], name="four").runs
    costs = Costs(sizes_of([load_manifest(store, "four")]))
    one, every = (
        costs.of(run),
        costs.of(replace(run, stream=replace(run.stream, multiclass="one-vs-rest"))),
    )
    assert 3.5 < (every.seconds - 1e-4) / (one.seconds - 1e-4) < 4.5
    assert every.bytes > one.bytes


@pytest.mark.parametrize(
    ("name", "learner", "given", "said"),
    [
        ("real", "OjaSON", {}, "has real targets, but multiclass needs three or more classes"),
        ("two", "OjaSON", {}, "has 2 classes, but multiclass needs three or more classes"),
        ("four", "OjaSON", {"positive_class": 2.0}, "both positive_class and multiclass"),
    ],
)
def test_stream_without_so_many_classes__is_refused(store, name, learner, given, said):
    stream = stream_of(store, name, multiclass=ONE_VS_REST, **given)
    manifest = load_manifest(store, name)
    with pytest.raises(WrongInput, match=said):
        Run.of(stream, learner, {}, 1).check_labels(manifest.classes, manifest.task)


def test_three_classes__are_enough(store):
    stream = stream_of(store, "four", multiclass=ONE_VS_REST)
    Run.of(stream, "OjaSON", {}, 1).check_labels((1.0, 2.0, 3.0), "classification")


def test_constant__is_told_of_all_classes_too(store):
    cohort = all_classes(cohort_on(store, [("Constant", {}, 1), ("AdaGrad", {}, 1)], name="four"))
    trivial, other = undisturbed(store, cohort)
    for row in (trivial, other):
        assert row["constant_mean_loss"] == trivial["mean_loss"]
        assert row["constant_error_rate"] == trivial["error_rate"]
