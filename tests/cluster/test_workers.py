"""Workers: what a preflight refuses, each with its reason, and a run that kills them. Site files
and certificates are checked before anything is asked of a queue, and that can be seen.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import chain
from types import SimpleNamespace
from unittest.mock import patch

import dask
import numpy as np
import pytest
import scipy
import yaml
from click.testing import CliRunner
from distributed import Client, LocalCluster

from cluster import jobs
from cluster.certificates import make_certificates
from cluster.clusters import cluster_named, patience_of
from cluster.executors import Executor
from cluster.site import SETTINGS, shipped
from cluster.workers import preflight
from flows.cli import koco
from flows.sweeping.launch import launch
from flows.sweeping.planning import limits_of
from flows.sweeping.request import SweepRequest
from koco_stream.errors import WrongInput
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
    said = refusal(None, preflight, client, str(small_store)).replace(str(small_store), "STORE")
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
        patch.dict(os.environ),
        dask.config.set(SETTINGS),  # as a local sweep has
        LocalCluster(**one, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        Executor(client, store, "try", receipts.append).run([cohort])
    rows = {row["learner"]: row for row in read_runs(store).to_pylist()}
    assert {name: row["status"] for name, row in rows.items()} == {"OGD": "ok", "ONS": "failed"}
    assert "its worker died" in rows["ONS"]["error"]
    assert sum(receipt.runs for receipt in receipts) == 2


JOB = """
kind: slurm
workers: {min: 1, max: 4}
cores: 2
memory: 4 GiB
walltime: "01:00:00"
interface: lo
"""
POD = """
kind: kubernetes
workers: {max: 3}
memory: 2 GiB
image: here/koco:1
"""


needs_jobqueue = pytest.mark.skipif(
    find_spec("dask_jobqueue") is None, reason="needs dask-jobqueue: koco-stream[jobqueue]"
)


def show(name):
    return CliRunner().invoke(koco, ["cluster", "show", name])


@pytest.fixture
def site(tmp_path):
    """The path of a site file with this text."""
    return lambda text: str(written(tmp_path, text, "mine.yaml"))


@pytest.mark.parametrize("name", shipped())
def test_shipped_site__is_read_and_shown(name):
    pytest.importorskip("dask_kubernetes" if name == "kubernetes" else "dask_jobqueue")
    done = show(name)
    assert (done.exit_code, done.stderr) == (0, ""), done.output


@needs_jobqueue
def test_job_script__has_one_thread_a_worker_and_what_workers_must_know(
    site, monkeypatch, tmp_path
):
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "ca che"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-tell")
    extra = "queue: short\naccount: mine\njob_extra: [--exclusive]\nsetup: [module load gcc]\n"
    extra += 'environment: {A_B: "c d"}\nworker_ports: "9000:9010"\n'
    script = show(site(JOB + extra)).stdout
    *lines, command = script.splitlines()
    asked = ("-p short", "-A mine", "--cpus-per-task=2", "--mem=4G", "-t 01:00:00", "--exclusive")
    assert {
        *(f"#SBATCH {words}" for words in asked),
        f"export KOCO_CACHE='{tmp_path / 'ca che'}'",
        "export DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE=False",
    } <= set(lines)
    assert lines.index("module load gcc") < lines.index("export A_B='c d'")
    assert command.startswith(
        f"{sys.executable} -m distributed.cli.dask_worker tcp://SCHEDULER:PORT "
    )
    options = [
        "--nthreads 1",
        "--nworkers 2",
        "--nanny",
        f"--memory-limit {2 << 30}",
        "--lifetime 3300s",
        "--interface lo",
        "--worker-port 9000:9010",
        "--dashboard-address 127.0.0.1:0",
    ]
    assert [option for option in options if f" {option} " not in f"{command} "] == []
    assert "do-not-tell" not in script


@needs_jobqueue
@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        (
            "pbs",
            ["#PBS -l select=1:ncpus=2:mem=4096MB", "#PBS -l walltime=01:00:00", "#PBS -A mine"],
        ),
        ("sge", ["#$ -l h_rt=01:00:00", "#$ -P mine", "#$ -q short"]),
        ("lsf", ["#BSUB -n 2", "#BSUB -W 01:00", '#BSUB -P "mine"', "#BSUB -q short"]),
    ],
)
def test_job_script__in_the_words_of_each_queue(site, kind, lines):
    shown = show(site(JOB.replace("slurm", kind) + "queue: short\naccount: mine\n")).stdout
    assert set(lines) <= set(shown.splitlines())


@needs_jobqueue
@pytest.mark.parametrize(
    ("kind", "mark", "log", "time"),
    [
        ("slurm", "#SBATCH", "koco-%J.err", "-t 49:30:07"),
        ("pbs", "#PBS", "", "-l walltime=49:30:07"),
        ("sge", "#$", "", "-l h_rt=49:30:07"),
        ("lsf", "#BSUB", "koco-%J.err", "-W 49:31"),
    ],
)
def test_job_script__of_days_with_its_log_in_one_word(
    site, monkeypatch, tmp_path, kind, mark, log, time
):
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "it's a #blank"))
    lines = show(
        site(JOB.replace("slurm", kind).replace("01:00:00", "2-01:30:07"))
    ).stdout.splitlines()
    own = [shlex.split(line.removeprefix(mark)) for line in lines if line.startswith(f"{mark} ")]
    assert ["-e", f"{tmp_path}/it's a #blank/jobs/{log}"] in own
    assert time.split() in own
    assert f"--lifetime {49 * 3600 + 30 * 60 + 7 - 300}s " in lines[-1]


@needs_jobqueue
@pytest.mark.parametrize(
    ("kind", "skipped", "left"),
    [
        ("slurm", ["--mem", "-t", "-n", "-p", "-e"], ["--cpus-per-task=2", "-A -t-p", "-J koco"]),
        ("pbs", ["-l select", "-A"], ["-l walltime=01:00:00", "-q q--mem"]),
        ("sge", ["-cwd", "-o", "-P"], ["-l h_rt=01:00:00", "-q q--mem"]),
        ("lsf", ["-M", "-R", "-P"], ["-n 2", "-W 01:00", "-q q--mem"]),
    ],
)
def test_job_script__without_the_lines_that_a_site_skips(site, kind, skipped, left):
    text = JOB.replace("slurm", kind) + "account: -t-p\nqueue: q--mem\n"
    own = [
        [line.partition(" ")[2] for line in show(site(text + more)).stdout.splitlines()]
        for more in ("", f"job_skip: {skipped}\n")
    ]
    begun = [[line for line in lines if line.startswith(tuple(skipped))] for lines in own]
    assert len(begun[0]) == len(skipped)
    assert begun[1] == []
    assert set(left) <= set(own[1])
    assert len(own[0]) - len(own[1]) == len(skipped)
    assert f"--memory-limit {2 << 30} " in own[1][-1]


def test_manifest__of_pods_that_are_confined_and_hold_no_secret(site, monkeypatch):
    pytest.importorskip("dask_kubernetes")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-tell")
    shown = show(site(POD + "secret: keys\nstore_claim: disk\nstore_path: /store\n")).stdout
    made = yaml.safe_load(shown)
    assert (made["kind"], made["spec"]["worker"]["replicas"]) == ("DaskCluster", 3)
    assert [*inside(made, "runAsNonRoot")] == [True] * 2  # a worker and a scheduler
    assert [*inside(made, "envFrom")] == [[{"secretRef": {"name": "keys"}}]] * 2
    assert [
        {"name": "store", "mountPath": "/store"} in mounts
        for mounts in inside(made, "volumeMounts")
    ] == [True] * 2
    allowed = {"name": "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "value": "1"}
    assert allowed in chain.from_iterable(inside(made, "env"))
    assert {"cpu": "1", "memory": str(2 << 30)} in inside(made, "limits")
    assert ["dask-worker", "--nthreads", "1"] in (args[:3] for args in inside(made, "args"))
    assert not re.search("do-not-tell|&id", shown)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("cores: 2", "core: 2"), ["line 4, core: unknown key; did you mean 'cores'?"]),
        (
            ("kind: slurm", "kind: slrum"),
            ["line 2, kind: 'slrum' is not a kind of site; did you mean 'slurm'?"],
        ),
        (
            ("kind: slurm", ""),
            ["kind: this key is missing; give one of slurm, pbs, sge, lsf, kubernetes"],
        ),
        (("max: 4", "maximum: 4"), ["workers.max"]),
        (("min: 1", "mim: 1"), ["workers.mim: unknown key; did you mean 'min'?"]),
        (("max: 4", "max: 3"), ["workers.max is 3, which is not a multiple of cores (2)"]),
        (("min: 1", "min: 5"), ["min is 5 and max is 4"]),
        (('"01:00:00"', "12:00"), ["line 6, walltime"]),
        (('"01:00:00"', '"1h"'), ["line 6, walltime: a time is written"]),
        (('"01:00:00"', '"00:00:30"'), ["at least a minute"]),
        (("4 GiB", "4"), ["line 5, memory"]),
        (("4 GiB", "four"), ["memory is written with its unit", "not 'four'"]),
        (("interface: lo", ""), ["interface: this key is missing"]),
        (("interface: lo", "interface: lo; rm -rf /"), ["interface"]),
        (("interface: lo", "interface: lo\nenvironment: {A B: c}"), ["environment"]),
        (
            ("interface: lo", 'interface: lo\nworker_ports: "10:20"'),
            ["worker_ports: ports are written"],
        ),
        (
            ("interface: lo", "interface: lo\njob_skip: [mem]"),
            ["job_skip: a directive as it begins"],
        ),
        (('"01:00:00"', '"0-00:00:30"'), ["at least a minute"]),
        (("cores: 2", "cores: [2"), ["this is not YAML"]),
    ],
)
def test_site_file__that_is_wrong_is_refused_with_place_and_remedy(site, change, said):
    file = site(JOB.replace(*change))
    done = show(file)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith(f"koco: {file}")
    assert done.stderr.count("\n") == 1
    assert [words for words in said if words not in done.stderr] == [], done.stderr


@pytest.mark.parametrize(
    ("package", "text", "said"),
    [
        (
            "none",
            None,
            "no site is called 'slrum' (your own file is named by its path, ./mine.yaml;",
        ),
        ("none", None, "did you mean 'slurm'?"),
        ("dask_jobqueue", JOB, "pip install 'koco-stream[jobqueue]'"),
        ("dask_kubernetes", POD, "pip install 'koco-stream[kubernetes]'"),
    ],
)
def test_site__that_cannot_be_shown_is_refused_in_one_line(site, monkeypatch, package, text, said):
    monkeypatch.setitem(sys.modules, package, None)
    done = show(site(text) if text else "slrum")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr


@pytest.mark.long
def test_packages_of_sites__are_not_imported_for_a_local_sweep():
    code = (
        "import sys, flows.prefect_flows, flows.sweeping.planning;"
        " sys.exit(any(m.startswith(('dask_jobqueue', 'dask_kubernetes')) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


@needs_jobqueue
def test_job_site__leaves_the_handlers_of_signals_alone(site):
    for name in [name for name in sys.modules if name.startswith("dask_jobqueue")]:
        del sys.modules[name]
    before = signal.getsignal(signal.SIGINT)
    show(site(JOB))
    assert signal.getsignal(signal.SIGINT) is before


@needs_jobqueue
@pytest.mark.parametrize(
    ("text", "address", "said"),
    [
        (JOB, "192.0.2.1", "koco cluster certificates"),
        (POD, "192.0.2.1", "without certificates"),
        (
            JOB.replace("interface: lo", "interface: ib7"),
            None,
            r"no network interface 'ib7' with an address; it has: .*lo",
        ),
    ],
)
def test_site__without_its_interface_or_off_loopback_is_refused(
    text, address, said, site, monkeypatch
):
    if address:
        monkeypatch.setattr("cluster.jobs.get_ip_interface", lambda name: address)
    refusal(said, cluster_named, site(text), 0, 0)


def test_plan__is_made_for_what_the_site_asks_for(site, tmp_path):
    limits = limits_of(site(JOB), 99)
    assert (limits.workers, limits.worker_bytes) == (4, 2 << 30)
    assert (patience_of(site(JOB)), patience_of("local")) == (86400, 60)


@pytest.mark.parametrize(
    ("listing", "numbers"),
    [
        ("17\n18\n", {"17", "18"}),
        ("", set()),
        (
            (
                "\nserver:\n                     Req'd\nJob ID   User\n----- ----\n12.server  me "
                " R\n13[1].server me Q\n"
            ),
            {"12", "13"},
        ),
        ("job-ID  prior\n--------\n    231 0.55 koco me r 11/21/2026\n", {"231"}),
    ],
)
def test_listing__of_each_queue_is_understood(listing, numbers):
    assert jobs.job_numbers(listing) == numbers


# Manifests of our own
# --------------------------------------------------------------------------------------------------


HERE = ROOT / "cluster" / "deploy"
DOCUMENTS = [
    pytest.param(document, id=f"{file.stem}-{document['kind']}-{document['metadata']['name']}")
    for file in sorted((HERE / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
]


CONFINED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@pytest.mark.long
@pytest.mark.parametrize("document", DOCUMENTS)
def test_manifest__is_valid(document):
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="needs the schemas: pip install kubernetes-validate"
    )
    schemas.validate(document, "1.34", strict=True)


def inside(content, key):
    """What stands under this key, wherever it is in a manifest."""
    if isinstance(content, dict):
        yield from [content[key]] if key in content else []
        content = list(content.values())
    for one in content if isinstance(content, list) else ():
        yield from inside(one, key)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_manifest__of_pods_not_of_root_with_limits_and_probes_no_secret_and_no_stranger(document):
    assert document["kind"] not in ("Secret", "Ingress")
    if document["kind"] == "Service":
        assert document["spec"].get("type", "ClusterIP") == "ClusterIP"
    for variable in chain.from_iterable(inside(document, "env")):
        secret = re.search("PASSWORD|AUTH|SECRET|CONNECTION_URL", variable["name"])
        assert ("valueFrom" in variable) == bool(secret), variable
    for pod in (template["spec"] for template in inside(document, "template")):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            assert {"cpu", "memory"} <= set(container["resources"]["limits"])
            assert container["securityContext"].items() >= CONFINED.items()
            assert not any("hostPort" in port for port in container.get("ports", []))
        if document["kind"] in ("Deployment", "StatefulSet"):
            for container in pod["containers"]:
                assert {"readinessProbe", "livenessProbe"} <= set(container)


def test_image__has_the_packages_and_the_tested_versions():
    text = (HERE / "Containerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = [
        one.rstrip("*") for one in project["tool"]["setuptools"]["packages"]["find"]["include"]
    ]
    wanted = [*(f"COPY {name} {name}\n" for name in names), "-c constraints.txt", "USER 10001"]
    assert [words for words in wanted if words not in text] == []


# Certificates
# --------------------------------------------------------------------------------------------------


TLS = "tls://127.0.0.1:8786"


@pytest.fixture
def folder(tmp_path):
    make_certificates(tmp_path / "certificates", ["10.0.0.1", "node.example"])
    return tmp_path / "certificates"


def test_folder__is_for_its_owner_only_and_never_written_twice(folder):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # the authority's certificate and three pairs; not the authority's key
    assert list(modes.values()) == [0o600] * 7
    refusal("exists already", make_certificates, folder)


def test_they_are_valid__for_a_week_and_by_openssl_s_strict_rules(folder):
    signed = [folder / f"{role}.pem" for role in ("scheduler", "worker", "client")]
    words = ["openssl", "verify", "-x509_strict", "-CAfile", folder / "authority.pem", *signed]
    assert subprocess.run(words).returncode == 0
    words = ["openssl", "x509", "-in", folder / "worker.pem", "-noout", "-text"]
    text = subprocess.run(words, capture_output=True, text=True).stdout
    assert all(name in text for name in ("IP Address:10.0.0.1", "DNS:node.example"))
    ends = make_certificates(folder.with_name("more"))
    assert 6.9 < (ends - datetime.now(UTC)) / timedelta(days=1) < 7.1


def expired(folder):
    shutil.rmtree(folder)
    make_certificates(folder, days=-1 / 24 / 12)


def with_another_key(folder):
    make_certificates(folder.with_name("other"))
    shutil.copy(folder.with_name("other") / "client-key.pem", folder)


OPEN = r"other users can read .* \(mode 0.* chmod -R go= "
NOT_ITS_KEY = r"client-key\.pem is not the key of client\.pem; use a"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "client-key.pem").chmod(0o640), OPEN),
        (lambda folder: (folder / "worker-key.pem").chmod(0o640), OPEN),
        (lambda folder: folder.chmod(0o750), OPEN),
        (expired, "expired on 20.* UTC; create new ones with koco cluster certificates NEW_FOLDER"),
        (shutil.rmtree, "there is no folder"),
        (lambda folder: (folder / "client-key.pem").unlink(), r"has no client-key\.pem"),
        (lambda folder: (folder / "client.pem").write_text("nothing"), "is not a certificate"),
        (lambda folder: (folder / "client-key.pem").write_text(""), NOT_ITS_KEY),
        (lambda folder: (folder / "client-key.pem").write_text("no key"), NOT_ITS_KEY),
        (with_another_key, NOT_ITS_KEY),
    ],
)
def test_folder__that_cannot_be_used__is_refused_with_the_remedy(spoil, said, folder):
    (folder / "scheduler-key.pem").unlink()  # a client needs no other's key
    cluster_named(TLS, 0, 0, str(folder))
    spoil(folder)
    refusal(said, cluster_named, TLS, 0, 0, str(folder))


@pytest.mark.parametrize("plain", [True, False])
def test_listener__without_tls_or_of_another_authority__is_refused_at_once(plain, folder, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    make_certificates(tmp_path / "other")
    context.load_cert_chain(*(tmp_path / "other" / f"scheduler{end}.pem" for end in ("", "-key")))
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as answering:

        def answer():
            accepted, _ = server.accept()
            with accepted, suppress(OSError):
                if plain:
                    accepted.sendall(b"a scheduler without TLS speaks first")
                else:
                    context.wrap_socket(accepted, server_side=True).close()

        answering.submit(answer)
        address = f"tls://127.0.0.1:{server.getsockname()[1]}"
        cluster = cluster_named(address, 0, 0, str(folder))
        with pytest.raises(WrongInput, match=f"who listens at {address} has no certificate of"):
            cluster().__enter__()


@needs_jobqueue
def test_folder__that_a_job_cannot_name__is_refused(site, folder):
    blank = folder.rename(folder.with_name("two words"))
    refusal(
        r"/two words: jobs cannot name .*; move it$", cluster_named, site(JOB), 0, 0, str(blank)
    )


def test_address__that_others_reach_is_used_without_certificates_only_if_that_is_said():
    assert cluster_named("tcp://node.example:8786", 0, 0, insecure=True) is not None
    refusal("--certificates or KOCO_CERTIFICATES", cluster_named, TLS, 0, 0)


def test_command__says_how_long_and_finds_the_folder_in_the_environment(
    koco, small_store, tmp_path, monkeypatch
):
    folder = tmp_path / "new"
    made = koco("cluster", "certificates", folder, "--host", "127.0.0.1", status=0).stdout
    assert all(words in made for words in ("(7 days)", "--dashboard-address 127.0.0.1:"))
    (folder / "client-key.pem").chmod(0o644)
    monkeypatch.setenv("KOCO_CERTIFICATES", str(folder))
    spec = written(
        tmp_path, 'name = "try"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "OGD"\n'
    )
    said = koco("sweep", spec, "--store", small_store, "--cluster", TLS, status=2).stderr
    assert ("other users can read" in said, "Traceback" in said) == (True, False)
