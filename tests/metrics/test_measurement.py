"""Metrics in one pass are scikit-learn's of the same predictions, over a run and over its windows,
for any blocks, and over any cut.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import log_softmax
from sklearn import metrics as peer

from koco_stream.losses import LOSSES, loss_value
from koco_stream.metrics import METRICS, Measurement, Metered, possible
from koco_stream.metrics.tally import losses_and_classes

CLASSES, NUMBERS = "classification", "regression"
OF_TWO = ("auc", "balanced_accuracy", "f1", "kappa", "log_loss")
OF_MANY = ("balanced_accuracy", "f1", "kappa", "log_loss")


def of_two(seed, n, distinct=7):
    """Labels −1 and +1 and scores with many ties, some of them 0 and some very large."""
    draw = np.random.default_rng(seed)
    y = np.where(draw.random(n) < draw.random(), 1.0, -1.0)
    scores = draw.choice(np.append(draw.normal(size=distinct), [0.0, 700.0, -700.0]), n)
    return y.reshape(1, -1), scores.reshape(1, -1), None


def of_many(seed, n, n_classes=4):
    """Class numbers, labels one against the rest, and scores of each class with some ties."""
    draw = np.random.default_rng(seed)
    numbers = draw.integers(0, draw.integers(1, n_classes + 1), n)
    learnt = np.where(numbers == np.arange(n_classes)[:, None], 1.0, -1.0)
    return learnt, np.round(2 * draw.normal(size=(n_classes, n)), 1), numbers


def of_numbers(seed, n):
    """Real labels, far from 0, and predictions."""
    draw = np.random.default_rng(seed)
    y = 1e3 + draw.normal(size=(1, n))
    return y, y + draw.normal(size=(1, n)), None


def metered(names, task, n, window=None, classes=()):
    return Metered(names, task, n, window, classes)


def loss_of(what):
    return LOSSES["logistic" if what.task == CLASSES else "squared"]


def add(measurement, data, lo, hi):
    """Measure these rows."""
    learnt, scores, numbers = data
    block = np.ascontiguousarray(scores[:, lo:hi]), np.ascontiguousarray(learnt[:, lo:hi])
    of_rows = (block[1][0] >= 0).astype(int) if numbers is None else numbers[lo:hi]
    found = losses_and_classes(loss_of(measurement.metered), *block, hi - lo)
    measurement.add(*block, of_rows, *found)


def measured(what, data, cuts=(), segment=2**20):
    """The finished measurement of rows that came in blocks that end at `cuts`."""
    found = Measurement(what, segment)
    ends = [*sorted(cuts), data[1].shape[1]]
    for lo, hi in zip([0, *ends], ends, strict=False):
        add(found, data, lo, hi)
    found.finish()
    return found


@pytest.mark.filterwarnings("ignore")
def peers(names, task, learnt, scores, numbers):
    """scikit-learn's values, by name; None where it has none."""
    y, s = learnt[0], scores[0]
    if task == NUMBERS:
        r2 = peer.r2_score(y, s) if y.size > 1 else None
        return {
            "mae": peer.mean_absolute_error(y, s),
            "rmse": peer.root_mean_squared_error(y, s),
            "r2": r2,
        }
    if numbers is None:
        truth, predicted = y, np.where(s >= 0.0, 1.0, -1.0)
        more = {
            "f1": peer.f1_score(truth, predicted, pos_label=1.0, zero_division=0.0),
            "log_loss": np.logaddexp(0.0, -y * s).mean(),
            "auc": peer.roc_auc_score(truth, s) if np.unique(truth).size == 2 else None,
        }
    else:
        truth, predicted = numbers, scores.argmax(0)
        probabilities = np.exp(log_softmax(scores, 0)).T
        more = {
            "f1": peer.f1_score(truth, predicted, average="macro", zero_division=0.0),
            "log_loss": peer.log_loss(truth, probabilities, labels=range(len(scores))),
        }
    kappa = peer.cohen_kappa_score(truth, predicted)
    return more | {
        "balanced_accuracy": peer.balanced_accuracy_score(truth, predicted),
        "kappa": None if math.isnan(kappa) else kappa,
    }


