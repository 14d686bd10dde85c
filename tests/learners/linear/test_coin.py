"""Coin's wealth, which stays above 0 at any scale, and Vowpal Wabbit's coin betting beside it."""

import numpy as np
import pytest

from koco_stream import Coin
from koco_stream.losses import LOSSES
from tests.helpers.foreign import scores

SCALES = np.array([1e-4, 1e-2, 1.0, 1e2, 1e4])


@pytest.mark.filterwarnings("ignore:a label")
@pytest.mark.parametrize("clip", [0.5, 3.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_wealth__is_above_0_whatever_the_labels_and_scales(loss, clip):
    """Labels against each prediction, those of a rule, and one that is never reached."""
    draw = np.random.default_rng(5)
    for labels in ("against", "rule", "one"):
        model, least = Coin(loss=loss, clip=clip), np.inf
        for _ in range(150):
            x = draw.standard_normal((1, 5)) * SCALES * draw.choice([1.0, 1.0, 30.0])
            y = {
                "against": -model.predict(x)[0] if least < np.inf else 1.0,
                "rule": x[0, 2],
                "one": 1,
            }
            assert abs(model.progressive(x, [1.0 if y[labels] >= 0 else -1.0])[0]) <= clip
            least = min(least, model.wealth_.min())
        assert 0.0 < least
        assert model.wealth_.max() < 1e6


def test_vowpal_wabbit__has_nearly_the_same_loss():
    """Its wealth is 4, bounds of ℓ' and of |x_j| are kept apart, tanh is left out, and predictions
    are divided by the mean of Σ(x_j/max|x_j|)², so that it does not depend on the scales.
    """
    pytest.importorskip("vowpalwabbit", reason="needs Vowpal Wabbit: koco-stream[vw]")
    options = "--coin --noconstant --min_prediction -1 --max_prediction 1"
    for seed in range(3):
        draw = np.random.default_rng(seed)
        X = draw.standard_normal((1000, 10))
        y = np.sign(X @ draw.standard_normal(10) + 0.5 * draw.standard_normal(1000))
        theirs = np.mean((scores("vw", {"options": options}, X, y) - y) ** 2)
        ours = np.mean((Coin(4.0).progressive(X, y) - y) ** 2)
        assert ours == pytest.approx(theirs, rel=0.2)
        assert max(ours, theirs) < 0.5
