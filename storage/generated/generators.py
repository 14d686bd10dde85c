"""Synthetic datasets by name: the generators, their parameters, and the datasets that come of them,
which are prepared like any other unless the store has them.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import Manifest, dataset_path, load_manifest
from storage.generated.streams import BLOCK_ROWS, Blocks, dense_stream, sparse_text
from storage.generated.tables import adversary, ill_conditioned, slice_like
from storage.preparing.prepare import Preparing, prepare_source
from storage.preparing.transform import MOST_DENSE_VALUES, SCALES
from storage.sources.source import ParallelMap, Piece, Source

VERSION = 2  # 1: the rows of ill-conditioned were scaled to a mean square norm of 1
LIMIT = 2**63
TABLES: dict[str, Callable[..., Piece]] = {
    "ill-conditioned": ill_conditioned,
    "adversary": adversary,
    "slice-like": slice_like,
}
STREAMS: dict[str, Callable[..., Blocks]] = {
    "sparse-text": sparse_text,
    "dense-stream": dense_stream,
}
GENERATORS: dict[str, Callable[..., Piece] | Callable[..., Blocks]] = {**TABLES, **STREAMS}
# how rows are scaled: by a generator itself, or once they are made
OWN_SCALES = {"sparse-text": ("unit-rows", "none")}
OF_DENSE_ROWS = tuple(scale for scale in SCALES if scale != "tf-idf")
ABOUT = {
    "ill-conditioned": ("classification", "SON 2016"),
    "adversary": ("regression", "KONS 2017"),
    "slice-like": ("regression", "PROS-N-KONS 2017"),
    "sparse-text": ("classification", "SON 2016"),
    "dense-stream": ("regression", "PROS-N-KONS 2017"),
}


def own_parameters(generator: str) -> dict[str, Any]:
    """The generator's own parameters and their defaults."""
    return {
        name: p.default for name, p in inspect.signature(GENERATORS[generator]).parameters.items()
    }


def parameters_of(generator: str) -> dict[str, Any]:
    """The parameters of a generated dataset and their defaults: the generator's, and `scale`, which
    is done to the rows that were made if the generator does not do it.
    """
    own = own_parameters(generator)
    return {**own, "scale": own.get("scale", "none")}


def synthetic_name(generator: str, given: dict[str, Any]) -> str:
    """The dataset's name: the generator's, then what was given, in the generator's order.

    Raises `WrongInput` for what it does not take.
    """
    known = parameters_of(generator)
    for name, value in given.items():
        if name not in known:
            raise WrongInput(f"{generator} has no parameter {name!r}{nearest(name, list(known))}")
        if wrong := _why_not(generator, known[name], value):
            raise WrongInput(f"{generator}: {name} must be {wrong}, not {value!r}")
    values = all_values(generator, given)
    if generator in STREAMS:
        # which makes no rows, and refuses parameters that do not go together
        STREAMS[generator](**own_values(generator, given))
    elif values["n_rows"] * values["n_features"] > MOST_DENSE_VALUES:
        raise WrongInput(
            f"{generator}: n_rows = {values['n_rows']} of n_features = {values['n_features']} are"
            f" more than {MOST_DENSE_VALUES:,} values"
        )
    # the shortest text that says exactly this number: 10 for 10.0
    texts = {name: str(values[name]).removesuffix(".0") for name in known if name in given}
    return ",".join([generator, *(f"{name}={text}" for name, text in texts.items())])


def _why_not(generator: str, default: Any, value: Any) -> str | None:
    """What a parameter with this default must be, if the value is not."""
    if isinstance(default, str):
        choices = OWN_SCALES.get(generator, OF_DENSE_ROWS)
        return None if value in choices else f"one of {', '.join(choices)}"
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < LIMIT
    if number and (value == int(value) or not isinstance(default, int)):
        return None
    return f"a positive {'whole ' if isinstance(default, int) else ''}number below {LIMIT:g}"


def all_values(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    """All parameters, those that were not given by default, in the type of their defaults."""
    return {
        name: type(default)(given.get(name, default))
        for name, default in parameters_of(generator).items()
    }


def own_values(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    """`all_values` of the generator's own parameters."""
    values = all_values(generator, given)
    return {name: values[name] for name in own_parameters(generator)}


def scale_of(generator: str, given: dict[str, Any]) -> str:
    """How the rows are to be scaled once they are made; none if the generator scales them."""
    return "none" if generator in OWN_SCALES else str(given.get("scale", "none"))


def expected_values(generator: str, given: dict[str, Any]) -> int:
    """About how many values the dataset will have, non-zeros if it is sparse, before it is made."""
    values = all_values(generator, given)
    return int(values["n_rows"] * values.get("mean_nonzeros", values["n_features"]))


def synthetic_source(generator: str, values: dict[str, Any]) -> Source:
    """The rows of a generator with these parameters, as a source.

    Raises `WrongInput` for parameters that do not go together.
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
    """The dataset if the store has it, as this version makes it.

    Raises `WrongInput` if its name is taken by another dataset.
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
    """The dataset, made now unless the store has it already.

    Raises `WrongInput` as `existing_synthetic` does.
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
