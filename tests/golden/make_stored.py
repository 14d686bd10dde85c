"""What the code wrote and computed once, kept in `stored/`: identities of runs, prepared datasets,
result tables, plans, saved models, a checkpoint, a store.

`python -m tests.golden.make_stored [PART ...]` writes the parts that are not there; with `--again`
those that are there too. A part is written again only where its change is meant: what is promised
is that files written then are read now, and that numbers computed then are computed now.
"""

import argparse
import gzip
import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import koco_stream
from cluster.executors import run_serially
from flows.sweep.steps import remember
from koco_stream.engine.checkpoint import checkpoint_of, save_cohort
from koco_stream.engine.cohort import advance_runs, run_cohort
from koco_stream.io.array_file import read_arrays
from koco_stream.learners import LEARNERS
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.planner import Limits, plan
from koco_stream.runs.run import Cohort, Run, RunState, without_repeats
from koco_stream.runs.schemas import CURVES, RUNS, curve_points
from koco_stream.streams.manifest import Manifest, load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream, sharding_of
from storage.collecting import collect
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_file
from storage.results import read_curves, read_runs
from tests.golden.cases import BASES, cases_of, environment
from tests.helpers.sweeps import checked, sizes_of

STORED = Path(__file__).parent / "stored"
SOURCES = STORED / "sources"
# Found with BLAS, to a stated accuracy: their last digits are the machine's.
SOLVED = ("regret", "comparator_largest")
HELD_BACK = 10  # rows that a saved model learns from after it was loaded, and records then
CHECKPOINT_ROUNDS = 50

Given = dict[str, Any]


# Hashes
# --------------------------------------------------------------------------------------------------


