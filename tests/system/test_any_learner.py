"""A sweep in a folder of its own with learners of a file, of River, of scikit-learn and of Vowpal
Wabbit beside ours: its numbers are right.
"""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from koco_stream.streams.reader import StreamReader
from storage.preparing.prepare import prepare_file
from storage.results import read_runs
from tests.helpers.project import ROOT
from tests.helpers.sweeps import stream_of
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


def own_program(options, stream, folder):
    """The mean loss that Vowpal Wabbit's own program reports for the stream's rows."""
    with (folder / "rows.vw").open("w") as text:
        for block in StreamReader(folder / "store", stream).blocks():
            rows, d = block.rows, block.rows.n_features
            for t, label in enumerate(block.labels.tolist()):
                these = slice(rows.indptr[t], rows.indptr[t + 1])
                idx = rows.indices[these] if rows.index_stride else np.arange(d)
                pairs = zip(idx.tolist(), rows.values[these].tolist(), strict=True)
                text.write(f"{label:g} |" + "".join(f" {j}:{v:.9g}" for j, v in pairs) + "\n")
    words = [sys.executable, "-m", "vowpalwabbit", "-d", folder / "rows.vw", *options.split()]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(re.search(r"average loss = (\S+)", done.stdout + done.stderr)[1])


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
        stream = stream_of(folder / "store", row["dataset"], **given)
        options = json.loads(row["params"])["options"]
        seed = "" if row["learner_seed"] is None else f" --random_seed {row['learner_seed']}"
        reported = own_program(options + seed, stream, folder)
        assert abs(row["mean_loss"] - reported) < 1e-5, (row["dataset"], row["order_seed"])
