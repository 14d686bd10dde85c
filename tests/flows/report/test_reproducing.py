"""koco reproduce: what it runs, what it says of each claim, and that nothing which is missing is
passed over in silence.
"""

import json

import pytest

from flows.reproduce.targets import (
    QUICK_ROWS,
    SWEEPS,
    TARGETS,
    entry_of,
    prepared_datasets,
    sweep_for,
)
from flows.sweeping.file import read_sweep
from storage.generated.generators import GENERATORS
from tests.helpers.pages import SIZES, look_at, tables_of

# each sweep of a target, and the figures that its report must have
SWEPT = {
    sweep: {t.figure for t in TARGETS.values() if sweep in t.sweeps}
    for target in TARGETS.values()
    for sweep in target.sweeps
}


@pytest.mark.parametrize("sweep", sorted(SWEPT))
def test_sweeps__of_targets_are_run_as_they_stand_and_quick_ones_are_small(sweep):
    names = prepared_datasets(sweep)
    assert sweep_for(sweep, names, [], False) == SWEEPS / f"{sweep}.toml"
    quick = read_sweep(sweep_for(sweep, names, [], True))
    whole = read_sweep(SWEEPS / f"{sweep}.toml")
    assert (quick.name, whole.name) == (f"{sweep}-quick", sweep)
    limits = {use.name: use.max_rows for use in quick.datasets if use.given is None}
    assert limits == dict.fromkeys(names, QUICK_ROWS)
    assert SWEPT[sweep] - {""} <= set(whole.figures)
    assert len(quick.configurations) <= len(whole.configurations)
    if names:
        added = [{"name": "acoustic", "positive_class": 3.0}]
        some = read_sweep(sweep_for(sweep, names[:1], added, False))
        assert {use.name for use in some.datasets} - {*GENERATORS} == {names[0], "acoustic"}
        assert sweep_for(sweep, [], [], False) is None


def test_targets__name_every_dataset_of_their_paper(koco, tmp_path):
    (tmp_path / "data").mkdir()
    folders = ("--data", tmp_path / "data", "--store", tmp_path / "store")
    done = koco("reproduce", "son-figure-3", "--quick", *folders, "--workers", 0, status=0)
    for name in TARGETS["son-figure-3"].datasets:
        assert f"not available: {name}: " in done.stderr
    assert done.stdout.splitlines()[0] == "quick: son-figure-3: no claim could be tested"
    page = tmp_path / "store" / "reports" / "reproduce-son-figure-3-quick.html"
    shown = {row["dataset"]: row for row in tables_of(page)[f"{page.stem}-datasets"]}
    # german is not of the paper
    assert set(shown) == {*TARGETS["son-figure-3"].datasets, "german,scale=none"}
    assert all(row["state"].startswith("not available") for row in shown.values())
    assert shown["covtype,scale=none"]["rows in the paper"] == "581012"
    koco("reproduce", "son-figure-9", *folders, status=2)
    (tmp_path / "data").rmdir()
    koco("reproduce", "son-figure-1", *folders, status=2)


@pytest.mark.long
def test_reproduce__says_of_each_claim_whether_it_holds_and_by_which_criterion(koco, tmp_path):
    words = ("reproduce", "son-figure-1", "--quick", "--store", tmp_path / "store", "--workers", 0)
    lines = koco(*words, status=0).stdout.splitlines()
    verdicts = [line.split(": ")[:2] for line in lines if "| criterion: " in line]
    count = verdicts.count(["quick", "reproduced"])
    # four, for each way of bounding predictions
    assert count + verdicts.count(["quick", "not reproduced"]) == len(verdicts) == 8
    page = tmp_path / "store" / "reports" / "reproduce-son-figure-1-quick.html"
    assert lines[-2:] == [f"quick: son-figure-1: {count} of 8 claims reproduced", f"report: {page}"]
    again = json.loads(koco(*words, "--json").stdout)
    shown = tables_of(page)["reproduce-son-figure-1-quick-claims"]
    assert [(row["The paper says"], row["Holds"] == "yes") for row in shown] == [
        (c["claim"], c["holds"]) for c in again["claims"]
    ]
    for written in (page, page.with_suffix(".md")):
        assert "A quick run: at most 1,000 rows of a dataset" in written.read_text()
    look_at([page])


@pytest.mark.data
@pytest.mark.soak
@pytest.mark.parametrize("name", list(TARGETS))
def test_reproduce__every_target_from_the_real_files_is_a_page_that_everybody_can_read(
    name, koco, tmp_path, data_folder
):
    folders = ("--data", data_folder, "--store", tmp_path / "store")
    done = koco("reproduce", name, "--quick", *folders, "--workers", 0, status=0)
    assert done.stdout.count("| criterion: ") >= {"sketch-start": 1, "benchmark": 0}.get(name, 2)
    reports = tmp_path / "store" / "reports"
    page = reports / f"reproduce-{name}-quick.html"
    shown = page.read_text().replace("<wbr>", "")
    for dataset in TARGETS[name].datasets:
        assert dataset in shown
        if entry_of(dataset).absent:
            assert dataset in done.stderr
    look_at([page], SIZES)
    look_at([one for one in sorted(reports.glob("*.html")) if one != page], SIZES[:1])
