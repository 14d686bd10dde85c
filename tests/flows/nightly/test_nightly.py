"""Nightly runs: equal to the bit or named, slower or not; cut and gone on with; what other commands
say of them.
"""

import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from flows.nightly import night
from flows.nightly.night import (
    NOTE,
    SHORTEST,
    accept_last,
    compared,
    opened_night,
    result_of,
    run_night,
)
from flows.sweeping.file import read_sweep
from flows.sweeping.request import SweepRequest
from koco_stream.runs.schemas import schema
from koco_stream.streams.manifest import BORROWED, load_manifest
from storage.nights import NUMBERS, accept, add_night, curve_hashes, read_accepted, read_nights
from storage.results import read_curves, read_runs
from storage.store import open_store
from tests.helpers.in_process import command
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import prepared, swept, written

SPEC = """
[[dataset]]
name = "plain"
[[learner]]
name = "OGD"
step_size = {steps}
[[learner]]
name = "AdaGrad"
step_size = {steps}
"""
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def words(spec, store):
    return ("nightly", spec, "--store", store, "--workers", 0, "--json")


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """A sweep's file, beside a store without sweeps but with the first night of it."""
    folder, draw = tmp_path_factory.mktemp("nights"), np.random.default_rng(0)
    X = draw.standard_normal((60, 3))
    prepared(folder, "plain", X, X.sum(1) / 3)
    spec = written(folder, f'name = "small"\n{SPEC.format(steps=[0.1, 0.2])}', "small.toml")
    first = json.loads(command(*words(spec, folder / "store"), status=0).stdout)
    assert (first["result"], first["computed"]) == ("first", 4)
    return spec


@pytest.fixture
def store(spec):
    return spec.parent / "store"


def test_night__is_named_where_it_is_not_asked_for__and_shown_where_it_is(store, koco):
    plain = koco("results", "--store", store, status=0)
    assert f"--store {store}/nights/small" in " ".join(plain.stderr.split())
    assert plain.stdout == ""
    asked = koco("results", "--store", store, "--sweep", "small", status=2).stderr
    assert f"only a nightly run of it: --store {store}/nights/small" in " ".join(asked.split())
    rows = json.loads(koco("results", "--store", f"{store}/nights/small", "--json").stdout)
    runs = read_runs(f"{store}/nights/small").to_pylist()
    losses = pytest.approx(sorted(row["mean_loss"] for row in runs), rel=1e-11)
    assert sorted(row["mean_loss_mean"] for row in rows) == losses
    [row] = json.loads(koco("list", "sweeps", "--store", store, "--json", status=0).stdout)
    assert (row["sweep"], row["kind"], row["runs"], row["done"]) == ("small", "nightly run", 4, 4)
    said = koco("store", "remove", "dataset", "plain", "--store", store, status=2).stderr
    assert "used by the nights of small; keep their results" in said


def test_night__is_computed_anew_and_once__and_other_numbers_are_named(
    spec, store, koco, monkeypatch
):
    request, sweep = SweepRequest(str(spec), str(store)), read_sweep(spec)
    second = run_night(request, sweep, NOON)
    assert (second["result"], second["computed"]) == ("same numbers", 4)
    assert (second["night"], run_night(request, sweep, NOON)) == (NOON.isoformat(), {})
    known = read_accepted(store, "small").to_pylist()
    for row in known[:2]:
        row["digest"] = "other"
    accept(store, "small", second["night"], pa.Table.from_pylist(known, schema(NUMBERS)))
    for code in ("code and versions are those of", "code or versions are not those of"):
        changed = json.loads(koco(*words(spec, store), status=1).stdout)
        lines = " ".join(changed["details"])
        assert (changed["result"], changed["computed"]) == ("changed numbers", 4)
        assert "AdaGrad on plain: 2 of 2 runs have changed numbers" in lines
        assert f"{code} the accepted run" in lines
        monkeypatch.setattr(night, "versions", lambda: {"python": "another"})
    koco("nightly accept", "small", "--store", store, status=0)
    accepted = [row["accepted"] for row in read_nights(store, "small").to_pylist()]
    assert accepted == [True] * 4 + [False] * 2 + [True] * 2
    assert not (store / "results").exists()  # the sweep's own results are not touched


def test_digest__sees_the_last_bit_of_a_curve(store):
    curves = read_curves(f"{store}/nights/small")
    known, losses = curve_hashes(curves), curves.column("cumulative_loss").to_numpy().copy()
    losses[-1] = np.nextafter(losses[-1], np.inf)
    place = curves.column_names.index("cumulative_loss")
    other = curve_hashes(curves.set_column(place, "cumulative_loss", pa.array(losses)))
    assert [name for name in known if known[name] != other[name]] == [curves["run_id"][-1].as_py()]


def test_night__stands_beside_a_sweep_of_the_same_name(store, koco):
    swept(store.parent, SPEC.format(steps=0.3), "small")
    rows = json.loads(koco("results", "--store", store, "--sweep", "small", "--json").stdout)
    assert {json.loads(row["params"])["step_size"] for row in rows} == {0.3}
    of_night = koco("results", "--store", f"{store}/nights/small", "--json").stdout
    assert len(json.loads(of_night)) == 4
    kinds = [
        row["kind"] for row in json.loads(koco("list", "sweeps", "--store", store, "--json").stdout)
    ]
    assert kinds == ["sweep", "nightly run"]


