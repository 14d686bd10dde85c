"""A dataset with two names, as where a scale changes nothing: its runs are computed once, and each
sweep shows them under the name that it has.
"""

import numpy as np

from flows.comparing.comparison import compare
from flows.views.views import Views
from storage.results import read_runs
from tests.helpers.swept import prepared, swept

ONE = """
[[dataset]]
name = "raw"
[[learner]]
name = "OGD"
step_size = [0.1, 1]
"""
TWO = """
[[dataset]]
name = "scaled"
[[learner]]
name = "OGD"
step_size = [0.1, 1]
[[learner]]
name = "AdaGrad"
"""


def test_runs_of_two_sweeps__have_the_name_of_each(tmp_path):
    rng = np.random.default_rng(3)
    X = (rng.random((60, 4)) < 0.5).astype(float)
    y = np.where(X[:, 0] > rng.random(60), 1, -1)
    for name in ("raw", "scaled"):
        store = prepared(tmp_path, name, X, y)
    swept(tmp_path, ONE, "one")
    swept(tmp_path, TWO, "two")
    assert read_runs(store).num_rows == 3
    for sweep, name, count in (("one", "raw", 2), ("two", "scaled", 3)):
        views = Views(store, [sweep])
        assert [row["dataset"] for row in views.rows("FROM runs")] == [name] * count
        assert {row["dataset"] for row in views.rows("FROM best")} == {name}
    for sweeps, name in ((["two"], "scaled"), (["one", "two"], "raw"), (["two", "one"], "scaled")):
        found = compare(store, sweeps)
        assert set(found.learners) == {"OGD", "AdaGrad"}
        assert {row["block"] for row in found.blocks.to_pylist()} == {name}
        assert found.notes == []
