"""Synthetic datasets: the rows of a generator as a source, prepared like any other unless the store
has them.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import Manifest, dataset_path, load_manifest
from storage.generated.generators import (
    ABOUT,
    STREAMS,
    TABLES,
    all_values,
    own_values,
    scale_of,
    synthetic_name,
)
from storage.generated.streams import BLOCK_ROWS, Blocks
from storage.preparing.prepare import Preparing, prepare_source
from storage.sources.source import ParallelMap, Piece, Source

VERSION = 2  # 1: the rows of ill-conditioned were scaled to a mean square norm of 1


def synthetic_source(generator: str, values: dict[str, Any]) -> Source:
    """The rows of a generator with these parameters, as a source. Raises `WrongInput` for
    parameters that do not go together.
    """
    origin = _origin(generator, values)
    if generator in STREAMS:
        return replace(STREAMS[generator](**own_values(generator, values)), origin=origin)
    model = {"generator": generator, "values": tuple(own_values(generator, values).items())}
    n, d = origin["n_rows"], origin["n_features"]
    return Blocks(
        make=_block_of_table,
        model=model,
        n_rows=n,
        n_features=d,
        layout="dense",
        block_rows=BLOCK_ROWS,
        row_bytes=8 * d + 8,
        origin=origin,
    )


@lru_cache(maxsize=1)
def _table(generator: str, values: tuple[tuple[str, Any], ...]) -> Piece:
    """The table, made once in each process that reads pieces of it."""
    return TABLES[generator](**dict(values))


def _block_of_table(number: int, generator: str, values: tuple[tuple[str, Any], ...]) -> Piece:
    """Rows of a table that is made whole: all its rows depend on one sequence of random numbers."""
    rows, start = _table(generator, values), number * BLOCK_ROWS
    return rows.between(start, min(start + BLOCK_ROWS, rows.n_rows))


def existing_synthetic(store: AnyPath, generator: str, given: dict[str, Any]) -> Manifest | None:
    """The dataset if the store has it, as this version makes it. Raises `WrongInput` if its name is
    taken by another dataset.
    """
    name = synthetic_name(generator, given)
    try:
        manifest = load_manifest(store, name)
    except WrongInput:
        return None  # not there yet, or not readable: made anew
    if manifest.source.get("generator") != generator:
        raise WrongInput(
            f"the dataset {name!r} in {store} was not made by the generator {generator}, whose name"
            " it has: prepare it under another name, and remove the folder"
            f" {dataset_path(store, name)}"
        )
    return manifest if manifest.source == _origin(generator, given) else None


def prepare_synthetic(
    store: AnyPath, generator: str, given: dict[str, Any], parallel_map: ParallelMap = map
) -> Manifest:
    """The dataset, made now unless the store has it already. Raises `WrongInput` as
    `existing_synthetic` does.
    """
    manifest = existing_synthetic(store, generator, given)
    if manifest is not None:
        return manifest
    source = synthetic_source(generator, given)
    how = Preparing(
        task=ABOUT[generator][0], scale=scale_of(generator, given), parallel_map=parallel_map
    )
    return prepare_source(store, synthetic_name(generator, given), source, how)


def _origin(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"generator": generator, "generator_version": VERSION, **all_values(generator, given)}
