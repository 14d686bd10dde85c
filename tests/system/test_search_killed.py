"""A search that is killed, again and again, chooses and computes what it would have anyway."""

import random
import shutil

import numpy as np
import pytest

from storage.preparing.prepare import prepare_file
from tests.helpers.disturbed import Blow, DisturbedSweep, finished
from tests.helpers.project import PATIENCE
from tests.helpers.sweeps import tables

KILLS = 5
SEARCHES = {
    "sobol": 'method = "sobol"\nsamples = 128',
    "tpe": 'method = "tpe"\nsamples = 40\nbatch = 8',
}
MORE = {"samples = 128": "samples = 256", "samples = 40": "samples = 56"}
SPEC = """
name = "searched"
[search]
SEARCH
[[dataset]]
name = "dense"
[[dataset]]
name = "sparse"
order = "shuffled"
[[learner]]
name = "OjaSON"
sketch_size = { integer = [0, 10] }
sketch_start = { choice = ["random", "gradients"] }
alpha = { log_uniform = [1e-3, 1e3] }
[[learner]]
name = "AdaGrad"
step_size = { log_uniform = [1e-4, 1e1] }
[[learner]]
name = "FOGD"
n_frequencies = { integer = [2, 20] }
bandwidth = { log_uniform = [0.3, 10] }
step_size = { log_uniform = [1e-4, 1] }
"""
SHORT = {"KOCO_TEST_RUNS": "6"}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A store with a regression set and a sparse classification set."""
    folder, draw = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    X = draw.standard_normal((5000, 20))
    y = X @ draw.standard_normal(20) + draw.standard_normal(5000)
    np.savetxt(folder / "dense.csv", np.column_stack([X, y]), fmt="%.4f", delimiter=",")
    prepare_file(folder / "store", "dense", folder / "dense.csv", scale="minmax")
    weights, lines = draw.standard_normal(200), []
    for _ in range(5000):
        columns = np.sort(draw.choice(200, 12, replace=False))
        label = 1 if weights[columns].sum() > 0 else -1
        lines.append(f"{label} " + " ".join(f"{j + 1}:1" for j in columns))
    (folder / "sparse.svm").write_text("\n".join(lines) + "\n")
    prepare_file(folder / "store", "sparse", folder / "sparse.svm", scale="unit-rows")
    yield folder / "store"
    shutil.rmtree(folder)


def ended(sweep):
    """Wait for a sweep's end; its summary."""
    assert sweep.process.wait(PATIENCE) == 0, sweep.said()
    sweep.wait_for_its_processes()
    return sweep.summary()


@pytest.mark.soak
@pytest.mark.parametrize("method", SEARCHES)
def test_search_killed__goes_on_to_the_same_tables_and_extends(method, empty, tmp_path):
    spec, draw = tmp_path / "searched.toml", random.Random(method)
    spec.write_text(SPEC.replace("SEARCH", SEARCHES[method]))

    def begun(store):
        words = [spec, "--store", store, "--workers", "2", "--no-prefect"]
        return DisturbedSweep(tmp_path, words, store, SHORT)

    undisturbed = shutil.copytree(empty, tmp_path / "undisturbed")
    total = ended(begun(undisturbed))["computed"]
    wanted = tables(undisturbed)
    store, kept, killed = shutil.copytree(empty, tmp_path / "store"), {}, 0
    while killed < KILLS or len(kept) in (0, total):
        sweep = begun(store)
        if not sweep.reaches(Blow("driver", "computing", draw.randrange(9), draw.random(), 0)):
            ended(sweep)  # there were fewer files left: from the beginning, until it is killed
            assert tables(store) == wanted
            shutil.rmtree(store)
            store, kept = shutil.copytree(empty, store), {}
            continue
        sweep.process.kill()
        assert sweep.process.wait(PATIENCE) == -9
        sweep.wait_for_its_processes()
        killed, before, kept = killed + 1, kept, finished(store)
        assert kept.items() >= before.items()
        print(f"\n{method}: killed with {len(kept)} of {total} runs kept", end="")
    assert 0 < len(kept) < total
    summary = ended(begun(store))
    assert (summary["runs"], summary["computed"]) == (total, total - len(kept))
    assert tables(store) == wanted
    assert finished(store).items() >= kept.items()

    kept = finished(store)
    for few, many in MORE.items():
        spec.write_text(spec.read_text().replace(few, many))
    summary = ended(begun(store))
    print(
        f"\n{method}: {total} runs, extended to {summary['runs']}: {summary['computed']} computed"
    )
    assert summary["computed"] == summary["runs"] - total > 0
    assert finished(store).items() >= kept.items()  # none of them was computed again
