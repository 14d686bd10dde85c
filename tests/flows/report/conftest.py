"""One small store for all tests of the report."""

import numpy as np
import pytest

from tests.helpers.swept import prepared, swept

LEARNERS = """
window = 100
[[learner]]
name = "AdaGrad"
step_size = { powers_of_two = [-6, 0] }
[[learner]]
name = "OGD"
step_size = { powers_of_two = [-6, 0] }
"""
CLASSES = """
[[dataset]]
name = "ill-conditioned"
n_rows = 300
condition_number = [1.0, 10.0]
order = "shuffled"
order_seeds = 2
"""
REAL = """
[[dataset]]
name = "plain"
"""


@pytest.fixture(scope="session")
def reported(tmp_path_factory):
    """A store with the sweep `tiny` of two datasets with classes in two orders, and the sweep
    `small` of these and a regression set.
    """
    folder = tmp_path_factory.mktemp("reported")
    draw = np.random.default_rng(0)
    X = draw.random((300, 3)) / 2
    store = prepared(folder, "plain", X, X @ [0.9, -0.4, 0.1] + 0.05 * draw.standard_normal(300))
    for name, datasets in (("tiny", CLASSES), ("small", CLASSES + REAL)):
        swept(folder, LEARNERS + datasets, name)
    return store
