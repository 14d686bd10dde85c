"""A dataset that is replaced and removed again and again while it is swept: each sweep is refused
or fails in words, or its numbers are those of one version of the dataset.
"""

import threading

import numpy as np

from koco_stream.streams.manifest import load_manifest
from storage.results import read_curves, read_runs
from tests.helpers.project import ROOT
from tests.helpers.swept import koco

SPEC = """
name = "s{seed}"
[[dataset]]
name = "d"
order = "shuffled"
order_seeds = [{seed}, {other}]
[[learner]]
name = "OjaSON"
alpha = [0.5, 1, 2, 4]
"""
VERSIONS = 2
ROWS = 20_000


def prepare(store, file, *more):
    """Prepare the dataset; its exit status, and what it said."""
    words = ("prepare", "d", "--from", file, "--store", store, *more)
    done = koco(*words, cwd=ROOT)
    return done.returncode, done.stderr


def test_sweeps__while_the_dataset_changes__have_numbers_of_one_version(tmp_path):
    files, hashes, draw = [], {}, np.random.default_rng(0)
    specs = [tmp_path / f"s{k}.toml" for k in range(2)]
    for k, spec in enumerate(specs):
        spec.write_text(SPEC.format(seed=2 * k, other=2 * k + 1))
    wanted = {}
    for version in range(VERSIONS):
        X = draw.standard_normal((ROWS, 10)) / 4
        files.append(tmp_path / f"{version}.csv")
        table = np.column_stack([X.sum(1) + version, X])
        np.savetxt(files[-1], table, fmt="%.4f", delimiter=",")
        store = tmp_path / f"alone-{version}"
        assert prepare(store, files[-1])[0] == 0
        hashes[load_manifest(store, "d").dataset_hash] = version
        for spec in specs:
            koco("sweep", spec, "--store", store, "--workers", 0, cwd=ROOT, status=0)
        wanted |= {row["run_id"]: row["mean_loss"] for row in read_runs(store).to_pylist()}
    assert len(hashes) == VERSIONS
    store, ended, said = tmp_path / "store", threading.Event(), []
    assert prepare(store, files[0])[0] == 0

    def change():
        """Replace it by the other version, or remove it and prepare it anew."""
        k = 0
        while not ended.is_set():
            k += 1
            if k % 3 == 0:
                words = ("remove", "dataset", "d", "--force", "--store", store)
                said.append(koco(*words, cwd=ROOT).stderr)
            said.append(prepare(store, files[k % VERSIONS], "--replace")[1])

    beside = threading.Thread(target=change)
    beside.start()
    try:
        for spec in [*specs, *specs]:
            done = koco("sweep", spec, "--store", store, "--workers", 0, cwd=ROOT)
            said.append(done.stderr)
            assert done.returncode in (0, 1, 2), done.stderr
    finally:
        ended.set()
        beside.join()
    assert [text for text in said if "Traceback" in text] == []
    found = read_runs(store).to_pylist()
    ok = [row for row in found if row["status"] == "ok"]
    for row in ok:
        assert row["mean_loss"] == wanted[row["run_id"]]
        assert row["dataset_hash"] in hashes
    assert {row["status"] for row in found} <= {"ok", "failed"}
    curves = set(read_curves(store).column("run_id").to_pylist())
    assert {row["run_id"] for row in ok} <= curves
