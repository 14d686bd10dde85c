"""NAG's promise: the scales of the features change no prediction; and the ends of its range."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import NAG
from tests.helpers.linear_streams import stream
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


def test_coef__is_that_of_rows_within_the_largest_values():
    X, y = stream(1, n=80, d=D, density=1.0)
    model = NAG(clip=1e3).partial_fit(X, y)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=0, atol=1e-13)
    assert NAG().partial_fit([[2.0, 0.0]], [1.0]).coef_.tolist() == [0.25, 0.0]


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
