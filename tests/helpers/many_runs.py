"""A store with the results of many runs, drawn and not computed, for what reads tables."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from koco_stream.io.files import canonical_json, text_hash
from koco_stream.io.paths import AnyPath
from koco_stream.io.table_file import write_tables
from koco_stream.runs.schemas import CURVES, RUNS, curve_points, schema
from storage.results import file_name
from storage.store import open_store

VARIED = {"OjaSON": ("alpha", "sketch_size"), "AdaGrad": ("step_size",), "CONKONS": ("bandwidth",)}
ROUNDS = 10_000
ORDERS = 5


def many_runs(where: AnyPath, n: int, sweep: str = "many", files: int = 4, seed: int = 0) -> Path:
    """A store at `where` with `n` collected runs of one sweep, in so many files, with curves."""
    store = open_store(where)
    results = store / "results"
    runs = drawn_runs(n, sweep, np.random.default_rng(seed))
    for part in np.array_split(np.arange(n), files):
        some = runs.slice(part[0], len(part))
        write_tables([drawn_curves(some)], results / "curves" / file_name(some))
        write_tables([some], results / "runs" / file_name(some))
    put(store, sweep, runs.column("run_id").to_pylist(), ())
    return Path(str(store))


def put(store: AnyPath, sweep: str, run_ids: Any, rows: Any, **noted: Any) -> None:
    """A store in which a sweep of `run_ids` has run, with these rows of results. A row's `curve`
    has rows of the table `curves`; without one there is its last point, of no loss.

    What every row has is filled in, and `run_ids` are those of the rows if they are None. What is
    `noted` stands in the sweep's entry.
    """
    root = open_store(store)
    needed = {"order": "as-stored", "params": "{}", "status": "ok"}
    rows = [{"run_id": f"{k:032x}", **needed, **row} for k, row in enumerate(rows)]
    curves = [
        {"run_id": row["run_id"], "cumulative_loss": 0.0, **point}
        for row in rows
        if row.get("rounds")
        for point in row.get("curve", [{"t": row["rounds"]}])
    ]
    tables = (("runs", RUNS, rows), ("curves", CURVES, curves)) if rows else ()
    for kind, columns, results in tables:
        table = pa.Table.from_pylist(results, schema=schema(columns))
        write_tables([table], root / "results" / kind / "a.parquet")
    ids = [row["run_id"] for row in rows] if run_ids is None else run_ids
    note = {"name": sweep, "file": "", "datasets": {}, "figures": [], "run_ids": ids, **noted}
    (root / "sweeps" / f"{sweep}.json").write_text(json.dumps(note))


def run(
    number: int,
    dataset: str,
    learner: str,
    loss: float | None,
    error: float | None,
    order_seed: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """A row of results for `put`, beside Constant's loss 0.9 and error 0.5."""
    return {
        "run_id": f"{number:032d}",
        "computed_by": "s",
        "dataset": dataset,
        "dataset_hash": f"hash of {dataset}",
        "order": "shuffled",
        "order_seed": order_seed,
        "learner": learner,
        "params": "{}",
        "numbers": "own",
        "status": "ok",
        "rounds": 10,
        "seconds": 1.0,
        "mean_loss": loss,
        "error_rate": error,
        "constant_mean_loss": 0.9,
        "constant_error_rate": 0.5,
        **more,
    }


def drawn_curves(runs: pa.Table) -> pa.Table:
    """Curves of runs, which follow from their mean losses."""
    n, points = runs.num_rows, curve_points(ROUNDS)
    losses = np.asarray(runs.column("mean_loss"))[:, None] * (1 + 5 / points)
    return pa.table(
        {
            "run_id": runs.column("run_id").take(np.repeat(np.arange(n), len(points))),
            "t": np.tile(points.astype(np.int64), n),
            "cumulative_loss": (losses * points).ravel(),
            "mistakes": np.tile((points / 4).astype(np.int64), n),
            "dictionary_size": pa.nulls(n * len(points), pa.int64()),
        },
        schema=schema(CURVES),
    )


def drawn_runs(n: int, sweep: str, rng: np.random.Generator) -> pa.Table:
    """`n` rows of the table `runs`: three learners, parameters and results that are drawn. As in a
    sweep, a configuration has a run in each order.
    """
    configuration = np.arange(n) // ORDERS
    names = np.array([*VARIED])[rng.integers(0, len(VARIED), n)][configuration]
    drawn = {
        name: np.where(
            [name in VARIED[one] for one in names],
            10.0 ** rng.uniform(-3, 3, n).round(3)[configuration],
            np.nan,
        )
        for name in ("alpha", "step_size", "bandwidth", "sketch_size")
    }
    drawn["sketch_size"] = np.where(
        names == "OjaSON", rng.integers(0, 20, n)[configuration], np.nan
    )
    loss = 0.1 + rng.random(n)
    status = np.where(rng.random(n) < 0.01, "diverged", "ok")
    given = {
        "run_id": [text_hash(f"{sweep} {k}") for k in range(n)],
        "computed_by": [sweep] * n,
        "dataset": rng.choice(["pump", "20news", "year"], n)[configuration],
        "dataset_hash": ["0" * 64] * n,
        "order": ["shuffled"] * n,
        "order_seed": np.arange(n) % ORDERS,
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
