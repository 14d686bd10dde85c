"""`koco results`: conditions, the best and two sweeps side by side, beside plain loops over
the runs.
"""

import csv
import io
import json
import operator
from statistics import mean

import pyarrow as pa
import pytest
from flows.tables.filters import OPERATORS, filtered
from hypothesis import given
from hypothesis import strategies as st

from koco_stream.errors import WrongInput
from tests.helpers.examples import FORMULAS
from tests.helpers.many_runs import put

COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NUMBERS = st.one_of(st.none(), st.integers(-3, 3))
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


@given(
    st.lists(st.tuples(NUMBERS, st.sampled_from([None, "a", "b", ""])), max_size=8),
    st.sampled_from(sorted(OPERATORS)),
    st.integers(-3, 3),
)
def test_conditions__leave_what_a_loop_over_the_rows_leaves(rows, sign, value):
    table = pa.table(
        {
            "number": pa.array([n for n, _ in rows], pa.int64()),
            "text": pa.array([t for _, t in rows], pa.string()),
        }
    )

    def holds(found, wanted):
        return sign == "!=" if found is None else COMPARE[sign](found, wanted)

    for condition, expected in (
        (f"number {sign}{value}", [r for r in rows if holds(r[0], value)]),
        (f"text{sign} a", [r for r in rows if holds(r[1], "a")]),
        ("number=none", [r for r in rows if r[0] is None]),
        ("text!=none", [r for r in rows if r[1] is not None]),
    ):
        found = filtered(table, [condition])
        assert (
            list(zip(*(found.column(c).to_pylist() for c in ("number", "text")), strict=True))
            == expected
        )
    both = filtered(table, [f"number{sign}{value}", "text=b"])
    assert both.equals(filtered(filtered(table, ["text=b"]), [f"number{sign}{value}"]))


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("learner", "write COLUMN=VALUE"),
        ("lerner=OGD", "learner"),
        (
            "alpha=large",
            "'large' cannot be compared with the column alpha, which has the type double",
        ),
        (
            "learner_seed=0.5",
            "'0.5' cannot be compared with the column learner_seed, which has the type int64",
        ),
    ],
)
def test_wrong_condition__is_refused_and_says_what_would_be_right(condition, said):
    table = pa.table(
        {"learner": pa.array(["OGD"]), "alpha": pa.array([1.0]), "learner_seed": pa.array([0])}
    )
    with pytest.raises(WrongInput, match=said):
        filtered(table, [condition])


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


def test_best_and_differences__are_what_loops_over_the_runs_give(swept):
    runs = swept("--runs", "--json")
    assert len(runs) == 2 * (3 * 2 + 2)

    def configuration_of(row):
        return row["dataset"], row["learner"], row["params"]

    losses = {}
    for row in runs:
        losses.setdefault(configuration_of(row), []).append(row["mean_loss"])
    averages = {configuration_of(r): (r["n_runs"], r["mean_loss_mean"]) for r in swept("--json")}
    assert averages == {
        key: (len(mine), pytest.approx(mean(mine), rel=1e-11)) for key, mine in losses.items()
    }

    large = swept("--where", "alpha>1", "--where", "learner=OjaSON", "--runs", "--json")
    assert {r["run_id"] for r in large} == {
        r["run_id"] for r in runs if r["learner"] == "OjaSON" and r["alpha"] > 1
    }

    every, best = swept("--sweep", "first", "--json"), swept("--sweep", "first", "--best", "--json")
    assert {row["learner"]: row["mean_loss_mean"] for row in best} == {
        learner: min(row["mean_loss_mean"] for row in every if row["learner"] == learner)
        for learner in ("AdaGrad", "OjaSON")
    }
    assert len(best) == 2  # one of each stream and learner, whatever its sketch size

    beside = swept("--sweep", "first", "--diff", "second", "--best", "--json")
    assert sorted(row["learner"] for row in beside) == ["AdaGrad", "OjaSON"]
    assert all(
        row["difference"] == pytest.approx(row["mean_loss_mean_other"] - row["mean_loss_mean"])
        for row in beside
    )


def test_forms__give_the_same_numbers(swept, tmp_path):
    words = ("--where", "learner=OjaSON")
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
    for text, row in zip(FORMULAS, found, strict=True):
        assert [row[name] for name in columns] == [*[f"'{text}"] * 2, f"'{text}\t=", "-1"]
    plain = json.loads(koco(*given, "--runs", "--json", status=0).stdout)
    assert [row["dataset"] for row in plain] == list(FORMULAS)


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
        (["--learner", "ojason"], "did you mean OjaSON? There are: AdaGrad; OjaSON\n"),
        (["--learner", "OjaSON", "--learner", "kors"], "--learner kors: no run matches; there are"),
        (["--dataset", "rael"], "--dataset rael: no run matches; did you mean real?"),
        (["--where", "alpha=0.6"], "did you mean 0.5 or 4 or 8? There are: 0.5; 4; 8\n"),
        (["--learner", "AdaGrad", "--where", "alpha=4"], "alpha has no value in these runs"),
        (["--where", "seconds<0"], "no run matches; there are 16 values, from "),
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
    monkeypatch.setattr("flows.sweeping.steps.MANY_RUNS", 1)
    page.unlink()
    koco("sweep", tmp_path / "first.toml", "--store", small_store, status=0)
    # it says when it was written
    assert len(page.read_bytes()) == pytest.approx(len(before), rel=0.01)
    page.unlink()
    page.mkdir()  # so that it cannot be written
    failed = koco("sweep", tmp_path / "first.toml", "--store", small_store, status=1)
    assert "the report could not be written: koco: " in failed.stderr
