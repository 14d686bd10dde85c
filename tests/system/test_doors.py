"""Prefect's servers that are started, real ones: who has not the password gets nothing, nor does a
page of another site.
"""

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from unittest import mock

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from flows.runtime.prefect_server import ADDRESS, PASSWORD, PrefectServer, configure_prefect
from tests.helpers.project import environment, free_port

DEPLOYMENTS = "/deployments/filter"


EMBEDDED = """
from flows.runtime.prefect_server import configure_prefect, start_embedded
configure_prefect()
start_embedded()
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_AUTH_STRING
with get_client(sync_client=True) as client:
    print(str(client.api_url).rstrip("/"), PREFECT_API_AUTH_STRING.value(), flush=True)
input()
"""


@pytest.fixture(scope="module", params=["embedded", "koco serve"])
def server(request, tmp_path_factory):
    """Who asks a server, with its address and password in the environment."""
    home = {"PREFECT_HOME": str(tmp_path_factory.mktemp("home")), ADDRESS: ""}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, home))
        if request.param == "embedded":
            words = [sys.executable, "-c", EMBEDDED]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            process = stack.enter_context(
                subprocess.Popen(words, text=True, env=environment(), **pipes)
            )
            stack.callback(process.kill)
            os.environ.update(
                zip((ADDRESS, PASSWORD), process.stdout.readline().split(), strict=True)
            )
        else:
            configure_prefect(serving=True)
            started = PrefectServer(free_port())
            stack.enter_context(started.socket)
            stack.callback(started.process.wait)
            stack.callback(started.process.kill)
            started.wait()
        own = {"base_url": os.environ[ADDRESS], "auth": tuple(os.environ[PASSWORD].split(":"))}
        asking = stack.enter_context(httpx.Client(**own, timeout=60.0, trust_env=False))
        token = asking.get("/csrf-token", params={"client": "me"}).json()["token"]
        asking.headers = {"Prefect-Csrf-Client": "me", "Prefect-Csrf-Token": token}
        asking.has_pages = request.param != "embedded"
        yield asking


def test_without_the_password__only_whether_the_server_is_well_is_answered(server):
    assert server.post(DEPLOYMENTS, json={}).json() == []
    assert server.post(DEPLOYMENTS, headers={"Prefect-Csrf-Token": ""}).status_code == 403
    pages = os.environ[ADDRESS].removesuffix("/api")
    paths = server.get(f"{pages}/openapi.json").json()["paths"]
    operations = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    assert len(operations) > 150
    for auth in (None, ("koco", ""), ("koco", "koco")):
        answered = {
            (method, path)
            for method, path in operations
            if server.request(method, re.sub(r"[{}]", "", path), json={}, auth=auth).status_code
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


def test_page_of_another_site__gets_nothing_even_with_the_password(server):
    if not server.has_pages:
        pytest.skip("has no pages")
    own = f"localhost:{server.base_url.port}"
    cases = ((own, f"http://{own}", 200), (own, "null", 403), ("evil", f"http://{own}", 403))
    for host, origin, status in cases:
        answer = server.post(DEPLOYMENTS, json={}, headers={"Host": host, "Origin": origin})
        assert answer.status_code == status, (host, origin)
    for page in ("null", "http://evil.example"):
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"ws://{own}/api/events/in", origin=page, proxy=None)


def test_password__can_not_be_seen__and_an_embedded_server_has_no_pages(server):
    pages = os.environ[ADDRESS].removesuffix("/api")
    page = server.get(pages, auth=None, follow_redirects=True)
    assert page.status_code == (200 if server.has_pages else 404)
    secret = os.environ[PASSWORD].partition(":")[2]
    words = [one.info["cmdline"] or () for one in psutil.process_iter(["cmdline"])]
    assert secret not in str(words)
    assert secret not in page.text
