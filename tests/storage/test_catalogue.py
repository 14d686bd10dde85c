"""The catalogue: every entry that we have the files of gives the n and d it promises, every file
those of its publisher; what is missing or incomplete is said.
"""

from pathlib import Path

import pytest

from koco_stream import WrongInput
from koco_stream.streams.manifest import load_manifest
from storage.catalogue.entries import CATALOGUE, SON, entry_named, find_edition, remarks
from storage.catalogue.fetch import check_address
from storage.preparing.prepare import prepare_file
from storage.sources.source import Reading


def test_son_datasets__are_23_of_which_three_are_absent():
    son = [entry for entry in CATALOGUE.values() if SON in entry.papers]
    absent = {entry.name for entry in son if entry.absent}
    partial = {entry.name for entry in son if entry.partial}
    assert (len(son), absent) == (23, {"acoustic", "gisette", "real-sim"})
    assert partial == {"census", "covtype", "mnist", "rcv1", "cod-rna"}


def test_entries__have_the_options_of_prepare_addresses_over_https_and_a_positive_class_if_many():
    allowed = {*Reading.__dataclass_fields__, "layout", "scale", "task"}
    for entry in CATALOGUE.values():
        assert (entry.positive_class is None) == (entry.task in ("binary", "regression"))
        assert (entry.fetchable is None) == (entry.name in ("census", "mnist"))
        for edition in entry.editions:
            assert set(edition.options) <= allowed
            assert len(edition.addresses) in (0, len(edition.files))
            for file, address in zip(edition.files, edition.addresses, strict=False):
                check_address(address.url)
                assert address.url.startswith("https://")
                assert len(bytes.fromhex(address.sha256 or "0" * 64)) == 32
                assert Path(address.name_of(file)).name == address.name_of(file)


@pytest.mark.parametrize(
    ("dataset", "names"),
    [
        ("ijcnn1", ["ijcnn1.bz2", "ijcnn1.t.bz2"]),
        ("covtype", ["covtype.data.gz"]),
        ("20news", ["20news-bydate.tar.gz"]),
        ("a9a", ["a9a", "a9a.t"]),
    ],
)
def test_name_on_disk__says_how_the_file_is_compressed(dataset, names):
    edition = CATALOGUE[dataset].fetchable
    assert [a.name_of(f) for f, a in zip(edition.files, edition.addresses, strict=True)] == names


@pytest.mark.long
@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in CATALOGUE if not CATALOGUE[name].absent])
def test_entry__gives_what_it_promises(name, data_folder, tmp_path):
    entry = entry_named(name)
    edition, paths = find_edition(entry, data_folder)
    assert edition.tested
    manifest = prepare_file(tmp_path / "store", name, paths, **edition.options)
    assert (manifest.n_rows, manifest.n_features) == (edition.n_rows, edition.n_features)
    assert bool(remarks(entry, edition, manifest.n_rows, manifest.n_features)) == (
        entry.partial is not None
    )
    if entry.task == "regression":
        assert manifest.task == "regression"
    elif entry.task == "binary":
        assert manifest.classes == [-1.0, 1.0]
    else:
        assert f"{len(manifest.classes)} classes" == entry.task
        assert entry.positive_class in manifest.classes


def test_without_files_and_network__the_command_says_what_to_get(tmp_path, monkeypatch, koco):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")  # nobody listens there: no way out
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "cache"))
    done = koco("prepare", "ijcnn1", "--store", tmp_path / "store")
    assert done.exit_code == 2
    told = (
        "ijcnn1 and ijcnn1.t",
        "LIBSVM data sets",
        "/datasets/binary/ijcnn1.t.bz2",
        "no connection",
        "koco prepare ijcnn1 --from FOLDER",
    )
    assert [words for words in told if words not in done.stderr] == []
    done = koco("prepare", "ijcn1", "--store", tmp_path / "store")
    assert "did you mean 'ijcnn1'?" in done.stderr
    assert not (tmp_path / "store").exists()


def test_folder__with_the_files_below_or_beside_and_options_that_come_first(tmp_path, koco):
    (tmp_path / "heart").mkdir()
    (tmp_path / "heart" / "heart_scale").write_text(
        "".join(f"{(-1) ** k} {' '.join(f'{j}:{k}' for j in range(1, 14))}\n" for k in range(270))
    )
    done = koco(
        "prepare", "heart", "--from", tmp_path, "--store", tmp_path / "store", "--layout", "sparse"
    )
    assert (done.exit_code, "warning" in done.stderr) == (0, False)
    assert load_manifest(tmp_path / "store", "heart").layout == "sparse"
    listed = koco("list", "datasets", "--store", tmp_path / "store").stdout
    assert [line.split()[1:5] for line in listed.splitlines() if line.startswith("heart")] == [
        ["binary", "270", "13", "yes"]
    ]
    (tmp_path / "heart" / "heart_scale").write_text("1 1:1\n-1 13:1\n")
    again = ("prepare", "heart", "--from", tmp_path / "heart", "--store", tmp_path / "store")
    assert "already has a dataset 'heart'; to replace it, add --replace" in koco(*again).stderr
    assert load_manifest(tmp_path / "store", "heart").n_rows == 270
    done = koco(*again, "--replace")
    assert "gave 2 rows of 13 features where the catalogue has 270 of 13" in done.stderr


def test_folder__without_all_files_is_refused(tmp_path):
    (tmp_path / "ijcnn1.xz").write_bytes(b"")
    with pytest.raises(
        WrongInput,
        match=(
            r"does not have the files of ijcnn1 \(only ijcnn1\)\. ijcnn1: get ijcnn1 and ijcnn1\.t"
        ),
    ):
        find_edition(entry_named("ijcnn1"), tmp_path)


def test_entry_named__a_file_in_place_of_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongInput, match=r"koco prepare rows\.svm --from FILE needs a file"):
        entry_named("rows.svm")
    (tmp_path / "rows.svm").write_text("1 1:2\n")
    with pytest.raises(WrongInput, match=r"comes first: koco prepare NAME --from rows\.svm"):
        entry_named("rows.svm")