def exact(value: Any) -> Any:
    """The value with floats as hexadecimal text, inside dictionaries and lists."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {name: exact(inside) for name, inside in value.items()}
    return [exact(inside) for inside in value] if isinstance(value, list | tuple) else value


def digest(value: Any) -> str:
    """A hash of plain values, to the bit."""
    return hashlib.sha256(json.dumps(exact(value), sort_keys=True).encode()).hexdigest()[:16]


def recorded(part: str) -> dict[str, Any]:
    """What was recorded of a part: `environment` and `values`."""
    return json.loads((STORED / f"{part}.json").read_text())


# Runs
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
            if one not in given[:k] and takes(learner, one):
                yield learner, one, 5, "shuffled"
        for stream in STREAMS:
            for seed in (0, 2**40):
                yield learner, base, seed, stream


def takes(learner: str, given: Given) -> bool:
    """Whether the learner takes these parameters: some have no default."""
    try:
        LEARNERS[learner].complete(given)
    except koco_stream.WrongInput:
        return False
    return True


def run_of(name: str) -> Run:
    """The run of a name, which is JSON: learner, parameters, learner_seed, stream."""
    learner, given, seed, stream = json.loads(name)
    return Run.of(STREAMS[stream], learner, given, seed)


EXPANDED = """name = "expanded"
learner_seeds = [3, 1]
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = [2, 5]
max_rows = 1000
[[dataset]]
name = "words"
positive_class = [1, 2.0, 3]
order = "shuffled-in-windows"
order_seeds = 2
window_rows = 16
[[learner]]
name = "OjaSON"
sketch_size = [0, 2]
sketch_rate = [1, 16]
diagonal = [true, false, "updated"]
alpha = { powers_of_two = [-2, 2] }
[[learner]]
name = "CONKONS"
alpha = 1
bandwidth = [0.5, 2]
carry = ["both", "weights"]
[[learner]]
name = "AdaGrad"
step_size = [0.5, 1, 1.0]
"""


def expanded_ids(folder: Path) -> list[str]:
    """The run ids of a sweep file, in their order."""
    prepare(folder / "store", "real")
    prepare(folder / "store", "words")
    (folder / "expanded.toml").write_text(EXPANDED)
    runs = checked(folder / "expanded.toml", folder / "store").runs
    return [run.run_id for run in runs]


def run_ids() -> dict[str, Any]:
    """Run ids by the runs' names, which say all of them but what the streams are; and of a sweep
    file.
    """
    names = [json.dumps(one) for one in named_runs()]
    with tempfile.TemporaryDirectory() as folder:
        ids = expanded_ids(Path(folder))
    return {
        "expanded": [len(ids), digest(ids)],
        "streams": {name: asdict(stream) for name, stream in STREAMS.items()},
        "ids": {name: run_of(name).run_id for name in names},
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
    """All datasets, and what depends on more than the rows: the hashes of files, and sums."""
    datasets, files, statistics = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in (*FILES, *GENERATED):
            manifest = prepare(Path(folder), name)
            datasets[name] = prepared_values(Path(folder), manifest)
            files[name] = [shard.sha256 for shard in manifest.shards]
            statistics[name] = manifest.statistics
    return {
        "datasets": datasets,
        "files": files,
        "statistics": statistics,
        "pyarrow": pa.__version__,
    }


# Result tables
# --------------------------------------------------------------------------------------------------

VARIANTS: list[Given] = [{}, {"fit_intercept": True}, {"loss": "logistic", "clip": 2.5}]
DIVERGING = ("OGD", {"step_size": 1e9, "clip": 1e300})


def swept_store(folder: Path) -> Path:
    """A store with a regression set and one with three classes, in several shards each."""
    store = folder / "store"
    prepare(store, "real,minmax")
    prepare(store, "words,unit-rows")
    return store


def swept_runs(store: Path) -> list[Run]:
    """Runs of every learner with several parameters on several streams."""
    real, words = (load_manifest(store, name) for name in ("real,minmax", "words,unit-rows"))
    streams = [
        (orders_of(real)[0], VARIANTS[:2]),
        (orders_of(real)[1], VARIANTS[:1]),
        (Stream(words.name, words.dataset_hash, "shuffled", 1, 2.0), VARIANTS),
        (
            Stream(
                words.name,
                words.dataset_hash,
                "shuffled-in-windows",
                2,
                3.0,
                100,
                16,
                sharding_of(words),
            ),
            VARIANTS[:1],
        ),
    ]
    runs = [
        Run.of(stream, learner, {**base, **more}, 1)
        for stream, variants in streams
        for learner, base in BASES.items()
        for more in variants
        if takes(learner, {**base, **more})
    ]
    learner, given = DIVERGING
    return [*runs, Run.of(orders_of(real)[0], learner, given, 1)]


def cohorts_of(store: Path, runs: Sequence[Run]) -> Sequence[Cohort]:
    """A plan of these runs with several cohorts for each stream."""
    sizes = sizes_of([load_manifest(store, run.stream.dataset) for run in runs])
    return plan(runs, sizes, Limits(2, 8 << 30, cohort_runs=15)).cohorts


def swept(store: Path, runs: Sequence[Run]) -> None:
    """Run these runs in this process."""
    run_serially(str(store), "golden", cohorts_of(store, runs), lambda receipt: None)


def columns_of() -> list[str]:
    """The columns of `runs` whose values are the same to the bit each time."""
    return [c.name for c in RUNS if not c.measured and c.name not in SOLVED]


def rows_by_id(runs: pa.Table, curves: pa.Table, columns: Sequence[str]) -> dict[str, Any]:
    """By run_id: hashes of the row (these columns of it) and of the curve, and some of what is in
    them.
    """
    lines: dict[str, list[Any]] = {}
    ordered = curves.sort_by([("run_id", "ascending"), ("t", "ascending")])
    for point in ordered.select([c.name for c in CURVES]).to_pylist():
        lines.setdefault(point.pop("run_id"), []).append(point)
    return {
        row["run_id"]: {
            "row": digest({name: row[name] for name in columns}),
            "curve": digest(lines.get(row["run_id"], [])),
            **{name: row[name] for name in ("learner", "status", "rounds", "mean_loss", *SOLVED)},
        }
        for row in sorted(runs.to_pylist(), key=lambda row: row["run_id"])
    }


def stored_rows(store: Path, columns: Sequence[str]) -> dict[str, Any]:
    """`rows_by_id` of all that a store has."""
    return rows_by_id(read_runs(store), read_curves(store), columns)


def tables() -> dict[str, Any]:
    """The tables of a small sweep over all learners."""
    with tempfile.TemporaryDirectory() as folder:
        store = swept_store(Path(folder))
        swept(store, swept_runs(store))
        collect(store)
        return {"columns": columns_of(), "rows": stored_rows(store, columns_of())}


# Plans
# --------------------------------------------------------------------------------------------------

WIDE = Stream("c", "00112233445566aa")
SIZES = {
    "0123456789abcdef": DataSize(200_000, 12, 2_400_000, 1 << 20),
    "fedcba9876543210": DataSize(1_500, 3_000, 45_000, 1 << 22),
    WIDE.dataset_hash: DataSize(20_000, 400, 8_000_000, 1 << 24),
}
LIMITS = {
    "one worker": Limits(1, 4 << 30),
    "many workers": Limits(16, 4 << 30),
    "little memory": Limits(4, 400 << 20),
    "short cohorts": Limits(4, 4 << 30, cohort_seconds=0.5, checkpoint_seconds=0.1),
    "few runs": Limits(2, 4 << 30, checkpoint_seconds=0.3, cohort_runs=11),
}
GROWING = ("KORS", "PROSNKONS", "CONKONS", "KONS", "SketchedKONS")
GRID = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]


def planned_runs() -> list[Run]:
    """Runs of learners that share kernel values, and of others, on several streams."""
    runs = []
    for name in ("as stored", "shuffled", "class", "first rows", "windows"):
        for learner, base in BASES.items():
            if learner in GROWING and name not in ("first rows", "windows"):
                continue  # of 200,000 rows they take more memory than a worker has
            grid = "alpha" if "alpha" in base else "clip"
            runs += [
                Run.of(STREAMS[name], learner, {**base, grid: value, **more}, 1)
                for value in GRID
                for more in ({}, {"fit_intercept": True})
            ]
    return without_repeats(runs)


def sharing_runs() -> list[Run]:
    """Runs whose shared kernel values take much of their time, two kinds of them."""
    base = {**BASES["NORMA"], "budget": 100}
    return [
        Run.of(WIDE, "NORMA", {**base, "clip": 0.1 + k, "bandwidth": bandwidth}, 1)
        for bandwidth in (2.0, 3.0)
        for k in range(200)
    ]


def planned(
    limits: Limits, begun: Sequence[Sequence[str]] = (), runs: Sequence[Run] | None = None
) -> dict[str, Any]:
    """The plan of these runs: each cohort's identity, which is the hash of its run ids in their
    order, its learners, checkpoints and seconds; and the memory.
    """
    found = plan(runs or planned_runs(), SIZES, limits, begun)
    return {
        "cohorts": [
            [
                cohort.cohort_id,
                " ".join(
                    f"{name}*{count}"
                    for name, count in Counter(run.learner for run in cohort.runs).items()
                ),
                cohort.checkpoint_rounds,
                cohort.seconds,
            ]
            for cohort in found.cohorts
        ],
        "memory": found.memory,
    }


def begun_cohorts() -> list[tuple[str, ...]]:
    """Cohorts that left a checkpoint: every third run of a stream, and one with an unknown run."""
    ids = [run.run_id for run in planned_runs() if run.stream == STREAMS["as stored"]]
    return [tuple(ids[::3]), (ids[1], "0" * 32)]


def planned_as(name: str) -> dict[str, Any]:
    """The plan with limits of this name, or one of two that differ in more."""
    if name == "begun":
        return planned(LIMITS["many workers"], begun_cohorts())
    if name == "sharing":
        return planned(Limits(3, 4 << 30), runs=sharing_runs())
    return planned(LIMITS[name])


def plans() -> dict[str, Any]:
    """The plans, by their names."""
    return {name: planned_as(name) for name in (*LIMITS, "begun", "sharing")}


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


def saved_models() -> dict[str, tuple[str, Given]]:
    """The learner and parameters of each saved model, by the name of its file."""
    return {
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
    squared = model.loss in ("squared", "half_squared")
    return y if squared else np.where(y >= 0.0, 1.0, -1.0)


def predictions_of(model: Any, rounds: int) -> dict[str, Any]:
    """What a model says that has learnt from the first rows, so many, and what it goes on to."""
    X, y = model_rows()
    labels = labels_for(model, y)
    more = slice(rounds, rounds + HELD_BACK)
    later = slice(more.stop, more.stop + HELD_BACK)

    def rows(of: slice) -> Any:
        return pd.DataFrame(X[of], columns=FEATURES) if model_has_names(model) else X[of]

    asked = model.predict(rows(more))
    went_on = model.progressive(rows(more), labels[more])
    noted = model.record(rows(later), labels[later])
    return {
        "rounds": rounds,
        "predict": asked.tolist(),
        "progressive": went_on.tolist(),
        "after": model.predict(rows(slice(HELD_BACK))).tolist(),
        "record": {name: digest(noted.column(name).to_pylist()) for name in noted.column_names},
    }


def model_has_names(model: Any) -> bool:
    """Whether the model has learnt from rows whose features have names."""
    return hasattr(model, "feature_names_in_")


def model_file(name: str) -> Path:
    """Where a saved model is."""
    return STORED / "models" / f"{name}.koco.gz"


def models() -> dict[str, Any]:
    """A small saved model of each learner, and what it says."""
    X, y = model_rows()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (learner, given) in saved_models().items():
            model = getattr(koco_stream, learner)(**given, seed=3)
            rounds = 20 if "KONS" in learner else 60
            first = pd.DataFrame(X[:rounds], columns=FEATURES) if name == NAMED else X[:rounds]
            model.partial_fit(first, labels_for(model, y)[:rounds])
            path = Path(folder, "a.koco")
            model.save(path)
            packed(path, model_file(name))
            params = model.get_params()
            found[name] = {"learner": learner, "params": params, **predictions_of(model, rounds)}
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


CLASSIFIED: dict[str, Given] = {
    "OGD": {"loss": "logistic"},
    "OjaSON": {"fit_intercept": True},
    "PROSNKONS": {},
}


def classified(learner: str) -> dict[str, Any]:
    """What a classifier of two named classes says of rows."""
    X, y = model_rows()
    model = getattr(koco_stream, learner)(**{**BASES[learner], **CLASSIFIED[learner]}, seed=3)
    classifier = koco_stream.Classifier(model)
    labels = np.where(y >= 0.0, "yes", "no")
    said = classifier.progressive(X[:40], labels[:40], classes=["no", "yes"])
    return {
        "progressive": said.tolist(),
        "scores": classifier.decision_function(X[40:60]).tolist(),
        "predict": classifier.predict(X[40:60]).tolist(),
    }


def classifiers() -> dict[str, Any]:
    """What classifiers say, by learner."""
    return {learner: classified(learner) for learner in CLASSIFIED}


# A cohort in mid-run
# --------------------------------------------------------------------------------------------------

COHORT = STORED / "cohort.koco.gz"


def cohort_on(store: Path) -> Cohort:
    """A cohort of all learners, of which some share kernel values and one has diverged."""
    stream = orders_of(load_manifest(store, "real,minmax"))[1]
    runs = [Run.of(stream, learner, base, 1) for learner, base in BASES.items()]
    more = {**BASES["SketchedKONS"], "sampling_floor": 0.8}
    runs += [Run.of(stream, "SketchedKONS", more, 2), Run.of(stream, *DIVERGING, 1)]
    return Cohort(stream, tuple(runs), 1.0, CHECKPOINT_ROUNDS)


def cohort() -> dict[str, Any]:
    """A checkpoint of a cohort in mid-run, and the rows that it comes to."""
    with tempfile.TemporaryDirectory() as folder:
        store = swept_store(Path(folder))
        whole = cohort_on(store)
        reader = StreamReader(store, whole.stream)
        points = curve_points(reader.n_rows)
        run_states = [RunState.start(run, reader.manifest.n_features, points) for run in whole.runs]
        advance_runs(run_states, reader, 0, CHECKPOINT_ROUNDS, 4096, points)
        where = checkpoint_of(store, whole)
        save_cohort(where, CHECKPOINT_ROUNDS, run_states)
        with where.local() as path:
            packed(path, COHORT)
            header, _ = read_arrays(path.read_bytes(), 1)
        where.remove()
        receipt = run_cohort(str(store), "golden", whole)
        return {
            "cohort_id": whole.cohort_id,
            "header": sorted(header),
            "rounds": receipt.rounds,
            "rounds_at_checkpoint": int(sum(member.totals[0] for member in run_states)),
            "columns": columns_of(),
            "rows": stored_rows(store, columns_of()),
        }


# A store
# --------------------------------------------------------------------------------------------------

OLD_STORE = STORED / "old_store"  # a folder named `store` is ignored by git
OLD_SWEEP = """name = "old"
learner_seeds = 2
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = 2
[[dataset]]
name = "words"
positive_class = [1, 2]
max_rows = 100
[[dataset]]
name = "ill-conditioned"
n_rows = 60
n_features = 4
order = "shuffled-in-windows"
window_rows = 16
[[learner]]
name = "OjaSON"
sketch_size = [0, 3]
alpha = [0.5, 4]
[[learner]]
name = "AdaGrad"
step_size = [0.1, 1]
[[learner]]
name = "PROSNKONS"
alpha = 1
bandwidth = 2.0
"""


def old_store() -> dict[str, Any]:
    """A store with three datasets and a finished sweep, and a part that was not collected yet."""
    with tempfile.TemporaryDirectory() as folder:
        store, spec = Path(folder, "store"), Path(folder, "old.toml")
        spec.write_text(OLD_SWEEP)
        prepare_file(store, "real", SOURCES / "real.csv", target="y", values_per_shard=200)
        prepare_file(store, "words", SOURCES / "words.svm", scale="unit-rows")
        prepare_synthetic(store, "ill-conditioned", {"n_rows": 60, "n_features": 4})
        sweep = checked(spec, store)
        swept(store, sweep.missing)
        remember(str(store), sweep.sweep, sweep.runs)
        collect(store)
        stream = orders_of(load_manifest(store, "real"))[2]
        apart = [Run.of(stream, learner, BASES[learner], 1) for learner in ("OGD", "KORS")]
        swept(store, apart)
        (store / "koco-store.lock").unlink(missing_ok=True)
        shutil.rmtree(OLD_STORE, ignore_errors=True)
        shutil.copytree(store, OLD_STORE)
        return {
            "sweep": OLD_SWEEP,
            "runs_of_the_sweep": len(sweep.runs),
            "apart": [run.run_id for run in apart],
            "orders": {
                name: [rows_of(store, order) for order in orders_of(load_manifest(store, name))]
                for name in ("real", "words")
            },
            "columns": columns_of(),
            "rows": stored_rows(store, columns_of()),
        }


# All parts
# --------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    part.__name__: part
    for part in (run_ids, prepared, tables, plans, models, classifiers, cohort, old_store)
}


def main() -> None:
    options = argparse.ArgumentParser(
        prog="python -m tests.golden.make_stored", description="Write parts of tests/golden/stored."
    )
    options.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all if none is named"
    )
    options.add_argument("--again", action="store_true", help="write what is there too")
    given = options.parse_args()
    chosen = given.parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        options.error(f"no such part: {', '.join(sorted(unknown))}")
    there = [part for part in chosen if (STORED / f"{part}.json").exists()]
    if there and not given.again:
        options.error(f"{', '.join(there)}: there already, and kept; --again writes it again")
    for part in chosen:
        content = {"environment": environment(), "values": PARTS[part]()}
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (STORED / f"{part}.json").write_text(text + "\n")
        print(f"{part}: written")


if __name__ == "__main__":
    main()
