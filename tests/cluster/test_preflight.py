"""What a preflight refuses, each with its reason, and how long it takes."""

import os
import shutil
import time

import pytest
import scipy
from distributed import Client

from cluster.executors import run_on_dask
from cluster.workers import preflight
from flows.sweep.launch import launch
from flows.sweep.request import SweepRequest
from koco_stream.errors import WrongInput
from koco_stream.runs.run import Cohort, Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream
from storage.preparing.prepare import prepare_file
from storage.results import read_runs
from tests.helpers.dask_processes import processes
from tests.helpers.project import ROOT


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler with one worker that fits."""
    with processes(tmp_path_factory.mktemp("cluster")) as started:
        started.address = started.scheduler()
        started.worker("good", started.address)
        started.wait_for("good", "Registered to:")
        yield started


def before(folder):
    """A search path with this folder first."""
    return os.pathsep.join([str(folder), str(ROOT)])


def mounted(folder, store):
    """Begins a command that sees this folder in the store's place."""
    script = f'mount --bind {folder} {store} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def refusal(cluster, store, worker, *words, **more):
    """What the preflight says when this worker is there too."""
    cluster.worker(worker, cluster.address, *words, **more)
    try:
        cluster.wait_for(worker, "Registered to:")
        with (
            Client(cluster.address, set_as_default=False) as client,
            pytest.raises(WrongInput) as refused,
        ):
            preflight(client, str(store))
        return str(refused.value)
    finally:
        cluster.kill(worker)
        with Client(cluster.address, set_as_default=False) as client:
            while len(client.nthreads()) > 1:
                time.sleep(0.05)


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("__version__ = '0.1'\n", f"scipy 0.1; here {scipy.__version__}"),
        ("raise ImportError('no scipy here')\n", "scipy missing (no scipy here); here "),
    ],
)
def test_other_or_missing_package__is_refused_with_both_versions(
    cluster, small_store, tmp_path, module, told
):
    (tmp_path / "scipy.py").write_text(module)
    said = refusal(cluster, small_store, "other", PYTHONPATH=before(tmp_path))
    assert f"(other)  {told}" in said
    assert "(good)" not in said


def test_koco_stream_that_cannot_be_imported__is_said_so(cluster, small_store, tmp_path):
    (tmp_path / "koco_stream.py").write_text("raise ModuleNotFoundError('no koco_stream here')\n")
    said = refusal(cluster, small_store, "bare", "--no-nanny", PYTHONPATH=before(tmp_path))
    assert "(bare)  koco_stream cannot be imported there: " in said
    assert "no koco_stream here" in said
    assert "Traceback" not in said


