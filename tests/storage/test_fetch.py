"""Fetching, against a real server on this machine: nothing is asked for twice, and nothing wrong is
taken for the file.
"""

import hashlib
import http.server
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from dataclasses import replace

import pytest
from click.testing import CliRunner

from flows.cli import koco
from koco_stream import WrongInput
from koco_stream.streams.manifest import load_manifest
from storage.catalogue import entries
from storage.catalogue.entries import Address, Edition, Entry
from storage.catalogue.fetch import (
    TRIES,
    Gone,
    Unreachable,
    WrongChecksum,
    check_address,
    fetch,
    record,
    recorded,
)
from storage.catalogue.unpack import unpack

CONTENT = bytes(range(256)) * 4096  # 1 MiB


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Site(http.server.ThreadingHTTPServer):
    """Serves `files`. `plan` says what goes wrong in the next requests: a status, ("cut", bytes) or
    ("hold", bytes); then all is well.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.plan: list[int | tuple[str, int]] = []
        self.asked: list[str | None] = []  # the Range of each request
        self.etag: str | None = '"1"'
        self.ranges = self.heeds_if_range = True
        self.kind = "application/octet-stream"
        self.released = threading.Event()

    def handle_error(self, request, client_address):
        if not isinstance(
            sys.exception(), ConnectionError
        ):  # the client went away: that is what is tested
            super().handle_error(request, client_address)

    def at(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        site = self.server
        site.asked.append(self.headers.get("Range"))
        step = site.plan.pop(0) if site.plan else None
        content = site.files.get(self.path[1:])
        if isinstance(step, int) or content is None:
            status = step if isinstance(step, int) else 404
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://example.invalid/file")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        asked, wanted = self.headers.get("Range"), self.headers.get("If-Range")
        begin = 0
        if asked and site.ranges and (wanted == site.etag or not site.heeds_if_range):
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
        what, size = step if isinstance(step, tuple) else ("all", len(content))
        self.wfile.write(content[begin : begin + size])
        if what == "hold":
            self.wfile.flush()
            site.released.wait(60)
        if what != "all":
            self.close_connection = True


@pytest.fixture
def site():
    server = Site()
    server.files["data.txt"] = CONTENT
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def nowhere():
    """An address of this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(
            ("127.0.0.1", 0)
        )  # bound and not listening: refused, and nobody else can take it
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def get(site, folder, expected=None, name="data.txt"):
    pauses = []
    path = fetch(site.at(name), expected, folder, pause=pauses.append)
    return path, pauses


def left_unfinished(site, folder, size):
    """So many bytes come, then the server fails until it is given up."""
    site.plan = [("cut", size), *[500] * TRIES]
    with pytest.raises(ConnectionError):
        get(site, folder)


def refused(tmp_path, *told, name="small"):
    """Preparing is refused with these words; what it says."""
    done = prepare(tmp_path, name)
    assert done.exit_code == 2
    assert [words for words in told if words not in done.stderr] == []
    return done.stderr


def test_file__comes_whole_once_and_tells_how_far_it_is(site, tmp_path):
    told = []
    path = fetch(
        site.at("data.txt"),
        sha256(CONTENT),
        tmp_path,
        lambda done, total: told.append((done, total)),
    )
    assert (path, path.read_bytes()) == (tmp_path / "data.txt", CONTENT)
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    fetch(site.at("data.txt"), None, tmp_path)
    assert site.asked == [None]
    assert not list(tmp_path.glob("*.part*"))


def test_file_that_was_damaged_in_the_cache__is_fetched_again(site, tmp_path):
    path, _ = get(site, tmp_path)
    path.write_bytes(b"x" * len(CONTENT))
    assert get(site, tmp_path)[0].read_bytes() == CONTENT
    assert site.asked == [None, None]


def test_cut_connections__go_on_where_they_were_cut(site, tmp_path):
    site.plan = [("cut", 400_000), ("cut", 1000), 500, ("cut", 0), 503]
    path, pauses = get(site, tmp_path, sha256(CONTENT))
    assert path.read_bytes() == CONTENT
    assert site.asked == [
        None,
        "bytes=400000-",
        "bytes=401000-",
        "bytes=401000-",
        "bytes=401000-",
        "bytes=401000-",
    ]
    assert pauses == [1, 1, 2, 4, 8]  # what brings nothing new waits longer and longer


