"""Folders of documents: rows in the stated order whatever the archive's, counts as by hand, and
what is no such folder refused by name.
"""

import os
import re
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import WrongInput
from storage.preparing.prepare import prepare_file
from storage.sources.documents import MOST_DOCUMENT_BYTES as MOST
from storage.sources.documents import documents_source
from storage.sources.source import Reading
from tests.helpers.malformed import put, tar_of
from tests.helpers.tables import listed

NEWS = {
    "n-test/b/9": b"a new day, a NEW word",
    "n-train/b/10": b"one two",
    "n-train/b/9": b"",
    "n-train/a/x": b"two two caf\xe9 0",
}


def make_folder(folder, files):
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def survey(path, scratch, strip=(), n_features=None):
    scratch.mkdir(exist_ok=True)
    return documents_source(path, Reading(strip=strip, n_features=n_features)).surveyed(
        map, scratch
    )


@pytest.mark.parametrize(
    ("strip", "words"),
    [
        ((), "article from in kept quoted say signature somebody words you"),
        (("headers",), "article in kept quoted say signature words you"),
        (("footers",), "article from in kept quoted say somebody words you"),
        (("quotes", "headers", "footers"), "kept words"),
    ],
)
def test_documents__stripped_as_scikit_learn_does(strip, words, tmp_path):
    text = b"From: somebody\n\nIn article 3 you say:\n> quoted\nkept words\n\n-- \nsignature\n"
    source = survey(make_folder(tmp_path / "news", {"a/1": text}), tmp_path / "s", strip)
    assert " ".join(source.feature_names) == words


# text in latin-1 can be UTF-8 too, which it then is
text = st.builds(
    str.encode,
    st.text(st.sampled_from("abAÉ_1 \n-µ\ufeff"), max_size=14),
    st.sampled_from(["latin-1", "utf-8"]),
    st.just("replace"),
)
files = st.dictionaries(
    st.sampled_from([f"{g}/{i}" for g in ("a", "B", "c.d") for i in ("1", "10", "9")]),
    text,
    min_size=1,
)


def as_text(content):
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


@settings(max_examples=40, deadline=None)
@given(
    files=files,
    shuffled=st.randoms(use_true_random=False),
    per_piece=st.sampled_from([1, 70, 200, 1 << 20]),
    more=st.sampled_from([None, 0, 2]),
)
def test_documents__are_counted_as_by_hand_from_any_archive_in_any_pieces(
    files, shuffled, per_piece, more, tmp_path_factory
):
    tmp = tmp_path_factory.mktemp("documents")
    order = sorted(files, key=lambda name: name.split("/"))
    texts = [as_text(files[name]).lower() for name in order]
    counts = [Counter(re.findall(r"\w\w+", text)) for text in texts]
    terms = sorted(set().union(*counts))
    groups = sorted({name.split("/")[0] for name in files})
    mixed = shuffled.sample(order, len(order))
    path = put(tmp / "x.tar", tar_of({f"./{name}": files[name] for name in mixed}))
    if not terms:
        with pytest.raises(WrongInput, match="no document has a word"):
            survey(path, tmp / "s")
        return
    n_features = None if more is None else len(terms) + more
    with mock.patch("storage.sources.documents.PIECE_BYTES", per_piece):
        source = survey(path, tmp / "s", n_features=n_features)
        found = listed(source, tmp)
    assert source.n_features == len(terms) + (more or 0)
    assert source.feature_names == ([] if more else terms)
    expected = [
        (groups.index(name.split("/")[0]) + 1, {terms.index(term): n for term, n in count.items()})
        for name, count in zip(order, counts, strict=True)
    ]
    assert found == expected


