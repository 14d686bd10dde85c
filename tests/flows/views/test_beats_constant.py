"""`koco results` says which learners are no better than always predicting a constant: on made-up
results.
"""

import math
import re

import pytest

from flows.views.views import Views
from tests.helpers.many_runs import put, run


@pytest.mark.parametrize(
    ("losses", "errors", "known", "beats"),
    [
        ((0.3, 0.5), (0.1, 0.1), (0.5, 0.2), True),
        ((0.3, 0.5), (None, None), (0.5, None), True),
        ((0.3, 0.5), (0.1, 0.1), (0.4, 0.2), False),  # as good
        ((0.3, 0.5), (0.1, 0.3), (0.5, 0.2), False),
        ((0.3, 0.9), (0.1, 0.1), (0.5, 0.2), False),
        ((0.3, 0.5), (0.1, 0.1), (None, None), None),
        ((0.3, math.nan), (0.1, 0.1), (0.5, 0.2), None),
        ((None, None), (None, None), (0.5, 0.2), None),  # of KORS, which predicts nothing
    ],
)
@pytest.mark.parametrize("learner", ["OGD", "Constant"])
def test_beats_constant__is_strictly_better_in_all_that_is_measured(
    tmp_path, learner, losses, errors, known, beats
):
    rows = [run(k, "d", learner, losses[k], errors[k], k) for k in (0, 1)]
    constant = dict(zip(("constant_mean_loss", "constant_error_rate"), known, strict=True))
    put(tmp_path, "s", None, [one | constant for one in rows])
    [found] = Views(tmp_path, ["s"]).rows("FROM configurations")
    assert found["beats_constant"] is (None if learner == "Constant" else beats)
    # and unknown where a run does not say
    put(tmp_path, "s", None, [rows[0] | constant, rows[1] | {"constant_mean_loss": None}])
    [found] = Views(tmp_path, ["s"]).rows("FROM configurations")
    assert found["beats_constant"] is None


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Constant errs on 50 % and has the loss 0.9: one dataset on which nothing is better than both,
    and one of real labels.
    """
    store = tmp_path_factory.mktemp("constant")
    results = {
        ("noise", "OGD"): (0.95, 0.4),
        ("noise", "AdaGrad"): (0.9, 0.6),
        ("noise", "Constant"): (0.9, 0.5),
        ("plain", "OGD"): (0.3, None),
        ("plain", "Constant"): (0.9, None),
    }
    rows = [
        run(2 * number + seed, *names, loss, error, seed, constant_error_rate=error and 0.5)
        for number, (names, (loss, error)) in enumerate(results.items())
        for seed in (0, 1)
    ]
    put(store, "s", None, rows)
    return store


SAID = {
    f"{name}'s best on noise, shuffled is not better than always predicting a constant"
    for name in ("AdaGrad", "OGD")
}


def test_results__mark_and_name_the_learners_that_are_not_better(store, koco):
    for words, named in (([], SAID), (["--best"], SAID), (["--best", "--json"], set())):
        done = koco("results", "--store", store, "--sweep", "s", *words, status=0)
        said = done.stderr.replace("\n  ", " ")
        assert set(re.findall(r"\w+'s best on .* is not better than .* constant", said)) == named