def test_server_that_keeps_failing__is_given_up_with_what_came_kept(site, tmp_path):
    site.plan = [("cut", 1000), *[500] * TRIES]
    with pytest.raises(
        ConnectionError,
        match=rf"500 Internal Server Error, {TRIES} times in a row; what came is kept",
    ):
        get(site, tmp_path)
    assert (tmp_path / "data.txt.part").read_bytes() == CONTENT[:1000]
    assert not (tmp_path / "data.txt").exists()
    get(site, tmp_path)
    assert site.asked[-1] == "bytes=1000-"


@pytest.mark.parametrize(
    ("ranges", "etag", "asked"), [(False, '"1"', "bytes=500000-"), (True, None, None)]
)
def test_server_that_ignores_ranges_or_says_no_version__sends_the_file_from_its_beginning(
    site, tmp_path, ranges, etag, asked
):
    site.ranges, site.etag, site.plan = ranges, etag, [("cut", 500_000)]
    assert get(site, tmp_path)[0].read_bytes() == CONTENT
    assert site.asked == [None, asked]


@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("now", [CONTENT[::-1], CONTENT[:300_000], CONTENT[:500_000]])
def test_file_that_changed_in_the_middle__is_begun_again(site, tmp_path, heeds, now):
    site.heeds_if_range = heeds
    left_unfinished(site, tmp_path, 500_000)
    site.files["data.txt"], site.etag = now, '"2"'
    assert get(site, tmp_path)[0].read_bytes() == now


def test_two_files_put_together_unknowingly__are_found_out_and_begun_again(site, tmp_path):
    left_unfinished(site, tmp_path, 500_000)
    site.files["data.txt"] = CONTENT[::-1]  # under the same ETag
    assert get(site, tmp_path, sha256(CONTENT[::-1]))[0].read_bytes() == CONTENT[::-1]
    assert site.asked[-2:] == ["bytes=500000-", None]


@pytest.mark.parametrize(("part", "asked"), [(CONTENT + b"more", 2), (CONTENT, 0)])
def test_part_that_is_the_whole_file_or_more__is_taken_or_begun_again(site, tmp_path, part, asked):
    left_unfinished(site, tmp_path, 1000)
    (tmp_path / "data.txt.part").write_bytes(part)
    before = len(site.asked)
    assert get(site, tmp_path)[0].read_bytes() == CONTENT
    assert len(site.asked) - before == asked


def test_wrong_checksum__names_both_and_leaves_nothing(site, tmp_path):
    with pytest.raises(
        WrongChecksum, match=f"sha256 {sha256(CONTENT)}, and {'0' * 64} is expected"
    ):
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


def test_no_network__is_told_at_once(nowhere, tmp_path):
    pauses = []
    with pytest.raises(Unreachable, match=rf"no connection to {nowhere}/data\.txt"):
        fetch(f"{nowhere}/data.txt", None, tmp_path, pause=pauses.append)
    assert pauses == []


@pytest.mark.parametrize(
    "address",
    [
        "http://example.invalid/x",
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "x",
        "https:///x",
        "http://[x/y",
    ],
)
def test_address_that_is_not_https__is_refused(address):
    with pytest.raises(WrongInput, match=r"https|not an address"):
        check_address(address)


def test_address_without_a_files_name__is_refused(site, tmp_path):
    for name in ("", "..%2f..", ".hidden", "%2e%2e"):
        with pytest.raises(WrongInput, match="does not end in a file's name"):
            get(site, tmp_path, name=name)