def same(found, wanted):
    if wanted is None or found is None or math.isnan(found):
        return wanted is None and (found is None or math.isnan(found))
    return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)


KINDS = {
    "two": (of_two, OF_TWO, CLASSES, ()),
    "many": (of_many, OF_MANY, CLASSES, (1.0, 2.0, 5.0, 9.0)),
    "numbers": (of_numbers, ("mae", "r2", "rmse"), NUMBERS, ()),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 200), st.sampled_from([None, 1, 7, 50, 1000]))
@pytest.mark.filterwarnings("ignore")
def test_values_and_windows__are_scikit_learn_s(kind, seed, n, window):
    make, names, task, classes = KINDS[kind]
    data = learnt, scores, numbers = make(seed, n)
    what = metered(names, task, n, window, classes)
    found = measured(what, data)
    assert found.rounds == n
    wanted = peers(names, task, *data)
    for name, value in found.values().items():
        assert same(value, wanted[name]), name
    windows = found.windows()
    assert windows["last"].size == (-(-n // window) if window else 0)
    for w, (first, last) in enumerate(zip(windows["first"], windows["last"], strict=True)):
        these = slice(first - 1, last)
        of_rows = None if numbers is None else numbers[these]
        part = learnt[:, these], scores[:, these], of_rows
        wanted = peers(names, task, *part)
        for name in names:
            assert same(windows[name][w], wanted[name]), name
        losses = [
            [loss_value(loss_of(what), s, y) for s, y in zip(ss, yy, strict=True)]
            for ss, yy in zip(part[1], part[0], strict=True)
        ]
        assert same(windows["mean_loss"][w], np.mean(losses))
        if task == CLASSES:
            right = (
                part[1].argmax(0) == of_rows
                if numbers is not None
                else (part[1][0] >= 0.0) == (part[0][0] >= 0.0)
            )
            assert same(windows["error_rate"][w], 1.0 - np.mean(right))
    if window:
        assert windows["last"][-1] == n


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 150), max_size=9), st.integers(1, 60))
def test_bits__are_the_same_for_any_blocks_and_any_cut(kind, seed, cuts, window):
    make, names, task, classes = KINDS[kind]
    data = make(seed, 150)
    what = metered(names, task, 150, window, classes)
    whole, cut = measured(what, data), measured(what, data, cuts)
    again, end = Measurement(what), cuts[0] if cuts else 60
    for lo, hi in ((0, end), (end, 150)):
        add(again, data, lo, hi)
        kept = {name: array.copy() for name, array in again.arrays.items()}
        again = Measurement(what)
        for name, array in again.arrays.items():
            array[...] = kept[name]
    again.finish()
    for other in (cut, again):
        assert other.values() == whole.values()
        for name, column in whole.windows().items():
            assert other.windows()[name].tobytes() == column.tobytes()


def test_auc_of_many_rounds__is_the_mean_over_segments():
    data = of_two(3, 1000)
    what = metered(("auc",), CLASSES, 1000, 30)
    found = measured(what, data, (1, 500, 640), segment=100)  # of three windows each: 90 rounds
    aucs = [
        peer.roc_auc_score(data[0][0, k : k + 90], data[1][0, k : k + 90])
        for k in range(0, 990, 90)
    ]
    last = peer.roc_auc_score(data[0][0, 990:], data[1][0, 990:])
    assert math.isclose(found.values()["auc"], (90 * sum(aucs) + 10 * last) / 1000)


def test_possible__are_those_of_the_task_and_the_number_of_classes():
    assert possible(tuple(METRICS), CLASSES, 2) == OF_TWO
    assert possible(tuple(METRICS), CLASSES, 3) == OF_MANY
    assert possible(tuple(METRICS), NUMBERS, 0) == ("mae", "rmse", "r2")
