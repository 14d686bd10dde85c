"""Sweeps on a real Slurm: the same tables as here, whatever becomes of the jobs."""

import json
import os
import re
import signal

import pytest

from cluster.site import shipped
from koco_stream.engine.result_file import result_files_folder
from tests.helpers.listening import listeners, loopback, with_variable
from tests.helpers.project import begun, wait_until
from tests.helpers.servers import PARTITION, slurm_says
from tests.helpers.sweeps import tables, written

SWEEP = """
name = "on-slurm"
[[dataset]]
name = "ill-conditioned"
condition_number = [10, 100, 200]
data_seed = DATA_SEEDS
[[learner]]
name = "OjaSON"
sketch_size = [0, 5, 10]
sketch_rate = [1, 16]
alpha = { powers_of_two = [-6, 7] }
curvature = [0.0625, 0.25, 1.0]
clip = [1.0, 4.0]
"""
FINISHES_WITHIN = 300.0  # seconds


def sweeping(spec, store, *words):
    return begun("sweep", spec, "--store", store, "--json", *words)


def summary(process):
    out, err = process.communicate(timeout=FINISHES_WITHIN)
    assert process.returncode == 0, err
    return json.loads(out)


def locally(spec, store):
    with sweeping(spec, store, "--workers", 2) as process:
        summary(process)
    return tables(store)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep, and the tables that it leaves when it is run here."""
    folder = tmp_path_factory.mktemp("here")
    spec = written(folder, SWEEP.replace("DATA_SEEDS", "[1]"))
    return spec, locally(spec, folder / "store")


@pytest.fixture
def site(slurm_conf, tmp_path, monkeypatch):
    """The site file that comes with the package, with this machine's resources."""
    monkeypatch.setenv("SLURM_CONF", str(slurm_conf))
    text = shipped()["slurm"].read_text()
    for key, value in {"max": "2", "cores": "1", "memory": "2 GiB", "queue": PARTITION}.items():
        text, n = re.subn(rf"(?m)^( *{key}:) *\S[^#\n]*", rf"\1 {value} ", text)
        assert n == 1
    return written(tmp_path, text, "site.yaml")


def jobs():
    """The numbers of the jobs called koco that wait or run, with their states."""
    listed = slurm_says("squeue --noheader --name=koco --format=%i:%T --states=PENDING,RUNNING")
    return dict(line.split(":") for line in listed.split())


def check(process, store, reference):
    """The sweep completes: all runs are there, as the local sweep has them, and no job is left."""
    told = summary(process)
    assert told["statuses"] == {"ok": len(reference[0])}
    assert tables(store) == reference
    assert jobs() == {}
    return told


def until(there, process, what):
    """Wait until it is so, while the sweep goes on."""
    found = wait_until(
        lambda: there() or process.poll() is not None, what, FINISHES_WITHIN, between=0.2
    )
    assert process.poll() is None, f"the sweep ended before {what}: {process.communicate()}"
    return found


def under_way(process, store):
    """Wait until both jobs run and there is a first result file; the jobs' numbers."""
    found = until(
        lambda: list(jobs().values()) == ["RUNNING"] * 2 and jobs(), process, "its jobs ran"
    )
    until(lambda: store.is_dir() and result_files_folder(store).names(), process, "a result file")
    return sorted(found)


@pytest.mark.parametrize(
    ("how", "lost"),
    [
        pytest.param("", 0, id="none is lost"),
        pytest.param("", 1, id="one is cancelled"),
        pytest.param(
            "--full --signal=KILL", 2, id="all are killed at once", marks=pytest.mark.soak
        ),
    ],
)
def test_sweep__leaves_the_tables_of_a_local_one_and_no_job_whatever_is_lost_without_warning(
    sweep, site, tmp_path, how, lost
):
    spec, reference = sweep
    with sweeping(spec, tmp_path / "store", "--cluster", site) as process:
        first = under_way(process, tmp_path / "store")
        # of this test session, in jobs too: they have its cache folder
        listening = listeners(with_variable("KOCO_CACHE", os.environ["KOCO_CACHE"]))
        if lost:
            slurm_says(f"scancel {how} {' '.join(first[:lost])}")
            until(lambda: len(jobs().keys() - first) >= lost, process, "jobs are submitted again")
        check(process, tmp_path / "store", reference)
    assert len(listening) > 4  # the scheduler, its dashboard, two workers, their nannies
    assert [address for address, _ in listening if not loopback(address)] == []


@pytest.mark.soak
def test_sweep__stopped_while_its_jobs_wait_takes_them_along(sweep, site, tmp_path):
    where = "--parsable --cpus-per-task=4 --chdir=/tmp --output=/dev/null"
    other = slurm_says(f"sbatch {where} --wrap='sleep 300'").strip()
    try:
        with sweeping(sweep[0], tmp_path / "store", "--cluster", site) as process:
            until(lambda: list(jobs().values()) == ["PENDING"] * 2, process, "its jobs waited")
            while "waiting for workers: 0 of 1 have" not in (line := process.stderr.readline()):
                assert line
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "koco: stopped; finished work is kept" in err
        assert jobs() == {}
    finally:
        slurm_says(f"scancel {other}")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            f"queue: {PARTITION}",
            "queue: elsewhere",
            "slurm refused the job: sbatch: error: invalid partition specified: elsewhere",
        ),
        (
            "kind: slurm",
            "setup: [exit 3]\nkind: slurm",
            "6 jobs have ended without starting a worker; see the last files in",
        ),
    ],
)
def test_sweep__whose_jobs_are_refused_or_bring_no_worker_says_why(
    sweep, site, tmp_path, before, after, told
):
    site.write_text(site.read_text().replace(before, after))
    with sweeping(sweep[0], tmp_path / "store", "--cluster", site) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert told in err
    assert "Traceback" not in err
    assert jobs() == {}
