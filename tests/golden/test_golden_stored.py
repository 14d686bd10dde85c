"""What older code has stored is read by this code: identities are what they were, models go on,
datasets stream the same rows.

If a test fails and the change is meant, that table is written again:
python -m tests.golden.make_stored --again TABLE
"""

import json
import shutil

import pytest

import koco_stream
from koco_stream.learners import LEARNERS
from koco_stream.runs.run import Run
from koco_stream.streams.manifest import load_manifest, prepared_names
from koco_stream.streams.stream import Stream
from storage.verify import dataset_problems
from tests.golden import make_stored as made

VALUES = {table: json.loads((made.STORED / f"{table}.json").read_text()) for table in made.TABLES}


def test_recorded__learners_are_there():
    runs = {json.loads(name)[0] for name in VALUES["run_ids"]["ids"]}
    assert runs == {model["learner"] for model in VALUES["models"].values()} <= set(LEARNERS)


def test_run_ids__are_those_recorded():
    streams = {name: Stream(**given) for name, given in VALUES["run_ids"]["streams"].items()}
    for name, known in VALUES["run_ids"]["ids"].items():
        learner, given, seed, stream = json.loads(name)
        assert Run.of(streams[stream], learner, given, seed).run_id == known, name


@pytest.mark.parametrize("name", [*made.FILES, *made.GENERATED])
def test_prepared__is_the_recorded_dataset(name, tmp_path):
    manifest = made.prepare(tmp_path / "store", name)
    assert made.prepared_values(tmp_path / "store", manifest) == VALUES["prepared"][name]


@pytest.mark.parametrize("name", sorted(VALUES["models"]))
def test_saved_model__is_loaded_and_goes_on_to_the_recorded_predictions(name, tmp_path):
    known = VALUES["models"][name]
    model = koco_stream.load(made.unpacked(made.model_file(name), tmp_path / "a.koco"))
    assert type(model) is getattr(koco_stream, known["learner"])
    assert (model.rounds_, model.n_features_in_) == (known["rounds"], len(made.FEATURES))
    assert hasattr(model, "feature_names_in_") == (name == made.NAMED)
    assert known["params"].items() <= model.get_params().items()
    for what, found in made.predictions_of(model, known["rounds"]).items():
        assert found == pytest.approx(known[what], rel=1e-6, abs=1e-6), what
    assert model.rounds_ == known["rounds"] + 2 * made.HELD_BACK


@pytest.mark.parametrize("name", sorted(path.name for path in made.REFUSED.iterdir()))
def test_saved_model__of_other_random_numbers_is_refused(name, tmp_path):
    """It would go on, with weights of features that it no longer has."""
    file = made.unpacked(made.REFUSED / name, tmp_path / "a.koco")
    with pytest.raises(
        koco_stream.WrongInput, match=r"a.koco: \w+ draws other random .* learn again"
    ):
        koco_stream.load(file)


@pytest.fixture
def old(tmp_path):
    """A copy of the store that older code has written."""
    shutil.copytree(made.OLD_STORE, tmp_path / "old_store")
    return tmp_path / "old_store"


def test_old_datasets__are_whole_and_stream_the_recorded_rows(old):
    assert prepared_names(old) == ["ill-conditioned,n_rows=60,n_features=4", "real", "words"]
    assert [dataset_problems(old, name) for name in prepared_names(old)] == [[], [], []]
    for name, known in VALUES["old_store"]["orders"].items():
        orders = made.orders_of(load_manifest(old, name))
        assert [made.rows_of(old, order) for order in orders] == known
