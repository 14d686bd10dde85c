"""What older code has stored, kept in `stored/`: identities of runs and of prepared datasets, saved
models, a store.

`python -m tests.golden.make_stored --again TABLE ...` writes tables again. That is right only if a
change is meant: what is promised is that these files are read, and that identities stay.
"""

import argparse
import gzip
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import koco_stream
from koco_stream.runs.run import Run
from koco_stream.streams.manifest import Manifest, load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream, sharding_of
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_file
from tests.golden.cases import BASES, cases_of

STORED = Path(__file__).parent / "stored"
REFUSED = STORED / "refused"  # saved models whose random numbers this code no longer draws
SOURCES = STORED / "sources"
HELD_BACK = 10  # rows that a saved model learns from after it was loaded, twice

Given = dict[str, Any]


# Identities of runs
# --------------------------------------------------------------------------------------------------

STREAMS = {
    "as stored": Stream("a", "0123456789abcdef"),
    "shuffled": Stream("a", "0123456789abcdef", "shuffled", 3),
    "class": Stream("a", "0123456789abcdef", "shuffled", 0, 2.0),
    "first rows": Stream("a", "0123456789abcdef", max_rows=1000),
    "windows": Stream(
        "b", "fedcba9876543210", "shuffled-in-windows", 1, window_rows=64, sharding="0f1e2d3c"
    ),
    "all": Stream("b", "fedcba9876543210", "shuffled-in-windows", 7, -1.0, 10**12, 1, "0f1e2d3c"),
}


def named_runs() -> Iterator[tuple[str, Given, int, str]]:
    """Learner, parameters, learner_seed and stream of the runs whose identity is recorded."""
    for learner, base in BASES.items():
        given: list[Given] = [{}, base]
        for case in cases_of(learner):
            given.append({name: value for name, value in case.given.items() if name != "seed"})
        for k, one in enumerate(given):
            if one not in given[:k]:
                yield learner, one, 5, "shuffled"
        for stream in STREAMS:
            for seed in (0, 2**40):
                yield learner, base, seed, stream


def run_of(name: str) -> Run:
    """The run of a name, which is JSON: learner, parameters, learner_seed, stream."""
    learner, given, seed, stream = json.loads(name)
    return Run.of(STREAMS[stream], learner, given, seed)


def run_ids() -> dict[str, Any]:
    """Run ids by the runs' names, which say all of them but what the streams are."""
    return {
        "streams": {name: asdict(stream) for name, stream in STREAMS.items()},
        "ids": {name: run_of(name).run_id for name in map(json.dumps, named_runs())},
    }


# Prepared datasets
# --------------------------------------------------------------------------------------------------

FILES: dict[str, tuple[str, Given]] = {
    "words": ("words.svm", {"values_per_shard": 150}),
    "words,unit-rows": ("words.svm", {"scale": "unit-rows", "values_per_shard": 150}),
    "words,minmax": ("words.svm", {"scale": "minmax"}),
    "words,unit-mean-square": ("words.svm", {"scale": "unit-mean-square"}),
    "words,tf-idf": ("words.svm", {"scale": "tf-idf"}),
    "words,dense": ("words.svm", {"layout": "dense", "values_per_shard": 900}),
    "words,hashed": ("words.svm", {"hash_bits": 4}),
    "real": ("real.csv", {"target": "y", "values_per_shard": 200}),
    "real,minmax": ("real.csv", {"target": "y", "scale": "minmax", "values_per_shard": 200}),
    "real,unit-rows": ("real.csv", {"target": "y", "scale": "unit-rows"}),
    "real,sparse": ("real.csv", {"target": "y", "layout": "sparse", "drop": ("a",)}),
}
GENERATED: dict[str, tuple[str, Given]] = {
    "ill-conditioned": ("ill-conditioned", {"n_rows": 90, "n_features": 6}),
    "slice-like": ("slice-like", {"n_rows": 80, "n_features": 8, "n_factors": 3}),
    "adversary": ("adversary", {"n_rows": 61, "n_features": 3, "clip": 2.0, "scale": "minmax"}),
    "sparse-text": ("sparse-text", {"n_rows": 70, "n_features": 200, "mean_nonzeros": 8.0}),
}


def prepare(store: Path, name: str) -> Manifest:
    """One of the datasets of `FILES` or `GENERATED`, prepared now."""
    if name in FILES:
        source, how = FILES[name]
        return prepare_file(store, name, SOURCES / source, **how)
    return prepare_synthetic(store, *GENERATED[name])


def orders_of(manifest: Manifest) -> list[Stream]:
    """A stream of the dataset in each order."""
    name, identity = manifest.name, manifest.dataset_hash
    return [
        Stream(name, identity),
        Stream(name, identity, "shuffled", 3),
        Stream(
            name, identity, "shuffled-in-windows", 3, window_rows=16, sharding=sharding_of(manifest)
        ),
        Stream(name, identity, "shuffled", 4, 1.0, 50),
    ]


def rows_of(store: Path, stream: Stream) -> str:
    """A hash of the stream's rows and labels, in their order."""
    rows, labels = StreamReader(store, stream).whole()
    found = hashlib.sha256(labels.tobytes())
    for t in range(rows.n_rows):
        a, b = int(rows.indptr[t]), int(rows.indptr[t + 1])
        indices = rows.indices[a:b] if rows.index_stride else rows.indices
        found.update(np.ascontiguousarray(indices, np.int64).tobytes())
        found.update(np.ascontiguousarray(rows.values[a:b]).tobytes())
    return found.hexdigest()[:16]


