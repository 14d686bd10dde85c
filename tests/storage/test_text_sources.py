"""Text as a source of rows: whatever the blocks, the compression and the way of parsing, the rows
are the same; what is wrong is refused with its line; folders and archives of documents.
"""

import csv
import os
import random
import re
import shutil
import tarfile
import tempfile
from collections import Counter
from contextlib import suppress
from itertools import islice
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from koco_stream import WrongInput
from koco_stream.io.files import file_hash
from storage.preparing.prepare import prepare_file
from storage.sources.documents import MOST_DOCUMENT_BYTES as MOST, documents_source
from storage.sources.reading import FORMATS, source_of
from storage.sources.source import MISSING_CHOICES, Reading, concatenated
from storage.sources.text.source import DECLINED, checked_lines, text_of
from tests.helpers.malformed import MALFORMED, PACKED, ROWS, put, tar_of
from tests.helpers.refusal import refusal
from tests.helpers.tables import listed
from tests.helpers.wire import as_on_a_worker


def read(paths, scratch, block_bytes=1 << 24, **options):
    """The source, surveyed, and its rows as one piece."""
    source = source_of(paths, Reading(**options), block_bytes).surveyed(map, scratch)
    source = as_on_a_worker(source)
    named = list(source.pieces(scratch))
    n_bytes = sum(source.piece_bytes(piece) for piece in named)
    assert n_bytes == source.n_bytes == sum(path.stat().st_size for path in paths)
    rows = concatenated([source.read(piece) for piece in named])
    for piece in named:
        source.release(piece)
    return source, rows