def test_other_code__is_refused(cluster, small_store, tmp_path):
    shutil.copytree(
        ROOT / "koco_stream", tmp_path / "koco_stream", ignore=shutil.ignore_patterns("__pycache__")
    )
    with (tmp_path / "koco_stream" / "losses.py").open("a") as file:
        file.write("\n# another version\n")
    assert "koco_stream code " in refusal(
        cluster, small_store, "older", PYTHONPATH=before(tmp_path)
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount another folder over the store")
def test_store_that_is_not_shared__is_refused(cluster, small_store, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    mount = mounted(tmp_path / "elsewhere", small_store)
    said = refusal(cluster, small_store, "alone", prefix=mount)
    assert f"{small_store} is not the same place there" in said
    assert "(good)" not in said
    assert not [name for name in os.listdir(small_store) if name.startswith(".preflight")]
    assert os.listdir(tmp_path / "elsewhere") == []


def test_memory_limit_below_the_plan_s__is_refused_with_the_sums(cluster, small_store, tmp_path):
    (tmp_path / "wide.svm").write_text("1 1:1 9000:2\n-1 2:1 5:1\n" * 20)
    prepare_file(small_store, "wide", tmp_path / "wide.svm")
    spec = tmp_path / "wide.toml"
    spec.write_text(
        'name = "wide"\n[[dataset]]\nname = "wide"\n[[learner]]\nname = "ONS"\n'
    )  # 9,000 by 9,000
    cluster.worker("small", cluster.address, "--memory-limit", "300MiB")
    try:
        cluster.wait_for("small", "Registered to:")
        with pytest.raises(WrongInput) as refused:
            launch(SweepRequest(str(spec), str(small_store), 0, 4096, cluster.address))
    finally:
        cluster.kill("small")
    assert "needs 798 MiB on a worker, and a worker has 300 MiB" in str(refused.value)
    assert "(small)  300 MiB for each of its threads" in str(refused.value)
    assert "(good)" in str(refused.value)


def test_four_workers__take_less_than_3_s(small_store, tmp_path):
    with processes(tmp_path / "four") as started:
        address = started.scheduler()
        for k in range(4):
            started.worker(f"w{k}", address)
        for k in range(4):
            started.wait_for(f"w{k}", "Registered to:")
        with Client(address, set_as_default=False) as client:
            begun = time.monotonic()
            warnings = preflight(client, str(small_store))
            took = time.monotonic() - begun
    print(f"preflight of 4 workers: {took:.2f} s; load {os.getloadavg()[0]:.1f}; {warnings}")
    assert took < 3.0 * max(1.0, os.getloadavg()[0] / os.cpu_count())


@pytest.mark.parametrize("missing", ["scipy", "koco_stream", "store"])
def test_worker_that_joins_and_does_not_fit__is_sent_away(missing, small_store, tmp_path, capfd):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / f"{missing}.py").write_text("raise ImportError('not here')\n")
    if missing == "store" and os.geteuid() != 0:
        pytest.skip("needs root, to mount another folder over the store")
    stream = Stream("real", load_manifest(small_store, "real").dataset_hash)
    cohorts = [
        Cohort(stream, (Run.of(stream, "ONS", {"alpha": float(a)}, None),), 1.0)
        for a in range(1, 40)
    ]
    with processes(tmp_path / "joins") as started:
        address = started.scheduler()
        started.worker("good", address)
        done = []

        def on_receipt(receipt):
            if not done:
                words = ["--no-nanny"] if missing == "koco_stream" else []
                prefix = mounted(tmp_path / "bad", small_store) if missing == "store" else []
                started.worker(
                    "bad", address, *words, prefix=prefix, PYTHONPATH=before(tmp_path / "bad")
                )
                started.wait_for("bad", "Registered to:")
            done.append(receipt)
            time.sleep(0.05)

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            run_on_dask(client, str(small_store), "try", cohorts, on_receipt)
            left = [info["name"] for info in client.scheduler_info()["workers"].values()]
    assert left == ["good"]
    assert set(read_runs(small_store).column("status").to_pylist()) == {"ok"}
    assert {
        "scipy": "scipy missing",
        "koco_stream": "cannot be imported",
        "store": "not the same place",
    }[missing] in capfd.readouterr().err


def test_only_the_library_s_functions_are_submitted_or_run(small_store, tmp_path, monkeypatch):
    sent = []
    for name in ("submit", "run", "run_on_scheduler", "map"):
        call = getattr(Client, name)

        def noted(self, function, *args, call=call, **kwargs):
            sent.append(
                (
                    function.__module__.split(".")[0],
                    {type(a).__module__.split(".")[0] for a in args},
                )
            )
            return call(self, function, *args, **kwargs)

        monkeypatch.setattr(Client, name, noted)
    spec = tmp_path / "try.toml"
    spec.write_text('name = "try"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "OGD"\n')
    launch(SweepRequest(str(spec), str(small_store), 1, 4096))
    assert len(sent) >= 3  # the preflight, the executor's look at the workers, a cohort
    assert {module for module, _ in sent} == {"koco_stream"}
    assert set().union(*(kinds for _, kinds in sent)) <= {"builtins", "koco_stream"}
