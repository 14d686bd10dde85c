"""One class or all: metrics, windows and predictions in a sweep's tables are what the learners'
predictions give.
"""

from dataclasses import replace

import numpy as np
import pytest

import koco_stream
from koco_stream.losses import LOSSES
from koco_stream.metrics import METRICS, Measurement
from koco_stream.metrics.tally import losses_and_classes
from koco_stream.runs.cost_model import Costs
from koco_stream.runs.run import Measured, Run, Seen
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.rows import with_intercept
from storage.preparing.prepare import prepare_file
from tests.helpers.examples import make
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import all_classes, cohort_on, sizes_of, stream_of, undisturbed

CLASSES = (2.0, 3.0, 7.0, 11.0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with a set of four classes, one of real labels and one of two classes."""
    folder, draw = tmp_path_factory.mktemp("classes"), np.random.default_rng(5)
    X = np.round(draw.standard_normal((300, 6)) * (draw.random((300, 6)) < 0.7), 3)
    y = draw.choice(CLASSES, 300, p=[0.4, 0.3, 0.2, 0.1])
    for name, labels in (("four", y), ("real", X.sum(1)), ("two", np.sign(X.sum(1) + 1e-9))):
        rows = np.c_[X[:, :5], 0.3 * X[:, 5] + 0.1 * y, labels]
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",", fmt="%.4f")
        task = "regression" if name == "real" else "classification"
        prepare_file(folder / "store", name, folder / f"{name}.csv", task=task)
    return folder / "store"


ONE_VS_REST = "one-vs-rest"


def test_equal_scores__the_smaller_class_wins(store):
    """KORS predicts 0 for every class of every row."""
    cohort = all_classes(cohort_on(store, [("KORS", {}, 1)], name="four"))
    (row,) = undisturbed(store, cohort)
    labels = StreamReader(store, cohort.stream).whole().labels
    assert row["error_rate"] == np.mean(labels != 2.0)


def test_class_whose_prediction_is_not_finite__ends_the_run_by_name(store):
    step = {"clip": 1e300, "step_size": 1e9}
    (row,) = undisturbed(store, all_classes(cohort_on(store, [("OGD", step, 1)], name="four")))
    assert row["status"] == "diverged"
    assert "for class " in row["error"]
    assert row["rounds"] < 300


def test_memory__is_of_a_state_for_each_class(store):
    (run,) = cohort_on(store, [("OjaSON", {}, 1)], name="four").runs
    costs = Costs(sizes_of([load_manifest(store, "four")]))
    one, every = (
        costs.of(run),
        costs.of(replace(run, stream=replace(run.stream, multiclass="one-vs-rest"))),
    )
    assert every.bytes > one.bytes


@pytest.mark.parametrize(
    ("name", "learner", "given", "said"),
    [
        ("real", "OjaSON", {}, "has real targets, but multiclass needs three or more classes"),
        ("two", "OjaSON", {}, "has 2 classes, but multiclass needs three or more classes"),
        (
            "four",
            "OjaSON",
            {"positive_class": 2.0},
            "has both; leave out positive_class, or leave out multiclass",
        ),
    ],
)
def test_stream_without_so_many_classes__is_refused(store, name, learner, given, said):
    stream = stream_of(store, name, multiclass=ONE_VS_REST, **given)
    manifest = load_manifest(store, name)
    run = Run.of(stream, learner, {}, 1)
    refusal(said, run.check_labels, manifest.classes, manifest.task)


def test_three_classes__are_enough(store):
    stream = stream_of(store, "four", multiclass=ONE_VS_REST)
    Run.of(stream, "OjaSON", {}, 1).check_labels((1.0, 2.0, 3.0), "classification")


def test_constant__is_told_of_all_classes_too(store):
    cohort = all_classes(cohort_on(store, [("Constant", {}, 1), ("AdaGrad", {}, 1)], name="four"))
    trivial, other = undisturbed(store, cohort)
    for row in (trivial, other):
        assert row["constant_mean_loss"] == trivial["mean_loss"]
        assert row["constant_error_rate"] == trivial["error_rate"]


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
        state = learner.initial_state(params, rows.n_features, run.learner_seed or 0, True)
        learner.advance(params, state, rows, block.labels, predictions)
        found.append(predictions)
        learnt.append(block.labels)
    return np.array(found), np.array(learnt)


@pytest.mark.parametrize("name", KINDS)
def test_tables__are_what_the_learner_s_predictions_give(store, name):
    cohort = cohort_of(store, name)
    for run, row in zip(cohort.runs, undisturbed(store, cohort), strict=True):
        scores, learnt = predictions_of(store, run)
        classes = CLASSES if name == "four" else ()
        seen = Seen(6, 300, task=KINDS[name][1], classes=classes)
        numbers = learnt.argmax(0) if name == "four" else (learnt[0] >= 0).astype(int)
        wanted = Measurement(run.metered(seen))
        losses, predicted = losses_and_classes(LOSSES[run.loss], scores, learnt, 300)
        wanted.add(scores, learnt, numbers, losses, predicted)
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
            totals = [*zip(np.cumsum(losses), np.cumsum(predicted != numbers), strict=True)]
            curve = [(one["cumulative_loss"], one["mistakes"]) for one in row["curve"]]
            assert curve == [totals[one["t"] - 1] for one in row["curve"]]
            assert (row["mean_loss"], row["error_rate"]) == (curve[-1][0] / 300, curve[-1][1] / 300)
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