def bits(rows):
    """What rows consist of, arrays by their types and bytes."""
    return {
        name: (value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else value
        for name, value in vars(rows).items()
    }


def checked_fast(source, text):
    """The fast way's rows, if it has some: the slow way's, to the bit. If that refuses, it has
    none.
    """
    fast = None
    with suppress(*DECLINED):
        fast = source.fast(text)
    try:
        slow = source.slow(checked_lines(Path("a"), text.split(b"\n"), 1), Path("a"))
    except WrongInput:
        assert fast is None, text
        return None
    assert fast is None or bits(fast) == bits(slow), text
    return fast


LEGAL = {
    "libsvm": b"+1 1:0.5 3:-2e-3\n-1\t2:1 \n1\n# note\n\n2.5  1:1 # why\n-1 7:0 8:1.\n",
    "vw": b"1 |f 0:0.5 2:2\n-1 |f 3 1:2 1:1\n1 |f\n1 'tag |f 4:1\n",
    "csv": b'# "id","x","y"\n1,2,3\n\n4, "5",6\n7,8e-1,"-9"\n0,+.5,1.\n',
    "space": b"-1 5\t 6\n 1  7 8 \n\n1 0 -0\n",
}
PLAIN = {
    "libsvm": b"+1 1:0.5 3:-2e-3\n-1 2:1\n1\n2.5 1:1 2147483647:1\n-1 7:0 8:1.\n",
    "vw": b"1 |f 0:0.5 2:2\n-1 |f 3:7\n1 |f\n-0.0 |f 4:1e-320\n",
    "csv": b'1,2,3\n4, 5,6\n"7",8e-1,"-9"\n0,+.5,1.\n',
    "space": b"-1 5\t 6\n 1  7 8 \n1 0 -0\n",
}


@pytest.mark.parametrize("form", LEGAL)
@pytest.mark.parametrize("ends", ["unix", "windows", "no last end", "marked"])
def test_blocks__cut_anywhere_give_the_same_rows(form, ends, tmp_path):
    text = LEGAL[form]
    text = {
        "windows": text.replace(b"\n", b"\r\n"),
        "no last end": text[:-1],
        "marked": b"\xef\xbb\xbf" + text,
    }.get(ends, text)
    path = put(tmp_path / "a", text)
    whole = read([path], tmp_path, format=form)[1]
    assert whole.n_rows >= 3
    assert bits(read([put(tmp_path / "b", LEGAL[form])], tmp_path, format=form)[1]) == bits(whole)
    for block_bytes in range(1, len(text) + 2):
        source, rows = read([path], tmp_path, block_bytes, format=form)
        assert bits(rows) == bits(whole)
        assert len(list(source.pieces(tmp_path))) <= -(-len(text) // block_bytes)


def test_unpacked_blocks__are_bounded_and_hold_whole_lines(tmp_path):
    source = source_of([put(tmp_path / "a.svm.gz", PACKED[".gz"](ROWS))], block_bytes=1 << 16)
    seen = [b""]
    for block in source.pieces(tmp_path):
        assert block.line == 1 + b"".join(seen).count(b"\n")
        # made when it is asked for
        assert [p for p in tmp_path.iterdir() if p.suffix == ".txt"] == [block.unpacked]
        seen.append(block.unpacked.read_bytes())
        source.release(block)
    assert b"".join(seen) == ROWS
    assert all(len(text) <= 2 << 16 and text.endswith(b"\n") for text in seen[1:])


MISSED = b'1,?,3\n4, NA,6\n"7",nan,"-9"\nNaN,,5\nNone, n/a,1\n2,8,1\n'


@pytest.mark.parametrize(
    ("form", "text", "options"),
    [
        *((form, PLAIN[form], {}) for form in PLAIN),
        *((form, PLAIN[form].replace(b"\n", b"\r\n"), {}) for form in PLAIN),
        ("libsvm", PLAIN["libsvm"], {"labels": "+1=5,-1=6,2.5=7"}),
        ("vw", PLAIN["vw"], {"labels": "1=2,-1=3,0=4"}),
        ("csv", PLAIN["csv"], {"labels": "3=1,6=2,-9=3,1=4"}),
        # the usual marks of missing values
        *(
            ("csv", text.replace(b",", separator), {"header": False, "missing": missing})
            for missing, text in (("mean", MISSED), ("drop", MISSED.replace(b"5", b"null")))
            for separator in (b",", b";", b"\t")
        ),
    ],
)
def test_plain_text__is_read_fast_and_the_same(form, text, options, tmp_path):
    source = source_of([put(tmp_path / "a", text)], Reading(format=form, **options))
    rows = checked_fast(source, text)
    assert "labels" not in options or len(set(rows.labels)) > 2
    assert np.isnan(rows.values).sum() == (7 if "missing" in options else 0)


@pytest.mark.parametrize("blocks", [1, 40])
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_file__is_refused_with_its_line(case, blocks, tmp_path, monkeypatch):
    monkeypatch.setattr("storage.sources.roles.MOST_TEXTS", 3)
    name, content, options, message = MALFORMED[case]
    path = put(tmp_path / name, content)
    refused = refusal(
        f"(?s){message}", read, [path], tmp_path, 1 + len(content) // blocks, **options
    )
    assert str(path) in refused


@pytest.mark.parametrize("suffix", [suffix for suffix in PACKED if suffix])
def test_archive_cut_anywhere__is_refused_and_not_read_short(suffix, tmp_path):
    whole = PACKED[suffix](ROWS[:3000])
    for length in range(1, len(whole), 1 + len(whole) // 60):
        path = put(tmp_path / f"a.svm{suffix}", whole[:length])
        refusal("cut short or damaged after line", read, [path], tmp_path, 100)


def test_what_is_no_file__is_refused_and_one_that_cannot_be_read_is_no_fault_of_the_input(tmp_path):
    (tmp_path / "link.svm").symlink_to(tmp_path / "nowhere.svm")
    source = source_of([put(tmp_path / "a.svm.gz", PACKED[".gz"](b"1 1:1\n"))])
    (tmp_path / "a.svm.gz").unlink()
    (tmp_path / "a.svm.gz").mkdir()
    for name in ("a.svm.gz", "nowhere.svm", "link.svm"):
        refusal(r"no such file, .*give the source with --from FILE", source_of, [tmp_path / name])
    refusal(None, list, source.pieces(tmp_path), by=IsADirectoryError)


@pytest.mark.parametrize("block_bytes", [1, 3, 100, 1 << 24])
@pytest.mark.parametrize(
    ("texts", "options", "expected"),
    [
        pytest.param(
            [b"x,y,z\nred,1,2\n ?,0,3\n", b'x,y,z\n"blue, dark",5,1\nred,1,0\n'],
            {"one_hot": True, "drop": ("z",), "target": "y"},
            {
                "n_features": 3,
                "feature_names": ["x=?", "x=blue, dark", "x=red"],
                "done": ("left out: column 'z'", "one-hot, values in sorted order: column 'x' (3)"),
                "labels": [1, 0, 5, 1],
                "indptr": [0, 1, 2, 3, 4],
                "indices": [2, 0, 1, 2],
                "values": [1] * 4,
            },
            id="sorted texts of all files",
        ),
        pytest.param(
            [b"# x, y\n1,2\n", b"\nx,y\n3,4\n", b"5,6\n"],
            {},
            {"feature_names": ["x"], "labels": [2, 4, 6], "values": [1, 3, 5]},
            id="columns are those of the first file",
        ),
        pytest.param(
            [b"1 2:4\n", b"1 1:1\n-1 3:1\n"],
            {"format": "libsvm", "n_features": 5},
            {
                "n_features": 5,
                "labels": [1, 1, -1],
                "indptr": [0, 1, 2, 3],
                "indices": [1, 0, 2],
                "values": [4, 1, 1],
            },
            id="rows in the order of the files",
        ),
        pytest.param(
            [b"#x,1\n# y,2\n"],
            {"format": "csv", "one_hot": True, "header": False},
            {"feature_names": ["column 1=# y", "column 1=#x"], "indices": [1, 0]},
            id="a comment's mark stays in a row's text where no names are said to be",
        ),
    ],
)
def test_several_files__are_one_source(texts, options, expected, block_bytes, tmp_path):
    paths = [put(tmp_path / f"{k}.csv", text) for k, text in enumerate(texts)]
    source, rows = read(paths, tmp_path, block_bytes, **options)
    arrays = {name: value.tolist() for name, value in vars(rows).items() if name != "n_dropped"}
    found = {**vars(source), **arrays}
    assert {name: found[name] for name in expected} == expected
    assert source.origin["files"] == [
        {"file": path.name, "sha256": file_hash(path)} for path in paths
    ]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_archive_of_many_members__is_read_whole(suffix, tmp_path):
    streams = [PACKED[suffix](text) for text in (b"1 1:2\n1 2", b":3\n", b"", ROWS)]
    padding = b"\0" * 8 if suffix in (".gz", ".xz") else b""
    path = put(tmp_path / f"a.svm{suffix}", padding.join(streams) + padding)
    plain = put(tmp_path / "a.svm", b"1 1:2\n1 2:3\n" + ROWS)
    assert bits(read([path], tmp_path, 5000)[1]) == bits(read([plain], tmp_path, 5000)[1])


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        "20news/20news_bow_counts.svm.xz",
        "rcv1/rcv1_small.dat.xz",
        "slice/slice_localization_data.first682.csv.xz",
    ],
)
def test_real_text__is_read_the_fast_way_and_the_same(name, data_folder, tmp_path):
    source = source_of([data_folder / name], block_bytes=1 << 20)
    for block in islice(source.pieces(tmp_path), 0, None, 4):
        assert checked_fast(source, text_of(block)) is not None


FIRST = {"libsvm": b"1 1:1\n", "vw": b"1 |f 1:1\n", "csv": b"1,1,1\n", "space": b"1 1 1\n"}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("libsvm", b"1 1:1\n1 2:1|3:1\n"),
        ("libsvm", b"1 1:\n"),
        ("libsvm", b"1 :2 3:1\n"),
        ("libsvm", b"\n1 1:1\n"),
        ("vw", b"1 |f 1:1\n1 3:4 |f 5:6\n"),
        ("vw", b"1 |f 1:1\n1 |f 2:1 |f 3:1\n1 4:4\n"),
        ("vw", b"1 |f 1:1\n1 |f 2:1 |f 3:1\n1|4:4\n"),
        ("vw", b"1 |f 1:1\n1|4:4\n"),
        ("vw", b"1 |f 1:1\n |f 4:4\n"),
        ("csv", b"a\0,1,1\n"),
        ("csv", b"\xff,1,1\n"),
        ("csv", b'"a"b,1,1\n'),
        ("csv", b'a"b",1,1\n'),
        ("csv", b'"a,1",1\n'),
        ("csv", b'"a,1",1,1\n'),
        ("csv", b'"a""b",1,1\n'),
        ("csv", b'"a\n",1,1\n'),
        ("csv", b'a,"1\n'),
        ("csv", b"\xa0a\x1c, 1\t,1\n"),
        ("space", b"a\x1cb 1\n"),
        ("space", b"a\x1cb 1 1\n"),
        ("space", b"a\xc2\xa0b 1\n"),
        ("space", b"a\xc2\xa0b 1 1\n"),
        ("space", b"a 1\x0c1\n"),
    ],
)
def test_what_the_fast_reader_forgives__is_left_to_the_slow_one(form, text, tmp_path):
    first = FIRST[form].replace(b"1", b"a", 1) if form in ("csv", "space") else FIRST[form]
    options = {"header": False, "one_hot": True} if form in ("csv", "space") else {}
    path = put(tmp_path / "a", first)
    assert checked_fast(source_of([path], Reading(format=form, **options)), text) is None
    other_rule = source_of([path], Reading(format=form, labels="8=1", **options))
    assert checked_fast(other_rule, PLAIN[form]) is None