def test_killed_in_the_middle__the_bytes_that_are_here_are_not_asked_for_again(site, tmp_path):
    site.plan = [("hold", 300_000)]
    here = tmp_path / "data.txt.part"
    code = (
        "import sys, pathlib; from storage.catalogue.fetch import fetch; fetch(sys.argv[1], None,"
        " pathlib.Path(sys.argv[2]), lambda *told: print(*told, flush=True))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, site.at("data.txt"), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in child.stdout:
        if line.split()[0] == "300000":
            break
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert here.read_bytes() == CONTENT[:300_000]
    assert get(site, tmp_path)[0].read_bytes() == CONTENT
    assert site.asked == [None, "bytes=300000-"]


def archive_of(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def tar_of(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for item, inside in (("other", b"before"), (name, content)):
            entry = tarfile.TarInfo(item)
            entry.size = len(inside)
            tar.addfile(entry, io.BytesIO(inside))
    return out.getvalue()


def test_member__of_a_zip_and_of_a_tar_in_a_zip(tmp_path):
    nested = tmp_path / "nested.zip"
    nested.write_bytes(
        archive_of(a__txt=b"first\nsecond\n", inner__tar__gz=tar_of("b.txt", CONTENT))
    )
    assert unpack(nested, ["a.txt"], tmp_path / "a").read_bytes() == b"first\nsecond\n"
    assert (
        unpack(
            nested, ["a.txt"], tmp_path / "a", sha256(b"first\nsecond\n"), skip_lines=1
        ).read_bytes()
        == b"second\n"
    )
    assert unpack(nested, ["inner.tar.gz", "b.txt"], tmp_path / "b").read_bytes() == CONTENT
    assert {path.name for path in tmp_path.iterdir()} == {"nested.zip", "a", "b"}


@pytest.mark.parametrize(
    ("member", "expected", "told"),
    [
        (["c.txt"], None, "does not have the file c.txt"),
        (["inner.tar.gz", "c.txt"], None, "does not have the file inner.tar.gz/c.txt"),
        (["../a.txt"], None, "not a safe name"),
        (["/a.txt"], None, "not a safe name"),
        (["a.txt"], "0" * 64, "has the sha256 [0-9a-f]{64}, and 0{64} is expected"),
        (["a.txt", "b"], None, "damaged, or not an archive"),
    ],
)
def test_member_that_is_not_there_or_not_the_one__is_refused_and_nothing_is_written(
    tmp_path, member, expected, told
):
    (tmp_path / "x.zip").write_bytes(
        archive_of(a__txt=b"one\n", inner__tar__gz=tar_of("b.txt", CONTENT))
    )
    with pytest.raises(WrongInput, match=told):
        unpack(tmp_path / "x.zip", member, tmp_path / "out", expected)
    assert {path.name for path in tmp_path.iterdir()} == {"x.zip"}


@pytest.mark.parametrize("form", ["zip", "tar.gz"])
def test_archive_damaged_anywhere__is_refused_or_gives_the_same_bytes(tmp_path, form):
    text = b"".join(b"%d,%d\n" % (k, k * k) for k in range(300))
    whole = archive_of(a__txt=text) if form == "zip" else tar_of("a.txt", text)
    path, refused = tmp_path / f"x.{form}", 0
    for place in range(0, len(whole), 17):
        for damaged in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :],
        ):
            path.write_bytes(damaged)
            try:
                assert unpack(path, ["a.txt"], tmp_path / "out").read_bytes() == text
            except WrongInput:
                refused += 1
    assert refused > len(whole) // 17  # every cut, and most of the altered bytes


def test_recorded_checksum__stays_the_first_and_a_damaged_record_is_told(tmp_path):
    assert recorded(tmp_path / "store") == {}
    record(tmp_path / "store", "https://a/b", "1" * 64, 3)
    record(tmp_path / "store", "https://a/b", "2" * 64, 4)
    record(tmp_path / "store", "https://a/c", "3" * 64, 5)
    assert recorded(tmp_path / "store") == {"https://a/b": "1" * 64, "https://a/c": "3" * 64}
    (tmp_path / "store" / "sources.json").write_text("{")
    with pytest.raises(WrongInput, match=r"sources\.json is damaged"):
        recorded(tmp_path / "store")


ROWS = b"".join(b"%d 1:%d 2:%d\n" % ((-1) ** k, k, k * k) for k in range(50))


@pytest.fixture
def small(site, tmp_path, monkeypatch):
    """A catalogue with one entry, in two files: one in an archive, after a line that is no row."""
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "cache"))
    site.files |= {"small": ROWS, "small.zip": archive_of(test__txt=b"|a banner\n" + ROWS)}
    addresses = (
        Address(site.at("small")),
        Address(site.at("small.zip"), ("test.txt",), skip_lines=1),
    )
    edition = Edition(("small", "small.t"), 100, 2, addresses=addresses)
    entry = Entry("small", "binary", "a server of this machine", (edition,))
    monkeypatch.setitem(entries.CATALOGUE, "small", entry)
    return entry


