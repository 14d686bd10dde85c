"""Site files are checked before anything is asked of a queue, and that can be seen."""

import re
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest
import yaml
from click.testing import CliRunner

from cluster import jobs
from cluster.clusters import cluster_named, patience_of
from cluster.site import read_site, shipped
from flows.cli import koco
from flows.sweeping.planning import limits_of
from koco_stream.errors import WrongInput
from tests.helpers.project import ROOT
from tests.helpers.sweeps import written

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
    read_site(name)
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


def test_manifest__of_pods_that_are_confined_and_hold_no_secret(site, monkeypatch):
    pytest.importorskip("dask_kubernetes")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-tell")
    shown = show(site(POD + "secret: keys\nstore_claim: disk\nstore_path: /store\n")).stdout
    made = yaml.safe_load(shown)
    assert (made["kind"], made["spec"]["worker"]["replicas"]) == ("DaskCluster", 3)
    containers = {}
    for what in ("worker", "scheduler"):
        pod = made["spec"][what]["spec"]
        containers[what] = pod["containers"][0]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert containers[what]["envFrom"] == [{"secretRef": {"name": "keys"}}]
        assert {"name": "store", "mountPath": "/store"} in containers[what]["volumeMounts"]
    allowed = {"name": "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "value": "1"}
    assert allowed in containers["scheduler"]["env"]
    worker = containers["worker"]
    assert worker["resources"]["limits"] == {"cpu": "1", "memory": str(2 << 30)}
    assert worker["args"][:3] == ["dask-worker", "--nthreads", "1"]
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
        (None, None, "no site is called 'slrum' (your own file is named by its path, ./mine.yaml;"),
        (None, None, "did you mean 'slurm'?"),
        ("dask_jobqueue", JOB, "pip install 'koco-stream[jobqueue]'"),
        ("dask_kubernetes", POD, "pip install 'koco-stream[kubernetes]'"),
    ],
    ids=["unknown", "unknown, with a suggestion", "without dask-jobqueue", "without its operator"],
)
def test_site__that_cannot_be_shown_is_refused_in_one_line(site, monkeypatch, package, text, said):
    if package:
        monkeypatch.setitem(sys.modules, package, None)
    done = show(site(text) if text else "slrum")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr


@pytest.mark.long
def test_packages_of_sites__are_not_imported_for_a_local_sweep():
    code = (
        "import sys, flows.sweeping.flow, flows.sweeping.planning;"
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
    ("text", "said"), [(JOB, "koco cluster certificates"), (POD, "without certificates")]
)
def test_site__off_loopback_asks_for_certificates(text, said, site, monkeypatch):
    monkeypatch.setattr("cluster.jobs.get_ip_interface", lambda name: "192.0.2.1")
    with pytest.raises(WrongInput, match=said):
        cluster_named(site(text), 0, 0)


@needs_jobqueue
def test_interface__that_is_not_here_is_named(site):
    said = r"no network interface 'ib7' with an address; it has: .*lo"
    with pytest.raises(WrongInput, match=said):
        cluster_named(site(JOB.replace("interface: lo", "interface: ib7")), 0, 0)


def test_plan__is_made_for_what_the_site_asks_for(site, tmp_path):
    limits = limits_of(tmp_path, site(JOB), 99)
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
