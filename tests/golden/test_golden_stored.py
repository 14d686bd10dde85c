"""What older code has stored is read by this code, and what it computed is computed by this code:
to the last bit in the environment in which it was recorded, to rounding in others.

Where a test fails and the change is meant (a learner's `numbers_version` was raised, a state has
other arrays), that part is written again: python -m tests.golden.make_stored --again PART
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import koco_stream
from cluster.executors import run_serially
from flows.results.tables import runs_of, summary_of
from koco_stream.engine.checkpoint import checkpoint_of, unfinished
from koco_stream.engine.cohort import run_cohort
from koco_stream.io.array_file import read_arrays, write_arrays
from koco_stream.learners import LEARNERS
from koco_stream.numerics.compiler import code_hash
from koco_stream.runs.planner import Limits, plan
from koco_stream.runs.run import Run
from koco_stream.runs.schemas import CURVES, RUNS
from koco_stream.streams.manifest import load_manifest, prepared_names
from koco_stream.streams.stream import Stream
from storage.collecting import collect
from storage.results import finished_runs, read_curves, read_runs, result_files, table_files
from storage.verify import dataset_problems, result_problems
from tests.golden import make_stored as made
from tests.golden.cases import environment
from tests.helpers.in_process import koco  # noqa: F401  (a fixture)
from tests.helpers.sweeps import checked

HERE = environment()
ROUNDING = 1e-6
SOLVED_TO = 1e-4  # of what is found with BLAS, to a stated accuracy
VALUES = {part: made.recorded(part)["values"] for part in made.PARTS}
SAME = {
    part: not [
        name for name, was in made.recorded(part)["environment"].items() if HERE[name] != was
    ]
    for part in made.PARTS
}


def again(part):
    return f"if that is meant: python -m tests.golden.make_stored --again {part}"


def differing(found, known):
    """The entries of two dictionaries that differ, with both values."""
    return {
        name: (found.get(name), known.get(name))
        for name in {*found, *known}
        if found.get(name) != known.get(name)
    }


def check_rows(found, known, exact):
    """Rows of `stored_rows` beside those recorded."""
    assert set(found) == set(known)
    for run_id, row in known.items():
        new, which = found[run_id], (run_id, row["learner"])
        for name in ("learner", "status", "rounds"):
            assert new[name] == row[name], which
        for name, accuracy in (("mean_loss", ROUNDING), *((n, SOLVED_TO) for n in made.SOLVED)):
            if row[name] is None:
                assert new[name] is None, which
            elif np.isfinite(row[name]) and row["status"] == "ok":
                assert new[name] == pytest.approx(row[name], rel=accuracy, abs=accuracy), which
    if exact:
        differ = [
            f"{row['learner']} {run_id}: {name}"
            for run_id, row in known.items()
            for name in ("row", "curve", "mean_loss")
            if found[run_id][name] != row[name]
        ]
        assert not differ, differ


# Runs
# --------------------------------------------------------------------------------------------------


def test_recorded__are_all_learners():
    of_runs = {json.loads(name)[0] for name in VALUES["run_ids"]["ids"]}
    of_rows = [{row["learner"] for row in VALUES[p]["rows"].values()} for p in ("tables", "cohort")]
    of_models = {model["learner"] for model in VALUES["models"].values()}
    assert of_runs == of_models == set(LEARNERS)
    assert all(names == set(LEARNERS) for names in of_rows)


def test_run_ids__are_those_recorded():
    streams = {name: Stream(**given) for name, given in VALUES["run_ids"]["streams"].items()}
    found = {}
    for name in VALUES["run_ids"]["ids"]:
        learner, given, seed, stream = json.loads(name)
        found[name] = Run.of(streams[stream], learner, given, seed).run_id
    differ = differing(found, VALUES["run_ids"]["ids"])
    assert not differ, again("run_ids")


def test_run_ids_of_a_sweep_file__are_those_recorded_in_their_order(tmp_path):
    ids = made.expanded_ids(tmp_path)
    assert [len(ids), made.digest(ids)] == VALUES["run_ids"]["expanded"], again("run_ids")


# Prepared datasets
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*made.FILES, *made.GENERATED])
def test_prepared__is_the_recorded_dataset(name, tmp_path):
    manifest = made.prepare(tmp_path / "store", name)
    found = made.prepared_values(tmp_path / "store", manifest)
    assert differing(found, VALUES["prepared"]["datasets"][name]) == {}
    statistics = VALUES["prepared"]["statistics"][name]
    assert manifest.statistics == pytest.approx(statistics, rel=1e-12, abs=1e-12)
    if SAME["prepared"]:
        assert manifest.statistics == statistics
    if SAME["prepared"] and pa.__version__ == VALUES["prepared"]["pyarrow"]:
        assert [shard.sha256 for shard in manifest.shards] == VALUES["prepared"]["files"][name]


# Result tables
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A store with the recorded datasets, and the runs of the small sweep over all learners."""
    store = made.swept_store(tmp_path_factory.mktemp("swept"))
    made.swept(store, made.swept_runs(store))
    return store