def prepare(tmp_path, name="small", store="store"):
    return CliRunner().invoke(koco, ["prepare", name, "--store", str(tmp_path / store)])


def test_prepare_without_files__fetches_them_records_their_checksums_and_asks_no_second_time(
    site, small, tmp_path
):
    done = prepare(tmp_path)
    assert done.exit_code == 0, done.output
    manifest = load_manifest(tmp_path / "store", "small")
    assert (manifest.n_rows, manifest.n_features) == (100, 2)
    assert [file["file"] for file in manifest.source["files"]] == ["small", "small.t"]
    urls = {site.at("small"): sha256(ROWS), site.at("small.zip"): sha256(site.files["small.zip"])}
    assert recorded(tmp_path / "store") == urls
    assert prepare(tmp_path).exit_code == 0
    assert len(site.asked) == 2
    listed = json.loads(
        CliRunner().invoke(koco, ["datasets", "--json", "--store", str(tmp_path / "store")]).stdout
    )
    files = next(row for row in listed if row["name"] == "small")["editions"][0]["files"]
    assert [(f["address"], f["member"], f["recorded_sha256"]) for f in files] == [
        (site.at("small"), None, sha256(ROWS)),
        (site.at("small.zip"), "test.txt", sha256(site.files["small.zip"])),
    ]


def test_address_that_gives_another_file_later__is_refused_until_the_record_is_deleted(
    site, small, tmp_path
):
    assert prepare(tmp_path).exit_code == 0
    before = load_manifest(tmp_path / "store", "small")
    shutil.rmtree(tmp_path / "cache")
    site.files["small"], site.etag = ROWS[:-1] + b"0\n", '"2"'
    refused(
        tmp_path,
        sha256(ROWS),
        sha256(site.files["small"]),
        "was first fetched",
        "delete the address in",
        "sources.json",
        "--from",
    )
    assert load_manifest(tmp_path / "store", "small") == before
    (tmp_path / "store" / "sources.json").unlink()
    assert prepare(tmp_path).exit_code == 0


def test_published_checksum_that_does_not_hold__is_refused(site, small, tmp_path, monkeypatch):
    edition = small.editions[0]
    first = replace(edition.addresses[0], sha256="0" * 64)
    monkeypatch.setitem(
        entries.CATALOGUE,
        "small",
        replace(small, editions=(replace(edition, addresses=(first, edition.addresses[1])),)),
    )
    refused(
        tmp_path, f"sha256 {sha256(ROWS)}, and {'0' * 64} is expected: that is the published file's"
    )
    assert not (tmp_path / "store").exists()


def test_file_that_came_and_is_no_dataset__is_not_recorded(site, small, tmp_path):
    site.files["small"] = b"<p>welcome</p>\n"
    refused(tmp_path)
    assert not (tmp_path / "store").exists()


def test_moved_address_failing_server_and_no_network__are_told_apart(
    site, small, nowhere, tmp_path, monkeypatch
):
    site.plan = [404]
    said = refused(
        tmp_path,
        "the server says 404",
        "the address has moved",
        site.at("small"),
        "(in it test.txt), without its first line",
        "--from FOLDER",
    )
    gone = tuple(
        replace(address, url=f"{nowhere}/small") for address in small.editions[0].addresses
    )
    monkeypatch.setitem(
        entries.CATALOGUE,
        "small",
        replace(small, editions=(replace(small.editions[0], addresses=gone),)),
    )
    said = refused(
        tmp_path,
        f"no connection to {nowhere}/small",
        "small: get small and small.t",
        "koco prepare small --from FOLDER",
    )
    assert "moved" not in said


def test_entry_without_an_address__says_in_words_where_its_files_are(tmp_path):
    told = "mnist has no address to fetch it from. mnist: get mnist_784.csv"
    refused(tmp_path, told, "OpenML", name="mnist")