# Legal files with a few bytes changed at random
# --------------------------------------------------------------------------------------------------


TEXT = {
    "libsvm": (
        b"+1 1:0.5 3:-2e-3 12:1e5\n-1 2:1 7:.25\n1\n# note\n2.5 1:1 10:3.\n-1 7:0 8:1.75 # why\n1"
        b" 1:-0.1 2:22 3:333 4:4e44\n"
    ),
    "vw": b"1 |f 0:0.5 2:2 30:1e-7\n-1 |f 3 1:2 1:1\n1 |f\n1 'tag |f 4:1 5:.5\n-2.5 |f 1:1 2:2\n",
    "csv": b'1,2,3.5\n4, "5",-6\n\n7,8e-1,"-9"\n0,+.5,1.\n1,22,333\n1e5,2,4\n',
    "space": b"-1 5\t 6\n 1  7 8.5 \n\n1 0 -0\n+2 .5 1e5\n10 200 3000\n",
}
SPECIAL = [
    b"\n",
    b" ",
    b":",
    b",",
    b'"',
    b"#",
    b"|",
    b"\r",
    b"\0",
    b"-",
    b"+",
    b"e",
    b"_",
    b"x",
    b"\t",
    b"\xef\xbb\xbf",
    b"\xff",
    b"nan",
    b"9" * 20,
]
# in the place of a whole field
FIELDS = [
    *b"+1 -0 1. .5 -.5e3 5E-3 007 1e+5 1e-999 4.9e-324 2.4703282292062328e-324 1e999 -inf".split(),
    *b"Infinity 0x1 0x2 1_0 1e --1 +-1 1d5 \xc3\xa9 ? NA n/A -NaN +nan nan(1) NULL nOne".split(),
    *b"#N/A 01 1.0 qid 2147483647 2147483648 |f |f:2 |7 0".split(),
    *(
        b"\xef\xbb\xbf1",
        b"",
        b" ?",
        b"1 0",
        b'"1"',
        b"\r\n",
        b" # c\n",
        b"\x0b\n",
        b"\x0c",
        b"\x1c",
        b"\xa0",
        b"a ",
    ),
]