@pytest.mark.parametrize("kind", ["tar", "gztar", "bztar", "xztar"])
def test_documents__from_a_folder_and_its_archive__train_first_and_its_terms_only(kind, tmp_path):
    folder = make_folder(tmp_path / "news", NEWS)
    # one folder around them all would be one level too many
    deep = shutil.make_archive(str(tmp_path / "deep"), kind, tmp_path, "news")
    with pytest.raises(WrongInput, match="too deep"):
        survey(Path(deep), tmp_path / "s")
    for path in (folder, Path(shutil.make_archive(str(tmp_path / "archive"), kind, folder, "."))):
        source = survey(path, tmp_path / "s")
        rows = [(1, {0: 1, 2: 2}), (2, {1: 1, 2: 1}), (2, {}), (2, {})]
        assert (source.feature_names, listed(source, tmp_path)) == (["café", "one", "two"], rows)
        assert "labels 1 to 2: a, b" in source.done


def test_documents__origin_of_a_folder_changes_with_a_name_and_with_a_text(tmp_path):
    files = [
        {"a/1": b"word", "a/2": b"two"},
        {"a/1": b"word", "a/3": b"two"},
        {"a/1": b"wordt", "a/2": b"wo"},
    ]
    folders = [make_folder(tmp_path / str(k) / "x", some) for k, some in enumerate(files)]
    origins = [survey(folder, tmp_path / "s").origin for folder in folders]
    assert [survey(folder, tmp_path / "t").origin for folder in folders] == origins
    assert len({str(origin) for origin in origins}) == 3


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({}, {}, "no documents; they are files in folders"),
        ({"a/1": b"a b c 1 - 2\n"}, {}, "no document has a word of two letters; "),
        ({"a/1": b"one two"}, {"n_features": 1}, "2 terms, more than --n-features 1"),
    ],
)
def test_documents__refuses_other_trees_by_name(files, options, message, archived, tmp_path):
    archive, folder = tmp_path / "news.tar.gz", tmp_path / "news"
    path = put(archive, tar_of(files, "w:gz")) if archived else make_folder(folder, files)
    with pytest.raises(WrongInput, match=re.escape(message)) as refusal:
        survey(path, tmp_path / "s", **options)
    assert str(refusal.value).startswith(str(path))


STRAYS = {
    ".git": "hidden",
    "README": "at the top level",
    "a/.DS_Store": "hidden",
    "b/large": f"{1 + MOST:,} bytes, more than the {MOST:,} that a document may have",
    "b/c/d/1": "too deep",
    "b/c/2": "most are <group>/<id>",
}


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("strays", [list(STRAYS), list(STRAYS)[:1], list(STRAYS)[-1:]], ids=len)
def test_documents__names_all_strays_at_once(strays, archived, tmp_path):
    texts = {"a/1": b"one", "b/1": b"two"}
    for name in strays:
        texts |= {".git/x/y/1": b"", ".git/2": b""} if name == ".git" else {name: b"some"}
    if "b/large" in texts:
        texts["b/large"] = bytes(1 + MOST)
    archive, folder = tmp_path / "news.tar", tmp_path / "news"
    path = put(archive, tar_of(texts)) if archived else make_folder(folder, texts)
    with pytest.raises(WrongInput, match=r"move or remove '[^\n]*\)$") as refusal:
        survey(path, tmp_path / "s")
    told = dict(re.findall(r"'([^']+)' \((.*?)\)(?:, |$)", str(refusal.value)))
    assert sorted(told) == sorted(strays)
    assert [name for name, why in told.items() if STRAYS[name] not in why] == []


def test_documents__counts_the_strays_and_names_a_hundred(tmp_path):
    folder = make_folder(tmp_path / "news", {f"{k}.txt": b"" for k in range(103)})
    with pytest.raises(WrongInput, match=r"news: 103 of its files are .*'96\.txt' \([^']*$"):
        survey(folder, tmp_path / "s")


