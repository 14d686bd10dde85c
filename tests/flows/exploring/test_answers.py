"""Answers to the explorer's page: those that pyarrow gives, whatever is asked, and only that."""

import datetime as dt
import json
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.exploring import answers
from flows.exploring.answers import Explorer
from flows.exploring.chosen import LISTS, Chosen
from flows.tables.filters import filtered
from koco_stream.errors import WrongInput
from koco_stream.io.paths import store_path
from koco_stream.runs.schemas import curve_points
from storage.collecting import collect
from storage.results import read_curves, read_runs
from storage.store import open_store
from tests.helpers.many_runs import drawn_runs, put_collected, put_result_file

# values that stand in the tables below, and some that do not
CONDITIONS = {
    "alpha": ["0.5", "1", "nan", "inf", "-0.0", "none"],
    "mean_loss": ["0.4", "0.7", "nan", "none", "-inf"],
    "order_seed": ["0", "3", "none", "7"],
    "learner": ["OjaSON", "AdaGrad'", "none", "x' OR 'a'='a"],
    "error": ["none", "diverged in round 3", 'a "b"', "%"],
    "finished_at": ["2026-01-01", "2026-01-01T00:00:00Z", "2025-12-31 23:00:00+00:00"],
}
CONDITION = st.sampled_from(sorted(CONDITIONS)).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        st.sampled_from(CONDITIONS[name]),
    ).map("".join)
)


