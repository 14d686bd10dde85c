"""`koco results`: conditions, the best and two sweeps side by side, beside plain loops over
the runs.
"""

import csv
import io
import json

import pyarrow as pa
import pytest

from tests.helpers.examples import FORMULAS
from tests.helpers.many_runs import put

TRY = """
name = "{name}"
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OjaSON"
sketch_size = [3, 6]
alpha = {alpha}
[[learner]]
name = "AdaGrad"
step_size = [0.1, 1]
"""


@pytest.fixture
def swept(koco, small_store, tmp_path):
    """The command, on a store with two sweeps that have some configurations in common."""
    for name, alpha in (("first", "[0.5, 4]"), ("second", "[4, 8]")):
        (tmp_path / f"{name}.toml").write_text(TRY.format(name=name, alpha=alpha))
        koco("sweep", tmp_path / f"{name}.toml", "--store", small_store, status=0)

    def results(*words):
        printed = koco("results", "--store", small_store, *words, status=0).stdout
        return json.loads(printed) if "--json" in words else printed

    return results


def test_conditions_and_differences__are_what_loops_over_the_runs_give(swept):
    runs = swept("--runs", "--json")
    assert len(runs) == 2 * (3 * 2 + 2)

    large = swept("--where", "alpha>1", "--where", "learner='OjaSON'", "--runs", "--json")
    assert {r["run_id"] for r in large} == {
        r["run_id"] for r in runs if r["learner"] == "OjaSON" and r["alpha"] > 1
    }

    beside = swept("--sweep", "first", "--diff", "second", "--best", "--json")
    assert sorted(row["learner"] for row in beside) == ["AdaGrad", "OjaSON"]
    assert all(
        row["difference"] == pytest.approx(row["mean_loss_mean_other"] - row["mean_loss_mean"])
        for row in beside
    )


def test_forms__give_the_same_numbers(swept, tmp_path):
    words = ("--where", "learner='OjaSON'")
    as_json = swept(*words, "--json")
    assert len(as_json) == 6
    swept(*words, "--arrow", str(tmp_path / "a.arrow"))
    with pa.OSFile(str(tmp_path / "a.arrow")) as file:
        assert pa.ipc.open_file(file).read_all().to_pylist() == as_json
    rows = list(csv.DictReader(io.StringIO(swept(*words, "--csv"))))
    assert [float(row["mean_loss_mean"]) for row in rows] == [
        row["mean_loss_mean"] for row in as_json
    ]
    assert len(swept(*words).splitlines()[-6:]) == len(as_json)


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
    ],
)
def test_wrong_options__are_refused_with_a_reason(koco, small_store, words, said):
    assert said in koco("results", "--store", small_store, *words, status=2).stderr


def test_filter_that_no_run_meets__names_the_nearest_values_and_those_there_are(
    koco, swept, small_store
):
    for words, said in (
        (["--learner", "ojason"], "did you mean 'OjaSON'?"),
        (["--learner", "OjaSON", "--learner", "kors"], "--learner kors: no run matches; there are"),
        (["--dataset", "rael"], "--dataset rael: no run matches; did you mean 'real'?"),
        (["--where", "alpha=0.6"], "no run matches; alpha is 0.5, 4.0, 8.0\n"),
        (["--learner", "AdaGrad", "--where", "alpha=4"], "alpha is NULL"),
        (["--where", "alpah=4"], "no column 'alpah'; did you mean 'alpha'?"),
    ):
        for form in ([], ["--json"]):
            done = koco("results", "--store", small_store, *words, *form, status=2)
            assert said in done.stderr
            assert done.stdout == ""


def test_filter__that_one_of_two_sweeps_meets_is_no_mistake(swept):
    rows = swept("--sweep", "first", "--diff", "second", "--where", "alpha=8", "--json")
    assert {row["mean_loss_mean"] for row in rows} == {None}
    assert len(rows) == 2


def test_order_and_limit__are_those_of_a_loop_over_the_rows(koco, swept, small_store):
    """A table that is sorted and cut has what the whole table has there."""
    every = swept("--json")

    def alpha_of(row):
        return json.loads(row["params"]).get("alpha")

    rows = sorted(every, key=lambda row: (alpha_of(row) is None, alpha_of(row)))  # none: last
    words = ("--sort", "alpha", "--limit", "5")
    assert swept(*words, "--json") == rows[:5]
    done = koco("results", "--store", small_store, *words, status=0)
    assert len(done.stdout.splitlines()) >= 5
    assert f"{len(rows) - 5} more rows" in done.stderr
    done = koco("results", "--store", small_store, "--sort", "lerner", status=2)
    assert "no column 'lerner'; did you mean 'learner'" in done.stderr
    by_column = swept("--runs", "--sort", "seconds", "--json")
    assert by_column == sorted(by_column, key=lambda row: row["seconds"])


def test_report_of_many_runs__is_the_same_from_a_process_of_its_own(
    koco, swept, small_store, tmp_path, monkeypatch
):
    page = small_store / "reports" / "first.html"
    before = page.read_bytes()
    monkeypatch.setattr("flows.sweeping.launch.MANY_RUNS", 1)
    page.unlink()
    koco("sweep", tmp_path / "first.toml", "--store", small_store, status=0)
    # it says when it was written
    assert len(page.read_bytes()) == pytest.approx(len(before), rel=0.01)
    page.unlink()
    page.mkdir()  # so that it cannot be written
    failed = koco("sweep", tmp_path / "first.toml", "--store", small_store, status=1)
    assert "the report could not be written: koco: " in failed.stderr
