"""What Prefect keeps of a sweep, however it ends: a flow run with the sweep's name, tasks, progress
and end, on a server that is real.
"""

import json
import os
import signal

import httpx
import pytest

from koco_stream.streams.manifest import dataset_path, load_manifest
from storage.results import result_files
from tests.helpers.disturbed import MARK, DisturbedSweep, prefect_server
from tests.helpers.listening import with_variable
from tests.helpers.project import PATIENCE, free_port, wait_until
from tests.helpers.swept import MINUTE, koco

STEPS = ["prepare", "plan", "run", "collect", "report"]
PREPARE = ("prepare", "again", "--target", "y", "--from")
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


def sweeping(folder, store, name, text, server, *more):
    """A sweep of this name that has begun."""
    (folder / f"{name}.toml").write_text(text.replace('name = "s"', f'name = "{name}"'))
    words = [folder / f"{name}.toml", "--store", store, "--workers", "1", *more]
    return DisturbedSweep(folder, words, store, server)


def computing(sweep):
    """Wait until the sweep has results, and not all."""
    wait_until(
        lambda: sweep.process.poll() is not None or result_files(sweep.store), "no result file"
    )
    assert sweep.process.poll() is None, sweep.said()


def ended(sweep):
    """The exit status of a sweep of which no process is left."""
    status = sweep.process.wait(PATIENCE)
    wait_until(lambda: not with_variable(MARK, sweep.mark), "a process of the sweep is left")
    return status


def found(server, kind, **filters):
    """What the server has of this kind."""
    address = f"{server['PREFECT_API_URL']}/{kind}/filter"
    return httpx.post(address, json=filters, trust_env=False).raise_for_status().json()


def recorded(server, name):
    """The one flow run of this name, the states of its tasks as they began, and its artifacts by
    type.
    """
    [run] = found(server, "flow_runs", flow_runs={"name": {"any_": [name]}})
    mine = {"id": {"any_": [run["id"]]}}
    tasks = sorted(
        found(server, "task_runs", flow_runs=mine), key=lambda task: task["expected_start_time"]
    )
    artifacts = {one["type"]: one for one in found(server, "artifacts", flow_runs=mine)}
    states = [(task["name"], task["state_type"]) for task in tasks]
    return run, states, artifacts


def check_completed(server, name, sweep):
    run, tasks, artifacts = recorded(server, name)
    assert run["state_type"] == "COMPLETED"
    assert run["parameters"]["store"] == str(sweep.store)
    assert tasks == [(step, "COMPLETED") for step in STEPS]
    progress, results = artifacts["progress"], artifacts["table"]
    assert (progress["key"], progress["data"]) == (f"progress-{name}", 100.0)
    assert sweep.summary()["report"] in results["description"]
    assert {row["learner"] for row in json.loads(results["data"])} == {"OGD"}


def test_completed__has_its_tasks_progress_and_results(server, small_store, tmp_path):
    sweep = sweeping(tmp_path, small_store, "completed", SHORT, server)
    assert ended(sweep) == 0, sweep.said()
    assert "completed in Prefect: " in sweep.said()
    check_completed(server, "completed", sweep)


def test_server_that_does_not_answer__is_named_and_the_sweep_is_done(small_store, tmp_path):
    nobody = {"PREFECT_API_URL": f"http://127.0.0.1:{free_port()}/api"}
    sweep = sweeping(tmp_path, small_store, "unrecorded", SHORT, nobody)
    assert ended(sweep) == 0
    [line] = [line for line in sweep.said().splitlines() if line.startswith("Prefect")]
    assert line.startswith("Prefect's record of unrecorded is incomplete: ")


def test_server_of_its_own__records_the_same_and_ends(small_store, tmp_path):
    home = {"PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_API_URL": ""}
    sweep = sweeping(tmp_path, small_store, "alone", SHORT, home, "--prefect")
    assert ended(sweep) == 0, sweep.said()
    with prefect_server(tmp_path) as address:  # the next one has what the first has written
        check_completed({"PREFECT_API_URL": address}, "alone", sweep)


def test_prepare_and_nightly_run__are_flow_runs_of_their_names(server, small_store, tmp_path):
    koco(*PREPARE, tmp_path / "real.csv", "--store", small_store, cwd=tmp_path, status=0, **server)
    run, tasks, artifacts = recorded(server, "again")
    assert (run["state_type"], tasks) == ("COMPLETED", [("prepare", "COMPLETED")])
    assert json.loads(artifacts["table"]["data"])[0]["rows"] == 500
    (tmp_path / "night.toml").write_text(SHORT.replace('"s"', '"night"'))
    words = ("nightly", tmp_path / "night.toml", "--store", small_store, "--workers", "0")
    koco(*words, cwd=tmp_path, status=0, **server)
    run, tasks, _ = recorded(server, "night")
    assert run["state_name"] == "First"
    assert tasks == [(step, "COMPLETED") for step in ("prepare", *STEPS, "compare")]


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM])
def test_stopped__is_no_completed_flow_run(blow, server, tmp_path):
    name = blow.name.lower()
    sweep = sweeping(tmp_path, tmp_path / "store", name, MINUTE, server)
    computing(sweep)
    os.killpg(sweep.process.pid, blow)
    assert ended(sweep) == 1, sweep.said()
    assert "To continue:" in sweep.said()
    run, tasks, _ = recorded(server, name)
    assert run["state_type"] == "CRASHED"
    assert tasks[:2] == [("prepare", "COMPLETED"), ("plan", "COMPLETED")]


def test_failed__with_the_reason(server, small_store, tmp_path):
    shard = dataset_path(small_store, "real") / load_manifest(small_store, "real").shards[0].path
    whole = shard.read_bytes()
    shard.write_bytes(whole[:99] + bytes([whole[99] ^ 1]) + whole[100:])
    no_copies = {"KOCO_CACHE": str(tmp_path / "cache")}  # of shards that were read before
    sweep = sweeping(tmp_path, small_store, "failed", SHORT, server | no_copies)
    assert ended(sweep) == 2, sweep.said()
    run, tasks, _ = recorded(server, "failed")
    assert run["state_type"] == "FAILED"
    assert "altered or damaged" in run["state"]["message"]
    assert ("run", "FAILED") in tasks
