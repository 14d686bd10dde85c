"""All classes in one run: the numbers are those of a run for each class, put together by rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from flows.sweeping.planning import cost_factors
from koco_stream.engine.checkpoint import checkpoint_of, header_of
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_path
from koco_stream.errors import WrongInput
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.losses import LOSSES, loss_value
from koco_stream.runs.cost_model import Costs
from koco_stream.runs.run import Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from storage.preparing.prepare import prepare_file
from tests.helpers.sweeps import cohort_on, die_after, results_of, sizes_of, stream_of, undisturbed

CLASSES = (2.0, 3.0, 7.0, 11.0)
ONE_VS_REST = "one-vs-rest"


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


def all_classes(cohort):
    """The same cohort on a stream of all classes."""
    stream = replace(cohort.stream, multiclass=ONE_VS_REST)
    return replace(
        cohort, stream=stream, runs=tuple(replace(r, stream=stream) for r in cohort.runs)
    )


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


@pytest.mark.parametrize("rows_in_a_block", [1, 7, 64, 1000])
def test_any_cut_and_block__has_the_same_bits(store, monkeypatch, rows_in_a_block):
    cohort = all_classes(cohort_on(store, LEARNERS, 90, name="four"))
    whole = undisturbed(store, cohort)
    die_after(monkeypatch, store, cohort, 2)
    assert header_of(checkpoint_of(store, cohort))["rounds"] == 180
    receipt = run_cohort(str(store), "try", cohort, rows_in_a_block)
    assert receipt.rounds == (300 - 180) * len(LEARNERS)
    assert results_of(store, cohort) == whole


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


def test_constant__is_told_of_all_classes_too(store):
    cohort = all_classes(cohort_on(store, [("Constant", {}, 1), ("AdaGrad", {}, 1)], name="four"))
    trivial, other = undisturbed(store, cohort)
    for row in (trivial, other):
        assert row["constant_mean_loss"] == trivial["mean_loss"]
        assert row["constant_error_rate"] == trivial["error_rate"]


def test_factor__of_runs_over_all_classes_is_that_of_one_state(store):
    """The plan of the next sweep does not take the time of all states for that of one."""
    cohort = cohort_on(store, [("AdaGrad", {}, 1)], name="four")
    factors = []
    for one in (cohort, all_classes(cohort)):
        run_cohort(str(store), "try", one)
        path = result_path(store, one)
        table = read_table(path)
        seconds = table.column_names.index("seconds")
        states = len(CLASSES) if one is not cohort else 1
        table = table.set_column(seconds, table.field(seconds), pa.array([0.01 * states]))
        write_tables([table], path)
        factors.append(cost_factors(store, sizes_of([load_manifest(store, "four")])))
        path.remove()
    assert factors[0].keys() == {"AdaGrad"}
    assert factors[0] == factors[1]
