"""`koco results` and the report say which learners are no better than always predicting a constant,
beside plain loops over the runs.
"""

import json
import re
from statistics import mean, stdev

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from flows.report.sections.lines import READ, results_of

from flows.report.document import BEST, report_of, write_report
from flows.report.notebook import best_results, best_table
from flows.results.views import runs_of
from flows.scores.constant import beats_constant
from flows.tables.tables import summary_of
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


def by_configuration(runs):
    found = {}
    for row in runs.to_pylist():
        found.setdefault((row["dataset"], row["learner"], row["params"]), []).append(row)
    return found


def test_beats_constant__is_what_the_runs_beside_those_of_constant_say(store):
    runs = runs_of(store, "with")
    of_constant = {
        tuple(row[name] for name in STREAM): row
        for row in runs.to_pylist()
        if row["learner"] == "Constant"
    }
    expected = {}
    for key, rows in by_configuration(runs).items():
        beside = [of_constant[tuple(row[name] for name in STREAM)] for row in rows]
        measures = [name for name in ("mean_loss", "error_rate") if rows[0][name] is not None]
        expected[key] = key[1] == "Constant" or all(
            mean(row[name] for row in rows) < mean(row[name] for row in beside) for name in measures
        )
    found = summary_of(runs)
    assert list(found[0])[-1] == "beats_constant"
    for row in found:
        key = row["dataset"], row["learner"], row["params"]
        assert row["beats_constant"] == (None if key[1] == "Constant" else expected[key]), key
    assert {(row["dataset"], row["beats_constant"]) for row in found} == {
        *(("noise", False), ("plain", True), ("signs", True)),
        *((name, None) for name in ("noise", "plain", "signs")),
    }


def test_beats_constant__is_unknown_where_a_run_does_not_say(store):
    runs = runs_of(store, "with")
    place = runs.column_names.index("constant_mean_loss")
    one = pc.equal(runs.column("order_seed"), 1)  # of three orders
    for known in (pc.fill_null(pc.invert(one), True), pa.scalar(False)):
        without = pc.if_else(known, runs.column("constant_mean_loss"), None)
        cut = runs.set_column(place, runs.schema.field(place), without)
        noise = {r["beats_constant"] for r in summary_of(cut) if r["dataset"] == "noise"}
        assert noise == {None}
        lines = [s.best_lines for s in results_of(cut.select(READ)).streams]
        assert {c.beats_constant for line in lines[:1] for _, c in line} == {None}
    assert all(stream.trivial == [] for stream in results_of(cut.select(READ)).streams)


def test_beats_constant__is_strictly_better_in_all_that_is_measured():
    assert beats_constant("OGD", 0.4, 0.1, 0.5, 0.2) is True
    assert beats_constant("OGD", 0.4, None, 0.5, None) is True
    for mine in ((0.5, 0.1), (0.4, 0.2), (0.6, 0.1), (0.4, 0.3), (0.5, None)):
        assert beats_constant("OGD", *mine, 0.5, 0.2) is False, mine
    for learner in ("Constant", "KORS"):  # KORS predicts nothing
        assert beats_constant(learner, 0.4, 0.1, 0.5, 0.2) is None


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
    rows = [r for r in summary_of(runs_of(store, "with")) if r["dataset"] == "noise"]
    for learner in ("OGD", "AdaGrad"):
        best = next(row for row in rows if row["learner"] == learner)
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


def told(flags):
    """Warnings and their details, a line each."""
    return "\n".join(line for flag in flags for line in (flag.words, *flag.details))


def test_report__has_a_row_of_constant_and_names_what_is_not_better(store):
    report = report_of(store, "without")
    at = {name: k for k, name in enumerate(BEST)}
    trivial = {(row[0], row[2]): row for row in report["best"] if row[1] == "Constant"}
    assert list(trivial) == [
        (title, f"loss={loss}")
        for title in ("noise, shuffled", "plain", "signs")
        for loss in ("half_squared", "squared")
    ]
    for (title, which), row in trivial.items():
        constants = {
            one["order_seed"]: (one["constant_mean_loss"], one["constant_error_rate"])
            for one in runs_of(store, "without").to_pylist()
            if one["dataset"] == title.split(",")[0] and f"loss={one['loss']}" == which
        }
        losses, errors = zip(*constants.values(), strict=True)
        error = None if title == "plain" else pytest.approx(mean(errors), rel=1e-11)
        spread = pytest.approx(stdev(losses)) if len(losses) > 1 else None
        place = at["mean loss"]
        assert row[place : place + 2] == [pytest.approx(mean(losses), rel=1e-11), spread]
        assert (row[at["error rate"]], row[-1]) == (error, None)
    others = {(row[0], row[1], row[-1]) for row in report["best"] if row[1] != "Constant"}
    assert others == {
        (title, learner, not title.startswith("noise"))
        for title in ("noise, shuffled", "plain", "signs")
        for learner in ("OGD", "AdaGrad")
    }
    flagged = sentences(told(report["overview"].warnings))
    assert {words[: words.index(" is")] for words in flagged} == {
        f"{learner}'s best on noise, shuffled" for learner in ("OGD", "AdaGrad")
    }
    page = write_report(store, "without").path
    assert all(words in page.with_suffix(".md").read_text() for words in flagged)
    [noise] = [one for stream, one in report["sections"] if stream.title.startswith("noise")]
    assert sentences(told(noise[0].flags)) == flagged  # in its own section too


def test_report__of_a_sweep_with_constant_shows_it_once(store):
    for rows in (report_of(store, "with")["best"], best_table(best_results(store, "with"))[1]):
        shown = [row[0] for row in rows if row[1] == "Constant"]
        assert sorted(shown) == ["noise, shuffled", "plain", "signs"]
    assert sentences(told(report_of(store, "with")["overview"].warnings)) != set()
