"""Registry of the synthetic dataset generators, and preparation of their datasets."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial, wraps
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import Manifest, dataset_path, load_manifest
from storage.generated.drifting import hyperplane, sea, swapped_dense, swapped_text
from storage.generated.streams import (
    Blocks,
    basis_and_direction,
    dense_stream,
    multiplied,
    sparse_text,
)
from storage.preparing.transform import MOST_DENSE_VALUES, SCALES
from storage.sources.source import Piece, Source, dense_piece


@lru_cache(maxsize=1)
def ill_conditioned(
    condition_number: float = 10.0, data_seed: int = 1, n_rows: int = 10_000, n_features: int = 100
) -> Piece:
    """Synthetic data of section 5.1 of Luo et al. (2016), not scaled (docs/errata.md, S8 and S11).

    X = Z diag(λ)^½ Vᵀ with Z Gaussian and V a random orthonormal basis. λ is 1 except for its last
    ten entries, which grow linearly to `condition_number`. The labels are sign(θᵀz), with z the row
    of Z and θ Gaussian.
    """
    draw = np.random.default_rng([data_seed, 0x11])
    Z = draw.standard_normal((n_rows, n_features))
    V, theta = basis_and_direction(draw, n_features)
    steep = min(10, n_features)
    spectrum = np.ones(n_features)
    spectrum[n_features - steep :] += (condition_number - 1.0) * np.arange(1, steep + 1) / steep
    X = multiplied(Z * np.sqrt(spectrum), np.ascontiguousarray(V.T))
    return dense_piece(np.where(multiplied(Z, theta)[:, 0] >= 0, 1.0, -1.0), X)


@lru_cache(maxsize=1)
def adversary(clip: float = 1.0, n_rows: int = 10_000, n_features: int = 1) -> Piece:
    """Adversary of section 6 of Calandriello et al. (ICML 2017).

    Every round has the same unit vector x, whose entries are 1/√n_features. The label is −C in odd
    rounds and +C in even ones, where C is `clip`.

    For the squared loss, σ = η = 1/(8C²), k(x, x) = 1 and an even number of rounds the best weight
    in hindsight is 0; τ_{t,t}(α) = 1/(t + α), and the regret is that of docs/errata.md, K15.
    """
    return dense_piece(
        np.where(np.arange(n_rows) % 2 == 0, -clip, clip),
        np.full((n_rows, n_features), 1.0 / np.sqrt(n_features)),
    )


@lru_cache(maxsize=1)
def slice_like(
    n_rows: int = 53_500, n_features: int = 385, data_seed: int = 1, n_factors: int = 24
) -> Piece:
    """Synthetic table of the size of the poster's slice dataset, on which dictionaries grow large.

    Losses are not comparable with those on that dataset. The features and the label, all in [0, 1],
    are smooth functions of `n_factors` hidden uniform variables per row.
    """
    draw = np.random.default_rng([data_seed, 0x51])
    hidden = draw.random((n_rows, n_factors))
    weights = draw.standard_normal((n_factors, n_features))
    direction = draw.standard_normal((n_factors, 1))
    X = multiplied(hidden - 0.5, weights)
    score = multiplied(hidden - 0.5, direction)[:, 0]
    return dense_piece(0.5 + 0.5 * score / (1.0 + np.abs(score)), 0.5 + 0.5 * X / (1.0 + np.abs(X)))


VERSION = 1  # of the rows that are made of the same parameters
LIMIT = 2**63


def blocks_of(table: Callable[..., Piece]) -> Callable[..., Blocks]:
    """A generator of blocks, which are read from the whole table.

    All rows of a table depend on one random sequence.
    """

    @wraps(table)
    def blocks(**values: Any) -> Blocks:
        n_rows = values["n_rows"]
        n_features = values["n_features"]
        if n_rows * n_features > MOST_DENSE_VALUES:
            raise WrongInput(
                f"n_rows = {n_rows} of n_features = {n_features} are more than"
                f" {MOST_DENSE_VALUES:,} values"
            )
        return Blocks(
            make=partial(_block_of_table, table=table, values=tuple(values.items())),
            n_rows=n_rows,
            n_features=n_features,
            layout="dense",
        )

    return blocks


def _block_of_table(
    number: int, block_rows: int, table: Callable[..., Piece], values: tuple[tuple[str, Any], ...]
) -> Piece:
    rows = table(**dict(values))
    start = number * block_rows
    return rows.between(start, min(start + block_rows, rows.n_rows))


GENERATORS: dict[str, Callable[..., Blocks]] = {
    "ill-conditioned": blocks_of(ill_conditioned),
    "adversary": blocks_of(adversary),
    "slice-like": blocks_of(slice_like),
    "sparse-text": sparse_text,
    "dense-stream": dense_stream,
    "hyperplane": hyperplane,
    "sea": sea,
    "swapped-dense": swapped_dense,
    "swapped-text": swapped_text,
}
# scales that a generator applies itself, and scales applied to the rows of other generators
OWN_SCALES = dict.fromkeys(("sparse-text", "swapped-text"), ("unit-rows", "none"))
OF_DENSE_ROWS = tuple(scale for scale in SCALES if scale != "tf-idf")
ABOUT = {
    "ill-conditioned": ("classification", "SON 2016"),
    "adversary": ("regression", "KONS 2017"),
    "slice-like": ("regression", "PROS-N-KONS 2017"),
    "sparse-text": ("classification", "SON 2016"),
    "dense-stream": ("regression", "PROS-N-KONS 2017"),
    "hyperplane": ("classification", "CVFDT 2001"),
    "sea": ("classification", "SEA 2001"),
    "swapped-dense": ("classification", ""),
    "swapped-text": ("classification", ""),
}


def parameters_of(generator: str) -> dict[str, Any]:
    """The generator's own parameters, and `scale`, with their defaults.

    The scale is applied to the generated rows unless the generator applies it itself.
    """
    own = {
        one.name: one.default
        for one in inspect.signature(GENERATORS[generator]).parameters.values()
    }
    return {**own, "scale": own.get("scale", "none")}


def synthetic_name(generator: str, given: dict[str, Any]) -> str:
    """The generator, then the given parameters in a fixed order.

    Raises `WrongInput` for an unknown parameter or an invalid value.
    """
    known = parameters_of(generator)
    for name, value in given.items():
        if name not in known:
            raise WrongInput(f"{generator} has no parameter {name!r}{nearest(name, list(known))}")
        if wrong := _requirement(generator, name, known[name], value):
            raise WrongInput(f"{generator}: {name} must be {wrong}, not {value!r}")
    values = all_values(generator, given)
    # generates no rows yet, but rejects incompatible parameters
    try:
        synthetic_source(generator, given)
    except WrongInput as error:
        raise WrongInput(f"{generator}: {error}") from None
    # shortest text of the number: 10 for 10.0
    texts = {name: str(values[name]).removesuffix(".0") for name in known if name in given}
    return ",".join([generator, *(f"{name}={text}" for name, text in texts.items())])


def _requirement(generator: str, name: str, default: Any, value: Any) -> str | None:
    """What the value violates, as text; the `default` determines its type."""
    if isinstance(default, str):
        choices = OWN_SCALES.get(generator, OF_DENSE_ROWS)
        return None if value in choices else f"one of {', '.join(choices)}"
    whole = "whole " if isinstance(default, int) else ""
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LIMIT
    fits = number and (value == int(value) or not whole) and (value > 0 or name == "noise")
    or_0 = "0 or " if name == "noise" else ""
    return None if fits else f"{or_0}a positive {whole}number below {LIMIT:g}"


def all_values(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    """The values have the types of the defaults."""
    return {
        name: type(default)(given.get(name, default))
        for name, default in parameters_of(generator).items()
    }


def expected_values(generator: str, given: dict[str, Any]) -> int:
    """Approximate number of values, or of non-zeros if rows are sparse."""
    values = all_values(generator, given)
    return int(values["n_rows"] * values.get("mean_nonzeros", values["n_features"]))


def synthetic_source(generator: str, given: dict[str, Any]) -> Source:
    """Raises `WrongInput` for incompatible parameters."""
    own = inspect.signature(GENERATORS[generator]).parameters
    values = all_values(generator, given)
    return replace(
        GENERATORS[generator](**{name: values[name] for name in own}),
        origin=_origin(generator, given),
    )


def existing_synthetic(store: AnyPath, generator: str, given: dict[str, Any]) -> Manifest | None:
    """None unless the store has the dataset as this version generates it.

    Raises `WrongInput` if another dataset has its name.
    """
    name = synthetic_name(generator, given)
    try:
        manifest = load_manifest(store, name)
    except WrongInput:
        return None  # missing or unreadable, so it is generated again
    if manifest.source.get("generator") != generator:
        raise WrongInput(
            f"the dataset {name!r} in {store} was not made by the generator {generator}, whose name"
            " it has: prepare it under another name, and remove the folder"
            f" {dataset_path(store, name)}"
        )
    return manifest if manifest.source == _origin(generator, given) else None


def prepare_synthetic(store: AnyPath, generator: str, given: dict[str, Any]) -> Manifest:
    """A dataset that the store has already is not generated again."""
    manifest = existing_synthetic(store, generator, given)
    if manifest is not None:
        return manifest
    from storage.preparing.prepare import Preparing, prepare_source  # slow

    # "none" if the generator scales its rows itself
    scale = "none" if generator in OWN_SCALES else str(given.get("scale", "none"))
    how = Preparing(task=ABOUT[generator][0], scale=scale)
    return prepare_source(
        store, synthetic_name(generator, given), synthetic_source(generator, given), how
    )


def _origin(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"generator": generator, "generator_version": VERSION, **all_values(generator, given)}