def prepared_values(store: Path, manifest: Manifest) -> dict[str, Any]:
    """What a dataset is: its identity, its shards' rows, what a manifest says, and its rows in each
    order.
    """
    return {
        "dataset_hash": manifest.dataset_hash,
        "kind": [manifest.layout, manifest.value_type, manifest.task],
        "size": [manifest.n_rows, manifest.n_features, manifest.n_values],
        "classes": manifest.classes,
        "transformations": manifest.transformations,
        "shards": [[shard.path, shard.n_rows, shard.n_values] for shard in manifest.shards],
        "sharding": sharding_of(manifest),
        "orders": [rows_of(store, stream) for stream in orders_of(manifest)],
    }


def prepared() -> dict[str, Any]:
    """All datasets."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            name: prepared_values(Path(folder), prepare(Path(folder), name))
            for name in (*FILES, *GENERATED)
        }


# Saved models
# --------------------------------------------------------------------------------------------------

OPTIONS: dict[str, Given] = {
    "OjaSON": {"diagonal": True, "fit_intercept": True, "sketch_start": "random"},
    "FDSON": {"diagonal": True, "sketch_size": 2},
    "RPSON": {"diagonal": "updated", "projection": "prediction", "loss": "half_squared"},
    "ONS": {"loss": "logistic", "clip": 2.5, "fit_intercept": True},
    "CONKONS": {"curvature": 0.2, "curvature_schedule": "decreasing", "fit_intercept": True},
    "KONS": {"kernel": "polynomial", "fit_intercept": True},
    "NOGD": {"kernel": "linear", "budget": 9, "rank": 4},
}
NAMED = "OGD-named"  # has learnt from a data frame
FEATURES = list("abcde")


# The learner and parameters of each saved model, by the name of its file.
SAVED: dict[str, tuple[str, Given]] = {
    **{name: (name, base) for name, base in BASES.items()},
    **{f"{name}-options": (name, {**BASES[name], **more}) for name, more in OPTIONS.items()},
    NAMED: ("OGD", BASES["OGD"]),
}


def model_rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows X (120, 5) and labels (120,) within 1; signs of ±1 are for the other losses."""
    table = np.loadtxt(SOURCES / "real.csv", delimiter=",", skiprows=1)
    X, y = table[:, :5] * [1.0, 0.5, 2.0, 0.1, 1.0], table[:, 5] / 8.0
    return X, np.clip(y, -1.0, 1.0)


def labels_for(model: Any, y: np.ndarray) -> np.ndarray:
    """The labels that the model's loss takes."""
    return y if model.loss in ("squared", "half_squared") else np.where(y >= 0.0, 1.0, -1.0)


def predictions_of(model: Any, rounds: int) -> dict[str, list[float]]:
    """What a model says that has learnt from the first rows, so many, and what it goes on to."""
    X, y = model_rows()
    labels = labels_for(model, y)
    more = slice(rounds, rounds + HELD_BACK)
    later = slice(more.stop, more.stop + HELD_BACK)

    def rows(of: slice) -> Any:
        return (
            pd.DataFrame(X[of], columns=FEATURES) if hasattr(model, "feature_names_in_") else X[of]
        )

    return {
        "predict": model.predict(rows(more)).tolist(),
        "progressive": model.progressive(rows(more), labels[more]).tolist(),
        "after": model.partial_fit(rows(later), labels[later])
        .predict(rows(slice(HELD_BACK)))
        .tolist(),
    }


def model_file(name: str) -> Path:
    """The path of a saved model."""
    return STORED / "models" / f"{name}.koco.gz"


def models() -> dict[str, Any]:
    """A small saved model of each learner, and what it says."""
    X, y = model_rows()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (learner, given) in SAVED.items():
            model = getattr(koco_stream, learner)(**given, seed=3)
            rounds = 20 if "KONS" in learner else 60
            first = pd.DataFrame(X[:rounds], columns=FEATURES) if name == NAMED else X[:rounds]
            model.partial_fit(first, labels_for(model, y)[:rounds])
            path = Path(folder, "a.koco")
            model.save(path)
            packed(path, model_file(name))
            params = model.get_params()
            found[name] = {
                "learner": learner,
                "params": params,
                "rounds": rounds,
                **predictions_of(model, rounds),
            }
    return found


def packed(path: Path, to: Path) -> None:
    """Keep a file in little space: a state is mostly room that is not used yet."""
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def unpacked(path: Path, to: Path) -> Path:
    """The file that was packed."""
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(gzip.decompress(path.read_bytes()))
    return to


# A store
# --------------------------------------------------------------------------------------------------

OLD_STORE = STORED / "old_store"  # a folder named `store` is ignored by git


def old_store() -> dict[str, Any]:
    """A store with three datasets."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        prepare_file(store, "real", SOURCES / "real.csv", target="y", values_per_shard=200)
        prepare_file(store, "words", SOURCES / "words.svm", scale="unit-rows")
        prepare_synthetic(store, "ill-conditioned", {"n_rows": 60, "n_features": 4})
        (store / "koco-store.lock").unlink(missing_ok=True)
        shutil.rmtree(OLD_STORE, ignore_errors=True)
        shutil.copytree(store, OLD_STORE)
        return {
            "orders": {
                name: [rows_of(store, order) for order in orders_of(load_manifest(store, name))]
                for name in ("real", "words")
            }
        }


TABLES = {table.__name__: table for table in (run_ids, prepared, models, old_store)}


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.golden.make_stored")
    options.add_argument("--again", nargs="+", choices=TABLES, required=True, metavar="TABLE")
    for table in options.parse_args().again:
        text = json.dumps(TABLES[table](), indent=1, ensure_ascii=False)
        (STORED / f"{table}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
