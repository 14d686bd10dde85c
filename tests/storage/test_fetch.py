"""Fetching, against a real server on this machine: nothing is asked for twice, and nothing wrong is
taken for the file.
"""

import hashlib
import http.server
import io
import json
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from contextlib import suppress

import pytest

from koco_stream import WrongInput
from koco_stream.streams.manifest import load_manifest
from storage.catalogue import entries
from storage.catalogue.entries import Address, Edition, Entry
from storage.catalogue.fetch import TRIES, Gone, WrongChecksum, fetch, record, recorded, unpack

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
        self.files = {"data.txt": CONTENT}
        self.plan: list[int | tuple[str, int]] = []
        self.asked: list[str | None] = []  # the Range of each request
        self.etag: str | None = '"1"'
        self.ranges = self.heeds_if_range = True
        self.kind = "application/octet-stream"

    def at(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        site, asked = self.server, self.headers.get("Range")
        site.asked.append(asked)
        step = site.plan.pop(0) if site.plan else ("all", len(CONTENT))
        if isinstance(step, int):
            self.send_response(step)
            self.send_header("Location", "http://example.invalid/file")  # heeded with 302
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content, begin = site.files[self.path[1:]], 0
        same = self.headers.get("If-Range") == site.etag or not site.heeds_if_range
        if asked and site.ranges and same:
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206 if begin < len(content) else 416)
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            begin = min(begin, len(content))
        else:
            self.send_response(200)
        self.send_header("Content-Type", site.kind)
        self.send_header("Content-Length", str(len(content) - begin))
        if site.etag:
            self.send_header("ETag", site.etag)
        self.end_headers()
        with suppress(ConnectionError):  # a client that has read enough hangs up
            self.wfile.write(content[begin : begin + step[1]])


@pytest.fixture
def site():
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
    thread.join()


def get(site, folder, expected=None, pause=lambda seconds: None):
    """What is fetched, without waiting."""
    path = fetch(site.at("data.txt"), expected, folder, pause=pause)
    assert path == folder / "data.txt"
    return path.read_bytes()


def left_unfinished(site, folder, size):
    """So many bytes come, then the server fails until it is given up."""
    site.plan = [("cut", size), *[500] * TRIES]
    told = (
        f"500 Internal Server Error, {TRIES} times in a row; the part that was downloaded is kept"
    )
    with pytest.raises(ConnectionError, match=told):
        get(site, folder)


@pytest.fixture
def prepare(koco, tmp_path):
    return lambda name="small": koco("prepare", name, "--replace", "--store", tmp_path / "store")


def refused(prepare, *told, name="small"):
    """Preparing is refused with these words; what it says."""
    done = prepare(name)
    assert done.exit_code == 2
    assert [words for words in told if words not in done.stderr] == [], done.stderr
    return done.stderr


