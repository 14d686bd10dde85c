"""Verifying from the command line."""

from collections.abc import Iterator, Sequence
from typing import Any

from koco_stream.streams.manifest import load_manifest, prepared_names
from storage.store import existing_store
from storage.verify import dataset_problems, result_problems

VERIFIED = ("what", "state")


def verified(store: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row (`VERIFIED`) for each problem, and one for what is ok. Raises `WrongInput` if there is
    no such store or dataset.
    """
    existing_store(store)
    for name in names:
        if name not in prepared_names(store):
            load_manifest(store, name)  # which says what there is instead
    for name in names or prepared_names(store):
        for problem in dataset_problems(store, name) or ["ok"]:
            yield {"what": f"dataset {name}", "state": problem}
    if not names:
        for problem in result_problems(store) or ["ok"]:
            yield {"what": "results", "state": problem}
