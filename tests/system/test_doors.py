"""Prefect's servers that are started, real ones: who has not the password gets nothing, nor does a
page of another site.
"""

import json
import os
import re
from unittest import mock

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from flows.runtime.prefect_server import ADDRESS, PASSWORD, PrefectServer, configure_prefect
from tests.helpers.project import free_port

DEPLOYMENTS = "/deployments/filter"


@pytest.fixture(scope="module", params=["one flow", "koco serve"])
def server(request, tmp_path_factory):
    """A server, with its address and password in the environment, and who asks it."""
    home = {"PREFECT_HOME": str(tmp_path_factory.mktemp("home")), ADDRESS: ""}
    with mock.patch.dict(os.environ, home):
        configure_prefect()
        server = PrefectServer(None if request.param == "one flow" else free_port())
        (server.start_for_one_flow if request.param == "one flow" else server.start)()
        server.wait()
        own = {"base_url": os.environ[ADDRESS], "auth": tuple(os.environ[PASSWORD].split(":"))}
        with server.socket, httpx.Client(**own, timeout=60.0, trust_env=False) as server.asking:
            token = server.asking.get("/csrf-token", params={"client": "me"}).json()["token"]
            server.asking.headers = {"Prefect-Csrf-Client": "me", "Prefect-Csrf-Token": token}
            yield server
            server.process.kill()
            server.process.wait()


def test_without_the_password__only_whether_the_server_is_well_is_answered(server):
    assert server.asking.post(DEPLOYMENTS, json={}).json() == []
    assert server.asking.post(DEPLOYMENTS, headers={"Prefect-Csrf-Token": ""}).status_code == 403
    paths = server.asking.get(f"{server.pages}/openapi.json").json()["paths"]
    operations = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    assert len(operations) > 150
    for auth in (None, ("koco", ""), ("koco", "koco")):
        answered = {
            (method, path)
            for method, path in operations
            if server.asking.request(
                method, re.sub(r"[{}]", "", path), json={}, auth=auth
            ).status_code
            != 401
        }
        assert answered == {("GET", "/health"), ("GET", "/ready")}


@pytest.mark.parametrize(
    "path",
    [
        *("events/in", "events/out", "logs/out", "task_runs/subscriptions/scheduled"),
        "work_pools/any/workers/connect",
    ],
)
def test_web_socket__is_closed_without_the_password_or_for_another_page(path, server):
    address = f"{os.environ[ADDRESS].replace('http', 'ws', 1)}/{path}"

    def answer(origin=None, **more):
        with connect(address, subprotocols=["prefect"], origin=origin, proxy=None) as web_socket:
            web_socket.send(json.dumps({"type": "auth", **more}))
            return json.loads(web_socket.recv(60))

    assert answer(token=os.environ[PASSWORD]) == {"type": "auth_success"}
    for wrong in ({}, {"token": None}, {"token": ""}, {"token": "koco:"}):
        with pytest.raises(ConnectionClosed):
            answer(**wrong)
    for page in ("null", "http://evil.example"):
        with pytest.raises(InvalidStatus, match="403"):
            answer(page, token=os.environ[PASSWORD])


def test_page_of_another_site__gets_nothing_even_with_the_password(server):
    own = f"localhost:{server.port}"
    cases = ((own, f"http://{own}", 200), (own, "null", 403), ("evil", f"http://{own}", 403))
    for host, origin, status in cases:
        headers = {"Host": host, "Origin": origin}
        answer = server.asking.post(DEPLOYMENTS, json={}, headers=headers)
        assert answer.status_code == status, (host, origin)


def test_one_flow_s_server__has_no_pages__and_no_password_can_be_seen(server, request):
    page = server.asking.get(server.pages, auth=None, follow_redirects=True)
    assert page.status_code == (404 if "one flow" in request.node.name else 200)
    secret = os.environ[PASSWORD].partition(":")[2]
    words = [one.info["cmdline"] or () for one in psutil.process_iter(["cmdline"])]
    assert secret not in str(words)
    assert secret not in server.log.read_text() + page.text
