"""The identities of runs and of prepared datasets are those that were recorded, in any environment:
stored results are found by them. And what an earlier version stored is read.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import koco_stream
from flows.report.papers.computed import BEFORE
from koco_stream.learners import LEARNERS
from koco_stream.runs.run import Measured, Run
from koco_stream.streams.stream import Stream
from storage.preparing.prepare import prepare_file
from storage.results import read_runs

RECORDED = Path(__file__).with_name("identities.json")
EARLIER = RECORDED.with_name("earlier")
STORED = Stream("cadata", "0123456789abcdef" * 4)
SHUFFLED = replace(STORED, order="shuffled", order_seed=3)
WINDOWS = {"order": "shuffled-in-windows", "window_rows": 1000, "sharding": "fedcba98" * 4}
STREAMS = {
    "as stored": STORED,
    "shuffled": SHUFFLED,
    "shuffled in windows": replace(SHUFFLED, **WINDOWS),
    "one class": replace(STORED, positive_class=3.0),
    "all classes": replace(STORED, multiclass="one-vs-rest"),
    "first rows": replace(STORED, max_rows=500),
}
MEASURED = Measured(("auc", "kappa"), 100, True)


def sources(folder):
    """A file of each format, with its options."""
    X = np.arange(60).reshape(20, 3) % 7 / 2.0
    (folder / "a.csv").write_text("y,a,b\n" + "".join(f"{x[0]},{x[1]},{x[2]}\n" for x in X))
    (folder / "a.svm").write_text("".join(f"{k % 2} 2:{x[0]} 9:{x[1]}\n" for k, x in enumerate(X)))
    text = [f"{k} 1:0.1 2:{k / 7} 3:1e-9 9:0.7 101630:{k / 3} 2147483647:-0.3\n" for k in range(99)]
    (folder / "b.svm").write_text("".join(text))
    columns = {"y": ["spam", "ham"] * 10, "a": X[:, 0], "b": X[:, 1]}
    pq.write_table(pa.table(columns), folder / "a.parquet")
    return {
        "a.csv": {"target": "y"},
        "a.svm": {},
        "b.svm": {"hash_bits": 2, "scale": "unit-rows"},
        "a.parquet": {"target": "y", "labels": "spam=1,ham=-1"},
    }


def identities(folder):
    """What is recorded."""
    return {
        "learners": {
            name: Run.of(SHUFFLED, name, BEFORE.get(name, {}), 5).run_id
            for name in sorted(LEARNERS)
        },
        "streams": {name: Run.of(stream, "OGD", {}, 5).run_id for name, stream in STREAMS.items()},
        "measured": Run.of(STORED, "OGD", {}, 5, MEASURED).run_id,
        "datasets": {
            name: prepare_file(folder / "store", "a", folder / name, **options).dataset_hash
            for name, options in sources(folder).items()
        },
    }


def test_identities__are_those_recorded(tmp_path):
    found, recorded = identities(tmp_path), json.loads(RECORDED.read_text())
    (tmp_path / "identities.json").write_text(json.dumps(found, indent=1) + "\n")
    known = {name: found["learners"].get(name) for name in recorded["learners"]}
    assert found | {"learners": known} == recorded, (
        "Stored results would not be found any more. Unless a learner's numbers_version was raised"
        " (then its identity must be another), or a stream reads other rows, this"
        f" is a mistake. If it is meant: cp {tmp_path}/identities.json {RECORDED}"
    )


def test_default__that_is_given_makes_no_other_run_and_another_value_does():
    for name, learner in LEARNERS.items():
        assert Run.of(STORED, name, learner.complete({}), 5) == Run.of(STORED, name, {}, 5)
    usual, other = (Run.of(STORED, "OGD", {"projection": p}, 5) for p in ("weights", "prediction"))
    assert usual.params["projection"] == "weights"
    assert usual.run_id != other.run_id


def test_what_an_earlier_version_stored__is_read(tmp_path):
    predictions = koco_stream.load(EARLIER / "OGD.koco").predict(np.eye(4)[1:3] / 4)
    np.testing.assert_allclose(predictions, [-0.5465289521302141, -0.021166029025652178])
    X = [[-2.0, -2.0, 0.0, 0.0], [0.0, -2.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0]]
    classifier = koco_stream.Classifier.load(EARLIER / "classifier.koco")
    assert classifier.predict(X).tolist() == ["a", "b", "c"]
    runs = read_runs(shutil.copytree(EARLIER / "sweep", tmp_path / "store"))
    losses = dict(zip(*runs.select(["learner", "mean_loss"]).to_pydict().values(), strict=True))
    assert losses == {"AdaGrad": 0.28938210493320765, "OGD": 0.5997496844995281}
