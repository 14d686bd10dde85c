"""`koco results`: conditions, the best and two sweeps side by side, beside plain loops over
the runs; and how a terminal shows them.
"""

import csv
import io
import json
import random
import re
from itertools import product

import pyarrow as pa
import pytest

from tests.helpers.examples import FORMULAS
from tests.helpers.in_process import command
from tests.helpers.many_runs import put

CONFIGURATIONS = [
    *(("OjaSON", {"sketch_size": m, "alpha": a}) for m, a in product((3, 6), (0.5, 4.0, 8.0))),
    *(("AdaGrad", {"step_size": step}) for step in (0.1, 1.0)),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two sweeps, of alpha 0.5 and 4 and of 4 and 8, that have configurations in common."""
    folder, draw, rows = tmp_path_factory.mktemp("answers") / "store", random.Random(0), []
    for (learner, own), dataset, order in product(CONFIGURATIONS, ("real", "year"), (0, 1)):
        params = {**own, "clip": 2.0 if own.get("alpha") == 8.0 else 1.0}
        told = {**params, "mean_loss": draw.random(), "seconds": draw.random(), "rounds": 9}
        told |= {"order": "shuffled", "order_seed": order, "dataset": dataset}
        told |= {"learner": learner, "params": json.dumps(params), "dataset_hash": dataset}
        rows.append({"run_id": f"{len(rows):032x}", "numbers": "own", "status": "ok", **told})
    for name, left_out in (("first", 8.0), ("second", 0.5)):
        put(folder, name, [row["run_id"] for row in rows if row.get("alpha") != left_out], ())
    put(folder, "all", None, rows)
    return folder


@pytest.fixture
def results(store):
    def asked(*words):
        printed = command("results", "--store", store, *words, status=0).stdout
        return json.loads(printed) if "--json" in words else printed

    return asked


def test_conditions__are_what_loops_over_the_runs_give(results):
    runs = results("--runs", "--json")
    assert len(runs) == 4 * len(CONFIGURATIONS)
    large = results("--where", "alpha>1", "--where", "learner='OjaSON'", "--runs", "--json")
    assert {r["run_id"] for r in large} == {r["run_id"] for r in runs if (r["alpha"] or 0) > 1}
    assert {r["dataset"] for r in results("--dataset", "year", "--json")} == {"year"}


def test_difference__joins_what_is_equal(results, store):
    """Configurations that both have stand beside each other; with --best, those of a learner do."""
    words = ("--sweep", "first", "--diff", "second")
    rows = results(*words, "--json")
    assert len(rows) == 2 * len(CONFIGURATIONS)
    for row in rows:
        alpha = json.loads(row["params"]).get("alpha")
        assert (row["n_runs"] is None, row["n_runs_other"] is None) == (alpha == 8, alpha == 0.5)
        assert row["difference"] == (None if alpha in (8, 0.5) else 0.0)
    best = results(*words, "--best", "--json")
    assert sorted((row["dataset"], row["learner"]) for row in best) == [
        *product(("real", "year"), ("AdaGrad", "OjaSON"))
    ]
    for row in best:
        losses = row["mean_loss_mean_other"], row["mean_loss_mean"]
        assert row["difference"] == pytest.approx(losses[0] - losses[1])
    # what only one of them has, the other need not have
    only = results(*words, "--where", "alpha=8", "--json")
    assert [row["mean_loss_mean"] for row in only] == [None] * 4
    # a terminal has the parameters of both, and first of all what is asked for
    for shown in (results(*words, "--best"), results(*words)):
        assert max(map(len, shown.splitlines())) <= 100
        assert "difference" in shown
        assert "other" in shown
        assert "hash" not in shown
    assert set(re.findall(r"alpha=\S+", shown)) == {"alpha=0.5", "alpha=4", "alpha=8"}


def test_forms__give_the_same_numbers(results, tmp_path):
    words = ("--where", "learner='OjaSON'")
    as_json = results(*words, "--json")
    results(*words, "--arrow", str(tmp_path / "a.arrow"))
    with pa.OSFile(str(tmp_path / "a.arrow")) as file:
        assert pa.ipc.open_file(file).read_all().to_pylist() == as_json
    rows = list(csv.DictReader(io.StringIO(results(*words, "--csv"))))
    assert [float(row["mean_loss_mean"]) for row in rows] == [
        row["mean_loss_mean"] for row in as_json
    ]


def test_terminal__shows_parameters_that_vary_and_the_others_once(results, store):
    words = ("--sweep", "first", "--where", "clip=1")
    done, rows = command("results", "--store", store, *words), results(*words, "--json")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    # below the names, some of them in two lines
    for line, row in zip(lines[-len(rows) :], rows, strict=True):
        assert line.split()[:2] == [row["dataset"], row["learner"]]
        params = {**json.loads(row["params"])}
        del params["clip"]
        shown = dict(text.split("=") for text in re.findall(r"\S+=\S+", line))
        assert {name: float(value) for name, value in shown.items()} == params
    assert "all rows: order=shuffled n_runs=2" in done.stderr.splitlines()
    assert "_hash" not in done.stdout  # each dataset has one
    assert "error_" not in done.stdout  # real labels have none
    single = results(*words, "--runs")
    assert "order_seed" in single
    assert "status" not in single  # all are ok
    other = command("results", "--store", store, "--where", "alpha=8").stderr
    assert "all rows of OjaSON: alpha=8 clip=2" in other


def test_csv__has_no_text_that_a_spreadsheet_takes_for_a_formula(koco, tmp_path):
    rows = [
        {
            **dict.fromkeys(("dataset", "learner"), text),
            "params": json.dumps({"options": text}),
            "mean_loss": -1.0,
            "error": f"{text}\t=",
        }
        for text in FORMULAS
    ]
    put(tmp_path / "store", "theirs", None, rows)
    given = ("results", "--store", tmp_path / "store", "--sweep", "theirs")
    columns = ("dataset", "learner", "error", "mean_loss")
    found = csv.DictReader(io.StringIO(koco(*given, "--runs", "--csv", status=0).stdout))
    for text, row in zip(sorted(FORMULAS), found, strict=True):
        assert [row[name] for name in columns] == [*[f"'{text}"] * 2, f"'{text}\t=", "-1"]
    plain = json.loads(koco(*given, "--runs", "--json", status=0).stdout)
    assert [row["dataset"] for row in plain] == sorted(FORMULAS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runs", "--best"], "cannot be combined"),
        (["--diff", "first"], "give both"),
        (["--sweep", "frist"], "no sweep 'frist'"),
        (["--json", "--csv"], "choose one"),
        (["--arrow", "nowhere/x.arrow"], "there is no folder nowhere"),
        (["--sort", "lerner"], "no column 'lerner'; did you mean 'learner'"),
        # a filter that no run meets names the nearest value, or those that there are
        (["--learner", "ojason"], "did you mean 'OjaSON'?"),
        (["--learner", "OjaSON", "--learner", "kors"], "--learner kors: no run matches; there are"),
        (["--dataset", "rael"], "--dataset rael: no run matches; did you mean 'real'?"),
        (["--learner", "AdaGrad", "--where", "alpha=4"], "alpha is NULL"),
        (["--where", "alpah=4"], "there is no column 'alpah'"),
    ],
)
def test_wrong_options__are_refused_with_a_reason(koco, store, words, said):
    done = koco("results", "--store", store, *words, status=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_order_and_limit__are_those_of_a_loop_over_the_rows(koco, results, store):
    """A table that is sorted and cut has what the whole table has there."""
    every = results("--json")

    def alpha_of(row):
        return json.loads(row["params"]).get("alpha")

    rows = sorted(every, key=lambda row: (alpha_of(row) is None, alpha_of(row)))  # none: last
    words = ("--sort", "alpha", "--limit", "5")
    assert results(*words, "--json") == rows[:5]
    assert f"{len(rows) - 5} more rows" in koco("results", "--store", store, *words).stderr
    by_column = results("--runs", "--sort", "seconds", "--json")
    assert by_column == sorted(by_column, key=lambda row: row["seconds"])


def test_report_of_many_runs__is_the_same_from_a_process_of_its_own(
    koco, swept_once, swept_store, monkeypatch
):
    page = swept_store / "reports" / "first.html"
    words = ("sweep", swept_once / "first.toml", "--store", swept_store)
    koco(*words, status=0)
    before = page.read_bytes()
    monkeypatch.setattr("flows.sweeping.launch.MANY_RUNS", 1)
    page.unlink()
    koco(*words, status=0)
    # it says when it was written
    assert len(page.read_bytes()) == pytest.approx(len(before), rel=0.01)
    page.unlink()
    page.mkdir()  # so that it cannot be written
    assert "the report could not be written: koco: " in koco(*words, status=1).stderr
