"""FTRL-Proximal: which weights are exactly 0, what it is without a penalty, and its range."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import FTRLProximal
from tests.helpers.linear_streams import stream
from tests.oracles.losses import slopes

losses = st.sampled_from(sorted(slopes))


def rows(seed, loss):
    X, y = stream(seed, n=120, d=12)
    return X, y if loss in ("squared", "half_squared") else np.where(y >= 0, 1.0, -1.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), losses, st.sampled_from([0.1, 1.0]), st.floats(0.0, 8.0))
def test_weights__are_exactly_0_where_z_is_within_l1_and_nowhere_else(seed, loss, damping, l1):
    X, y = rows(seed, loss)
    model = FTRLProximal(l1=l1, damping=damping, loss=loss).partial_fit(X, y)
    z, n = model._state.zn.T
    np.testing.assert_array_equal(model.coef_ == 0.0, np.abs(z) <= l1)
    np.testing.assert_array_equal(np.sign(model.coef_), np.where(np.abs(z) <= l1, 0, -np.sign(z)))
    assert (n > 0).any()


def test_more_l1__leaves_fewer_weights_down_to_none():
    X, y = stream(1, n=300, d=20)
    left = [np.count_nonzero(FTRLProximal(l1=l1).fit(X, y).coef_) for l1 in (0, 1, 3, 10, 1e3)]
    assert left == sorted(left, reverse=True)
    assert (left[0], left[-1]) == (20, 0)
    assert len(set(left)) >= 4
    assert not FTRLProximal(l1=1e3).progressive(X, y).any()


def test_l2__shrinks_the_weights():
    X, y = stream(2, n=300, d=20)
    norms = [np.linalg.norm(FTRLProximal(l2=l2).fit(X, y).coef_) for l2 in (0.0, 10.0, 1e3)]
    assert norms[0] > 1.5 * norms[1] > 15 * norms[2] > 0


@pytest.mark.filterwarnings("ignore:a label")
@pytest.mark.parametrize(("given_", "size"), [({}, 1e200), ({"step_size": 1.7e308}, 1.0)])
def test_numbers_beyond_the_range__end_the_run(given_, size):
    X = np.array([[1.0, 1.0], [1.0, -1.0]] * 4)
    with pytest.raises(FloatingPointError, match="digits are lost"):
        FTRLProximal(damping=0.0, **given_).progressive(X, size * X.prod(1))


def test_gradients_whose_squares_are_0__change_nothing():
    X, y = stream(3, n=60, d=5)
    model = FTRLProximal(damping=0.0)
    assert not model.progressive(1e-180 * X, y).any()
    assert not model.coef_.any()