def mutated(text, draw):
    """The text after one or two changes: bytes replaced, inserted or left out, slices copied
    elsewhere.
    """
    for _ in range(draw.randint(1, 2)):
        at, to = sorted(draw.randint(0, len(text)) for _ in range(2))
        digit, byte = b"%d" % draw.randrange(10), bytes([draw.randrange(256)])
        piece = draw.choice(
            [digit, digit, byte, draw.choice(SPECIAL), text[at : at + draw.randint(0, 9)]]
        )
        text = draw.choice(
            [
                text[:at] + piece + text[at + len(piece) :],
                text[:at] + piece + text[at:],
                text[:at] + text[at + draw.randint(1, 9) :],
                text[:at] + text[at:to] + text[at:],
            ]
        )
    return text


def as_python_reads(text, source):
    """[(label, {feature number: value})] by the plainest means; zeros left out of sparse rows."""
    text = text.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if source.format in ("csv", "space"):
        lines = lines[sum(file.line - 1 for file in source.files) :]
        read = csv.reader(lines, skipinitialspace=True)
        rows = map(str.split, lines) if source.format == "space" else read
        numbers = [[float(text) for text in row] for row in rows if "".join(row).strip()]
        return [(row[-1], dict(enumerate(row[:-1]))) for row in numbers]
    found = []
    for line in lines:
        if source.format == "libsvm":
            head, *features = line.split("#")[0].split() or [""]
        else:
            head, _, body = line.partition("|")
            features = body.split()[not body[:1].isspace() :]
        if head.strip():
            row = Counter()
            for number, _, value in (feature.partition(":") for feature in features):
                row[int(number) - source.first] += float(value or 1)
            found.append((float(head.split()[0]), {k: v for k, v in row.items() if v}))
    return found


