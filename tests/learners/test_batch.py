"""The best linear function in hindsight, against its certificates of optimality."""

from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import lsq_linear

import koco_stream.batch as batch
from koco_stream.batch import Batch, best_linear, derivatives
from koco_stream.losses import LOSSES, loss_slope, loss_value
from tests.helpers.refusal import refusal


def rows(n=400, r=7, seed=0, noise=0.5):
    draw = np.random.default_rng(seed)
    F = draw.standard_normal((n, r)) * np.logspace(0, -2, r)
    return F, np.where(F.sum(axis=1) + noise * draw.standard_normal(n) >= 0, 1.0, -1.0)


def best(F, y, loss, alpha):
    return best_linear(lambda: [(F, y)] if len(F) else [], loss, alpha)


def objective(w, F, y, loss, alpha):
    return derivatives(loss, F @ w, y)[0].sum() + alpha * w @ w


@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives__are_those_of_the_learners_losses(loss, y):
    code, scores = LOSSES[loss], np.linspace(-4, 4, 41)
    value, slope, curve = derivatives(loss, np.append(scores, [-800.0, 800.0]), np.full(43, y))
    np.testing.assert_allclose(value[:41], [loss_value(code, s, y) for s in scores], rtol=1e-14)
    np.testing.assert_allclose(slope[:41], [loss_slope(code, s, y) for s in scores], rtol=1e-13)
    assert np.isfinite(value).all()
    assert (curve >= 0).all()


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 1.0])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_smooth_losses__are_solved_as_the_gradient_certifies(loss, alpha):
    # The objective is 2α-strongly convex: it is within ‖∇f‖²/(4α) of its least value.
    F, y = rows()
    w = best(F, y, loss, alpha)
    gradient = F.T @ derivatives(loss, F @ w, y)[1] + 2 * alpha * w
    assert gradient @ gradient / (4 * alpha) <= 1e-11 * objective(w, F, y, loss, alpha)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_hinge__is_solved_where_rows_are_separable_and_where_not(noise, alpha):
    F, y = rows(300, 5, noise=noise)
    w, Z = best(F, y, "hinge", alpha), F * y[:, None]
    # Any a in [0, 1] bounds the least value from below by Σa − ‖Σ a_t y_t φ_t‖²/(4α): here 1 for
    # rows inside the margin, 0 for those beyond it, and what makes 2αw = Σ a_t y_t φ_t hold best
    # for those on it.
    margins = Z @ w
    a, on = np.where(margins < 1, 1.0, 0.0), np.abs(margins - 1) < 1e-3
    if on.any():
        rest = 2 * alpha * w - Z[(a > 0) & ~on].sum(axis=0)
        a[on] = lsq_linear(Z[on].T, rest, (0, 1), method="bvls").x
    below = a.sum() - np.square(a @ Z).sum() / (4 * alpha)
    assert below * (1 - 1e-9) <= objective(w, F, y, "hinge", alpha) <= below * (1 + 1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_blocks__give_what_the_whole_gives_and_are_never_held(loss):
    F, y = rows()
    read = []

    def blocks():
        for first in range(0, 400, 37):
            read.append(first)
            yield F[first : first + 37], y[first : first + 37]

    w = best_linear(blocks, loss, 0.1)
    tolerance = 1e-3 if loss == "hinge" else 1e-7
    np.testing.assert_allclose(w, best(F, y, loss, 0.1), rtol=tolerance, atol=tolerance)
    assert Counter(read).keys() == set(range(0, 400, 37))
    assert set(Counter(read).values()) == {len(read) // 11}
    assert len(read) < 11 * 120


@pytest.mark.parametrize(
    ("loss", "alpha", "labels", "message"),
    [
        ("huber", 1.0, np.ones(10), "no loss is called"),
        ("squared", 0.0, np.ones(10), "alpha"),
        ("hinge", 1.0, np.full(10, 2.0), "labels"),
        ("squared", 1.0, np.ones(0), "no rows"),
    ],
    ids=["no such loss", "alpha 0", "labels of 2", "no rows"],
)
def test_wrong_input__is_refused(loss, alpha, labels, message):
    refusal(message, best, np.ones((10 if labels.size else 0, 7)), labels, loss, alpha)


def test_no_features__no_weights():
    assert best(np.ones((10, 0)), np.ones(10), "hinge", 1.0).shape == (0,)


class StandIn:
    """A learner whose features are those of X that exceed the first row it saw."""

    def __init__(self, loss="squared", clip=1.0):
        self.loss, self.clip, self.calls = loss, clip, 0

    def __sklearn_is_fitted__(self):
        return hasattr(self, "first_")

    def partial_fit(self, X, y):
        self.first_ = np.asarray(X[:1].todense() if sparse.issparse(X) else X[:1])
        return self

    def features(self, X):
        self.calls += 1
        return np.maximum(np.asarray(X.todense() if sparse.issparse(X) else X) - self.first_, 0.0)


@pytest.mark.parametrize("few", [False, True], ids=["features held", "computed again"])
@pytest.mark.parametrize("loss", LOSSES)
def test_class__solves_in_the_features_of_its_learner_and_truncates(loss, few, monkeypatch):
    X, y = rows(5000, 3)
    learner = StandIn(loss, clip=0.4)
    if few:
        monkeypatch.setattr(batch, "HELD_VALUES", 100)
    model = Batch(learner, alpha=0.5).fit(X, y)
    assert (learner.calls > 3) == few
    F = learner.features(X)
    np.testing.assert_allclose(model.weights_, best(F, y, loss, 0.5), rtol=1e-6, atol=1e-6)
    scores = F @ model.weights_
    predictions = np.clip(scores, -0.4, 0.4)
    np.testing.assert_allclose(model.predict(X), predictions)
    losses = [loss_value(LOSSES[loss], *pair) for pair in zip(predictions, y, strict=True)]
    assert model.mean_loss_ == pytest.approx(np.mean(losses))
    assert model.error_rate_ == np.mean(np.where(predictions >= 0, 1, -1) != y)
    assert model.largest_ == pytest.approx(np.abs(scores).max())
    assert model.largest_ > 0.4


def test_class__keeps_a_fitted_learner_and_takes_sparse_rows():
    X, y = rows(50, 3)
    X[X < 0] = 0.0
    learner = StandIn().partial_fit(np.full((1, 3), 0.25), None)
    dense = Batch(learner).fit(X, y)
    assert (learner.first_ == 0.25).all()
    for form in (sparse.csr_array(X), sparse.coo_array(X), X.tolist()):
        np.testing.assert_array_equal(Batch(learner).fit(form, y).weights_, dense.weights_)
    assert Batch(learner).fit(X, 0.5 * y).error_rate_ is None
    refusal("fit first", Batch(learner).predict, X, by=AttributeError)
