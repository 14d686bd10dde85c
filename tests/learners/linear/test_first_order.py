"""NAG's promise that the scales of the features change no prediction, FTRL-Proximal's weights that
are exactly 0, and the ends of their range.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from koco_stream import NAG, FTRLProximal
from koco_stream.losses import OF_REAL_LABELS
from tests.helpers.linear_streams import stream
from tests.oracles.losses import slopes

pytestmark = pytest.mark.filterwarnings("ignore:a label")  # of ±1, with a clip of 0.5

D = 8
REACH = 900  # exponents of two at which all values are ordinary numbers
seeds = st.integers(0, 10**6)
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
    return X, y * given["clip"] if given["loss"] in OF_REAL_LABELS else np.where(y >= 0, 1.0, -1.0)


@settings(max_examples=60, deadline=None)
@given(seeds, options, st.lists(st.floats(-1, 1), min_size=D, max_size=D))
def test_powers_of_two__change_no_bit_of_nag(seed, given_, exponents):
    scales = np.ldexp(1.0, np.rint(REACH * np.array(exponents)).astype(int))
    X, y = rows(seed, given_)
    plain, scaled = NAG(**given_), NAG(**given_)
    assert plain.progressive(X, y).tobytes() == scaled.progressive(X * scales, y).tobytes()
    assert plain.predict(3 * X).tobytes() == scaled.predict(3 * X * scales).tobytes()
    np.testing.assert_array_equal(scaled.coef_[:D] * scales, plain.coef_[:D])


@settings(max_examples=40, deadline=None)
@given(seeds, options, st.sampled_from([0.1, 1.0]), st.floats(0.0, 8.0))
def test_weights_of_ftrl__are_exactly_0_where_z_is_within_l1(seed, given_, damping, l1):
    model = FTRLProximal(l1=l1, damping=damping, **given_).partial_fit(*rows(seed, given_))
    z, n = model._state.zn.T
    np.testing.assert_array_equal(np.sign(model.coef_), np.where(np.abs(z) <= l1, 0, -np.sign(z)))
    assert (n > 0).any()


@pytest.mark.parametrize("learner", [NAG, partial(FTRLProximal, damping=0.0)])
@pytest.mark.parametrize(
    ("given_", "label"),
    [({"step_size": 1.7e308}, 1.0), ({}, 1e200)],
    ids=["infinite weights", "a slope whose square is infinite"],
)
def test_lost_digits__end_the_run(learner, given_, label):
    X = np.array([[1.0, 1.0], [1.0, -1.0]] * 4)
    with pytest.raises(FloatingPointError, match="digits are lost"):
        learner(**given_).progressive(X, label * X.prod(1))


def test_values_at_the_ends_of_the_range__are_learnt_from_or_change_nothing():
    X, y = stream(4, n=60, d=D, density=1.0)
    X, y = X[X.all(1)], y[X.all(1)]
    expected = NAG().progressive(X, y)
    for exponent in (-1015, 1015):
        assert NAG().progressive(np.ldexp(X, exponent), y).tobytes() == expected.tobytes()
    tiny = np.ldexp(X, -1070)  # no longer the same numbers, but numbers
    assert np.isfinite(NAG().progressive(tiny, y)).all()
    model = FTRLProximal(damping=0.0).partial_fit(1e-180 * X, y)  # squares of gradients are 0
    assert not model.coef_.any()
