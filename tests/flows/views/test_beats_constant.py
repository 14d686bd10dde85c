"""`koco results` and the report say which learners are no better than always predicting a constant,
beside plain loops over the runs.
"""

import json
import math
import re
from statistics import mean

import numpy as np
import pytest

from flows.report.document import page_of, write_report
from flows.report.notebook import best_table, sections_of
from flows.views.views import Views, runs_of
from tests.helpers.many_runs import put, run
from tests.helpers.swept import prepared, swept

SPEC = """
[[dataset]]
name = "noise"
order = "shuffled"
order_seeds = 3
[[dataset]]
name = "plain"
[[dataset]]
name = "signs"
[[learner]]
name = "OGD"
step_size = [0.1, 0.3]
loss = {losses}
[[learner]]
name = "AdaGrad"
step_size = 0.02
{more}
"""
CONSTANT = '[[learner]]\nname = "Constant"\n'
STREAM = ("dataset", "order_seed")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Labels that have nothing to do with the rows, real labels and signs that do; two sweeps, the
    second with Constant.
    """
    folder, draw = tmp_path_factory.mktemp("constant"), np.random.default_rng(0)
    X = draw.standard_normal((400, 4)) / 2
    scores = X @ [0.9, -0.4, 0.1, 0.3]
    prepared(folder, "noise", X, np.where(draw.random(400) < 0.95, 1, -1))
    prepared(folder, "plain", X, scores / 2)
    prepared(folder, "signs", X, np.where(scores >= 0.0, 1, -1))
    swept(folder, SPEC.format(losses='["squared", "half_squared"]', more=""), "without")
    swept(folder, SPEC.format(losses='"squared"', more=CONSTANT), "with")
    return folder / "store"


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


def sentences(text):
    return set(re.findall(r"\w+'s best on .* is not better than .* \(.*\)", text))


def test_results__mark_and_name_the_learners_that_are_not_better(store, koco):
    done = koco("results", "--store", store, "--sweep", "with", status=0)
    errors = {
        row["order_seed"]: row["constant_error_rate"]
        for row in runs_of(store, "with").to_pylist()
        if row["dataset"] == "noise"
    }
    named = sentences(done.stderr.replace("\n  ", " "))
    assert {words.split("'")[0] for words in named} == {"OGD", "AdaGrad"}
    for words in named:
        assert "best on noise, shuffled is not better than always predicting a constant" in words
    # each has the numbers of Constant that it does not beat
    views = Views(store, ["with"])
    for best in views.rows("FROM best WHERE dataset = 'noise' AND learner <> 'Constant'"):
        learner = best["learner"]
        (words,) = (words for words in named if words.startswith(learner))
        error = f"error {100 * mean(errors.values()):.3g} %"
        assert (error in words) == (best["error_rate_mean"] >= mean(errors.values()))
    done = koco("results", "--store", store, "--sweep", "with", "--json", status=0)
    marks = [row["beats_constant"] for row in json.loads(done.stdout)]
    assert sorted(mark for mark in marks if mark is not None) == [False] * 3 + [True] * 6
    for words in (["--best"], ["--best", "--json"], ["--runs"]):
        done = koco("results", "--store", store, "--sweep", "with", *words, status=0)
        said = sentences(done.stderr.replace("\n  ", " "))
        assert said == (named if words == ["--best"] else set()), words
        if words[-1] == "--json":
            assert {row["beats_constant"] for row in json.loads(done.stdout)} == {True, False, None}


def test_report__has_constant_beside_the_best_and_names_what_is_not_better(store):
    page = page_of(store, "without")
    [figure] = [one for one in page.figures if one.title == "Best parameters"]
    rows = [dict(zip(figure.columns, row, strict=True)) for row in figure.rows]
    assert len(rows) == 6
    for row in rows:
        name = row["dataset"].split(",")[0]
        constants = {
            one["order_seed"]: (one["constant_mean_loss"], one["constant_error_rate"])
            for one in runs_of(store, "without").to_pylist()
            if (one["dataset"], one["learner"]) == (name, row["learner"])
            and ("half_squared" in row["parameters"]) == (one["loss"] == "half_squared")
        }
        losses, errors = zip(*constants.values(), strict=True)
        error = None if name == "plain" else pytest.approx(mean(errors), rel=1e-11)
        assert row["its loss"] == pytest.approx(mean(losses), rel=1e-11)
        assert (row["Constant's error"], row["beats Constant"]) == (error, name != "noise")
    flagged = sentences("\n".join(one for flag in page.flags for one in flag.details))
    assert {words[: words.index(" is")] for words in flagged} == {
        f"{learner}'s best on noise, shuffled" for learner in ("OGD", "AdaGrad")
    }
    written = write_report(store, "without").path
    assert all(words in written.with_suffix(".md").read_text() for words in flagged)


def test_report__of_a_sweep_with_constant_shows_it_once(store):
    [figure] = [one for one in page_of(store, "with").figures if one.title == "Best parameters"]
    for rows in (figure.rows, best_table(sections_of(store, "with"))[1]):
        shown = [row[0] for row in rows if row[1] == "Constant"]
        assert sorted(shown) == ["noise, shuffled", "plain", "signs"]
