"""A damaged table file is refused with its name, and never left out in silence."""

import random
import shutil
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from flows.housekeeping import sweep_rows
from flows.sweeping.planning import limits_of
from flows.tables.decisions import DECISIONS, read_decisions, write_decisions
from koco_stream.errors import Damaged, WrongInput
from koco_stream.io import table_file
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.runs.planner import plan
from storage.nights import accept, add_night, numbers_of, read_accepted, read_nights
from storage.results import read_curves, read_predictions, read_runs, read_windows, table_files
from storage.verify import result_problems
from tests.helpers.many_runs import drawn_runs
from tests.helpers.sweeps import checked, run_here
from tests.helpers.swept import prepared, swept

SPEC = """
window = 20
keep_predictions = true
[[dataset]]
name = "plain"
[[learner]]
name = "OGD"
step_size = {}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with table files of each kind, and a sweep whose result file is not collected."""
    folder, draw = tmp_path_factory.mktemp("damage"), np.random.default_rng(0)
    X = draw.standard_normal((150, 3))
    store = prepared(folder, "plain", X, X.sum(1) / 3)
    swept(folder, SPEC.format([0.1, 0.2]), "first")
    texts = dict.fromkeys(("night", "dataset", "learner"), "a")
    add_night(store, "first", [{**texts, "accepted": False}])
    accept(store, "first", "a", numbers_of(store))
    write_decisions(store, "first", [dict.fromkeys(DECISIONS.names)])
    (folder / "second.toml").write_text(f'name = "second"\n{SPEC.format(0.3)}')
    sweep = checked(folder / "second.toml", store)
    run_here(store, plan(sweep.runs, sweep.sizes, limits_of(store, "local", 1)).cohorts, "second")
    return store


@pytest.fixture
def store(made, tmp_path):
    """A copy of that store, which the test may change."""
    for name in ("first.toml", "second.toml"):
        shutil.copy(made.parent / name, tmp_path)
    return shutil.copytree(made, tmp_path / "store")


def ids(store):
    return read_runs(store, ["run_id", "status"]).column("run_id").to_pylist()


READS = (
    read_runs,
    read_curves,
    lambda store: read_windows(store, ids(store)),
    lambda store: read_predictions(store, ids(store)),
    lambda store: read_nights(store, "first"),
    lambda store: read_accepted(store, "first"),
    lambda store: read_decisions(store, "first"),
    lambda store: list(sweep_rows(store_path(store))),
)


def flips(content, draw):
    """Bits of each part of a table file: its magic, pages, hashes, footer and the footer's size."""
    size = len(content)
    footer = size - 8 - int.from_bytes(content[-8:-4], "little")
    ends = [0, 4, 40, footer - 2 * table_file.HASH, footer, size - 8, size - 4, size]
    for first, last in pairwise(ends):
        yield draw.randrange(first, last), draw.randrange(8)


def test_flipped_bit__is_found_by_verify__and_each_read_is_the_same_or_names_the_file(store):
    draw, before = random.Random(0), [read(store) for read in READS]
    files = [
        file
        for name in ("results", "history", "accepted")
        for file in (store / name).rglob("*.parquet")
    ]
    assert len(files) == 10
    assert result_problems(store) == []
    for file in sorted(files):
        content = file.read_bytes()
        for place, bit in flips(content, draw):
            file.write_bytes(
                content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
            )
            (problem,) = result_problems(store)
            assert f"{file} cannot be read" in problem
            said = []
            for read, known in zip(READS, before, strict=True):
                try:
                    assert read(store) == known
                except Damaged as error:
                    said.append(str(error))
            assert said == [problem] * len(said) != []
        file.write_bytes(content)


def test_rows__of_many_blocks_and_groups__are_those_of_the_runs_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(table_file, "BLOCK", 1000)
    runs = drawn_runs(60, "s", np.random.default_rng(0)).sort_by("run_id")
    file = store_path(tmp_path / "a.parquet")
    write_tables([runs.slice(0, 0), *(runs.slice(k, 20) for k in (0, 20, 40))], file)
    names = runs.column("run_id").to_pylist()
    assert read_table(file) == runs
    for some in ([], names[:1], names[15:25], [*names[30::9], "none"]):
        mine = runs.filter(pa.array([name in some for name in names]))
        assert read_table(file, ["status"], some) == mine.select(["status"])
    content = file.read_bytes()
    file.write_bytes(content[:-2000] + content[-1990:])
    with pytest.raises(Damaged, match=r"a\.parquet cannot be read"):
        read_table(file, ["status"])


@pytest.mark.parametrize(("table", "read"), [("windows", READS[2]), ("predictions", READS[3])])
def test_rows__that_a_killed_cohort_has_left_in_another_file__are_read_once(table, read, store):
    before, [file] = read(store), table_files(store, table)[:1]
    file.path.with_name("left.parquet").write_bytes(file.read_bytes())
    assert read(store) == before


@pytest.mark.parametrize("table", ["curves", "windows", "predictions"])
def test_rows__whose_file_is_gone__are_missed_and_computed_again_as_verify_says(table, store, koco):
    first = READS[["curves", "windows", "predictions"].index(table) + 1]
    known = first(store).sort_by("run_id")
    (file, *_) = table_files(store, table)
    file.remove()
    with pytest.raises(WrongInput, match=rf"results/{table} lacks the rows of \d run"):
        first(store)
    (problem,) = result_problems(store)
    if table == "curves":
        (runs,) = table_files(store, "runs")
        assert f"{runs}: the curves of its runs are missing; remove it" in problem
        runs.remove()
    else:
        assert "koco sweep --retry-failed" in problem
    for name in ("first", "second"):
        koco("sweep", store.parent / f"{name}.toml", "--store", store, "--retry-failed", status=0)
    assert first(store).sort_by("run_id") == known
    assert result_problems(store) == []