def odd_runs(n=120):
    """Drawn runs, with numbers that are none, not finite or negative zero."""
    runs = drawn_runs(n, "first", np.random.default_rng(3))
    odd = [float("nan"), float("inf"), -float("inf"), -0.0, 0.5, 1.0, None]
    for name in ("alpha", "mean_loss"):
        at = runs.schema.get_field_index(name)
        values = runs.column(name).to_pylist()
        values[: len(odd)] = odd
        runs = runs.set_column(at, runs.schema.field(at), pa.array(values, pa.float64()))
    return runs


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two sweeps, that have some runs in common; some are collected, others not yet."""
    store, runs = open_store(tmp_path_factory.mktemp("explored") / "store"), odd_runs()
    put_collected(store, runs.slice(0, 50))
    put_collected(store, runs.slice(50, 40))
    put_result_file(store, "later", runs.slice(90))
    ids = runs.column("run_id").to_pylist()
    for name, of_it in (("first", ids), ("second", ids[80:110])):
        (store / "sweeps" / f"{name}.json").write_text(json.dumps({"run_ids": of_it}))
    return store


@pytest.fixture(scope="module")
def explorer(store):
    return Explorer(store)


@cache
def table(store):
    return read_runs(store)


def literally(store, chosen):
    """The chosen runs, by pyarrow."""
    runs = filtered(table(store), [one for one in chosen.where.split(" and ") if one])
    for name, picked in zip(LISTS, chosen.picked, strict=True):
        if name == "sweep" and picked:
            notes = [store / "sweeps" / f"{one}.json" for one in picked]
            ids = {run for note in notes for run in json.loads(note.read_text())["run_ids"]}
            runs = runs.filter(pc.is_in(runs.column("run_id"), pa.array(sorted(ids))))
        elif picked:
            runs = runs.filter(pc.is_in(runs.column(name), pa.array(picked, pa.string())))
    return runs


@settings(deadline=None)
@given(
    where=st.lists(CONDITION, max_size=3).map(" and ".join),
    sweeps=st.sets(st.sampled_from(["first", "second"])),
    learners=st.sets(st.sampled_from(["OjaSON", "CONKONS", "'; DROP TABLE runs; --"])),
)
def test_chosen_runs__are_those_of_koco_results(where, sweeps, learners, store, explorer):
    chosen = Chosen((tuple(sweeps), (), tuple(learners), ()), where)
    try:
        wanted = sorted(literally(store, chosen).column("run_id").to_pylist())
    except WrongInput:
        with pytest.raises(WrongInput):
            explorer.runs(chosen, [])
        return
    found = explorer.runs(chosen, [], limit=500)
    assert found["matched"] == len(wanted)
    assert [row[0] for row in found["rows"]] == wanted
    assert [line[0] for line in explorer.parallel(chosen)["lines"]] == wanted


@settings(deadline=None)
@given(
    name=st.sampled_from(["learner", "order_seed", "finished_at", "seconds", "alpha"]),
    descending=st.booleans(),
    size=st.integers(1, 50),
)
def test_pages_of_the_table__have_each_run_once_and_in_order(name, descending, size, explorer):
    rows = []
    for offset in range(0, 120, size):
        rows += explorer.runs(Chosen(), [name], name, descending, offset, size)["rows"]
    assert len({row[0] for row in rows}) == len(rows) == 120
    values = [value for _, value in rows]
    there = [value for value in values if value is not None]
    assert values[len(there) :] == [None] * (120 - len(there))  # what is missing comes last
    if name != "alpha":  # which has texts, for numbers that are not finite
        assert there == sorted(there, reverse=descending)


def test_lines__are_a_sample_that_depends_on_nothing_but_the_runs(explorer, monkeypatch):
    everything = explorer.parallel(Chosen())["lines"]
    monkeypatch.setattr(answers, "MOST_LINES", 10)
    few = explorer.parallel(Chosen())
    assert few["matched"] == 120
    assert few["lines"] == everything[:10]


def test_axes__are_the_parameters_and_results_that_differ(explorer):
    found = explorer.parallel(Chosen((("first",), (), ("AdaGrad",), ())))
    assert set(found["axes"]) == {"step_size", "seconds", "mean_loss", "error_rate"} | (
        {"alpha"} if "alpha" in found["varying"] else set()
    )
    asked = explorer.parallel(Chosen(), ["dataset", "seconds"], "status")
    assert asked["axes"] == ["dataset", "seconds"]
    assert all(len(line) == 4 for line in asked["lines"])


def test_curves__are_those_of_the_tables(store, explorer):
    ids = table(store).column("run_id").to_pylist()
    some = [ids[0], ids[60], ids[100], ids[119]]
    found = {one["run_id"]: one["points"] for one in explorer.curves([*some, "no run"])["runs"]}
    assert set(found) == set(some)
    for run_id, points in found.items():
        wanted = read_curves(store, [run_id]).drop_columns("run_id").sort_by("t").to_pylist()
        assert str(points).replace("'nan'", "nan").replace("'inf'", "inf") == str(wanted)
        assert len(points) == curve_points(points[-1]["t"]).size


def test_curves__are_found_where_collecting_has_moved_them(tmp_path):
    store = open_store(tmp_path / "store")
    runs = drawn_runs(6, "s", np.random.default_rng(0))
    put_result_file(store, "one", runs)
    explorer = Explorer(store)
    collect(store)
    ids = runs.column("run_id").to_pylist()
    assert [len(one["points"]) > 30 for one in explorer.curves(ids)["runs"]] == [True] * 6


def test_answers__change_with_the_store_and_say_so(tmp_path):
    store = open_store(tmp_path / "store")
    explorer = Explorer(store)
    before = explorer.overview()
    assert (before["runs"], before["lists"]["sweep"]) == (0, [])
    assert explorer.runs(Chosen(), [])["rows"] == []
    assert explorer.parallel(Chosen())["lines"] == []
    put_result_file(store, "one", drawn_runs(6, "under way", np.random.default_rng(0)))
    assert explorer.stamp()["stamp"] == before["stamp"]
    explorer.refresh()
    assert explorer.stamp()["stamp"] != before["stamp"]
    assert explorer.overview()["lists"]["sweep"] == [["under way", 6]]
    assert explorer.runs(Chosen((("under way",), (), (), ())), [])["matched"] == 6


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda e: e.runs(Chosen(where="alhpa=1"), []), "did you mean 'alpha'"),
        (
            lambda e: e.runs(Chosen(where="alpha=much"), []),
            "'much' cannot be compared with the column alpha",
        ),
        (lambda e: e.runs(Chosen(where="1=1; DROP TABLE runs"), []), "runs have no column '1'"),
        (lambda e: e.runs(Chosen(where="learner LIKE 'O%'"), []), "is not a condition"),
        (lambda e: e.runs(Chosen(), ['run_id" FROM members --']), "runs have no column"),
        (lambda e: e.runs(Chosen(), [], "1; DROP TABLE runs"), "runs have no column"),
        (lambda e: e.parallel(Chosen(), ["(SELECT 1)"]), "runs have no column"),
        (lambda e: e.parallel(Chosen(), [], "learner, 1"), "runs have no column"),
        (lambda e: e.curves(["x"] * 21), "21 curves are more than 20"),
    ],
)
def test_what_cannot_be_asked__is_refused_in_one_line(asked, words, explorer):
    with pytest.raises(WrongInput, match=words.replace("(", r"\(")) as raised:
        asked(explorer)
    assert "\n" not in str(raised.value)
    assert "--where" not in str(raised.value)


def test_times__are_texts_and_answers_are_json(explorer):
    [[_, finished], *_] = explorer.runs(Chosen(), ["finished_at"])["rows"]
    assert dt.datetime.strptime(finished, "%Y-%m-%d %H:%M:%S UTC") == dt.datetime(2026, 1, 1)
    names = [column["name"] for column in explorer.overview()["columns"]]
    json.dumps(explorer.runs(Chosen(), names, limit=500), allow_nan=False)


@pytest.mark.system
def test_object_store__gives_the_same_answers(s3_store, store):
    there, runs = open_store(s3_store), odd_runs()
    put_collected(there, runs.slice(0, 90))
    put_result_file(there, "later", runs.slice(90))
    mine, theirs = Explorer(store), Explorer(store_path(s3_store))
    chosen = Chosen(where="alpha>0.01 and status=ok")
    assert mine.runs(chosen, ["params"]) == theirs.runs(chosen, ["params"])
    ids = runs.column("run_id").to_pylist()[10:100:10]
    by_id = [sorted(e.curves(ids)["runs"], key=lambda one: one["run_id"]) for e in (mine, theirs)]
    assert by_id[0] == by_id[1]