def test_documents__refuses_a_pipe_and_an_unknown_section(tmp_path):
    folder = make_folder(tmp_path / "news", {"a/1": b"word"})
    with pytest.raises(WrongInput, match=r"--strip header: .*did you mean 'headers'"):
        survey(folder, tmp_path / "s", strip=("header",))
    os.mkfifo(folder / "a" / "2")
    with pytest.raises(WrongInput, match=r"'a/2' \(not a plain file\)"):
        survey(folder, tmp_path / "s")


NO_ARCHIVE = b"1 1:2\n" * 200
DAMAGED_HEADER = bytearray(tar_of({"a/1": b"word", "a/2": b"word"}))
DAMAGED_HEADER[1024 + 3] ^= 1  # where tarfile would end quietly


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.txt", NO_ARCHIVE, "no tar archive"),
        ("x.tar", NO_ARCHIVE, "no tar archive"),
        ("x.tar.xz", NO_ARCHIVE, "damaged after its beginning, or no tar archive"),
        ("x.tar.gz", NO_ARCHIVE, "damaged after its beginning, or no tar archive"),
        ("x.tar.bz2", NO_ARCHIVE, "damaged after its beginning, or no tar archive"),
        ("x.tar", DAMAGED_HEADER, "cut short or damaged after a/1"),
        *(
            ("x.tar", tar_of(files, kind=kind), message)
            for files, kind, message in (
                ({"../a/1": b"word"}, tarfile.REGTYPE, "'../a/1': a name that points outside"),
                ({"a/../../1": b"word"}, tarfile.REGTYPE, "'a/../../1': a name that points outs"),
                ({"/a/1": b"word"}, tarfile.REGTYPE, "'/a/1': a name that points outside"),
                ({"a/1": b""}, tarfile.SYMTYPE, "'a/1' (not a plain file)"),
                ({"a/1": b""}, tarfile.LNKTYPE, "'a/1' (not a plain file)"),
                ({"a/1": b""}, tarfile.CHRTYPE, "'a/1' (not a plain file)"),
                ({"a/1": b"word", "./a/1": b"other"}, tarfile.REGTYPE, "a/1 occurs twice"),
                ({"a\udcff/1": b"word"}, tarfile.REGTYPE, "(the name is not UTF-8)"),
            )
        ),
    ],
)
def test_documents__refuses_what_is_no_archive_or_has_members_that_are_not_plain_files_below(
    name, content, message, tmp_path
):
    path = put(tmp_path / name, content)
    with pytest.raises(WrongInput, match=f"{name}[:,] .*{re.escape(message)}"):
        survey(path, tmp_path / "s")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_documents__refuses_an_archive_cut_anywhere(mode, tmp_path):
    files = {f"a/{k}": np.random.default_rng(0).bytes(300 + 212 * k) for k in range(4)}
    whole = tar_of(files, mode)
    path = tmp_path / f"x.tar{mode[1:].replace(':', '.')}"
    ends = (  # up to 5120, the rest of a plain archive is zeros
        [0, 100, 512, 1024, 1536, 2048, 3000, 5120]
        if mode == "w"
        else [0, 1, *range(20, len(whole), 397), len(whole) - 1]
    )
    for end in ends:
        path.write_bytes(whole[:end])
        with pytest.raises(WrongInput, match=r"x\.tar.*cut short or damaged.*fetch the file again"):
            survey(path, tmp_path / "s")
    assert len(listed(survey(put(path, whole), tmp_path / "s"), tmp_path)) == 4


@pytest.mark.long
@pytest.mark.data
def test_documents__20news_gives_exactly_the_rows_of_the_libsvm_file(data_folder, tmp_path):
    files, strip = data_folder / "20news", ("headers", "footers", "quotes")
    documents = {"format": "documents", "strip": strip}
    mine = prepare_file(tmp_path / "a", "x", files / "20news-bydate.tar.xz", **documents)
    theirs = prepare_file(tmp_path / "b", "x", files / "20news_bow_counts.svm.xz")
    assert (mine.n_features, mine.n_rows) == (101_631, 18_846)
    assert mine.dataset_hash == theirs.dataset_hash
