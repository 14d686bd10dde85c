"""Files of a store that somebody has written otherwise: refused in words, with their path; none of
them is believed, and none leads out of its folder.
"""

import json
import shutil
from itertools import islice, product

import numpy as np
import pyarrow as pa
import pytest

from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import read_result, result_path
from koco_stream.errors import WrongInput
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.streams.manifest import SEAL, load_manifest, seal_of
from koco_stream.streams.opened import stream
from storage.collecting import collect
from storage.results import finished_runs, read_curves, read_runs, result_files, table_files
from storage.verify import result_problems
from tests.helpers.sweeps import cohort_on

WRONG = (None, -1, 2**63, 1.5, True, "", "x", "../../x", [], {}, [None], [[]], ["x"])
MISSING = object()


def altered_manifest(store, keys, value):
    """Change the manifest at these keys, and seal it as if it had been prepared so."""
    file = store / "datasets" / "plain" / "manifest.json"
    content = json.loads(file.read_text())
    *outer, last = keys
    at = content
    for key in outer:
        at = at[key]
    if value is MISSING:
        del at[last]
    else:
        at[last] = value
    del content[SEAL]
    file.write_text(json.dumps({**content, SEAL: seal_of(content)}))
    return file


def outcome_of(work):
    """What `work` gives, and what it said if it refused."""
    try:
        return work(), ""
    except WrongInput as error:
        return None, str(error)


def attributes(store):
    manifest = load_manifest(store, "plain")
    return [[name] for name in vars(manifest)] + [
        ["shards", 0, name] for name in vars(manifest.shards[0])
    ]


def test_manifest__with_another_value_anywhere__is_refused_or_reads_as_it_says(
    swept_once, tmp_path
):
    """What is accepted is of the right type: the rows are then those of the shards."""
    made = swept_once / "store"
    rows = stream(made, "plain").whole()
    accepted = []
    for keys in attributes(made):
        for value in (*WRONG, MISSING):
            store = shutil.copytree(made, tmp_path / "store", dirs_exist_ok=True)
            altered_manifest(store, keys, value)
            found, said = outcome_of(lambda store=store: stream(store, "plain").whole())
            if said:
                assert "datasets/plain" in said or "'plain'" in said, (keys, value)
                continue
            assert all(map(np.array_equal, found, rows)), (keys, value)
            accepted.append(keys[-1])
    # what is said of the rows, and the path of a shard of which there is a copy
    said = {"classes", "feature_names", "changes", "source", "statistics", "transformations"}
    assert set(accepted) <= {*said, "path"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../plain/x", "a/../../x", "a\0b", "a//b", "."])
def test_shard__is_in_the_folder_of_its_dataset(path, swept_store):
    altered_manifest(swept_store, ["shards", 0, "path"], path)
    with pytest.raises(WrongInput, match="is not in the dataset's folder"):
        load_manifest(swept_store, "plain")


def test_sparse_shard__with_features_beyond_the_manifest__is_refused(
    swept_store, tmp_path, monkeypatch
):
    """Compiled code does not check them: it would read and write beyond the weights."""
    from storage.preparing.prepare import prepare_file

    (tmp_path / "sparse.svm").write_text("1 1:1 7:2\n-1 3:1\n" * 40)
    prepare_file(swept_store, "plain", tmp_path / "sparse.svm")
    altered_manifest(swept_store, ["n_features"], 6)
    monkeypatch.setenv("KOCO_CACHE", str(swept_store.parent / "cache"))
    with pytest.raises(WrongInput, match="has feature 6, and 6 features from 0 on in the manifest"):
        stream(swept_store, "plain").whole()


@pytest.mark.parametrize(
    "words", [("report", "first"), ("list",), ("store", "remove", "sweep", "first")]
)
def test_sweeps_entry__that_is_damaged__is_named(words, swept_store, koco):
    file = swept_store / "sweeps" / "first.json"
    for text in ("", "{", "[]", "null", '"x"', "5"):
        file.write_text(text)
        said = koco(*words, "--store", swept_store, status=2).stderr
        assert f"{file} is damaged; start its sweep" in said


def test_sweeps_entry__with_another_value__is_refused_or_shown(swept_store, koco):
    file = swept_store / "sweeps" / "first.json"
    whole = json.loads(file.read_text())
    for name, value in product(whole, (*WRONG, MISSING)):
        note = {**whole, name: value}
        file.write_text(json.dumps({key: one for key, one in note.items() if one is not MISSING}))
        done = koco("list", "sweeps", "--store", swept_store)
        assert (done.exit_code == 0) != (f"{file} is damaged" in done.stderr), (name, value, done)


def altered_tables(table):
    """The table with each column missing, null, a text, and lists."""
    for place, field in enumerate(table.schema):
        yield table.remove_column(place)
        n = table.num_rows
        for column in (pa.nulls(n, field.type), pa.array(["x"] * n), pa.array([[1]] * n)):
            yield table.set_column(place, field.name, column)


@pytest.mark.parametrize("folder", ["runs", "curves"])
def test_table__of_another_schema__is_named_or_read(folder, swept_store):
    (file,) = table_files(swept_store, folder)
    before = {read: read(swept_store).num_rows for read in (read_runs, read_curves)}
    for table in altered_tables(read_table(file)):
        write_tables([table], file)
        for read in (read_runs, read_curves):
            rows, said = outcome_of(lambda read=read: read(swept_store).num_rows)
            if said:
                assert f"{file} cannot be read" in said or "results/curves lacks" in said
            else:
                assert rows <= before[read]
    for content in (b"", b"PAR1", file.read_bytes()[:-9]):
        file.path.write_bytes(content)
        for work in (lambda: read_curves(swept_store), lambda: collect(swept_store)):
            _, said = outcome_of(work)
            assert said == "" or f"{file} cannot be read" in said
        assert result_problems(swept_store)


def test_result_file__of_another_schema__is_not_believed(swept_store):
    """It is as if it were damaged: refused, until its cohort is run again."""
    cohort = cohort_on(
        swept_store, [("AdaGrad", {"step_size": 0.7}, 1)], name="plain", order="as-stored"
    )
    run_cohort(str(swept_store), "first", cohort)
    file = result_path(swept_store, cohort)
    whole = read_table(file)
    for table in islice(altered_tables(whole), 0, None, 5):
        write_tables([table], file)
        _, said = outcome_of(lambda: read_result(file))
        assert f"{file} cannot be read" in said or not said
        for work in (finished_runs, read_runs):
            assert outcome_of(lambda work=work: work(swept_store))[1] == said
        assert result_problems(swept_store) == ([said] if said else [])
    write_tables([whole.drop_columns(["curve"])], file)
    receipt = run_cohort(str(swept_store), "first", cohort)
    assert (receipt.rounds > 0, len(result_files(swept_store))) == (True, 1)
    assert collect(swept_store) == 1