def copy_without_results(store, folder):
    shutil.copytree(store, folder / "copy")
    shutil.rmtree(folder / "copy" / "results")
    return folder / "copy"


def test_columns__of_the_recorded_tables_are_there():
    measured = {column.name for column in RUNS if column.measured}
    for part in ("tables", "cohort", "old_store"):
        columns = set(VALUES[part]["columns"])
        assert columns <= {column.name for column in RUNS} - measured
    assert [column.name for column in CURVES][:4] == ["run_id", "t", "cumulative_loss", "mistakes"]


def test_tables__of_a_sweep_over_all_learners_are_those_recorded(swept, tmp_path):
    known = VALUES["tables"]
    shutil.copytree(swept, tmp_path / "copy")
    parts = made.stored_rows(tmp_path / "copy", known["columns"])
    check_rows(parts, known["rows"], SAME["tables"])
    assert collect(tmp_path / "copy") == len(known["rows"])
    assert made.stored_rows(tmp_path / "copy", known["columns"]) == parts


# Plans
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(VALUES["plans"]))
def test_plan__is_the_recorded_one(name):
    found = made.planned_as(name)
    known = VALUES["plans"][name]
    assert [row[:3] for row in found["cohorts"]] == [row[:3] for row in known["cohorts"]]
    seconds = [row[3] for row in known["cohorts"]]
    assert [row[3] for row in found["cohorts"]] == pytest.approx(seconds, rel=1e-9)
    assert found["memory"] == known["memory"]


# Saved models
# --------------------------------------------------------------------------------------------------


every_model = pytest.mark.parametrize("name", sorted(VALUES["models"]))


def check_predictions(found, known):
    """What a model says beside what was recorded."""
    for what in ("predict", "progressive", "after"):
        assert found[what] == pytest.approx(known[what], rel=ROUNDING, abs=ROUNDING)
    assert known["record"].keys() <= found["record"].keys()
    if SAME["models"]:
        differ = [
            what for what in ("predict", "progressive", "after") if found[what] != known[what]
        ]
        assert not differ, again("models")
        assert known["record"].items() <= found["record"].items(), again("models")


@every_model
def test_saved_model__is_loaded_and_goes_on_to_the_recorded_predictions(name, tmp_path):
    known = VALUES["models"][name]
    path = made.unpacked(made.model_file(name), tmp_path / "a.koco")
    model = koco_stream.load(path)
    assert type(model) is getattr(koco_stream, known["learner"])
    assert model.rounds_ == known["rounds"]
    assert model.n_features_in_ == len(made.FEATURES)
    assert made.model_has_names(model) == (name == made.NAMED)
    if name == made.NAMED:
        assert list(model.feature_names_in_) == made.FEATURES
    assert known["params"].items() <= model.get_params().items()
    check_predictions(made.predictions_of(model, known["rounds"]), known)
    assert model.rounds_ == known["rounds"] + 2 * made.HELD_BACK


@every_model
def test_saved_model__is_what_the_same_rows_give_now(name):
    known = VALUES["models"][name]
    model = getattr(koco_stream, known["learner"])(**known["params"])
    X, y = made.model_rows()
    n = known["rounds"]
    model.partial_fit(X[:n], made.labels_for(model, y)[:n])
    check_predictions(made.predictions_of(model, n), known)


@pytest.mark.parametrize("name", sorted(made.CLASSIFIED))
def test_classifier__says_what_was_recorded(name):
    found, known = made.classified(name), VALUES["classifiers"][name]
    assert found["scores"] == pytest.approx(known["scores"], rel=ROUNDING, abs=ROUNDING)
    if SAME["classifiers"]:
        assert found == known, again("classifiers")


# A cohort in mid-run
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def begun(swept, tmp_path):
    """A store without results, and its cohort's checkpoint as it was kept, which says that the code
    that is given has written it.
    """
    store = copy_without_results(swept, tmp_path)
    cohort = made.cohort_on(store)

    def put(code=None):
        kept = made.unpacked(made.COHORT, tmp_path / "kept")
        header, arrays = read_arrays(kept.read_bytes(), 1)
        if code is not None:
            write_arrays(kept, {**header, "code": code}, arrays)
        with checkpoint_of(store, cohort).written() as temporary:
            shutil.copyfile(kept, temporary)
        return str(store), cohort

    return put


