"""How many files a reader opens to follow a row: traced with the compiler off."""

import json
import subprocess
import sys

import pytest

from tests.docs.test_docs import ROOT

TRACE = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, "docs")
from walk import MOMENTS, files_of, stacks_of
import numpy as np
from koco_stream.learners import LEARNERS

X = np.random.default_rng(0).standard_normal((60, 20))
y = np.sign(X[:, 0])
idx = np.arange(20, dtype=np.int32)
rounds = {}
for name in sys.argv[1:]:
    model = LEARNERS[name]().partial_fit(X, y)
    rounds[name] = [
        files_of(lambda: model.step(model._params, model._state, idx, row, 1.0)) for row in X[:3]
    ]
moments = [moment for moment in MOMENTS["row"] if not moment[0].startswith("in some rounds")]
model = LEARNERS["OjaSON"]().partial_fit(X, y)
stacks = stacks_of(lambda: model.progressive(X, -y), moments)
way = {file for several in stacks.values() for stack in several for file, _ in stack}
json.dump([rounds, sorted(way)], sys.stdout)
"""
SKETCHES = "OjaSON", "RPSON"


@pytest.fixture(scope="module")
def traced():
    return json.loads(
        subprocess.check_output([sys.executable, "-c", TRACE, *SKETCHES], cwd=ROOT, text=True)
    )


@pytest.mark.parametrize("name", SKETCHES)
def test_a_round__calls_functions_of_at_most_six_files(traced, name):
    for files in traced[0][name]:
        assert len(files) <= 6, files


def test_a_row__goes_through_at_most_ten_files(traced):
    assert len(traced[1]) <= 10, traced[1]
