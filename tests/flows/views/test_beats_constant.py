"""`koco results` and the report say which learners are no better than always predicting a
constant.
"""

import json
import math
import re

import pytest

from flows.report.document import page_of, write_report
from flows.views.views import Views
from tests.helpers.many_runs import put, run

# losses and errors in two orders, those of Constant, and whether they beat it
CASES = {
    "better": ((0.3, 0.5), (0.1, 0.1), (0.5, 0.2), True),
    "real": ((0.3, 0.5), (None, None), (0.5, None), True),
    "as good": ((0.3, 0.5), (0.1, 0.1), (0.4, 0.2), False),
    "errs": ((0.3, 0.5), (0.1, 0.3), (0.5, 0.2), False),
    "loses": ((0.3, 0.9), (0.1, 0.1), (0.5, 0.2), False),
    "unknown": ((0.3, 0.5), (0.1, 0.1), (None, None), None),
    "infinite": ((0.3, math.nan), (0.1, 0.1), (0.5, 0.2), None),
    "nothing": ((None, None), (None, None), (0.5, 0.2), None),  # of KORS, which predicts nothing
}
# those of Constant that are not beaten
UNBEATEN = {"as good": "mean loss 0.4", "errs": "error 20 %", "loses": "mean loss 0.5"}
SAID = {
    f"OGD's best on {name}, shuffled is not better than always predicting a constant ({words})"
    for name, words in UNBEATEN.items()
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The sweep `s` with all cases, of OGD and of Constant; in `part`, a run does not say."""
    rows = []
    for name, (losses, errors, known, _) in CASES.items():
        constant = dict(zip(("constant_mean_loss", "constant_error_rate"), known, strict=True))
        for learner, k in (("OGD", 0), ("OGD", 1), ("Constant", 0), ("Constant", 1)):
            rows.append(run(len(rows), name, learner, losses[k], errors[k], k, **constant))
    rows += [run(90 + k, "part", "OGD", 0.1, 0.1, k) for k in (0, 1)]
    rows[-1] |= {"constant_mean_loss": None, "constant_error_rate": None}
    folder = tmp_path_factory.mktemp("constant")
    put(folder, "s", None, rows)
    return folder


def sentences(text):
    return set(re.findall(r"\w+'s best on .* is not better than .* \(.*\)", text))


def test_beats_constant__is_strictly_better_in_all_that_is_measured(store):
    found = Views(store, ["s"]).rows("SELECT dataset, learner, beats_constant FROM configurations")
    beats = {(one["dataset"], one["learner"]): one["beats_constant"] for one in found}
    expected = {(name, "OGD"): case[-1] for name, case in CASES.items()}
    assert beats == {
        **expected,
        **{(name, "Constant"): None for name in CASES},
        ("part", "OGD"): None,
    }


@pytest.mark.parametrize("words", [(), ("--best",), ("--runs",)])
def test_results__name_the_learners_that_are_not_better(store, koco, words):
    """Each with the numbers of Constant that it does not beat."""
    done = koco("results", "--store", store, "--sweep", "s", *words, status=0)
    assert sentences(done.stderr) == (SAID if words != ("--runs",) else set())
    done = koco("results", "--store", store, "--sweep", "s", *words, "--json", status=0)
    assert sentences(done.stderr) == set()
    marks = {row.get("beats_constant") for row in json.loads(done.stdout)}
    assert marks == ({True, False, None} if words != ("--runs",) else {None})


def test_report__has_constant_beside_the_best_and_names_what_is_not_better(store):
    page = page_of(store, "s")
    [figure] = [one for one in page.figures if one.title == "Best parameters"]
    rows = [dict(zip(figure.columns, row, strict=True)) for row in figure.rows]
    assert len(rows) == len({(row["dataset"], row["learner"]) for row in rows}) > len(CASES)
    for row in rows:
        _, _, known, beats = CASES.get(row["dataset"].split(",")[0], CASES["unknown"])
        verdict = None if row["learner"] == "Constant" else beats
        shown = (row["its loss"], row["Constant's error"], row["beats Constant"])
        assert shown == (*known, verdict), row
    assert sentences("\n".join(one for flag in page.flags for one in flag.details)) == SAID
    written = write_report(store, "s").path
    assert all(words in written.with_suffix(".md").read_text() for words in SAID)