def test_file__comes_whole_once_and_tells_how_far_it_is(site, tmp_path):
    told = []
    address = site.at("data.txt")
    fetch(address, sha256(CONTENT), tmp_path, lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert get(site, tmp_path) == CONTENT
    assert site.asked == [None]
    assert not list(tmp_path.glob("*.part*"))


def test_file_that_was_damaged_in_the_cache__is_fetched_again(site, tmp_path):
    get(site, tmp_path)
    (tmp_path / "data.txt").write_bytes(b"x" * len(CONTENT))
    assert get(site, tmp_path) == CONTENT
    assert site.asked == [None, None]


def test_cut_connections__go_on_where_they_were_cut(site, tmp_path):
    site.plan = [("cut", 400_000), ("cut", 1000), 500, ("cut", 0), 503]
    pauses = []
    assert get(site, tmp_path, sha256(CONTENT), pauses.append) == CONTENT
    assert site.asked == [None, "bytes=400000-", *["bytes=401000-"] * 4]
    assert pauses == [1, 1, 2, 4, 8]  # what brings nothing new waits longer and longer


OTHER, SHORTER, AS_LONG = CONTENT[::-1], CONTENT[:300_000], CONTENT[:500_000]
REST = "bytes=500000-"


@pytest.mark.parametrize(
    ("before", "after", "now", "expected", "asked"),
    [
        pytest.param({}, {}, CONTENT, None, [REST], id="the same"),
        pytest.param({"ranges": False}, {}, CONTENT, None, [REST], id="ranges are ignored"),
        pytest.param({"etag": None}, {}, CONTENT, None, [None], id="no version is said"),
        pytest.param({}, {"etag": '"2"'}, OTHER, None, [REST], id="another"),
        pytest.param({}, {"etag": '"2"'}, SHORTER, None, [REST], id="a shorter one"),
        pytest.param({}, {"etag": '"2"'}, AS_LONG, None, [REST], id="one as long as what came"),
        *(
            pytest.param(
                {"heeds_if_range": False},
                {"etag": '"2"'},
                now,
                None,
                [REST, None],
                id=f"another, If-Range is not heeded, {len(now)} bytes",
            )
            for now in (OTHER, SHORTER, AS_LONG)
        ),
    ],
)
def test_unfinished_file__is_gone_on_with_if_it_is_the_same_and_else_begun_again(
    site, tmp_path, before, after, now, expected, asked
):
    vars(site).update(before)
    left_unfinished(site, tmp_path, 500_000)
    vars(site).update(after, files={"data.txt": now}, asked=[])
    assert get(site, tmp_path, expected) == now
    assert site.asked == asked


@pytest.mark.parametrize("partial", [CONTENT + b"more", CONTENT])
def test_partial_file_that_is_the_whole_file_or_more__is_begun_again(site, tmp_path, partial):
    left_unfinished(site, tmp_path, 1000)
    (tmp_path / "data.txt.part").write_bytes(partial)
    assert get(site, tmp_path) == CONTENT


def test_two_files_put_together_unknowingly__are_found_out_and_discarded(site, tmp_path):
    left_unfinished(site, tmp_path, 500_000)
    site.files["data.txt"] = OTHER  # under the same ETag
    with pytest.raises(WrongChecksum):
        get(site, tmp_path, sha256(OTHER))
    assert get(site, tmp_path, sha256(OTHER)) == OTHER


def test_wrong_checksum__names_both_and_leaves_nothing(site, tmp_path):
    told = f"sha256 {sha256(CONTENT)}, but {'0' * 64} is expected"
    with pytest.raises(WrongChecksum, match=told):
        get(site, tmp_path, "0" * 64)
    assert {path.name for path in tmp_path.iterdir()} == {".data.txt.lock"}


@pytest.mark.parametrize(
    ("plan", "kind", "error", "told"),
    [
        (404, None, Gone, "the server says 404"),
        (410, None, Gone, "the server says 410"),
        (403, None, Gone, "the server says 403"),
        (None, "text/html; charset=utf-8", Gone, "sends a web page"),
        (302, None, WrongInput, r"example\.invalid.* only https"),
    ],
)
def test_answer_that_is_not_the_file__is_told_with_the_servers_words_and_not_asked_again(
    site, tmp_path, plan, kind, error, told
):
    site.plan, site.kind = [plan] if plan else [], kind or site.kind
    with pytest.raises(error, match=told):
        get(site, tmp_path)
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://example.invalid/x", "only https addresses can"),
        ("ftp://127.0.0.1/x", "only https addresses can"),
        ("file:///etc/passwd", "only https addresses can"),
        ("x", "only https addresses can"),
        ("https:///x", "only https addresses can"),
        ("http://[x/y", "https|not an address"),
        ("http://127.0.0.1:1/", "does not end in a file's name"),
        ("http://127.0.0.1:1/..%2f..", "does not end in a file's name"),
        ("http://127.0.0.1:1/.hidden", "does not end in a file's name"),
        ("http://127.0.0.1:1/%2e%2e", "does not end in a file's name"),
    ],
)
def test_address_that_is_not_https_or_of_no_file__is_refused(address, told, tmp_path):
    with pytest.raises(WrongInput, match=told):
        fetch(address, None, tmp_path)


def test_killed_in_the_middle__the_bytes_that_are_here_are_not_asked_for_again(site, tmp_path):
    site.plan = [("cut", 300_000)]
    code = (
        "import os, pathlib, sys; from storage.catalogue.fetch import fetch; fetch(sys.argv[1],"
        " None, pathlib.Path(sys.argv[2]), lambda n, _: n == 300_000 and os.kill(os.getpid(), 9))"
    )
    ended = subprocess.run([sys.executable, "-c", code, site.at("data.txt"), tmp_path])
    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "data.txt.part").read_bytes() == CONTENT[:300_000]
    assert get(site, tmp_path) == CONTENT
    assert site.asked == [None, "bytes=300000-"]


