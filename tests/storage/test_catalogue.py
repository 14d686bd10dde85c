"""The catalogue: every entry that we have the files of gives the n and d it promises. Fetching,
against a real server on this machine: nothing is asked for twice, nothing wrong is taken for the
file, and what is missing or incomplete is said.
"""

import hashlib
import http.server
import io
import json
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from koco_stream import WrongInput
from koco_stream.streams.manifest import load_manifest
from storage.catalogue import entries
from storage.catalogue.entries import (
    CATALOGUE,
    Address,
    Edition,
    Entry,
    entry_named,
    find_edition,
    remarks,
)
from storage.catalogue.fetch import (
    TRIES,
    Gone,
    WrongChecksum,
    check_address,
    fetch,
    record,
    recorded,
    unpack,
)
from storage.preparing.prepare import prepare_file
from storage.sources.source import Reading
from tests.helpers.malformed import put
from tests.helpers.refusal import outcome_of, refusal

CONTENT = bytes(range(256)) * 4096  # 1 MiB


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Site(http.server.ThreadingHTTPServer):
    """Serves `files`. `plan` says what goes wrong in the next requests, a status or ("cut", bytes);
    then all is well.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        # `asked` has the Range of each request
        vars(self).update(files={"data.txt": CONTENT}, plan=[], asked=[], etag='"1"')
        vars(self).update(ranges=True, heeds_if_range=True, kind="application/octet-stream")

    def at(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def do_GET(self):
        site, asked = self.server, self.headers.get("Range")
        site.asked.append(asked)
        step = site.plan.pop(0) if site.plan else ("all", len(CONTENT))
        if isinstance(step, int):  # the location is heeded with 302
            return self.answer(step, Location="http://example.invalid/file", Content_Length="0")
        whole, rest, status = site.files[self.path[1:]], site.files[self.path[1:]], 200
        more = {"ETag": site.etag} if site.etag else {}
        same = self.headers.get("If-Range") == site.etag or not site.heeds_if_range
        if asked and site.ranges and same:
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
            rest, status = whole[begin:], 206 if begin < len(whole) else 416
            more["Content_Range"] = f"bytes {begin}-{len(whole) - 1}/{len(whole)}"
        self.answer(status, Content_Type=site.kind, Content_Length=str(len(rest)), **more)
        with suppress(ConnectionError):  # a client that has read enough hangs up
            self.wfile.write(rest[: step[1]])


@pytest.fixture
def site():
    with ThreadPoolExecutor(1) as pool, Site() as server:
        pool.submit(server.serve_forever, 0.01)
        yield server
        server.shutdown()


def get(site, folder, expected=None, pause=lambda seconds: None):
    """What is fetched, without waiting."""
    with mock.patch("time.sleep", pause):
        path = fetch(site.at("data.txt"), expected, folder)
    assert path == folder / "data.txt"
    return path.read_bytes()


@pytest.fixture
def prepare(koco, tmp_path):
    """Prepares a dataset, which may be refused with these words; what it says then."""

    def prepared(*told, name="small"):
        words = ("prepare", name, "--replace", "--store", tmp_path / "store")
        done = koco(*words, status=2 if told else 0)
        assert [words for words in told if words not in done.stderr] == [], done.stderr
        return done.stderr

    return prepared


def test_file__comes_whole_once_unless_it_is_damaged_in_the_cache(site, tmp_path):
    told, expected = [], sha256(CONTENT)
    fetch(site.at("data.txt"), expected, tmp_path, lambda *step: told.append(step))
    assert told == sorted(told)
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert get(site, tmp_path, expected) == CONTENT
    assert site.asked == [None]
    (tmp_path / "data.txt").write_bytes(b"x" * len(CONTENT))
    assert get(site, tmp_path, expected) == CONTENT
    assert site.asked == [None, None]
    assert [path.name for path in tmp_path.iterdir()] == ["data.txt"]


def test_cut_connections__go_on_where_they_were_cut(site, tmp_path):
    site.plan = [("cut", 400_000), ("cut", 1000), 500, ("cut", 0), 503]
    pauses = []
    assert get(site, tmp_path, sha256(CONTENT), pauses.append) == CONTENT
    assert site.asked == [None, "bytes=400000-", *["bytes=401000-"] * 4]
    assert pauses == [1, 1, 2, 4, 8]  # what brings nothing new waits longer and longer


OTHER, SHORTER, AS_LONG = CONTENT[::-1], CONTENT[:300_000], CONTENT[:500_000]
REST = "bytes=500000-"


@pytest.mark.parametrize(
    ("before", "after", "now", "asked"),
    [
        pytest.param({}, {}, CONTENT, [None, REST], id="the same"),
        pytest.param({"ranges": False}, {}, CONTENT, [None, REST], id="ranges are ignored"),
        pytest.param({"etag": None}, {}, CONTENT, [None, None], id="no version is said"),
        pytest.param({}, {"etag": '"2"'}, OTHER, [None, REST], id="another"),
        pytest.param({}, {"etag": '"2"'}, SHORTER, [None, REST], id="a shorter one"),
        pytest.param({}, {"etag": '"2"'}, AS_LONG, [None, REST], id="one as long as what came"),
        *(
            pytest.param(
                {"heeds_if_range": False},
                {"etag": '"2"'},
                now,
                [None, REST, None],
                id=f"another, If-Range is not heeded, {len(now)} bytes",
            )
            for now in (OTHER, SHORTER, AS_LONG)
        ),
    ],
)
def test_cut_file__is_gone_on_with_if_it_is_the_same_and_else_begun_again(
    site, tmp_path, before, after, now, asked
):
    vars(site).update(before, plan=[("cut", 500_000)])
    changes = partial(vars(site).update, after, files={"data.txt": now})
    assert get(site, tmp_path, None, lambda _: changes()) == now
    assert site.asked == asked


def test_wrong_checksum__names_both_and_leaves_nothing(site, tmp_path):
    """Also that of two files that were put together unknowingly."""
    site.plan = [("cut", 500_000)]
    other = (sha256(OTHER), lambda _: site.files.update({"data.txt": OTHER}))  # with the same ETag
    refusal(f"but {other[0]} is expected", get, site, tmp_path, *other, by=WrongChecksum)
    assert list(tmp_path.iterdir()) == []
    assert get(site, tmp_path, *other) == OTHER


@pytest.mark.parametrize(
    ("plan", "kind", "error", "told"),
    [
        ([404], None, Gone, "the server says 404"),
        ([410], None, Gone, "the server says 410"),
        ([403], None, Gone, "the server says 403"),
        ([0], "text/html; charset=utf-8", Gone, "sends a web page"),
        ([302], None, WrongInput, r"example\.invalid.* only https"),
        (
            [500] * TRIES,
            None,
            ConnectionError,
            f"500 Internal Server Error, {TRIES} times in a row",
        ),
    ],
)
def test_answer_that_is_not_the_file__is_told_with_the_servers_words_and_not_asked_again(
    site, tmp_path, plan, kind, error, told
):
    site.plan, site.kind = [*filter(None, plan)], kind or site.kind
    refusal(told, get, site, tmp_path, by=error)
    assert len(site.asked) == len(plan)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    ["http://example.invalid/x", "ftp://127.0.0.1/x", "file:///etc/passwd", "x", "https:///x"],
)
def test_address_that_is_not_https__is_refused(address, tmp_path):
    refusal("only https addresses can", fetch, address, None, tmp_path)


def archive_of(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def test_file_of_a_zip__is_the_one_that_is_expected_or_nothing_is_written(tmp_path):
    text = b"first\nsecond\n"
    (tmp_path / "x.zip").write_bytes(archive_of(a__txt=text, b__txt=CONTENT))
    out = partial(unpack, tmp_path / "x.zip", target=tmp_path / "out")
    refusal(r"does not have the file c\.txt", out, "c.txt")
    refusal(
        r"has the sha256 [0-9a-f]{64}, but 0{64} is expected",
        out,
        "a.txt",
        expected_sha256="0" * 64,
    )
    assert {path.name for path in tmp_path.iterdir()} == {"x.zip"}
    assert out("a.txt").read_bytes() == text
    assert out("a.txt", expected_sha256=sha256(text), skip_lines=1).read_bytes() == b"second\n"
    assert {path.name for path in tmp_path.iterdir()} == {"x.zip", "out"}


def test_archive_damaged_anywhere__is_refused_or_gives_the_same_bytes(tmp_path):
    text = b"".join(b"%d,%d\n" % (k, k * k) for k in range(300))
    whole, path, refused = archive_of(a__txt=text), tmp_path / "x.zip", 0
    flipped = bytes(byte ^ 0x55 for byte in whole)
    for k in range(0, len(whole), 17):
        for damaged in (whole[:k], whole[:k] + flipped[k : k + 1] + whole[k + 1 :]):
            found, said = outcome_of(unpack, put(path, damaged), "a.txt", tmp_path / "out")
            assert said or found.read_bytes() == text
            refused += bool(said)
    assert refused > len(whole) // 17  # every cut, and most of the altered bytes


def test_recorded_checksum__stays_the_first_and_a_damaged_record_is_told(tmp_path):
    assert recorded(tmp_path / "store") == {}
    for address, digit in (("https://a/b", "1"), ("https://a/b", "2"), ("https://a/c", "3")):
        record(tmp_path / "store", address, digit * 64)
    assert recorded(tmp_path / "store") == {"https://a/b": "1" * 64, "https://a/c": "3" * 64}
    (tmp_path / "store" / "sources.json").write_text("{")
    refusal(r"sources\.json is damaged", recorded, tmp_path / "store")


ROWS = b"".join(b"%d 1:%d 2:%d\n" % ((-1) ** k, k, k * k) for k in range(50))


@pytest.fixture
def small(site, tmp_path, monkeypatch):
    """Puts an entry with these addresses into the catalogue. One is there: of two files, one in an
    archive, after a line that is no row.
    """
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "cache"))
    site.files |= {"small": ROWS, "small.zip": archive_of(test__txt=b"|a banner\n" + ROWS)}

    def at(*addresses):
        edition = Edition(("small", "small.t"), 100, 2, addresses=addresses)
        entry = Entry("small", "binary", "a server of this machine", (edition,))
        monkeypatch.setitem(entries.CATALOGUE, "small", entry)

    at(Address(site.at("small")), Address(site.at("small.zip"), "test.txt", skip_lines=1))
    return at


def test_prepare_without_files__fetches_them_records_their_checksums_and_asks_no_second_time(
    site, small, prepare, koco, tmp_path
):
    prepare()
    manifest = load_manifest(tmp_path / "store", "small")
    assert (manifest.n_rows, manifest.n_features) == (100, 2)
    assert [file["file"] for file in manifest.source["files"]] == ["small", "small.t"]
    urls = {site.at("small"): sha256(ROWS), site.at("small.zip"): sha256(site.files["small.zip"])}
    assert recorded(tmp_path / "store") == urls
    prepare()
    assert len(site.asked) == 2
    said = koco("list", "datasets", "--json", "--store", tmp_path / "store").stdout
    files = {row["name"]: row for row in json.loads(said)}["small"]["editions"][0]["files"]
    assert [(f["address"], f["path_inside"], f["recorded_sha256"]) for f in files] == [
        (site.at("small"), None, sha256(ROWS)),
        (site.at("small.zip"), "test.txt", sha256(site.files["small.zip"])),
    ]


@pytest.mark.parametrize("name", ["small", "small.zip"])
def test_address_that_gives_another_file_later__is_refused_until_the_record_is_deleted(
    name, site, small, prepare, tmp_path
):
    prepare()
    before = load_manifest(tmp_path / "store", "small")
    shutil.rmtree(tmp_path / "cache")
    first, rows, site.etag = site.files[name], ROWS[:-1] + b"0\n", '"2"'
    site.files[name] = rows if name == "small" else archive_of(test__txt=b"|a banner\n" + rows)
    told = ("if you trust the new file, delete the address in", "sources.json", "--from")
    prepare(sha256(first), sha256(site.files[name]), *told)
    assert load_manifest(tmp_path / "store", "small") == before
    (tmp_path / "store" / "sources.json").unlink()
    prepare()


@pytest.mark.parametrize(
    ("content", "published", "told"),
    [
        (b"<p>welcome</p>\n", None, "neither LIBSVM, VW nor CSV: '<p>welcome</p>'"),
        (
            ROWS,
            "0" * 64,
            f"but {'0' * 64} is expected. Nothing was prepared; pass that file with --from",
        ),
    ],
    ids=["no dataset", "another checksum than the published one"],
)
def test_file_that_came_and_is_wrong__is_not_recorded(
    site, small, prepare, tmp_path, content, published, told
):
    site.files["small"] = content
    small(Address(site.at("small"), sha256=published), Address(site.at("small.zip"), "test.txt"))
    prepare(told)
    assert not (tmp_path / "store").exists()


def test_address_that_moved_no_network_and_no_address__are_told_with_what_to_get(
    site, small, prepare, monkeypatch, tmp_path
):
    site.plan = [404]
    prepare(
        "the server says 404",
        site.at("small"),
        "(in it test.txt), without its first line",
        "--from FOLDER",
    )
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")  # nobody listens there: no way out
    said = prepare(
        "no connection to https://",
        "ijcnn1: get ijcnn1 and ijcnn1.t",
        "LIBSVM data sets",
        "/datasets/binary/ijcnn1.t.bz2",
        "koco prepare ijcnn1 --from FOLDER",
        name="ijcnn1",
    )
    assert "moved" not in said
    prepare("mnist has no download address. mnist: get mnist_784.csv", "OpenML", name="mnist")
    prepare("did you mean 'ijcnn1'?", name="ijcn1")
    assert not (tmp_path / "store").exists()


# The catalogue's entries
# --------------------------------------------------------------------------------------------------


def test_entries__have_the_options_of_prepare_addresses_over_https_and_a_positive_class_if_many():
    son = [entry for entry in CATALOGUE.values() if "SON 2016" in entry.papers]
    absent = {entry.name for entry in son if entry.absent}
    assert (len(son), absent) == (23, {"acoustic", "gisette", "real-sim"})
    partial = {"census", "covtype", "mnist", "rcv1", "cod-rna"}
    assert {entry.name for entry in son if entry.partial} == partial
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
    many = {f"{len(manifest.classes)} classes": manifest.classes}
    assert manifest.classes == {"regression": [], "binary": [-1.0, 1.0], **many}[entry.task]
    assert entry.positive_class in (None, *manifest.classes)


def test_folder__with_the_files_below_or_beside_and_options_that_come_first(tmp_path, koco):
    (tmp_path / "heart").mkdir()
    (tmp_path / "heart" / "heart_scale").write_text(
        "".join(f"{(-1) ** k} {' '.join(f'{j}:{k}' for j in range(1, 14))}\n" for k in range(270))
    )
    words = ("prepare", "heart", "--from", tmp_path, "--store", tmp_path / "store")
    assert "warning" not in koco(*words, "--layout", "sparse", status=0).stderr
    assert load_manifest(tmp_path / "store", "heart").layout == "sparse"
    listed = koco("list", "datasets", "--store", tmp_path / "store").stdout
    assert [line.split()[1:5] for line in listed.splitlines() if line.startswith("heart")] == [
        ["binary", "270", "13", "yes"]
    ]
    (tmp_path / "heart" / "heart_scale").write_text("1 1:1\n-1 13:1\n")
    assert "already has a dataset 'heart'; to replace it, add --replace" in koco(*words).stderr
    assert load_manifest(tmp_path / "store", "heart").n_rows == 270
    words = ("prepare", "heart", "--from", tmp_path / "heart", "--store", tmp_path / "store")
    told = "gave 2 rows of 13 features where the catalogue has 270 of 13"
    assert told in koco(*words, "--replace").stderr


def test_file_in_place_of_a_name_and_folder_without_all_files__are_refused(inside):
    refusal(r"koco prepare rows\.svm --from FILE needs a file", entry_named, "rows.svm")
    (inside / "rows.svm").write_text("1 1:2\n")
    refusal(r"comes first: koco prepare NAME --from rows\.svm", entry_named, "rows.svm")
    (inside / "ijcnn1.xz").write_bytes(b"")
    told = r"does not have the files of ijcnn1 \(only ijcnn1\)\. ijcnn1: get ijcnn1 and ijcnn1\.t"
    refusal(told, find_edition, entry_named("ijcnn1"), inside)
