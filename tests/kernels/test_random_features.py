"""Frequencies that are drawn when a feature occurs are those that were drawn before the first row:
whether they are held or drawn again, whoever reads them first, and whatever d is.
"""

import numpy as np
import pytest
import scipy.sparse

from koco_stream import FOGD, DualSGD
from koco_stream.kernels import random_features
from koco_stream.kernels.random_features import GROUP
from koco_stream.learners.saved import state_arrays
from koco_stream.learners.spec import StreamSize

LEARNERS = [
    lambda: FOGD(0.3, n_frequencies=21, bandwidth=2.0, seed=5),
    lambda: DualSGD(regularisation=0.1, budget=9, n_frequencies=21, bandwidth=2.0, seed=5),
]
each = pytest.mark.parametrize("make", LEARNERS, ids=["FOGD", "DualSGD"])


def stream(d=90, n=60, seed=0):
    """Rows of up to 40 features, more than one group; some features occur once, some not at all."""
    draw = np.random.default_rng(seed)
    X = np.zeros((n, d))
    for row in X:
        chosen = draw.choice(d * 2 // 3, draw.integers(0, 41), replace=False)
        row[chosen] = draw.uniform(-1, 1, chosen.size)
    X[n // 2, d - 9 :] = 1.0
    return X, np.where(draw.random(n) < 0.5, -1.0, 1.0)


@each
def test_few_lines__change_no_bit(make, monkeypatch):
    X, y = stream()
    expected = make().progressive(X, y)
    counts = (X != 0.0).sum(0)
    for lines in (1, 5, 1000):
        monkeypatch.setattr(random_features, "HELD", 32 * lines)  # at most so many have a line
        model = make()
        assert model.progressive(X, y).tobytes() == expected.tobytes()
        u = model._state.u
        # The branches: held, no lines left, and never drawn
        occur = int((counts > 0).sum())
        assert int(u.used) - GROUP == (u.line_of > 0).sum() == min(lines, occur)
        assert (u.line_of[counts == 0] == 0).all()
    assert 5 < occur < counts.size


@pytest.mark.filterwarnings("ignore:double precision")
@each
def test_a_row_far_away__makes_rounds_doubtful_and_ends_the_run_only_if_infinite(make):
    X, y = stream()
    for size in (1e4, 1e11, 1e200):
        X[20:, 3] = size
        model = make()
        assert np.isfinite(model.progressive(X, y)).all()
        assert model._state.doubtful_rounds == (40 if size > 1e10 else 0)
    X[20] = 1e308
    with pytest.raises(FloatingPointError, match="row 20"):
        make().progressive(X, y)


@each
def test_state__that_is_saved_has_no_frequencies_which_do_not_depend_on_d(make):
    X = scipy.sparse.csr_array(([1.0, -2.0], ([0, 0], [7, 2**29])), shape=(1, 2**30))
    model = make().partial_fit(X, [1.0])
    assert not [name for name in state_arrays(model._state) if name.startswith(("u.", "held."))]
    narrow = make().partial_fit(np.eye(8)[7:], [1.0])
    assert model._state.u.table[0].tobytes() == narrow._state.u.table[0].tobytes()


@pytest.mark.parametrize("learner", [FOGD, DualSGD])
def test_memory__is_not_below_what_the_arrays_take(learner):
    q = learner.complete({"n_frequencies": 100})
    for d, rounds in ((10, 10**5), (10**4, 10**5), (10**6, 10**5), (10**6, 300)):
        state = learner.init(learner.to_params(q), d, 0)
        floats = learner.floats(q, StreamSize(rounds, d, 100.0))
        taken = (state.u.table.nbytes + state.u.line_of.nbytes) // 8
        assert taken <= floats
        assert learner is DualSGD or floats < 1.01 * taken + 2**12
    narrow, wide = (learner.floats(q, StreamSize(10**6, d, 100.0)) for d in (10**7, 10**8))
    assert wide - narrow <= 2 * 9 * 10**7  # `line_of` only
