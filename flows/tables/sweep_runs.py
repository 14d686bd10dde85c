"""The runs of a sweep, by what the store has recorded of it."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath, store_path
from storage.nights import night_names, night_path
from storage.notes import read_note
from storage.results import read_runs

NAMED = ("run_id", "dataset", "dataset_hash")


def sweep_names(store: AnyPath) -> list[str]:
    """The sweeps that have run on a store, sorted."""
    notes = (store_path(store) / "sweeps").files(".json")
    return [note.name.removesuffix(".json") for note in notes]


def sweep_note(store: AnyPath, name: str) -> dict[str, Any]:
    """What the store has recorded of a sweep: its file, its run_ids and its figures.

    Raises `WrongInput` with the nearest name if no such sweep has run, or if the entry is damaged.
    """
    notes = store_path(store) / "sweeps"
    note = notes / f"{name}.json"
    if "/" in name or not note.is_file():
        there = sweep_names(store)
        if name in night_names(store):
            raise WrongInput(
                f"{store} has no sweep {name!r}, only a nightly run of it: --store"
                f" {night_path(store, name)}"
            )
        raise WrongInput(f"{store} has no sweep {name!r}" + (nearest(name, there) if there else ""))
    return read_note(note)


def runs_of(store: AnyPath, sweep: str | None, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of the table `runs` that belong to a sweep, or all; with all columns or only some."""
    if sweep is None:
        return read_runs(store, columns)
    wanted = columns and list(dict.fromkeys([*columns, *NAMED]))
    table = of_sweep(read_runs(store, wanted), sweep_note(store, sweep))
    return table if columns is None else table.select(list(columns))


def of_sweep(runs: pa.Table, note: dict[str, Any]) -> pa.Table:
    """Those of `runs`, with the columns `NAMED`, that belong to the sweep of an entry.

    A run is computed once, even if its dataset has two names, which happens where a scale changes
    nothing. So each has the name that its dataset has in this sweep.
    """
    mine = runs.filter(pc.is_in(runs.column("run_id"), pa.array(note["run_ids"], pa.string())))
    found = mine.column("dataset_hash").to_pylist()
    given = zip(found, mine.column("dataset").to_pylist(), strict=True)
    names = pa.array([note["datasets"].get(one, name) for one, name in given], pa.string())
    return mine.set_column(mine.column_names.index("dataset"), "dataset", names)
