"""koco reproduce: what it runs, what it says of each claim, and that nothing which is missing is
passed over in silence.
"""

import tomllib

import pytest
import tomli_w

from flows import reproduce as reproducing
from flows.pages import Figure
from flows.report.papers.experiment import EXPERIMENTS
from flows.reproduce import SWEEPS, Reproduction, entry_of, prepared_datasets, sweep_for
from flows.sweeping.file import read_sweep
from flows.sweeping.search import is_drawn, values_of
from storage.generated.generators import GENERATORS
from tests.helpers.pages import SIZES, look_at, tables_of

# each sweep of a target, and the figures that its report must have
SWEPT = {
    sweep: {one.chart_name for one in EXPERIMENTS.values() if sweep in one.sweeps}
    for experiment in EXPERIMENTS.values()
    for sweep in experiment.sweeps
}


@pytest.fixture
def few_rounds(tmp_path, monkeypatch):
    """The packaged sweeps on few rows, and with few seeds and values."""
    sweeps = tmp_path / "sweeps"
    monkeypatch.setattr(reproducing, "SWEEPS", sweeps)
    sweeps.mkdir()
    for sweep in SWEPT:
        content = tomllib.loads((SWEEPS / f"{sweep}.toml").read_text()) | {"learner_seeds": 1}
        if "search" in content:
            content["search"]["samples"] = 2
        for table in content["dataset"]:
            table.pop("order_seeds", None)
            table |= {"n_rows": 1_500} if table["name"] in GENERATORS else {"max_rows": 1_000}
            table |= {"data_seed": 1} if "data_seed" in table else {}
            if "condition_number" in table:
                table["condition_number"] = values_of(table["condition_number"])[::4]
        for table in content["learner"]:
            for key, given in table.items():
                values = [] if key == "name" or is_drawn(given) else values_of(given)
                if len(values) > 3:
                    table[key] = [values[0], values[len(values) // 2], values[-1]]
        (sweeps / f"{sweep}.toml").write_text(tomli_w.dumps(content))


@pytest.mark.parametrize("sweep", sorted(SWEPT))
def test_sweeps__of_targets_are_run_as_they_stand_or_with_the_datasets_at_hand(sweep):
    names = prepared_datasets(sweep)
    one = next(one for one in EXPERIMENTS.values() if sweep in one.sweeps)
    whole = sweep_for(one, sweep, names)
    assert whole == read_sweep(SWEEPS / f"{sweep}.toml")
    assert whole.name == sweep
    assert SWEPT[sweep] - {""} <= set(whole.figures)
    if names:
        more = [name for name in one.datasets if name not in names][:1] if one.takes_more else []
        some = sweep_for(one, sweep, [names[0], *more])
        assert {use.name for use in some.datasets} - {*GENERATORS} == {names[0], *more}
        assert sweep_for(one, sweep, []) is None


def test_targets__name_every_dataset_of_their_paper(koco, tmp_path):
    (tmp_path / "data").mkdir()
    folders = ("--data", tmp_path / "data", "--store", tmp_path / "store")
    done = koco("reproduce", "son-figure-3", *folders, "--workers", 0, status=0)
    for name in EXPERIMENTS["son-figure-3"].datasets:
        assert f"not available: {name}: " in done.stderr
    assert done.stdout.splitlines()[0] == "son-figure-3: no claim could be tested"
    page = tmp_path / "store" / "reports" / "reproduce-son-figure-3.html"
    [table] = [rows for rows in tables_of(page).values() if rows and "rows in the paper" in rows[0]]
    shown = {row["dataset"]: row for row in table}
    # german is not of the paper
    assert set(shown) == {*EXPERIMENTS["son-figure-3"].datasets, "german,scale=none"}
    assert all(row["state"].startswith("not available") for row in shown.values())
    assert shown["covtype,scale=none"]["rows in the paper"] == "581012"
    koco("reproduce", "son-figure-9", *folders, status=2)
    (tmp_path / "data").rmdir()
    koco("reproduce", "son-figure-1", *folders, status=2)


def test_claims__are_told_one_a_line_with_their_criteria(koco):
    claim = {"claim": "one", "criterion": "two", "came_out": "three"}
    claims = [{**claim, "holds": holds} for holds in (True, False, None)]
    figures = [("s", Figure("A figure", claims=claims)), ("t", Figure("Another"))]
    done = Reproduction(EXPERIMENTS["son-figure-1"], [], figures, 0, "page.html")
    said = "one | criterion: two | came out: three"
    assert done.lines == [
        *(f"{word}: {said}" for word in ("reproduced", "not reproduced", "remark")),
        *("not tested: Another (t)", "son-figure-1: 1 of 2 claims hold", "report: page.html"),
    ]
    assert koco("reproduce", "--list").stdout.count("\n") > len(EXPERIMENTS)


@pytest.mark.data
@pytest.mark.soak
@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_reproduce__every_target_from_the_real_files_is_a_page_that_everybody_can_read(
    name, koco, few_rounds, tmp_path, data_folder
):
    folders = ("--data", data_folder, "--store", tmp_path / "store")
    done = koco("reproduce", name, *folders, "--workers", 0, status=0)
    assert done.stdout.count("| criterion: ") >= {"sketch-start": 1, "benchmark": 0}.get(name, 2)
    reports = tmp_path / "store" / "reports"
    page = reports / f"reproduce-{name}.html"
    shown = page.read_text().replace("<wbr>", "")
    for dataset in EXPERIMENTS[name].datasets:
        assert dataset in shown
        if entry_of(dataset).absent:
            assert dataset in done.stderr
    look_at([page], SIZES)
    look_at([one for one in sorted(reports.glob("*.html")) if one != page], SIZES[:1])
