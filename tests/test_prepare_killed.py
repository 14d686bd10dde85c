"""A preparation killed at any moment leaves the old dataset or the new one, whole, and the next one completes."""

import subprocess
import sys

import numpy as np
import pytest

from koco_stream.manifest import load_manifest
from storage.prepare import prepare_file
from storage.verify import dataset_problems


def write_source(path, seed):
    draw = np.random.default_rng(seed)
    rows = [np.sort(draw.choice(50, 6, replace=False)) + 1 for _ in range(200)]
    path.write_text("".join(f"{t % 2} " + " ".join(f"{j}:{draw.random():.4f}" for j in row) + "\n" for t, row in enumerate(rows)))
    return path


def killed(store, source, at):
    """Prepare in another process that is killed before its change number `at`; (whether it was killed, what it printed)."""
    command = [sys.executable, "-m", "tests.prepare_until_killed", str(store), str(source), str(at)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == -9, done.stdout


def check(seeds, tmp_path):
    old, new = write_source(tmp_path / "old.svm", 1), write_source(tmp_path / "new.svm", 2)
    want = {prepare_file(tmp_path / "other", "x", source, scale="unit-rows").dataset_hash for source in (old, new)}
    store = tmp_path / "first" / "store"
    prepare_file(store, "x", old, scale="unit-rows", values_per_shard=500)
    changes = int(killed(store, new, 0)[1])
    assert changes > 20
    left = set()
    for seed in seeds:
        store = tmp_path / f"seed-{seed}" / "store"
        before = prepare_file(store, "x", old, scale="unit-rows", values_per_shard=500)
        at = int(np.random.default_rng([seed, 5]).integers(1, changes + 1))
        assert killed(store, new, at)[0]
        assert dataset_problems(store, "x") == []
        after = load_manifest(store, "x")
        assert after.dataset_hash in want
        left.add(after.dataset_hash == before.dataset_hash)
        assert prepare_file(store, "x", new, scale="unit-rows", values_per_shard=300).dataset_hash != before.dataset_hash
        assert dataset_problems(store, "x") == []
        assert not (store / ".staging").exists()
    return left


def test_killed_at_five_moments(tmp_path):
    check(range(5), tmp_path)


@pytest.mark.soak
def test_killed_at_thirty_moments(tmp_path):
    assert check(range(30), tmp_path) == {True, False}  # before it was published and after
