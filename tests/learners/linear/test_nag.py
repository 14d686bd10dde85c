"""NAG's promise: the scales of the features change no prediction; and the ends of its range."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import NAG
from tests.helpers.linear_streams import stream
from tests.oracles import first_order
from tests.oracles.losses import slopes

pytestmark = pytest.mark.filterwarnings("ignore:a label")  # of ±1, with a clip of 0.5

D = 8
REACH = 900  # exponents of two at which all values are ordinary numbers
options = st.fixed_dictionaries(
    {
        "step_size": st.sampled_from([0.05, 0.5]),
        "loss": st.sampled_from(sorted(slopes)),
        "clip": st.sampled_from([0.5, 1.0, 3.0]),
        "fit_intercept": st.booleans(),
    }
)


def rows(seed, given):
    """Rows (60, 8) with zeros and empty rows, of sizes that grow now and then, and labels."""
    X, y = stream(seed, n=60, d=D, density=0.5)
    X *= np.random.default_rng(seed).choice([1.0, 1.0, 3.0], (60, 1))
    real = given["loss"] in ("squared", "half_squared")
    return X, y * given["clip"] if real else np.where(y >= 0, 1.0, -1.0)


def weights(model):
    return model.coef_[:D]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), options, st.lists(st.floats(-1, 1), min_size=D, max_size=D))
def test_powers_of_two__change_no_bit(seed, given_, exponents):
    scales = np.ldexp(1.0, np.rint(REACH * np.array(exponents)).astype(int))
    X, y = rows(seed, given_)
    plain, scaled = NAG(**given_), NAG(**given_)
    assert plain.progressive(X, y).tobytes() == scaled.progressive(X * scales, y).tobytes()
    assert plain.predict(3 * X).tobytes() == scaled.predict(3 * X * scales).tobytes()
    np.testing.assert_array_equal(weights(scaled) * scales, weights(plain))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), options, st.lists(st.floats(-100, 100), min_size=D, max_size=D))
def test_other_scales__change_nothing_but_the_rounding(seed, given_, exponents):
    X, y = rows(seed, given_)
    scales = 10.0 ** np.array(exponents)
    plain, scaled = NAG(**given_), NAG(**given_)
    close = {"rtol": 0, "atol": 1e-9 * given_["clip"]}
    np.testing.assert_allclose(plain.progressive(X, y), scaled.progressive(X * scales, y), **close)
    np.testing.assert_allclose(plain.predict(3 * X), scaled.predict(3 * X * scales), **close)
    np.testing.assert_allclose(weights(scaled) * scales, weights(plain), **close)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e3]))
def test_predict__is_what_the_next_round_would_predict_and_learns_nothing(seed, size):
    X, y = stream(seed, n=60, d=D, density=0.5)
    model = NAG(clip=1e6).partial_fit(X[:50], y[:50])
    before = [array.tobytes() for array in model._state]
    found = model.predict(size * X[50:])
    assert [array.tobytes() for array in model._state] == before
    for x, expected in zip(size * X[50:], found, strict=True):
        again = NAG(clip=1e6).partial_fit(X[:50], y[:50])
        assert again.progressive(x[None], [0.0]).tolist() == [expected]


def test_coef__is_that_of_rows_within_the_largest_values():
    X, y = stream(1, n=80, d=D, density=1.0)
    model = NAG(clip=1e3).partial_fit(X, y)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=0, atol=1e-13)
    assert NAG().partial_fit([[2.0, 0.0]], [1.0]).coef_.tolist() == [0.25, 0.0]


def test_features_always_at_their_largest_value__are_stepped_as_by_adagrad():
    """With |x_j| = s_j always, N is d·t, and the steps are AdaGrad's with step_size/√d."""
    X, y = np.random.default_rng(0).choice([-1.0, 1.0], (80, 4)), stream(2, n=80)[1]
    shared = {"clip": 1.0, "slope": slopes["squared"]}
    expected, w = first_order.adagrad(X, y, step_size=0.3 / 2.0, **shared)
    model = NAG(0.3)
    np.testing.assert_allclose(model.progressive(X, y), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.coef_, w, rtol=0, atol=1e-12)


def test_empty_rows__are_no_rounds():
    X, y = stream(3, n=60, d=D)
    full = X.any(1)
    assert 0 < full.sum() < 60
    some, every = NAG().partial_fit(X[full], y[full]), NAG().partial_fit(X, y)
    assert (int(every._state.t), every.rounds_) == (full.sum(), 60)
    assert some.coef_.tobytes() == every.coef_.tobytes()


@pytest.mark.parametrize(
    ("given_", "label"),
    [({"step_size": 1.7e308}, 1.0), ({}, 1e200)],
    ids=["infinite weights", "a slope whose square is infinite"],
)
def test_lost_digits__end_the_run(given_, label):
    X = np.array([[1.0, 1.0], [1.0, -1.0]] * 4)
    with pytest.raises(FloatingPointError, match="digits are lost"):
        NAG(**given_).progressive(X, label * X.prod(1))


def test_values_at_the_ends_of_the_range__are_learnt_from():
    X, y = stream(4, n=60, d=D, density=1.0)
    X, y = X[X.all(1)], y[X.all(1)]
    expected = NAG().progressive(X, y)
    for exponent in (-1015, 1015):
        assert NAG().progressive(np.ldexp(X, exponent), y).tobytes() == expected.tobytes()
    tiny = np.ldexp(X, -1070)  # no longer the same numbers, but numbers
    assert np.isfinite(NAG().progressive(tiny, y)).all()
