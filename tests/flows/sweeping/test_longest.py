"""A learner that takes more time than all others together is told of, with remedies that help."""

import pytest

from flows.sweeping.planning import dry_run_of, longest_learner
from flows.sweeping.request import SweepRequest
from koco_stream.runs.cost_model import Costs
from koco_stream.runs.planner import Plan
from tests.helpers.sweeps import checked, written

SWEEP = """
name = "long"
[[dataset]]
name = "sea"
n_rows = 8000
[[learner]]
name = "AdaGrad"
[[learner]]
name = "KONS"
alpha = { powers_of_two = [0, 7] }
"""


def warnings(folder, text):
    """What a dry run says of learners."""
    return dry_run_of(SweepRequest(str(written(folder, text)), str(folder / "store"))).get(
        "warnings", []
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "long"', 'name = "long"\ntime_limit = 5'),
        ("n_rows = 8000", "n_rows = 8000\nmax_rows = 500"),
        ('[[learner]]\nname = "AdaGrad"\n', ""),  # there are no others
    ],
)
def test_remedy__that_is_followed_ends_it(old, new, tmp_path):
    (said,) = warnings(tmp_path, SWEEP)
    assert said.startswith("KONS is expected to take ")
    assert said.endswith(
        "give time_limit at the top of the sweep file, or max_rows in the table of its dataset"
    )
    assert warnings(tmp_path, SWEEP.replace(old, new)) == []


def test_max_dictionary__is_named_for_learners_that_have_it(tmp_path):
    sweep = checked(written(tmp_path, SWEEP), tmp_path / "store")
    for learner, has in (("BKONS", True), ("KONS", False)):
        planned = Plan((), {}, Costs({}), {learner: 60.0, "OGD": 1.0})
        (said,) = longest_learner(planned, sweep)
        assert ("max_dictionary in its table" in said) is has