def archive_of(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def test_file_of_a_zip(tmp_path):
    text = b"first\nsecond\n"
    (tmp_path / "x.zip").write_bytes(archive_of(a__txt=text, b__txt=CONTENT))
    assert unpack(tmp_path / "x.zip", "a.txt", tmp_path / "a").read_bytes() == text
    rest = unpack(tmp_path / "x.zip", "a.txt", tmp_path / "a", sha256(text), skip_lines=1)
    assert rest.read_bytes() == b"second\n"
    assert {path.name for path in tmp_path.iterdir()} == {"x.zip", "a"}


@pytest.mark.parametrize(
    ("name", "expected", "told"),
    [
        ("c.txt", None, "does not have the file c.txt"),
        ("a.txt", "0" * 64, "has the sha256 [0-9a-f]{64}, but 0{64} is expected"),
    ],
)
def test_file_that_is_not_there_or_not_the_one__is_refused_and_nothing_is_written(
    tmp_path, name, expected, told
):
    (tmp_path / "x.zip").write_bytes(archive_of(a__txt=b"one\n"))
    with pytest.raises(WrongInput, match=told):
        unpack(tmp_path / "x.zip", name, tmp_path / "out", expected)
    assert {path.name for path in tmp_path.iterdir()} == {"x.zip"}


def test_archive_damaged_anywhere__is_refused_or_gives_the_same_bytes(tmp_path):
    text = b"".join(b"%d,%d\n" % (k, k * k) for k in range(300))
    whole, path, refused = archive_of(a__txt=text), tmp_path / "x.zip", 0
    for position in range(0, len(whole), 17):
        for damaged in (
            whole[:position],
            whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :],
        ):
            path.write_bytes(damaged)
            try:
                assert unpack(path, "a.txt", tmp_path / "out").read_bytes() == text
            except WrongInput:
                refused += 1
    assert refused > len(whole) // 17  # every cut, and most of the altered bytes


def test_recorded_checksum__stays_the_first_and_a_damaged_record_is_told(tmp_path):
    assert recorded(tmp_path / "store") == {}
    for address, digit in (("https://a/b", "1"), ("https://a/b", "2"), ("https://a/c", "3")):
        record(tmp_path / "store", address, digit * 64, 3)
    assert recorded(tmp_path / "store") == {"https://a/b": "1" * 64, "https://a/c": "3" * 64}
    (tmp_path / "store" / "sources.json").write_text("{")
    with pytest.raises(WrongInput, match=r"sources\.json is damaged"):
        recorded(tmp_path / "store")


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
    assert prepare().exit_code == 0
    manifest = load_manifest(tmp_path / "store", "small")
    assert (manifest.n_rows, manifest.n_features) == (100, 2)
    assert [file["file"] for file in manifest.source["files"]] == ["small", "small.t"]
    urls = {site.at("small"): sha256(ROWS), site.at("small.zip"): sha256(site.files["small.zip"])}
    assert recorded(tmp_path / "store") == urls
    assert prepare().exit_code == 0
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
    assert prepare().exit_code == 0
    before = load_manifest(tmp_path / "store", "small")
    shutil.rmtree(tmp_path / "cache")
    first, rows, site.etag = site.files[name], ROWS[:-1] + b"0\n", '"2"'
    site.files[name] = rows if name == "small" else archive_of(test__txt=b"|a banner\n" + rows)
    both = (sha256(first), sha256(site.files[name]))
    told = ("was first downloaded", "delete the address in", "sources.json", "--from")
    refused(prepare, *both, *told)
    assert load_manifest(tmp_path / "store", "small") == before
    (tmp_path / "store" / "sources.json").unlink()
    assert prepare().exit_code == 0


@pytest.mark.parametrize(
    ("content", "published", "told"),
    [
        (b"<p>welcome</p>\n", None, "neither LIBSVM, VW nor CSV: '<p>welcome</p>'"),
        (ROWS, "0" * 64, f"but {'0' * 64} is expected: the checksum is that of the published"),
    ],
    ids=["no dataset", "another checksum than the published one"],
)
def test_file_that_came_and_is_wrong__is_not_recorded(
    site, small, prepare, tmp_path, content, published, told
):
    site.files["small"] = content
    packed = Address(site.at("small.zip"), "test.txt", skip_lines=1)
    small(Address(site.at("small"), sha256=published), packed)
    refused(prepare, told)
    assert not (tmp_path / "store").exists()


def test_moved_address_and_no_network__are_told_apart(site, small, prepare):
    site.plan = [404]
    refused(
        prepare,
        "the server says 404",
        "the address has moved",
        site.at("small"),
        "(in it test.txt), without its first line",
        "--from FOLDER",
    )
    small(*[Address("http://127.0.0.1:1/small")] * 2)
    said = refused(
        prepare,
        "no connection to http://127.0.0.1:1/small",
        "small: get small and small.t",
        "koco prepare small --from FOLDER",
    )
    assert "moved" not in said


def test_entry_without_an_address__says_in_words_where_its_files_are(prepare):
    told = "mnist has no download address. mnist: get mnist_784.csv"
    refused(prepare, told, "OpenML", name="mnist")