def test_night__goes_on_where_it_was_cut__unless_code_or_sweep_are_others(spec, tmp_path, koco):
    store, sweep = open_store(tmp_path / "store"), read_sweep(spec)
    refusal("no nightly run", accept_last, store, "small")
    path = opened_night(store, sweep, "first")
    (path / "results").path.mkdir()
    assert opened_night(store, sweep, "second") == path
    assert (path / "results").path.exists()
    refusal("that began at second has not ended", accept_last, store, "small")
    for change in ({"code": "other"}, {"file": "other"}, {}):
        note = json.loads((path / NOTE).read_text())
        (path / NOTE).write_text(json.dumps({**note, **change}))
        if not change:  # it has ended
            row = {"sweep": "small", "dataset": "d", "learner": "L", "accepted": False}
            add_night(store, "small", [{**row, "night": note["night"]}])
        (path / "left").path.mkdir(exist_ok=True)
        opened_night(store, sweep, "third")
        assert not (path / "left").path.exists()
    for text in ("", "{", "[]", "{}", '{"night": 1, "code": "", "file": ""}'):
        (path / NOTE).write_text(text)
        said = koco("nightly accept", "small", "--store", store, status=2).stderr
        assert f"{path / NOTE} is damaged; remove it" in " ".join(said.split())


def numbers(*rows):
    common = {
        "dataset": "d",
        "dataset_hash": "h",
        "order": "as-stored",
        "learner": "L",
        "params": "{}",
        "status": "ok",
        "rounds": 9,
    }
    return pa.Table.from_pylist([{**common, **row} for row in rows], schema(NUMBERS))


def found(accepted, tonight):
    """The rows of the comparison by learner, without those of the night."""
    return {row["learner"]: row for row in compared(accepted, tonight)}


def test_changes__name_learner_and_dataset_and_what_it_is():
    before = numbers(
        {"params": "a", "mean_loss": 1.0, "digest": "x"},
        {"params": "b", "mean_loss": 2.0, "digest": "y"},
        {"params": "c", "mean_loss": 3.0, "digest": "z", "learner": "M"},
    )
    after = numbers(
        {"params": "a", "mean_loss": 1.0, "digest": "x"},
        {"params": "b", "mean_loss": 2.0 + 4e-12, "digest": "!"},
        {"params": "e", "mean_loss": 3.0, "digest": "z", "learner": "M"},
    )
    rows = found(before, after)
    assert rows["L"]["what"] == [
        "L on d: 1 of 2 runs have changed numbers, mean loss by up to 2.0e-12 of itself"
    ]
    assert rows["M"]["what"] == [
        "M on d: 1 of 1 runs of the accepted run are gone",
        "M on d: 1 runs that the accepted run did not have",
    ]
    assert rows["L"]["largest_change"] == pytest.approx(2e-12, rel=1e-3)
    assert [(row["numbers"], row["changed"], row["runs"]) for row in rows.values()] == [
        ("changed", 1, 2),
        ("changed", 1, 1),
    ]
    assert result_of([*rows.values()]) == "changed numbers"
    assert result_of([*found(before.slice(0, 2), before).values()]) == "same numbers"
    assert result_of([*found(before.slice(0, 0), before).values()]) == "first"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({}, []),
        (
            {"digest": "!", "dataset_hash": "k"},
            ["L on d: the dataset has other rows than in the accepted run (1 runs)"],
        ),
        # a curve is enough
        (
            {"digest": "y"},
            ["L on d: 1 of 1 runs have changed numbers, mean loss by up to 0.0e+00 of itself"],
        ),
    ],
    ids=["nothing", "data", "curve"],
)
def test_changes__of_one_run(after, expected):
    run = {"params": "a", "mean_loss": 1.0, "digest": "x"}
    assert found(numbers(run), numbers({**run, **after}))["L"]["what"] == expected


def seconds(*each, **more):
    """Numbers of a learner whose runs took these seconds."""
    rows = [{"params": str(k), "seconds": one} for k, one in enumerate(each)]
    return numbers(*({"host": "h", "digest": "x", **row, **more} for row in rows))


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ((1.3, 1.3, 1.0, 1.4), "slower"),
        ((1.2, 1.0, 5.0, 1.0, 1.1), "same"),  # one run was disturbed
        ((0.7, 0.7, 9.0), "faster"),
    ],
)
def test_speeds__are_medians_of_paired_runs(times, verdict):
    accepted = seconds(*(0.1 * (k + 1) for k in range(len(times))))
    rows = found(accepted, seconds(*(0.1 * (k + 1) * time for k, time in enumerate(times))))
    assert rows["L"]["speed"] == verdict
    assert any(f"{verdict}, " in line for line in rows["L"]["what"]) == (verdict != "same")
    assert result_of([*rows.values()]) == ("same numbers" if verdict == "same" else verdict)


@pytest.mark.parametrize("other", [{"host": "other"}, {"status": "diverged"}, {"params": "new"}])
def test_speeds__of_other_machines_or_runs_and_of_short_ones_are_not_compared(other):
    assert found(seconds(1.0, 1.0, 1.0), seconds(2.0, 2.0, 2.0, **other))["L"]["speed"] is None
    assert found(seconds(*[SHORTEST / 2] * 9), seconds(*[SHORTEST] * 9))["L"]["ratio"] is None
    assert found(seconds(1.0, 1.0), seconds(2.0, 2.0))["L"]["ratio"] is None


def test_datasets__are_lent_only_by_the_store_that_a_store_is_inside_of(small_store, tmp_path):
    inside = small_store / "nights" / "x"
    inside.mkdir(parents=True)
    (inside / BORROWED).write_text(f"{small_store}\n")
    assert load_manifest(inside, "real") == load_manifest(small_store, "real")
    for lender in (tmp_path / "elsewhere", inside, f"{small_store}/nights/x/..", ""):
        (inside / BORROWED).write_text(f"{lender}\n")
        refusal("names", load_manifest, inside, "real")