def rows_or_none(path, block_bytes, **reading):
    """The source and its rows as we read them, which leaves nothing behind; None for `WrongInput`,
    which names file and line. Nothing else may be raised.
    """
    scratch = Path(tempfile.mkdtemp(dir=path.parent))
    try:
        source = source_of([path], Reading(**reading), block_bytes).surveyed(map, scratch)
        rows = listed(source, scratch)
    except WrongInput as error:
        lines = str(error).split("\n")
        told = [line[2:] for line in lines if line.startswith("  ")] or lines[:1]
        assert all(message.startswith(str(path)) for message in told), path.read_bytes()
        # the line, unless the file as a whole is wrong
        line = r"line \d+|holds no rows|two columns are called"
        assert any(re.search(line, message) for message in told), (path.read_bytes(), told)
        return None
    assert list(scratch.iterdir()) == []
    return source, rows


def some_options(form, draw):
    """Some options of reading a file of this format."""
    options = {
        "format": form,
        "labels": draw.choice([None, None, "1=2,0=1,-0.5=3,007=7", "1=1,1.0=2,0=3"]),
    }
    if form not in ("csv", "space"):
        indices = {"zero_based": draw.random() < 0.5, "n_features": draw.choice([None, None, 40])}
        return options | indices
    return options | {
        "header": False,
        "one_hot": draw.random() < 0.5,
        "missing": draw.choice([None, *MISSING_CHOICES]),
        "categorical": draw.choice([(), (), ("2",), ("3",), ("2", "3")]),
        "numeric": draw.choice([(), ("1",)]),
    }


@pytest.mark.parametrize("form", FORMATS[:4])
def test_changed_text__is_read_fast_as_slowly_or_not_at_all(form, tmp_path):
    draw, fast = random.Random(form), 0
    for _ in range(2000):
        options, separator = some_options(form, draw), draw.choice([b",", b";", b"\t"])
        first, text = FIRST[form], PLAIN[form]
        fields = draw.sample([*re.finditer(rb"[^\s,:|]+", text)], draw.randint(0, 2))
        for field in sorted(fields, key=re.Match.start, reverse=True):
            piece = draw.choice([*FIELDS, b"%.25f" % draw.uniform(-1000, 1000)])
            text = text[: field.start()] + piece + text[field.end() :]
        text = mutated(text, draw) if draw.random() < 0.3 else text
        # its first column holds texts then
        first = first.replace(b"1", b"a", 1) if options.get("one_hot") else first
        if form == "csv":
            first, text = (one.replace(b",", separator) for one in (first, text))
        path = put(tmp_path / "a", first)
        fast += checked_fast(source_of([path], Reading(**options)), text) is not None
    assert fast > 50


