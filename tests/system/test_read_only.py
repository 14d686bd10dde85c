"""A store that may only be read, also from the middle of a sweep on: it is read, and what writes
says so in one line and loses nothing. Root can write anywhere, but not without its capabilities.
"""

import os
import shutil
import subprocess

import pytest

from tests.helpers.project import PATIENCE, ROOT, command, environment, wait_until
from tests.helpers.sweeps import koco, tables, written

PLAIN = "dac_override,-dac_read_search,-fowner"  # capabilities that let root ignore modes
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root, and setpriv"
)
SPEC = """
name = "s"
[[dataset]]
name = "ill-conditioned"
condition_number = [10]
[[learner]]
name = "OjaSON"
alpha = { powers_of_two = [-6, 6] }
clip = [1, 2, 3, 4]
[[learner]]
name = "AdaGrad"
"""


def begun(*words):
    """`koco WORDS` without the rights of root."""
    return subprocess.Popen(
        ["setpriv", f"--bounding-set=-{PLAIN}", f"--inh-caps=-{PLAIN}", *command(*words)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def may_write(store, yes):
    subprocess.run(["chmod", "-R", "u+w" if yes else "a-w", store], check=True)


def content(store):
    return {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A sweep file, and a store in which the sweep has run."""
    folder = tmp_path_factory.mktemp("read-only")
    koco(
        "sweep",
        written(folder, SPEC, "s.toml"),
        "--store",
        folder / "store",
        "--workers",
        0,
        cwd=ROOT,
        status=0,
    )
    return folder


def test_read_only_store__is_read__and_what_writes_says_so(made, tmp_path):
    store = shutil.copytree(made / "store", tmp_path / "store")
    (tmp_path / "t.csv").write_text("a,label\n1,2\n3,4\n")
    (tmp_path / "more.toml").write_text(SPEC.replace("AdaGrad", "OGD"))
    may_write(store, False)
    before = content(store)
    for words, status in (
        *((("results",), 0), (("list",), 0), (("compare", "s"), 0)),
        (("report", "s"), 1),
        (("prepare", "t", "--from", tmp_path / "t.csv", "--target", "label"), 1),
        (("sweep", tmp_path / "more.toml", "--workers", 0), 1),
        (("store", "remove", "sweep", "s"), 1),
    ):
        process = begun(*words, "--store", store)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == status, (words, said)
        assert "Traceback" not in said
        assert status == 0 or "Permission denied; change its permissions" in " ".join(said.split())
    may_write(store, True)
    assert content(store) == before


@pytest.mark.parametrize("workers", [0, 1])
def test_store_that_becomes_read_only__ends_the_sweep__and_nothing_is_lost(workers, made, tmp_path):
    store = tmp_path / "store"
    words = ("sweep", made / "s.toml", "--store", store, "--workers", workers)
    process = begun(*words)
    results = store / "results"
    wait_until(
        lambda: [*results.glob("*/*.parquet")] or process.poll() is not None, "no result came"
    )
    may_write(store, False)
    _, said = process.communicate(timeout=PATIENCE)
    may_write(store, True)
    # it may have been too late, when all was written but the report
    assert process.returncode == 1, said
    assert "Permission denied; change its permissions" in " ".join(said.split())
    assert "Traceback" not in said
    process = begun(*words)
    assert process.communicate(timeout=PATIENCE) is not None
    assert process.returncode == 0
    assert tables(store) == tables(made / "store")
    assert not list(store.rglob("*.tmp"))
