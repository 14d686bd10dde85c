"""Points that leave a dictionary take out what they have."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from koco_stream import DualSGD


@pytest.mark.parametrize("budget", [1, 17])
def test_points_that_leave__take_their_room_along_and_the_state_is_loaded_at_any_time(
    budget, tmp_path
):
    """Rows of up to 20 features that no other has, all of which join."""
    draw, d = np.random.default_rng(0), 6000
    indptr = np.cumsum([0, *draw.integers(0, 21, 600)])
    X = csr_array((draw.standard_normal(d), np.arange(d), np.minimum(indptr, d)), shape=(600, d))
    y, sizes, found = draw.choice([-1.0, 1.0], 600), [], []
    given = {"regularisation": 0.1, "budget": budget, "n_frequencies": 2, "loss": "hinge"}
    model = DualSGD(**given)
    for rows in np.split(np.arange(600), 20):
        found += model.progressive(X[rows], y[rows]).tolist()
        points = model._state.points
        sizes.append(points.features.nbytes + points.rows.indices.nbytes)
        model.save(tmp_path / "model.koco")
        model = DualSGD.load(tmp_path / "model.koco")
    assert model.dictionary_.min() >= 600 - 2 * budget
    assert sizes[-1] == sizes[4]
    assert found == DualSGD(**given).progressive(X, y).tolist()
