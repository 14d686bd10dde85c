"""A learner that takes more time than all others together is told of, with remedies that help."""

import re
import shlex

import pytest

from flows.sweeping.planning import LONG, dry_run_of, longest_learner
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
alpha = { powers_of_two = [-50, 49] }
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
        planned = Plan((), {}, Costs({}), {learner: 6000.0, "OGD": 1.0})
        (said,) = longest_learner(planned, sweep)
        assert ("max_dictionary in its table" in said) is has


def test_remedy_of_a_sweep_without_a_file__makes_its_file(small_store, tmp_path, koco):
    sweep = checked("real", small_store)
    (said,) = longest_learner(Plan((), {}, Costs({}), {"KAWV": 6000.0, "OGD": 1.0}), sweep)
    command, name = re.search("`koco (.*) > (.*)`", said).groups()
    assert f"top of {name}, made by" in said
    text = koco(*shlex.split(command), status=0).stdout
    kept = checked(written(tmp_path, f"time_limit = 5\n{text}", name), small_store)
    assert kept.sweep.time_limit == 5.0
    assert [run.run_id for run in kept.runs] == [run.run_id for run in sweep.runs]


def test_seconds__are_not_told(tmp_path):
    sweep = checked(written(tmp_path, SWEEP), tmp_path / "store")
    for seconds, told in ((LONG - 1, 0), (LONG + 1, 1)):
        planned = Plan((), {}, Costs({}), {"KONS": seconds, "OGD": 1.0})
        assert len(longest_learner(planned, sweep)) == told
