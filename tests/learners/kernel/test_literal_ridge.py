"""KAWV against its paper, literally: predictions, and the function learnt."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koco_stream import KAWV
from tests.learners.kernel.test_literal_kernel import (
    COUNTED,
    KERNEL,
    STREAMS,
    any_stream,
    assert_agree,
    each,
)
from tests.oracles.ridge import Kawv

pytestmark = [
    pytest.mark.one_python,
    pytest.mark.filterwarnings("ignore:a label"),  # labels beyond a small clip are among the cases
]
ridges = st.sampled_from([0.1, 1.0, 5.0])


@each
@given(any_stream, ridges)
def test_kawv__is_the_solution_of_the_whole_system(stream, alpha):
    reference = Kawv(alpha=alpha, clip=stream.clip)
    options = {"alpha": alpha, **stream.common, **stream.kernel}
    assert_agree("KAWV", stream, options, reference, stream.phi())


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_kawv__has_vovk_s_regret_bound(alpha):
    draw = np.random.default_rng(2)
    X = draw.random((300, 2))
    y = np.sign(np.sin(9 * X[:, 0])) * draw.choice([1.0, 1.0, -1.0], 300)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * 0.4**2))
    best = alpha * y @ np.linalg.solve(K + alpha * np.eye(300), y)
    bound = best + np.linalg.slogdet(np.eye(300) + K / alpha)[1]
    loss = ((KAWV(alpha, bandwidth=0.4, clip=100.0).progressive(X, y) - y) ** 2).sum()
    assert best < loss <= bound


OCCUR = {"KAWV": STREAMS | KERNEL | {"truncated", "φ = 0", "a repeated row"}}


@pytest.mark.parametrize("learner", OCCUR)
def test_every_option_and_every_rare_event_has_occurred(learner):
    assert sorted(what for what in OCCUR[learner] if not COUNTED[learner][what]) == []
