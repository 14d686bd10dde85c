"""Preparing from the command line, and the list of datasets: the store and the catalogue together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.progress import say
from koco_stream.errors import WrongInput
from koco_stream.manifest import Manifest, load_manifest, prepared_names
from storage.catalogue import CATALOGUE, entry_named, find_edition, how_to_get, remarks
from storage.prepare import check_name, prepare_file
from storage.store import check_store
from storage.synthetic import ABOUT, GENERATORS, parameters_of

DATASETS = ("name", "task", "n_rows", "n_features", "prepared", "papers")


def prepare_named(store: str, name: str, sources: Sequence[Path], given: dict[str, Any]) -> Manifest:
    """Prepare `name` from files, with the options `given`; or, from one folder, as the catalogue says, `given` coming first.

    Raises `WrongInput` if something is wrong; without sources it says what to get for a dataset of the catalogue. What a user must know
    of the result (a part, or not of the expected size) is said on stderr.
    """
    check_name(name)
    if name.split(",")[0] in GENERATORS:
        raise WrongInput(f"{name!r} is generated on demand: name it in a sweep file; for data of your own take another name")
    if not sources:
        raise WrongInput(how_to_get(entry_named(name)))
    if not any(path.is_dir() for path in sources):
        _announce(sources)
        return prepare_file(store, name, list(sources), **given)
    if len(sources) > 1:
        raise WrongInput("--from takes one folder, or one or several files; give the folder alone")
    entry = entry_named(name)
    edition, paths = find_edition(entry, sources[0])
    _announce(paths)
    manifest = prepare_file(store, name, paths, **{**edition.options, **given})
    for remark in remarks(entry, edition, manifest.n_rows, manifest.n_features):
        say(f"koco: warning: {remark}")
    return manifest


def dataset_rows(store: str) -> list[dict[str, Any]]:
    """One row (`DATASETS`) for each dataset of the store, of the catalogue and of the generators."""
    check_store(store)
    there = {name: load_manifest(store, name) for name in prepared_names(store)}
    rows = []
    for name in sorted({*there, *CATALOGUE}):
        manifest, entry = there.get(name), CATALOGUE.get(name)
        if manifest:
            classes = "binary" if len(manifest.classes) == 2 else f"{len(manifest.classes)} classes"
            task = "regression" if manifest.task == "regression" else classes
            size: tuple[int | None, ...] = (manifest.n_rows, manifest.n_features)
            prepared = "a part" if entry and manifest.n_rows < entry.editions[0].n_rows else "yes"
        else:
            assert entry is not None
            whole = entry.editions[0]
            task, size, prepared = entry.task, (whole.n_rows, whole.n_features), "no"
        papers = ", ".join(entry.papers) if entry else ""
        rows.append(dict(zip(DATASETS, (name, task, *size, prepared, papers), strict=True)))
    for name in GENERATORS:
        values, (kind, paper) = parameters_of(name), ABOUT[name]
        task = "binary" if kind == "classification" else kind
        rows.append(dict(zip(DATASETS, (name, task, values["n_rows"], values["n_features"], "on demand", paper), strict=True)))
    return rows


def _announce(paths: Sequence[Path]) -> None:
    for path in paths:
        say(f"reading {path} ({path.stat().st_size:,} bytes)" if path.is_file() else f"reading {path}")
