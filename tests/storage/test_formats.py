"""Files of another format, of a version before or after this one, are refused with what wrote them
and what to do; a checkpoint is left alone.
"""

import json
import re

import pytest

import koco_stream
from koco_stream.engine.checkpoint import checkpoint_of, checkpoints, resumed, save_cohort
from koco_stream.errors import WrongInput
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.streams.manifest import SEAL, seal_of
from storage.results import read_curves, read_runs, table_files
from storage.verify import result_problems
from tests.helpers.sweeps import cohort_on
from tests.helpers.swept import TWO_RUNS

OTHERS = (0, 2)
each = pytest.mark.parametrize("other", OTHERS)


def words(other, remedy, wrote="another version of koco-stream"):
    return (
        f"was written by {wrote} (format {other}; this one reads 1): use that version, or {remedy}"
    )


@each
def test_store(other, swept_store, koco):
    (swept_store / "koco-store.json").write_text(json.dumps({"format": other, "created_by": "9.8"}))
    for command in (("list",), ("sweep", "ill-conditioned"), ("verify",)):
        said = " ".join(koco(*command, "--store", swept_store, status=2).stderr.split())
        assert words(other, "choose another --store", "koco-stream 9.8") in said


@each
def test_manifest__is_refused_until_the_dataset_is_prepared_again(other, swept_store, koco):
    file = swept_store / "datasets" / "plain" / "manifest.json"
    content = {**json.loads(file.read_text()), "format": other}
    del content[SEAL]
    for seal in ({}, {SEAL: seal_of(content)}):
        file.write_text(json.dumps({**content, **seal}))
        (swept_store.parent / "s.toml").write_text(f'name = "s"\n{TWO_RUNS}')
        said = koco("sweep", swept_store.parent / "s.toml", "--store", swept_store, status=2).stderr
        assert f"{file} {words(other, 'prepare the dataset again')}" in " ".join(said.split())
    (swept_store.parent / "plain.csv").write_text("1,2\n3,4\n")
    given = ("prepare", "plain", "--from", swept_store.parent / "plain.csv", "--store", swept_store)
    koco(*given, "--replace", status=0)
    assert json.loads(file.read_text())["format"] == 1


@each
def test_model(other, tmp_path, monkeypatch):
    monkeypatch.setattr("koco_stream.io.table_file.FORMAT", other)
    monkeypatch.setattr("koco_stream.io.table_file.__version__", "9.8")
    koco_stream.OGD().partial_fit([[1.0]], [1.0]).save(tmp_path / "a.koco")
    monkeypatch.undo()
    remedy = "let the learner learn again, or use another copy"
    said = re.escape(words(other, remedy, "koco-stream 9.8"))
    for load in (koco_stream.load, koco_stream.OGD.load, koco_stream.Classifier.load):
        with pytest.raises(WrongInput, match=rf"a\.koco {said}"):
            load(tmp_path / "a.koco")


@each
@pytest.mark.parametrize("table", ["runs", "curves"])
def test_table(table, other, swept_store, monkeypatch):
    (file,) = table_files(swept_store, table)
    content = read_table(file)
    monkeypatch.setattr("koco_stream.io.table_file.FORMAT", other)
    monkeypatch.setattr("koco_stream.io.table_file.__version__", "9.8")
    write_tables([content], file)
    monkeypatch.undo()
    said = re.escape(f"{file} {words(other, 'remove it', 'koco-stream 9.8')}")
    with pytest.raises(WrongInput, match=said):
        (read_runs if table == "runs" else read_curves)(swept_store)
    assert re.match(said, result_problems(swept_store)[0])


@each
def test_checkpoint__is_of_no_use_and_harms_nothing(other, swept_store, monkeypatch):
    cohort = cohort_on(swept_store, [("OGD", {}, 1)], name="plain", order="as-stored")
    where = checkpoint_of(swept_store, cohort)
    monkeypatch.setattr("koco_stream.io.table_file.FORMAT", other)
    save_cohort(where, 5, [])
    monkeypatch.undo()
    assert resumed(where, []) == 0
    assert checkpoints(store_path(swept_store)) == {}
