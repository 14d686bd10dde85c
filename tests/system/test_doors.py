"""Prefect's servers that are started, real ones: who has not the password gets nothing, nor does a
page of another site; a browser with the password shows deployments and sweeps.
"""

import json
import os
import re
from contextlib import closing
from functools import partial
from unittest import mock

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from flows.runtime.prefect_server import ADDRESS, PASSWORD, PrefectServer, configure_prefect, served
from tests.helpers.listening import listeners
from tests.helpers.pages import browser
from tests.helpers.project import begun, free_port, wait_until
from tests.helpers.swept import koco

NOBODY = "00000000-0000-0000-0000-000000000000"
SOCKETS = (
    *("events/in", "events/out", "logs/out", "task_runs/subscriptions/scheduled"),
    "work_pools/any/workers/connect",
)
SWEEP = """
name = "small"
[[dataset]]
name = "ill-conditioned"
n_rows = 500
[[learner]]
name = "OGD"
"""
SCHEDULES = '[[schedule]]\nname = "yearly"\ncron = "0 0 1 1 *"\nsweep = "small.toml"\n'


class Asking(httpx.Client):
    """Requests to the API with the password, as Prefect's client makes them."""

    def __init__(self, given):
        password = tuple(given[PASSWORD].split(":"))
        super().__init__(base_url=given[ADDRESS], auth=password, timeout=60.0, trust_env=False)
        token = self.get("/csrf-token", params={"client": "me"}).raise_for_status().json()
        self.token = {"Prefect-Csrf-Client": "me", "Prefect-Csrf-Token": token["token"]}

    def __call__(self, path="/deployments/filter", method="POST", json=(), **more):
        """The answer; `more` may have other headers and another password."""
        return self.request(method, path, **{"json": dict(json), "headers": self.token, **more})


@pytest.fixture(scope="module", params=["one flow", "koco serve"])
def server(request, tmp_path_factory):
    """A server, and its address and password in the environment."""
    with mock.patch.dict(os.environ, PREFECT_HOME=str(tmp_path_factory.mktemp("home"))):
        os.environ.pop(ADDRESS, None)
        configure_prefect()
        server = PrefectServer(None if request.param == "one flow" else free_port())
        start = server.start_for_one_flow if request.param == "one flow" else server.start
        start()
        server.wait()
        yield server
        server.kill()
        server.socket.close()


@pytest.fixture(scope="module")
def asking(server):
    with closing(Asking(os.environ)) as client:
        yield client


def test_without_the_password__only_whether_the_server_is_well_is_answered(server, asking):
    assert asking().json() == []
    assert asking(headers={}).status_code == 403
    paths = httpx.get(f"{server.pages}/openapi.json", trust_env=False).json()["paths"]
    operations = [
        (re.sub(r"\{\w+\}", NOBODY, path), method.upper())
        for path, methods in paths.items()
        for method in methods
    ]
    assert len(operations) > 150
    for auth in (None, ("koco", ""), ("koco", "koco")):
        answered = {one for one in operations if asking(*one, auth=auth).status_code != 401}
        assert answered == {("/health", "GET"), ("/ready", "GET")}


@pytest.mark.parametrize("path", SOCKETS)
def test_web_socket__is_closed_without_the_password(path, server):
    address = f"{os.environ[ADDRESS].replace('http', 'ws', 1)}/{path}"

    def answer(**more):
        with connect(address, subprotocols=["prefect"], proxy=None) as web_socket:
            web_socket.send(json.dumps({"type": "auth", **more}))
            return json.loads(web_socket.recv(60))

    assert answer(token=os.environ[PASSWORD]) == {"type": "auth_success"}
    for wrong in ({}, {"token": None}, {"token": ""}, {"token": "koco:"}):
        with pytest.raises(ConnectionClosed):
            answer(**wrong)


def test_page_of_another_site__gets_nothing_even_with_the_password(server, asking):
    port = server.port
    own = f"http://localhost:{port}"
    for host, origin, status in [
        (f"localhost:{port}", own, 200),
        (f"[::1]:{port}", own, 200),
        ("evil.example", own, 403),
        (f"evil.example:{port}", f"http://evil.example:{port}", 403),
        (f"127.0.0.1:{port + 1}", own, 403),
        (f"127.0.0.1:{port}", "http://evil.example", 403),
        (f"127.0.0.1:{port}", "null", 403),
    ]:
        headers = {**asking.token, "Host": host, "Origin": origin}
        answer = asking(headers=headers)
        assert answer.status_code == status, (host, origin)
        assert answer.headers.get("Access-Control-Allow-Origin") in (None, own)
        whole = {"target": f"http://{host}/api/deployments/filter".encode()}
        assert asking(headers=headers, extensions=whole).status_code in (403, 404)


def test_one_flow_s_server__has_no_pages__and_no_password_can_be_seen(server, request):
    page = httpx.get(server.pages, trust_env=False, follow_redirects=True)
    assert page.status_code == (404 if "one flow" in request.node.name else 200)
    assert len(listeners({server.process.pid})) == 1
    words = [one.info["cmdline"] or () for one in psutil.process_iter(["cmdline"])]
    secret = os.environ[PASSWORD].partition(":")[2]
    assert not [line for line in words if secret in " ".join(line)]
    assert secret not in server.log.read_text() + page.text


def test_browser__asks_for_the_password_and_shows_deployments_and_sweeps(tmp_path):
    (tmp_path / "small.toml").write_text(SWEEP)
    (tmp_path / "schedules.toml").write_text(SCHEDULES)
    more = {"PREFECT_HOME": str(tmp_path / "prefect"), ADDRESS: "", "KOCO_NO_PREFECT": ""}
    words = ("--schedules", tmp_path / "schedules.toml", "--store", tmp_path / "store")
    with begun("serve", *words, **more), browser() as started:
        given = wait_until(served, "koco serve does not start", 120.0)
        koco("sweep", "small.toml", "--store", "other", "--workers", "0", cwd=tmp_path, **more)
        mine = {"flow_runs": {"name": {"any_": ["small"]}}}
        with closing(Asking(given)) as asking:
            wait = partial(wait_until, what="the sweep is not there", patience=60.0)
            [run] = wait(lambda: asking("/flow_runs/filter", json=mine).json())
        pages = given[ADDRESS].removesuffix("/api")
        for address in (pages, pages.replace("127.0.0.1", "localhost")):
            page = started.new_page()
            page.goto(f"{address}/deployments")
            page.locator("input[type=password]").fill(given[PASSWORD])
            page.keyboard.press("Enter")
            page.get_by_text("yearly-").first.wait_for()
            page.goto(f"{address}/runs/flow-run/{run['id']}")
            page.get_by_text("small").first.wait_for()
    assert served() == {}
