"""A store with the results of many runs, drawn and not computed, for what reads tables."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from koco_stream.io.files import canonical_json, text_hash
from koco_stream.io.paths import AnyPath, store_path
from koco_stream.runs.schemas import CURVES, RUNS, curve_points, schema
from storage.results import file_name, write_tables
from storage.store import open_store

LEARNERS = ("OjaSON", "AdaGrad", "CONKONS")
VARIED = {"OjaSON": ("alpha", "sketch_size"), "AdaGrad": ("step_size",), "CONKONS": ("bandwidth",)}
ROUNDS = 10_000


def many_runs(where: AnyPath, n: int, sweep: str = "many", files: int = 4, seed: int = 0) -> Path:
    """A store at `where` with `n` collected runs of one sweep, in so many files, with curves."""
    store = open_store(where)
    rng = np.random.default_rng(seed)
    runs = drawn_runs(n, sweep, rng)
    points = curve_points(ROUNDS)
    for part in np.array_split(np.arange(n), files):
        table = runs.slice(part[0], len(part))
        losses = np.asarray(table.column("mean_loss"))[:, None] * (1 + 5 / points)
        curves = pa.table(
            {
                "run_id": table.column("run_id").take(np.repeat(np.arange(len(part)), len(points))),
                "t": np.tile(points.astype(np.int64), len(part)),
                "cumulative_loss": (losses * points).ravel(),
                "mistakes": np.tile((points / 4).astype(np.int64), len(part)),
                "dictionary_size": pa.nulls(len(part) * len(points), pa.int64()),
            },
            schema=schema(CURVES),
        )
        results = store_path(store) / "results"
        write_tables([curves], results / "curves" / file_name(table))
        write_tables([table], results / "runs" / file_name(table))
    note = {"name": sweep, "file": "", "figures": [], "run_ids": runs.column("run_id").to_pylist()}
    (store_path(store) / "sweeps" / f"{sweep}.json").write_text(json.dumps(note))
    return Path(str(store))


def drawn_runs(n: int, sweep: str, rng: np.random.Generator) -> pa.Table:
    """`n` rows of the table `runs`: three learners, parameters and results that are drawn."""
    learner = rng.integers(0, len(LEARNERS), n)
    names = np.array(LEARNERS)[learner]
    drawn = {
        name: np.where(
            [name in VARIED[one] for one in names], 10.0 ** rng.uniform(-3, 3, n).round(3), np.nan
        )
        for name in ("alpha", "step_size", "bandwidth", "sketch_size")
    }
    drawn["sketch_size"] = np.where(names == "OjaSON", rng.integers(0, 20, n), np.nan)
    loss = 0.1 + rng.random(n)
    status = np.where(rng.random(n) < 0.01, "diverged", "ok")
    given = {
        "run_id": [text_hash(f"{sweep} {k}") for k in range(n)],
        "sweep": [sweep] * n,
        "dataset": rng.choice(["pump", "20news", "year"], n),
        "dataset_hash": ["0" * 64] * n,
        "order": ["shuffled"] * n,
        "order_seed": rng.integers(0, 5, n),
        "learner": names,
        "numbers": ["own"] * n,
        "params": [
            canonical_json({key: float(drawn[key][k]) for key in VARIED[name]})
            for k, name in enumerate(names)
        ],
        **drawn,
        "status": status,
        "error": [f"diverged in round {k}" if s != "ok" else None for k, s in enumerate(status)],
        "rounds": [ROUNDS] * n,
        "mean_loss": loss,
        "error_rate": loss / 3,
        "seconds": rng.random(n) * 3,
        "finished_at": [datetime(2026, 1, 1, tzinfo=UTC)] * n,
    }
    arrays = [
        pa.array(given[c.name], from_pandas=True).cast(c.type)
        if c.name in given
        else pa.nulls(n, c.type)
        for c in RUNS
    ]
    return pa.Table.from_arrays(arrays, schema=schema(RUNS))
