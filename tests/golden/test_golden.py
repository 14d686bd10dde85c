"""The numbers of every learner are those that were recorded, to the last bit, in the environment in
which they were recorded.
"""

import json
import subprocess
import sys

import pytest

from koco_stream.learners import LEARNERS
from tests.golden.cases import REFUSED, cases_of, changes, environment, numbers_of, recorded
from tests.helpers import project

pytestmark = pytest.mark.filterwarnings("ignore:double precision", "ignore:the first rows have")
RECORDED = recorded()
HERE = environment()
DIFFERENT = [
    f"{name}: {HERE[name]}, recorded with {was}"
    for name, was in RECORDED["environment"].items()
    if HERE[name] != was
]

in_the_recorded_environment = pytest.mark.skipif(
    bool(DIFFERENT),
    reason="numbers are the same to the bit in one environment only, and here is another: "
    + "; ".join(DIFFERENT),
)
WITH_NUMBERS = {case.split("|")[0] for case in RECORDED["cases"]}
every_learner = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                name not in WITH_NUMBERS,
                reason=f"has no numbers yet: python -m tests.golden.cases {name}",
            ),
        )
        for name in sorted(LEARNERS)
    ],
)


HOW_MANY = [
    pytest.param(True, id="daily"),
    pytest.param(False, id="every case", marks=pytest.mark.long),
]


def recorded_of(name, daily=False):
    some = {case.name for case in cases_of(name, daily)} if daily else RECORDED["cases"]
    return {case: RECORDED["cases"].get(case) for case in some if case.split("|")[0] == name}


def test_numbers__are_of_the_learners_that_there_are():
    assert WITH_NUMBERS <= set(LEARNERS)


@every_learner
def test_cases__are_those_recorded_and_vary_every_parameter(name):
    learner, cases = LEARNERS[name], cases_of(name)
    assert {case.name for case in cases} == set(recorded_of(name))
    complete = [
        learner.complete({q: value for q, value in case.given.items() if q != "seed"})
        for case in cases
    ]
    for q in learner.parameters:
        seen = {str(public[q.name]) for public in complete}
        assert len(seen) >= 2, f"give {q.name} another value in OTHER_VALUES"
        assert {*q.choices} - {*REFUSED.get(name, ())} <= seen
        where_it_matters = {
            str(public[q.name]) for public in complete if q.name not in learner.irrelevant(public)
        }
        assert len(where_it_matters) != 1, (
            f"{q.name} has one value only in the cases where it matters"
        )


@in_the_recorded_environment
@pytest.mark.parametrize("daily", HOW_MANY)
@every_learner
def test_numbers__of_the_learner_are_those_recorded(name, daily):
    differ = changes(recorded_of(name, daily), numbers_of(name, daily))
    assert not differ, "\n".join(
        [
            (
                f"{len(differ)} cases differ (hashes of the predictions, of predict, of dictionary_"
                " and weights_):"
            ),
            *differ,
            (
                "If that is meant, raise the learner's numbers_version and run: python -m"
                f" tests.golden.cases {name}"
            ),
        ]
    )


OF_EACH_KIND = ["FDSON", "NOGD", "PROSNKONS"]
NUMBERS_OF = """
import json, sys
from tests.golden.cases import numbers_of
print(json.dumps({name: numbers_of(name, daily=True) for name in sys.argv[1:]}))
"""


def test_numbers__do_not_depend_on_the_threads_of_blas():
    """Here it has one: see tests/conftest.py."""
    done = subprocess.run(
        [sys.executable, "-c", NUMBERS_OF, *OF_EACH_KIND],
        env=project.environment(OPENBLAS_NUM_THREADS="4"),
        check=True,
        stdout=subprocess.PIPE,
    )
    assert json.loads(done.stdout) == {name: numbers_of(name, True) for name in OF_EACH_KIND}
