"""What the store has recorded of its sweeps."""

from typing import Any

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath, store_path
from storage.nights import night_names, night_path
from storage.store import read_note


def sweep_names(store: AnyPath) -> list[str]:
    """The sweeps that have run on a store, sorted."""
    return [
        file.name.removesuffix(".json") for file in (store_path(store) / "sweeps").files(".json")
    ]


def sweep_note(store: AnyPath, name: str) -> dict[str, Any]:
    """What the store has recorded of a sweep: its file, its run_ids and its figures.

    Raises `WrongInput` with the nearest name if no such sweep has run, or if the entry is damaged.
    """
    note = store_path(store) / "sweeps" / f"{name}.json"
    if "/" in name or not note.is_file():
        there = sweep_names(store)
        if name in night_names(store):
            raise WrongInput(
                f"{store} has no sweep {name!r}, only a nightly run of it: --store"
                f" {night_path(store, name)}"
            )
        raise WrongInput(f"{store} has no sweep {name!r}" + (nearest(name, there) if there else ""))
    return read_note(note)
