"""Constant, the trivial learner: before each label it says the constant that is best on the labels
before it.
"""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from koco_stream import Constant
from koco_stream.losses import LOSSES, loss_value
from koco_stream.runs.run import Run
from koco_stream.streams.stream import Stream

SIGNS = st.lists(st.sampled_from([-1.0, 1.0]), min_size=1, max_size=40)


def predictions_on(labels, loss, rows=None):
    X = np.ones((len(labels), 1)) if rows is None else rows
    return Constant(loss=loss, clip=1e9).progressive(X, labels)


def total(loss, constant, labels):
    """The loss of a constant; with the logistic one, on half a label of each sign more."""
    losses = [loss_value(LOSSES[loss], constant, y) for y in labels]
    halves = [0.5 * loss_value(LOSSES[loss], constant, y) for y in (-1.0, 1.0)]
    return math.fsum(losses + (halves if loss == "logistic" else []))


@given(SIGNS, st.sampled_from(sorted(LOSSES)))
def test_prediction__no_other_constant_has_less_loss_on_the_labels_before(labels, loss):
    steps = 10.0 ** -np.arange(5)  # losses are convex
    for t, said in enumerate(predictions_on(labels, loss)):
        others = [total(loss, c, labels[:t]) for c in (*(said - steps), *(said + steps))]
        assert total(loss, said, labels[:t]) <= min(others) + 1e-12 * t


@given(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=40),
    st.sampled_from(["squared", "half_squared"]),
)
def test_prediction__on_real_labels_is_their_mean_however_far_they_are(labels, loss):
    expected = [math.fsum(labels[:t]) / max(t, 1) for t in range(len(labels))]
    np.testing.assert_allclose(predictions_on(labels, loss), expected, rtol=1e-12, atol=1e-9)


@given(SIGNS, st.sampled_from(sorted(LOSSES)))
def test_sign__is_that_of_the_majority_and_nothing_is_said_in_a_tie(labels, loss):
    said = np.sign(predictions_on(labels, loss))
    assert said.tolist() == [np.sign(sum(labels[:t])) for t in range(len(labels))]


def test_rows__do_not_matter_and_neither_does_what_it_does_not_use():
    draw = np.random.default_rng(0)
    labels = draw.uniform(-9.0, 9.0, 50)
    expected = predictions_on(labels, "squared").tobytes()
    assert predictions_on(labels, "squared", draw.standard_normal((50, 7))).tobytes() == expected
    assert predictions_on(labels, "squared", np.zeros((50, 3))).tobytes() == expected
    stream = Stream("a", "0123")
    runs = [
        Run.of(stream, "Constant", given, seed)
        for seed, given in enumerate([{}, {"clip": 0.1}, {"fit_intercept": True}])
    ]
    assert {run.run_id for run in runs} == {runs[0].run_id}
    assert (runs[0].params, runs[0].adds_intercept) == ({"loss": "squared"}, False)


def test_constant__is_the_next_prediction():
    model = Constant().partial_fit(np.ones((3, 2)), [1.0, 2.0, 6.0])
    assert model.constant_ == 3.0
    assert model.predict(np.zeros((2, 2))).tolist() == [3.0, 3.0]
    with pytest.raises(AttributeError, match="not fitted"):
        _ = Constant().constant_
