"""A sweep in a folder of its own with learners of a file, of River, of scikit-learn and of Vowpal
Wabbit beside ours: its numbers are right.
"""

import json
import shutil

import pytest

from storage.preparing.prepare import prepare_file
from storage.results import read_runs
from tests.helpers.foreign import own_program
from tests.helpers.project import ROOT
from tests.helpers.sweeps import dense_rows
from tests.helpers.swept import koco

OJA = "--OjaNewton --sketch_size 10"
SWEEP = f"""
name = "any"
[[dataset]]
name = "magic04"
order = "shuffled"
order_seeds = 3
max_rows = 4000
[[dataset]]
name = "a9a"
order = "shuffled"
order_seeds = 3
max_rows = 4000
[[learner]]
name = "nlms.py:NLMS"
step_size = [0.01, 0.1]
[[learner]]
name = "river.linear_model:LogisticRegression"
l2 = [0.0, 0.001]
[[learner]]
name = "sklearn.linear_model:SGDClassifier"
loss = ["log_loss", "hinge"]
[[learner]]
name = "vw"
options = "{OJA}"
[[learner]]
name = "OjaSON"
alpha = [1, 10]
[[learner]]
name = "AdaGrad"
step_size = [0.1, 0.3]
"""
NAMES = {
    "nlms.py:NLMS": "own",
    "river.linear_model:LogisticRegression": "foreign",
    "sklearn.linear_model:SGDClassifier": "foreign",
    "vw": "foreign",
    "OjaSON": "own",
    "AdaGrad": "own",
}
ROWS = 2 * 3 * (2 + 2 + 2 + 1 + 2 + 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data_folder):
    """A folder with two prepared real sets, a learner's file and a sweep file."""
    for package in ("river", "sklearn", "vowpalwabbit"):
        pytest.importorskip(package, reason=f"needs {package}, which is not installed")
    folder = tmp_path_factory.mktemp("outside")
    prepare_file(
        folder / "store",
        "magic04",
        data_folder / "magic04" / "magic04.data.xz",
        labels="g=1,h=-1",
        header=False,
        scale="minmax",
    )
    prepare_file(folder / "store", "a9a", data_folder / "a9a" / "a9a.xz", scale="unit-rows")
    shutil.copy(ROOT / "examples" / "nlms.py", folder)
    (folder / "any.toml").write_text(SWEEP)
    return folder


def test_sweep_of_all_kinds__has_every_row_and_the_right_numbers(folder):
    koco("sweep", "any.toml", "--store", "store", "--workers", 2, cwd=folder, status=0)
    rows = read_runs(folder / "store").to_pylist()
    assert len(rows) == ROWS
    assert {row["status"] for row in rows} == {"ok"}, {row["error"] for row in rows}
    assert {row["rounds"] for row in rows} == {4000}
    assert {(row["learner"], row["numbers"]) for row in rows} == set(NAMES.items())
    page = (folder / "store" / "reports" / "any.html").read_text()
    assert [name for name in NAMES if name not in page] == []
    assert "Learners of other libraries ran in separate processes." in page

    of_vw = [row for row in rows if row["learner"] == "vw"]
    assert len(of_vw) == 6
    for row in of_vw:
        given = {key: row[key] for key in ("order", "order_seed", "max_rows")}
        X, y = dense_rows(folder / "store", row["dataset"], **given)
        options = json.loads(row["params"])["options"]
        seed = "" if row["learner_seed"] is None else f" --random_seed {row['learner_seed']}"
        reported, _ = own_program(options + seed, X, y, folder)
        assert abs(row["mean_loss"] - reported) < 1e-5, (row["dataset"], row["order_seed"])
