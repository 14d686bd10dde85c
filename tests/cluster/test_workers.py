"""Workers: what a preflight refuses, each with its reason, and a run that kills them."""

import os
import re
import shutil
import time
from types import SimpleNamespace

import dask
import numpy as np
import pytest
import scipy
from distributed import Client, LocalCluster

from cluster.clusters import environment_kept
from cluster.executors import Executor
from cluster.site import SETTINGS
from cluster.workers import preflight
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from storage.preparing.prepare import prepare_file
from storage.results import read_runs
from tests.helpers.dask_processes import processes
from tests.helpers.project import ROOT, wait_until
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import cohort_on, written


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler with one worker that fits."""
    with processes(tmp_path_factory.mktemp("cluster")) as started:
        started.address = started.scheduler()
        started.worker("good", started.address)
        started.wait_for("good", "Registered to:")
        yield started


NO_STORE = "another folder for the store"
MISFITS = {
    "another version": ("scipy", "__version__ = '0.1'\n"),
    "no package": ("scipy", "raise ImportError('no scipy here')\n"),
    "no koco_stream": ("koco_stream", "raise ModuleNotFoundError('no koco_stream here')\n"),
}
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to mount another folder over the store"
)


def start_misfit(started, address, kind, folder, store):
    """Start a worker called bad that does not fit; `folder` is what it has of its own."""
    folder.mkdir()
    words, prefix = ["--no-nanny"] if kind == "no koco_stream" else [], []
    if kind == NO_STORE:
        script = f'mount --bind {folder} {store} && exec "$@"'
        prefix = ["unshare", "--mount", "sh", "-c", script, "sh"]
    elif kind == "other code":
        code = shutil.copytree(ROOT / "koco_stream", folder / "koco_stream")
        with (code / "losses.py").open("a") as file:
            file.write("\n# another version\n")
    else:
        module, text = MISFITS[kind]
        (folder / f"{module}.py").write_text(text)
    path = os.pathsep.join([str(folder), str(ROOT)])
    started.worker("bad", address, *words, prefix=prefix, PYTHONPATH=path)
    started.wait_for("bad", "Registered to:")


@pytest.fixture
def client(cluster):
    """A client of the cluster, which has its one good worker only when the test has ended."""
    with Client(cluster.address, set_as_default=False) as client:
        yield client
        if "bad" in cluster.running:
            cluster.kill("bad")
        wait_until(lambda: len(client.nthreads()) == 1, "the bad worker is gone")


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("another version", [f"(bad)  scipy 0.1; here {scipy.__version__}"]),
        ("no package", ["(bad)  scipy missing (no scipy here); here "]),
        (
            "no koco_stream",
            ["(bad)  koco_stream cannot be imported there: ", "no koco_stream here"],
        ),
        ("other code", ["koco_stream code "]),
        pytest.param(NO_STORE, ["STORE is not the same store there"], marks=needs_root),
    ],
)
def test_worker_that_does_not_fit__is_refused_with_the_reason(
    kind, told, cluster, client, small_store, tmp_path
):
    start_misfit(cluster, cluster.address, kind, tmp_path / "own", small_store)
    refused = refusal(None, preflight, client, str(small_store))
    said = refused.replace(str(small_store), "STORE")
    assert [words for words in told if words not in said] == [], said
    assert not re.search(r"\(good\)|Traceback", said)
    assert [name for name in os.listdir(small_store) if name.startswith(".preflight")] == []
    assert kind != NO_STORE or os.listdir(tmp_path / "own") == []


@pytest.mark.system
def test_memory_limit_below_the_plan_s__is_refused_with_the_sums(
    cluster, client, small_store, tmp_path
):
    prepare_file(
        small_store, "wide", written(tmp_path, "1 1:1 9000:2\n-1 2:1 5:1\n" * 20, "wide.svm")
    )
    # 9,000 by 9,000
    spec = written(
        tmp_path,
        'name = "wide"\n[[dataset]]\nname = "wide"\n[[learner]]\nname = "ONS"\n',
        "wide.toml",
    )
    cluster.worker("bad", cluster.address, "--memory-limit", "300MiB")
    cluster.wait_for("bad", "Registered to:")
    refused = refusal(None, launch, SweepRequest(str(spec), str(small_store), 0, cluster.address))
    told = ("needs 918 MiB on a worker, and a worker has 300 MiB", "(good)")
    told += ("(bad)   300 MiB for each of its threads",)
    assert [words for words in told if words not in refused] == []


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        # a cohort that arrives before the question breaks such a worker's connection
        ("no package", "scipy missing|gone before .*(\n.*)*its log says why"),
        ("no koco_stream", "cannot be imported|gone before .*(\n.*)*its log says why"),
        pytest.param(NO_STORE, "not the same store", marks=needs_root),
    ],
)
def test_worker_that_joins_and_does_not_fit__is_sent_away(kind, told, small_store, tmp_path, capfd):
    cohorts = [cohort_on(small_store, [("ONS", {"alpha": float(a)}, None)]) for a in range(1, 40)]
    done = []
    with processes(tmp_path / "joins") as started:
        address = started.scheduler()
        started.worker("good", address)

        def on_receipt(receipt):
            if not done:
                start_misfit(started, address, kind, tmp_path / "own", small_store)
            done.append(receipt)
            time.sleep(0.05)

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            Executor(client, str(small_store), "try", on_receipt).run(cohorts)
            left = [info["name"] for info in client.scheduler_info()["workers"].values()]
    assert left == ["good"]
    assert set(read_runs(small_store).column("status").to_pylist()) == {"ok"}
    assert re.search(told, capfd.readouterr().err)


def test_cohort_that_lost_its_workers__waits_until_it_is_alone(small_store):
    sent = []  # with how many others there were
    future = SimpleNamespace(add_done_callback=print)
    client = SimpleNamespace(submit=lambda *_, key, **__: sent.append((key[:5], others)) or future)
    executor = Executor(client, str(small_store), "try", print)
    executor.alone.append(cohort_on(small_store, [("ONS", {}, None)]))
    for others in (1, 0):
        executor.under_way = dict.fromkeys(range(others), ())
        executor._submit()
    assert sent == [("alone", 0)]


@pytest.mark.system
def test_run_that_kills_its_worker__is_found_and_marked(tmp_path):
    draw, store = np.random.default_rng(0), str(tmp_path / "store")
    features = [np.unique(draw.integers(1, 12_000, 9)) for _ in range(40)]
    lines = [f"{(-1) ** t} " + " ".join(f"{j}:1" for j in row) for t, row in enumerate(features)]
    prepare_file(
        store, "wide", written(tmp_path, "\n".join(lines) + "\n", "wide.svm"), n_features=12_000
    )
    # the full matrix of twelve thousand features takes more than a gigabyte
    learners = [("OGD", {}, 1), ("ONS", {}, 1)]
    cohort, receipts = cohort_on(store, learners, name="wide", order="as-stored"), []
    one = {"n_workers": 1, "threads_per_worker": 1, "host": "127.0.0.1", "memory_limit": "900MB"}
    with (
        environment_kept(),
        dask.config.set(SETTINGS),  # as a local sweep has
        LocalCluster(**one, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        Executor(client, store, "try", receipts.append).run([cohort])
    rows = {row["learner"]: row for row in read_runs(store).to_pylist()}
    assert {name: row["status"] for name, row in rows.items()} == {"OGD": "ok", "ONS": "failed"}
    assert "its worker died" in rows["ONS"]["error"]
    assert sum(receipt.runs for receipt in receipts) == 2
