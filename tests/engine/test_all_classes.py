"""All classes in one run: ties, divergence, cost, what is refused, and Constant beside it."""

from dataclasses import replace

import numpy as np
import pytest

from koco_stream.errors import WrongInput
from koco_stream.runs.cost_model import Costs
from koco_stream.runs.run import Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from tests.helpers.sweeps import all_classes, cohort_on, sizes_of, stream_of, undisturbed

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
