"""A preparation killed at any moment leaves the old dataset or the new one, whole, and the next one
completes.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from itertools import count
from resource import RLIMIT_FSIZE, setrlimit

import numpy as np
import pytest

from koco_stream.streams.manifest import load_manifest
from storage.dataset import dataset_problems
from storage.preparing.prepare import prepare_file
from storage.store import staging_folder
from tests.helpers.project import command, environment
from tests.helpers.sweeps import random_source


def killed(store, source, at):
    """Prepare in another process that is killed before its change number `at`, never for 0."""
    words = [sys.executable, "-m", "tests.helpers.prepare_until_killed", store, source, str(at)]
    return subprocess.run(words, env=environment(), capture_output=True, text=True)


@pytest.mark.parametrize("moments", [5, pytest.param(30, marks=pytest.mark.soak)])
def test_killed_at_any_moment__leaves_the_old_dataset_or_the_new_one(moments, tmp_path):
    old, new = random_source(tmp_path / "old.svm", 1), random_source(tmp_path / "new.svm", 2)
    hashes = [
        prepare_file(tmp_path / "other", "x", source, scale="unit-rows").dataset_hash
        for source in (old, new)
    ]
    store = tmp_path / "first" / "store"
    prepare_file(store, "x", old, scale="unit-rows", values_per_shard=500)
    changes = int(killed(store, new, 0).stdout)
    assert changes > 20
    left = set()
    for seed in range(moments):
        store = tmp_path / f"seed-{seed}" / "store"
        prepare_file(store, "x", old, scale="unit-rows", values_per_shard=500)
        ended = killed(store, new, int(np.random.default_rng([seed, 5]).integers(1, changes + 1)))
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert dataset_problems(store, "x") == []
        left.add(load_manifest(store, "x").dataset_hash)
        again = prepare_file(store, "x", new, scale="unit-rows", values_per_shard=300)
        assert again.dataset_hash == hashes[1]
        assert dataset_problems(store, "x") == []
        assert not (store / ".staging").exists()
    assert left <= set(hashes)
    assert moments < 30 or len(left) == 2  # killed before it was published and after


def test_stopped_by_hand_with_workers__says_so_in_one_line_and_leaves_nothing(tmp_path):
    rows = (b"%d %d:%d\n" % (t % 2, 1 + t % 50, t % 97) for t in range(50_000))
    (tmp_path / "a.svm").write_bytes(b"".join(rows) * 200)
    code = "import flows.cli, flows.preparing.preparation as p; p.LARGE = 0; flows.cli.main()"
    files = ["--from", tmp_path / "a.svm", "--store", tmp_path / "s"]
    words = [sys.executable, "-c", code, "prepare", "x", "--workers", "2", *files]
    begun = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while begun.poll() is None and not list(tmp_path.glob("s/.staging/*/scratch/chunk-*")):
        time.sleep(0.02)
    os.killpg(begun.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    said = begun.communicate(timeout=300)[1]  # ends when no process has stderr open: none is left
    assert begun.returncode == 1, said
    assert re.fullmatch("reading .*\nkoco: stopped.*", "\n".join(said.splitlines())), said
    assert not (tmp_path / "s").exists()


def test_staging_folder__goes_while_workers_still_write_in_it(tmp_path):
    writing = threading.Event()

    def write(folder):
        for number in count():
            try:
                (folder / f"chunk-{number}").touch()
            except FileNotFoundError:
                return
            writing.set()

    for _ in range(5):
        with staging_folder(tmp_path / "store") as folder:
            writer = threading.Thread(target=write, args=(folder,))
            writer.start()
            assert writing.wait(60)
        writer.join(60)
        assert not writer.is_alive()
        assert not (tmp_path / "store").exists()
        writing.clear()


def test_no_room__is_said_and_leaves_the_store_as_it_was(tmp_path):
    source, store = random_source(tmp_path / "a.svm", 1), tmp_path / "store"
    before = prepare_file(store, "x", source)
    source.write_text(source.read_text() * 200)
    done = subprocess.run(
        command("prepare", "x", "--replace", "--from", source, "--store", store, "--workers", 0),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        # of a file: what a full disk is, for one process
        preexec_fn=lambda: setrlimit(RLIMIT_FSIZE, (500_000, 500_000)),
    )
    assert done.returncode == 1
    assert f"no disk space to prepare x in {store}" in done.stderr.splitlines()[-1]
    assert load_manifest(store, "x") == before
    assert dataset_problems(store, "x") == []
    assert not (store / ".staging").exists()
