"""What Prefect keeps of a sweep, however it ends: a flow run with the sweep's name, tasks, progress
and end, on a server that is real. Who has not the server's password gets nothing, nor does a page
of another site.
"""

import json
import os
import re
import signal
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
from koco_stream.streams.manifest import dataset_path, load_manifest
from storage.results import result_files
from tests.helpers.disturbed import DisturbedSweep, prefect_server
from tests.helpers.listening import with_variable
from tests.helpers.project import PATIENCE, environment, free_ports, wait_until
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import MINUTE, koco, written

STEPS = ["prepare", "plan", "run", "collect", "report"]
SHORT = """
name = "s"
[[dataset]]
name = "real"
[[dataset]]
name = "sparse"
positive_class = 1
[[learner]]
name = "OGD"
step_size = [0.1, 1]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with prefect_server(tmp_path_factory.mktemp("server")) as address:
        yield {"PREFECT_API_URL": address}


def done(command, name, store, server, *more, status=0):
    """What `koco COMMAND` of a sweep of this name has printed and said, when it has ended so."""
    folder = store.parent
    spec = written(folder, SHORT.replace('"s"', f'"{name}"'), f"{name}.toml")
    words = (command, spec, "--store", store, "--workers", "0", "--json", *more)
    return koco(*words, cwd=folder, status=status, **server)


def recorded(server, name):
    """The one flow run of this name, the states of its tasks as they began, and its artifacts by
    type.
    """

    def found(kind, **filters):
        address = f"{server['PREFECT_API_URL']}/{kind}/filter"
        return httpx.post(address, json=filters, trust_env=False).raise_for_status().json()

    [run] = found("flow_runs", flow_runs={"name": {"any_": [name]}})
    mine = {"id": {"any_": [run["id"]]}}
    tasks = found("task_runs", flow_runs=mine, sort="EXPECTED_START_TIME_ASC")
    artifacts = {one["type"]: one for one in found("artifacts", flow_runs=mine)}
    return run, [(task["name"], task["state_type"]) for task in tasks], artifacts


def check_completed(server, name, store, printed):
    run, tasks, artifacts = recorded(server, name)
    assert run["state_type"] == "COMPLETED"
    assert run["parameters"]["store"] == str(store)
    assert tasks == [(step, "COMPLETED") for step in STEPS]
    progress, results = artifacts["progress"], artifacts["table"]
    assert (progress["key"], progress["data"]) == (f"progress-{name}", 100.0)
    assert json.loads(printed)["report"] in results["description"]
    assert {row["learner"] for row in json.loads(results["data"])} == {"OGD"}


def test_completed__has_its_tasks_progress_and_results(server, small_store):
    swept = done("sweep", "completed", small_store, server)
    assert "completed in Prefect: " in swept.stderr
    check_completed(server, "completed", small_store, swept.stdout)


def test_server_that_does_not_answer__is_named_and_the_sweep_is_done(small_store):
    nobody = {"PREFECT_API_URL": f"http://127.0.0.1:{free_ports(1)[0]}/api"}
    said = done("sweep", "unrecorded", small_store, nobody).stderr
    [line] = [line for line in said.splitlines() if line.startswith("Prefect")]
    assert line.startswith("Prefect's record of unrecorded is incomplete: ")


def test_server_of_its_own__records_the_same_and_ends(small_store, tmp_path):
    home = {"PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_API_URL": ""}
    printed = done("sweep", "alone", small_store, home, "--prefect").stdout
    assert not with_variable("PREFECT_HOME", home["PREFECT_HOME"])
    with prefect_server(tmp_path) as address:  # the next one has what the first has written
        check_completed({"PREFECT_API_URL": address}, "alone", small_store, printed)


def test_prepare_and_nightly_run__are_flow_runs_of_their_names(server, small_store, tmp_path):
    words = ("prepare", "again", "--target", "y", "--from", tmp_path / "real.csv")
    koco(*words, "--store", small_store, cwd=tmp_path, status=0, **server)
    run, tasks, _ = recorded(server, "again")
    assert (run["state_type"], tasks) == ("COMPLETED", [("prepare", "COMPLETED")])
    done("nightly", "night", small_store, server)
    run, tasks, _ = recorded(server, "night")
    assert run["state_name"] == "First"
    assert tasks == [(step, "COMPLETED") for step in ("prepare", *STEPS, "compare")]


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM])
def test_stopped__is_no_completed_flow_run(blow, server, tmp_path):
    name, store = blow.name.lower(), tmp_path / "store"
    spec = written(tmp_path, MINUTE.replace('"s"', f'"{name}"'))
    sweep = DisturbedSweep(tmp_path, [spec, "--store", store, "--workers", "1"], store, server)
    wait_until(lambda: sweep.process.poll() is not None or result_files(store), "no result file")
    os.killpg(sweep.process.pid, blow)
    assert sweep.process.wait(PATIENCE) == 1, sweep.said()
    sweep.wait_for_its_processes()
    assert "To continue:" in sweep.said()
    run, tasks, _ = recorded(server, name)
    assert run["state_type"] == "CRASHED"
    assert tasks[:2] == [("prepare", "COMPLETED"), ("plan", "COMPLETED")]


def test_failed__with_the_reason(server, small_store, tmp_path):
    shard = dataset_path(small_store, "real") / load_manifest(small_store, "real").shards[0].path
    whole = shard.read_bytes()
    shard.write_bytes(whole[:99] + bytes([whole[99] ^ 1]) + whole[100:])
    no_copies = {"KOCO_CACHE": str(tmp_path / "cache")}  # of shards that were read before
    done("sweep", "failed", small_store, server | no_copies, status=2)
    run, tasks, _ = recorded(server, "failed")
    assert run["state_type"] == "FAILED"
    assert "altered or damaged" in run["state"]["message"]
    assert ("run", "FAILED") in tasks


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
def asking_server(request, tmp_path_factory):
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
            started = PrefectServer(*free_ports(1))
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


def test_without_the_password__only_whether_the_server_is_well_is_answered(asking_server):
    assert asking_server.post(DEPLOYMENTS, json={}).json() == []
    assert asking_server.post(DEPLOYMENTS, headers={"Prefect-Csrf-Token": ""}).status_code == 403
    pages = os.environ[ADDRESS].removesuffix("/api")
    paths = asking_server.get(f"{pages}/openapi.json").json()["paths"]
    operations = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    assert len(operations) > 150
    for auth in (None, ("koco", ""), ("koco", "koco")):
        answered = {
            (method, path)
            for method, path in operations
            if asking_server.request(
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
def test_web_socket__is_closed_without_the_password(path, asking_server):
    address = f"{os.environ[ADDRESS].replace('http', 'ws', 1)}/{path}"

    def answer(**more):
        with connect(address, subprotocols=["prefect"], proxy=None) as web_socket:
            web_socket.send(json.dumps({"type": "auth", **more}))
            return json.loads(web_socket.recv(60))

    assert answer(token=os.environ[PASSWORD]) == {"type": "auth_success"}
    for wrong in ({}, {"token": None}, {"token": ""}, {"token": "koco:"}):
        refusal(None, answer, **wrong, by=ConnectionClosed)


def test_page_of_another_site__gets_nothing_even_with_the_password(asking_server):
    if not asking_server.has_pages:
        pytest.skip("has no pages")
    own = f"localhost:{asking_server.base_url.port}"
    cases = ((own, f"http://{own}", 200), (own, "null", 403), ("evil", f"http://{own}", 403))
    for host, origin, status in cases:
        answer = asking_server.post(DEPLOYMENTS, json={}, headers={"Host": host, "Origin": origin})
        assert answer.status_code == status, (host, origin)
    for page in ("null", "http://evil.example"):
        refusal(
            "403", connect, f"ws://{own}/api/events/in", origin=page, proxy=None, by=InvalidStatus
        )


def test_password__can_not_be_seen__and_an_embedded_server_has_no_pages(asking_server):
    pages = os.environ[ADDRESS].removesuffix("/api")
    page = asking_server.get(pages, auth=None, follow_redirects=True)
    assert page.status_code == (200 if asking_server.has_pages else 404)
    secret = os.environ[PASSWORD].partition(":")[2]
    words = [one.info["cmdline"] or () for one in psutil.process_iter(["cmdline"])]
    assert secret not in str(words)
    assert secret not in page.text