@pytest.mark.parametrize("form", FORMATS[:4])
def test_changed_text__is_read_as_python_reads_it_or_refused_with_its_place(form, tmp_path):
    draw, refused = random.Random(form), 0
    for _ in range(250):
        text, suffix = mutated(TEXT[form], draw), draw.choice(["", "", "", *PACKED])
        path = put(tmp_path / f"a{suffix}", PACKED[suffix](text))
        told = draw.choice([None, form, form, form])
        read = rows_or_none(path, draw.choice([1 << 20, 64, 7, 1]), format=told)
        refused += read is None
        if read is not None:
            source, found = read
            texts = source.choice.texts if form in ("csv", "space") else source.named
            assert texts or found == as_python_reads(text, source), text
            assert all(np.isfinite([label, *row.values()]).all() for label, row in found), text
    assert 30 < refused < 225


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
        refusal("no document has a word", survey, path, tmp / "s")
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
    refusal("too deep", survey, Path(deep), tmp_path / "s")
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
        (
            {f"{k:03}.txt": b"" for k in range(103)},
            {},
            r": 103 of its files are .*'099\.txt' \([^']*$",
        ),
        ({"a/1": b"a b c 1 - 2\n"}, {}, "no document has a word of two letters; "),
        ({"a/1": b"one two"}, {"n_features": 1}, "2 terms, more than --n-features 1"),
    ],
)
def test_documents__refuses_other_trees_by_name(files, options, message, archived, tmp_path):
    archive, folder = tmp_path / "news.tar.gz", tmp_path / "news"
    path = put(archive, tar_of(files, "w:gz")) if archived else make_folder(folder, files)
    assert refusal(message, survey, path, tmp_path / "s", **options).startswith(str(path))


STRAYS = {
    ".git": "hidden",
    "README": "at the top level",
    "a/.DS_Store": "hidden",
    "b/large": f"{1 + MOST:,} bytes, more than the {MOST:,} that a document may have",
    "b/c/d/1": "too deep",
    "b/c/2": "most are <group>/<id>",
}
STRAY_FILES = {".git": {".git/x/y/1": b"", ".git/2": b""}, "b/large": {"b/large": bytes(1 + MOST)}}


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("strays", [list(STRAYS), list(STRAYS)[:1], list(STRAYS)[-1:]], ids=len)
def test_documents__names_all_strays_at_once(strays, archived, tmp_path):
    texts = {"a/1": b"one", "b/1": b"two"}
    for name in strays:
        texts |= STRAY_FILES.get(name, {name: b"some"})
    archive, folder = tmp_path / "news.tar", tmp_path / "news"
    path = put(archive, tar_of(texts)) if archived else make_folder(folder, texts)
    refused = refusal(r"move or remove '[^\n]*\)$", survey, path, tmp_path / "s")
    told = dict(re.findall(r"'([^']+)' \((.*?)\)(?:, |$)", refused))
    assert told == {name: STRAYS[name] for name in strays}


def test_documents__refuses_a_pipe_and_an_unknown_section(tmp_path):
    folder = make_folder(tmp_path / "news", {"a/1": b"word"})
    refusal(
        r"--strip header: .*did you mean 'headers'",
        survey,
        folder,
        tmp_path / "s",
        strip=("header",),
    )
    os.mkfifo(folder / "a" / "2")
    refusal(r"'a/2' \(not a plain file\)", survey, folder, tmp_path / "s")


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
    refusal(f"{name}[:,] .*{re.escape(message)}", survey, path, tmp_path / "s")


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
        refusal(r"x\.tar.*cut short or damaged.*fetch the file again", survey, path, tmp_path / "s")
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