def test_cohort__has_the_recorded_identity(swept):
    assert made.cohort_on(swept).cohort_id == VALUES["cohort"]["cohort_id"]


def test_checkpoint__of_this_code_is_gone_on_from_to_the_recorded_table(begun):
    known = VALUES["cohort"]
    store, cohort = begun(code_hash())
    assert unfinished(store) == [tuple(run.run_id for run in cohort.runs)]
    receipt = run_cohort(store, "golden", cohort)
    assert receipt.rounds == known["rounds"] - known["rounds_at_checkpoint"], again("cohort")
    check_rows(made.stored_rows(Path(store), known["columns"]), known["rows"], SAME["cohort"])
    assert unfinished(store) == []


@pytest.mark.parametrize("code", [None, "of another code"], ids=["as it was kept", "other code"])
def test_checkpoint__of_any_code_leads_to_the_recorded_table(begun, code):
    known = VALUES["cohort"]
    store, cohort = begun(code)
    receipt = run_cohort(store, "golden", cohort)
    if code is not None:  # nothing of it is used
        assert receipt.rounds == known["rounds"]
    check_rows(made.stored_rows(Path(store), known["columns"]), known["rows"], SAME["cohort"])


# A store
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path):
    """A copy of the store that older code has written."""
    shutil.copytree(made.OLD_STORE, tmp_path / "old_store")
    return tmp_path / "old_store"


def content_of(store):
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.name != "koco-store.lock"
    }


def test_old_datasets__are_whole_and_stream_the_recorded_rows(old):
    assert prepared_names(old) == ["ill-conditioned,n_rows=60,n_features=4", "real", "words"]
    for name in prepared_names(old):
        assert dataset_problems(old, name) == []
    for name, known in VALUES["old_store"]["orders"].items():
        orders = made.orders_of(load_manifest(old, name))
        assert [made.rows_of(old, order) for order in orders] == known


def test_old_results__are_read_and_collected(old, koco):
    known = VALUES["old_store"]
    before = content_of(old)
    assert result_problems(old) == []
    found = made.stored_rows(old, known["columns"])
    check_rows(found, known["rows"], exact=True)  # nothing is computed
    assert finished_runs(old) == set(known["rows"])
    some = known["apart"]
    assert set(read_curves(old, some).column("run_id").to_pylist()) == set(some)
    mine = runs_of(old, "old")
    assert mine.num_rows == known["runs_of_the_sweep"]
    assert sum(row["n_runs"] for row in summary_of(mine)) == known["runs_of_the_sweep"]
    printed = koco("results", "--store", old, "--sweep", "old", "--runs", "--json")
    assert printed.exit_code == 0, printed.output
    rows = {row["run_id"]: row["mean_loss"] for row in json.loads(printed.stdout)}
    assert rows == {i: known["rows"][i]["mean_loss"] for i in mine.column("run_id").to_pylist()}
    assert content_of(old) == before
    assert collect(old) == len(some)
    assert result_files(old) == []
    assert made.stored_rows(old, known["columns"]) == found
    assert read_runs(old).num_rows == len(known["rows"])
    assert result_problems(old) == []


def test_old_sweep__computes_nothing_anew(old, koco, tmp_path):
    spec = tmp_path / "old.toml"
    spec.write_text(VALUES["old_store"]["sweep"])
    sweep = checked(spec, old)
    runs = sweep.runs
    assert (len(runs), sweep.missing) == (VALUES["old_store"]["runs_of_the_sweep"], [])
    files = {f.name: f.read_bytes() for t in ("runs", "curves") for f in table_files(old, t)}
    done = koco("sweep", spec, "--store", old, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["runs"], said["computed"]) == (len(runs), 0)
    assert said["statuses"] == {"ok": len(runs)}
    now = {f.name: f.read_bytes() for t in ("runs", "curves") for f in table_files(old, t)}
    assert now.items() >= files.items()
    known = VALUES["old_store"]
    check_rows(made.stored_rows(old, known["columns"]), known["rows"], exact=True)


def test_old_sweep__computed_again_gives_the_old_results(old, tmp_path):
    known = VALUES["old_store"]
    shutil.rmtree(old / "results")
    spec = tmp_path / "old.toml"
    spec.write_text(known["sweep"])
    sweep = checked(spec, old)
    assert len(sweep.missing) == len(sweep.runs)
    cohorts = plan(sweep.runs, sweep.sizes, Limits(1, 8 << 30)).cohorts
    run_serially(str(old), "old", cohorts, lambda r: None)
    expected = {i: row for i, row in known["rows"].items() if i not in known["apart"]}
    check_rows(made.stored_rows(old, known["columns"]), expected, SAME["old_store"])
