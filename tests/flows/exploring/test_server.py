"""The server of `koco explore`: for who has its address alone, on this machine, reading only."""

import http.client
import json
import re
import signal
import socket
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

from flows.exploring.server import Server
from storage.store import open_store
from tests.helpers.listening import listeners, loopback
from tests.helpers.many_runs import drawn_runs, many_runs, put_result_file
from tests.helpers.project import begun, wait_until
from tests.helpers.swept import koco

FILES = ("", "style.css", "page.css", "page.js", "drawing.js", "plotly.min.js")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(many_runs(tmp_path_factory.mktemp("served") / "store", 60)) as server:
        yield server


def get(server, path, method="GET", **headers):
    """Status, headers and content of the answer to one request; `path` is as it is sent."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def content_of(folder):
    """Every file below a folder: its bytes and its time of change."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_page__is_there_for_who_has_the_address(server):
    start = urlsplit(server.url).path
    for name in FILES:
        status, headers, content = get(server, start + name)
        assert (status, len(content) > 500) == (200, True), name
        policy = headers["Content-Security-Policy"]
        assert re.search(r"default-src 'none'; script-src 'self';", policy)
        assert "Access-Control-Allow-Origin" not in headers
        assert headers["Referrer-Policy"] == "no-referrer"
    status, _, content = get(server, f"{start}runs?column=learner&where={quote('learner=OjaSON')}")
    assert status == 200
    assert {row[1] for row in json.loads(content)["rows"]} == {"OjaSON"}


@pytest.mark.parametrize(
    "path", ["/", "/x/", "//", "/{cut}/runs", "/%00/", "/%C3%BC/", "/%FF/", "*"]
)
def test_request_without_the_token__is_refused(path, server):
    status, _, content = get(server, path.replace("{cut}", server.token[:-1]))
    assert status == 403
    assert server.token.encode() not in content


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),  # through a tunnel the port is another one
        ("localhost", 200),
        ("evil.example:80", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8000", 403),
        ("", 403),
    ],
)
def test_host__that_is_not_this_machine_is_refused(host, status, server):
    assert get(server, urlsplit(server.url).path + "stamp", Host=host)[0] == status


@pytest.mark.parametrize("path", ["../../pyproject.toml", "%2e%2e/cli.py", "page/page.js", "index"])
def test_other_files__are_not_served(path, server):
    assert get(server, urlsplit(server.url).path + path)[0] == 404


def test_wrong_question__is_answered_in_one_line_and_others_go_on(server):
    start = urlsplit(server.url).path
    for asked in ("runs?where=alpha%3D%3D", "runs?limit=-1", "runs?offset=1e9", "runs?sort=x"):
        status, _, content = get(server, start + asked)
        assert status == 400
        assert "\n" not in json.loads(content)["error"]
    assert get(server, start + "runs")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_store__is_only_read(method, server):
    store = server.explorer.store.path
    before = content_of(store)
    assert get(server, urlsplit(server.url).path + "runs", method)[0] == 501
    for asked in ("overview", "runs", "parallel", "stamp", "curves?run=x"):
        assert get(server, urlsplit(server.url).path + asked)[0] == 200
    assert content_of(store) == before


def test_new_runs__appear_by_themselves(tmp_path):
    store = open_store(tmp_path / "store")
    with Server(store) as server:
        start = urlsplit(server.url).path

        def answered(what):
            return json.loads(get(server, start + what)[2])

        first = answered("overview")
        assert first["runs"] == 0
        put_result_file(store, "one", drawn_runs(5, "under way", np.random.default_rng(0)))
        wait_until(lambda: answered("stamp")["stamp"] != first["stamp"], "a new stamp", between=0.1)
        assert answered("overview")["runs"] == 5


@pytest.mark.system
def test_command__prints_its_address_and_ends_at_ctrl_c_with_status_0(tmp_path):
    store = many_runs(tmp_path / "store", 20)
    with begun("explore", "--store", store, "--no-browser") as process:
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url)
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=60)
        connection.request("GET", urlsplit(url).path + "parallel")
        assert connection.getresponse().status == 200
        connection.close()
        there = listeners({process.pid})
        assert [port for address, port in there if loopback(address)] == [urlsplit(url).port]
        assert len(there) == 1
        with socket.create_connection(("127.0.0.1", urlsplit(url).port)):  # somebody is connected
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert said.splitlines()[1:] == ["koco explore: ended"]


def test_command__refuses_what_cannot_be(tmp_path):
    done = koco("explore", "--store", "none", "--no-browser", cwd=tmp_path, status=2)
    assert "there is no store" in done.stderr
    store = many_runs(tmp_path / "store", 5)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("explore", "--store", store, "--no-browser", "--port", port)
        done = koco(*words, cwd=tmp_path, status=2)
    assert f"port {port} cannot be used" in done.stderr


@pytest.mark.parametrize("display", ["", ":9"])
def test_browser__is_opened_where_there_is_a_display(display, tmp_path):
    store = many_runs(tmp_path / "store", 5)
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    more = {"DISPLAY": display, "WAYLAND_DISPLAY": "", "BROWSER": str(browser)}
    with begun("explore", "--store", store, **more) as process:
        url = process.stdout.readline().strip()
        process.stderr.readline()
        if display:
            wait_until(opened.exists, "the browser")
            assert opened.read_text().strip() == url
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert opened.exists() == bool(display)
