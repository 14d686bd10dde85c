"""Site files are checked before anything is asked of a queue, and that can be seen."""

import signal
import sys

import pytest
import yaml
from click.testing import CliRunner

from cluster import kept_jobs
from cluster.clusters import cluster_named, patience_of
from cluster.site import read_site, shipped
from flows.cli import koco
from flows.sweep.planning import limits_of
from koco_stream.errors import WrongInput
from tests.helpers.project import ROOT

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


def show(*words):
    return CliRunner().invoke(koco, ["cluster", "show", *map(str, words)])


@pytest.fixture
def site(tmp_path):
    def write(text):
        file = tmp_path / "mine.yaml"
        file.write_text(text)
        return str(file)

    return write


@pytest.mark.parametrize("name", shipped())
def test_shipped_site__is_read_and_shown(name):
    read_site(name)
    done = show(name)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""


def test_job_script__has_one_thread_a_worker_and_what_workers_must_know(
    site, monkeypatch, tmp_path
):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "ca che"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-tell")
    extra = "queue: short\naccount: mine\njob_extra: [--exclusive]\nsetup: [module load gcc]\n"
    extra += 'environment: {A_B: "c d"}\nworker_ports: "9000:9010"\n'
    script = show(site(JOB + extra)).stdout
    lines = script.splitlines()
    for line in (
        "-p short",
        "-A mine",
        "--cpus-per-task=2",
        "--mem=4G",
        "-t 01:00:00",
        "--exclusive",
    ):
        assert f"#SBATCH {line}" in lines
    assert f"export KOCO_CACHE='{tmp_path / 'ca che'}'" in lines
    assert "export A_B='c d'" in lines
    assert "export DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE=False" in lines
    assert lines.index("module load gcc") < lines.index("export A_B='c d'")
    command = lines[-1]
    assert command.startswith(
        f"{sys.executable} -m distributed.cli.dask_worker tcp://SCHEDULER:PORT "
    )
    for words in (
        "--nthreads 1",
        "--nworkers 2",
        "--nanny",
        f"--memory-limit {2 << 30}",
        "--lifetime 3300s",
        "--interface lo",
    ):
        assert f" {words} " in f"{command} "
    assert "--worker-port 9000:9010" in command
    assert "--dashboard-address 127.0.0.1:0" in command
    assert "do-not-tell" not in script


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
    pytest.importorskip("dask_jobqueue")
    script = show(
        site(JOB.replace("slurm", kind) + "queue: short\naccount: mine\n")
    ).stdout.splitlines()
    assert set(lines) <= set(script)


def test_manifest__of_pods_that_are_confined_and_hold_no_secret(site, monkeypatch):
    pytest.importorskip("dask_kubernetes")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-tell")
    done = show(site(POD + "secret: keys\nstore_claim: disk\nstore_path: /store\n"))
    made = yaml.safe_load(done.stdout)
    assert (made["kind"], made["spec"]["worker"]["replicas"]) == ("DaskCluster", 3)
    for part in ("worker", "scheduler"):
        pod = made["spec"][part]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "keys"}}]
        assert {"name": "store", "mountPath": "/store"} in pod["containers"][0]["volumeMounts"]
    scheduler = {
        variable["name"]: variable["value"]
        for variable in made["spec"]["scheduler"]["spec"]["containers"][0]["env"]
    }
    assert scheduler["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] == "1"
    worker = made["spec"]["worker"]["spec"]["containers"][0]
    assert worker["resources"]["limits"] == {"cpu": "1", "memory": str(2 << 30)}
    assert worker["args"][:3] == ["dask-worker", "--nthreads", "1"]
    assert "do-not-tell" not in done.stdout
    assert "&id" not in done.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("cores: 2", "core: 2"), ["line 4, core: unknown key; did you mean 'cores'?"]),
        (
            ("kind: slurm", "kind: slrum"),
            ["line 2, kind: 'slrum' is no kind of site; did you mean 'slurm'?"],
        ),
        (
            ("kind: slurm", ""),
            ["kind: this key is missing; give one of slurm, pbs, sge, lsf, kubernetes"],
        ),
        (("max: 4", "maximum: 4"), ["workers.max"]),
        (("min: 1", "mim: 1"), ["workers.mim: unknown key; did you mean 'min'?"]),
        (("max: 4", "max: 3"), ["workers.max is 3, which is no multiple of cores (2)"]),
        (("min: 1", "min: 5"), ["min is 5 and max 4"]),
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
    for words in said:
        assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("slrum", "or a site; did you mean 'slurm'?"),
        ("nowhere/mine.yaml", "nowhere/mine.yaml: there is no such site file"),
        ("udp://127.0.0.1:1", "no cluster is called 'udp://127.0.0.1:1'; give local"),
    ],
)
def test_cluster__that_is_unknown_is_refused(name, said):
    with pytest.raises(WrongInput) as refused:
        cluster_named(name, 1, 0)
    assert said in str(refused.value)
    assert show(name).exit_code == 2 or "://" in name


def test_site__that_is_unknown_is_not_shown():
    done = show("slrum")
    assert done.exit_code == 2
    assert done.stderr.startswith(
        "koco: no site is called 'slrum' (your own file is named by its path, ./mine.yaml); did you"
        " mean 'slurm'?"
    )


@pytest.mark.parametrize(
    ("package", "extra", "text"),
    [("dask_jobqueue", "jobqueue", JOB), ("dask_kubernetes", "kubernetes", POD)],
)
def test_site__whose_package_is_not_installed_says_how(site, monkeypatch, package, extra, text):
    monkeypatch.setitem(sys.modules, package, None)
    done = show(site(text))
    assert done.exit_code == 2
    assert f"pip install 'koco-stream[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_packages_of_sites__are_not_imported_for_a_local_sweep():
    import subprocess

    code = (
        "import sys, flows.sweep.flow, flows.sweep.launch;"
        " sys.exit(any(m.startswith(('dask_jobqueue', 'dask_kubernetes')) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_job_site__leaves_the_handlers_of_signals_alone(site):
    pytest.importorskip("dask_jobqueue")
    for name in [name for name in sys.modules if name.startswith("dask_jobqueue")]:
        del sys.modules[name]
    before = signal.getsignal(signal.SIGINT)
    show(site(JOB))
    assert signal.getsignal(signal.SIGINT) is before


def test_site__off_loopback_asks_for_certificates(site, monkeypatch):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setattr("cluster.jobs.get_ip_interface", lambda name: "192.0.2.1")
    with pytest.raises(WrongInput, match="koco cluster certificates"):
        cluster_named(site(JOB), 0, 0)
    with pytest.raises(WrongInput, match="no certificates"):
        cluster_named(site(POD), 0, 0)


def test_interface__that_is_not_here_is_named(site):
    pytest.importorskip("dask_jobqueue")
    with pytest.raises(
        WrongInput, match=r"no network interface 'ib7' with an address; there are: .*lo"
    ):
        cluster_named(site(JOB.replace("interface: lo", "interface: ib7")), 0, 0)


def test_plan__is_made_for_what_the_site_asks_for(site):
    file = site(JOB)
    limits = limits_of(file, 99)
    assert (limits.workers, limits.worker_bytes) == (4, 2 << 30)
    assert patience_of(file) == 86400
    assert patience_of("local") == 60


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
    assert kept_jobs.job_numbers(listing) == numbers
