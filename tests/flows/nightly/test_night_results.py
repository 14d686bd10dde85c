"""The results of nightly runs are found from the store that the nights belong to."""

import json

import numpy as np
import pytest

from flows.nightly.night import NOTE, opened_night
from flows.sweeping.file import read_sweep
from storage.results import read_runs
from storage.store import open_store
from tests.helpers.sweeps import written
from tests.helpers.swept import prepared, sweep_on, swept

SPEC = """
[[dataset]]
name = "plain"
[[learner]]
name = "OGD"
step_size = {steps}
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store without sweeps, but with a night of `small`, as `koco nightly` leaves one."""
    folder, draw = tmp_path_factory.mktemp("nights"), np.random.default_rng(0)
    X = draw.standard_normal((60, 3))
    store = prepared(folder, "plain", X, X.sum(1) / 3)
    spec = written(folder, f'name = "small"\n{SPEC.format(steps=[0.1, 0.2])}', "small.toml")
    night, _ = opened_night(store, read_sweep(spec))
    sweep_on(night, spec)
    return store


def test_night__is_named_where_it_is_not_asked_for__and_shown_where_it_is(store, koco):
    plain = koco("results", "--store", store, status=0)
    assert f"--store {store}/nights/small" in " ".join(plain.stderr.split())
    assert plain.stdout == ""
    asked = koco("results", "--store", store, "--sweep", "small", status=2)
    assert f"only a nightly run of it: --store {store}/nights/small" in " ".join(
        asked.stderr.split()
    )
    rows = json.loads(koco("results", "--store", f"{store}/nights/small", "--json").stdout)
    runs = read_runs(f"{store}/nights/small").to_pylist()
    losses = {run["params"]: pytest.approx(run["mean_loss"], rel=1e-11) for run in runs}
    assert {row["params"]: row["mean_loss_mean"] for row in rows} == losses
    assert len(runs) == 2


def test_list__has_the_nights_too(store, koco):
    [row] = json.loads(koco("list", "sweeps", "--store", store, "--json", status=0).stdout)
    assert (row["sweep"], row["kind"], row["runs"], row["done"]) == ("small", "nightly run", 2, 2)


def test_dataset__of_a_night_is_in_use(store, koco):
    said = koco("store", "remove", "dataset", "plain", "--store", store, status=2).stderr
    assert "used by the nights of small; keep their results" in said


def test_night__stands_beside_a_sweep_of_the_same_name(store, koco):
    swept(store.parent, SPEC.format(steps=0.3), "small")
    [row] = json.loads(koco("results", "--store", store, "--sweep", "small", "--json").stdout)
    assert json.loads(row["params"])["step_size"] == 0.3
    night = koco("results", "--store", f"{store}/nights/small", "--json").stdout
    assert len(json.loads(night)) == 2
    kinds = [
        row["kind"] for row in json.loads(koco("list", "sweeps", "--store", store, "--json").stdout)
    ]
    assert kinds == ["sweep", "nightly run"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"night": 1, "code": "", "file": ""}'])
def test_note_of_a_night__that_is_damaged__is_named(text, tmp_path, koco):
    open_store(tmp_path / "store")
    (tmp_path / "store" / "nights" / "s").mkdir(parents=True)
    (tmp_path / "store" / "nights" / "s" / NOTE).write_text(text)
    said = koco("nightly accept", "s", "--store", tmp_path / "store", status=2).stderr
    wrong = f"{tmp_path}/store/nights/s/{NOTE} is damaged; remove it"
    assert wrong in " ".join(said.split()) or (text == "{}" and "has no nightly run" in said)
