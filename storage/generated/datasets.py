"""Synthetic datasets, made from a seed: tables that are made at once, and streams of any size that are made in blocks (`streams`). Every
product is summed in a fixed order, so the same seed gives the same bytes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput, nearest
from koco_stream.linalg import Array, orthonormalise, product
from koco_stream.manifest import Manifest, dataset_place, load_manifest
from koco_stream.places import Where
from storage.generated.streams import BLOCK_ROWS, Blocks, dense_stream, sparse_text
from storage.preparing.parallel import OnDask, Serially
from storage.preparing.prepare import Preparing, prepare_source
from storage.preparing.transform import MOST_DENSE_VALUES
from storage.sources.source import Piece, Source, dense_piece
from storage.sources.table import Table

VERSION = 1
LIMIT = 2**63


def ill_conditioned(condition_number: float = 10.0, data_seed: int = 1, n_rows: int = 10_000, n_features: int = 100) -> Table:
    """The data of section 5.1 of Luo et al. (2016), scaled to a mean square norm of 1 (docs/errata.md, S8 and S11).

    X = Z diag(λ)^½ Vᵀ with Z Gaussian and V a random orthonormal basis; λ is 1 but for its last ten entries, which grow linearly to
    `condition_number`. The labels are sign(θᵀz) with z the row of Z: the same for every condition number.
    """
    draw = np.random.default_rng([data_seed, 0x11])
    Z = draw.standard_normal((n_rows, n_features))
    V = draw.standard_normal((n_features, n_features))
    theta = draw.standard_normal((n_features, 1))
    for _ in range(2):
        orthonormalise(V, n_features, np.empty(n_features))
    steep = min(10, n_features)
    spectrum = np.ones(n_features)
    spectrum[n_features - steep :] += (condition_number - 1.0) * np.arange(1, steep + 1) / steep
    X, scores = np.empty((n_rows, n_features)), np.empty((n_rows, 1))
    product(Z * np.sqrt(spectrum), np.ascontiguousarray(V.T), X)
    product(Z, theta, scores)
    X /= np.sqrt((X**2).sum() / n_rows)
    return _dense(X, np.where(scores[:, 0] >= 0, 1.0, -1.0))


def adversary(clip: float = 1.0, n_rows: int = 10_000, n_features: int = 1) -> Table:
    """The adversary of section 6 of Calandriello et al. (ICML 2017): one unit vector x in every round, the label −C in odd rounds and
    +C in even ones; C is `clip`. Every entry of x is 1/√n_features.

    In numbers, with the squared loss, σ = η = 1/(8C²), k(x, x) = 1, T rounds and the ridge α:

    - the best weight in hindsight is 0 for an even T, with the loss TC²; for an odd T it predicts −C/T, with the loss TC² − C²/T;
    - τ_{t,t}(α) = 1/(t + α), d_onl = Σ 1/(t + α), d_eff = T/(T + α), log det(K/α + I) = log(1 + T/α);
    - R_D = 0, and R_G = Σ ġ_t²/(α + σ Σ_{s≤t} ġ_s²) ≤ 8C² log(1 + 2T/α), because |ġ| ≤ 4C (the printed middle term, with C² for ġ²,
      is no bound: ġ_1² is 4C² already; docs/errata.md, K15).
    """
    X = np.full((n_rows, n_features), 1.0 / np.sqrt(n_features))
    return _dense(X, np.where(np.arange(n_rows) % 2 == 0, -clip, clip))


def slice_like(n_rows: int = 53_500, n_features: int = 385, data_seed: int = 1, n_factors: int = 24) -> Table:
    """A stand-in of the size of the poster's slice set, whose dictionaries grow large: features in [0, 1] that are smooth functions of
    `n_factors` hidden uniform numbers, labels in [0, 1] that are another. It is not the slice set, and its losses mean nothing for it.
    """
    draw = np.random.default_rng([data_seed, 0x51])
    hidden = draw.random((n_rows, n_factors))
    weights, direction = draw.standard_normal((n_factors, n_features)), draw.standard_normal((n_factors, 1))
    X, score = np.empty((n_rows, n_features)), np.empty((n_rows, 1))
    product(hidden - 0.5, weights, X)
    product(hidden - 0.5, direction, score)
    return _dense(0.5 + 0.5 * X / (1.0 + np.abs(X)), 0.5 + 0.5 * score[:, 0] / (1.0 + np.abs(score[:, 0])))


TABLES: dict[str, Callable[..., Table]] = {"ill-conditioned": ill_conditioned, "adversary": adversary, "slice-like": slice_like}
STREAMS: dict[str, Callable[..., Blocks]] = {"sparse-text": sparse_text, "dense-stream": dense_stream}
GENERATORS: dict[str, Callable[..., Table] | Callable[..., Blocks]] = {**TABLES, **STREAMS}
CHOICES = {"scale": ("unit-rows", "none")}  # of a parameter that is a word
ABOUT = {
    "ill-conditioned": ("classification", "SON 2016"),
    "adversary": ("regression", "KONS 2017"),
    "slice-like": ("regression", "PROS-N-KONS 2017"),
    "sparse-text": ("classification", "SON 2016"),
    "dense-stream": ("regression", "PROS-N-KONS 2017"),
}


def parameters_of(generator: str) -> dict[str, Any]:
    """The generator's parameters and their defaults."""
    return {name: p.default for name, p in inspect.signature(GENERATORS[generator]).parameters.items()}


def synthetic_name(generator: str, given: dict[str, Any]) -> str:
    """The dataset's name: the generator's, then what was given, in the generator's order. Raises `WrongInput` for what it does not take."""
    known = parameters_of(generator)
    for name, value in given.items():
        if name not in known:
            raise WrongInput(f"{generator} has no parameter {name!r}{nearest(name, list(known))}")
        if isinstance(known[name], str):
            if value not in CHOICES[name]:
                raise WrongInput(f"{generator}: {name} must be one of {', '.join(CHOICES[name])}, not {value!r}")
            continue
        whole = isinstance(known[name], int)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LIMIT or (whole and value != int(value)):
            raise WrongInput(f"{generator}: {name} must be a positive {'whole ' if whole else ''}number below {LIMIT:g}, not {value!r}")
    values = all_values(generator, given)
    if generator in STREAMS:
        STREAMS[generator](**values)  # which makes no rows, and refuses parameters that do not go together
    elif values["n_rows"] * values["n_features"] > MOST_DENSE_VALUES:
        raise WrongInput(
            f"{generator}: n_rows = {values['n_rows']} of n_features = {values['n_features']} are more than {MOST_DENSE_VALUES:,} values"
        )
    return ",".join([generator, *(f"{name}={_text(values[name])}" for name in known if name in given)])


def _text(value: float | str) -> str:
    """The shortest text that says exactly this number: 10 for 10.0. A word as it is."""
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def all_values(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    """All the generator's parameters: those given, in the type of their defaults, and the defaults."""
    return {name: type(default)(given.get(name, default)) for name, default in parameters_of(generator).items()}


def expected_values(generator: str, given: dict[str, Any]) -> int:
    """How many values the dataset will have, non-zeros if it is sparse: about as many, before it is made."""
    values = all_values(generator, given)
    return int(values["n_rows"] * values.get("mean_nonzeros", values["n_features"]))


def synthetic_source(generator: str, values: dict[str, Any]) -> Source:
    """The rows of a generator with these parameters, as a source. Raises `WrongInput` for parameters that do not go together."""
    origin = _origin(generator, values)
    if generator in STREAMS:
        return replace(STREAMS[generator](**all_values(generator, values)), origin=origin)
    model = {"generator": generator, "values": tuple(all_values(generator, values).items())}
    n, d = origin["n_rows"], origin["n_features"]
    return Blocks(_block_of_table, model, n, d, "dense", BLOCK_ROWS, 8 * d + 8, origin)


@lru_cache(maxsize=1)
def _table(generator: str, values: tuple[tuple[str, Any], ...]) -> Table:
    """The table, made once in each process that reads pieces of it."""
    return TABLES[generator](**dict(values))


def _block_of_table(number: int, generator: str, values: tuple[tuple[str, Any], ...]) -> Piece:
    """Rows of a table that is made whole: all its rows depend on one sequence of random numbers."""
    table = _table(generator, values)
    rows = slice(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)
    d, labels = table.n_features, table.labels[rows]
    return dense_piece(labels, table.values[rows.start * d : rows.stop * d].reshape(labels.size, d))


def existing_synthetic(store: Where, generator: str, given: dict[str, Any]) -> Manifest | None:
    """The dataset if the store has it, as this version makes it. Raises `WrongInput` if its name is taken by another dataset."""
    name = synthetic_name(generator, given)
    try:
        manifest = load_manifest(store, name)
    except WrongInput:
        return None  # not there yet, or not readable: made anew
    if manifest.source.get("generator") != generator:
        raise WrongInput(
            f"the dataset {name!r} in {store} was not made by the generator {generator}, whose name it has: prepare it under another "
            f"name, and remove the folder {dataset_place(store, name)}"
        )
    return manifest if manifest.source == _origin(generator, given) else None


def prepare_synthetic(store: Where, generator: str, given: dict[str, Any], worker: Serially | OnDask | None = None) -> Manifest:
    """The dataset, made now unless the store has it already. Raises `WrongInput` as `existing_synthetic` does."""
    manifest = existing_synthetic(store, generator, given)
    if manifest is not None:
        return manifest
    source = synthetic_source(generator, given)
    return prepare_source(store, synthetic_name(generator, given), source, Preparing(task=ABOUT[generator][0], worker=worker or Serially()))


def _origin(generator: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"generator": generator, "generator_version": VERSION, **all_values(generator, given)}


def _dense(X: Array, labels: Array) -> Table:
    n, d = X.shape
    return Table(labels, np.arange(0, (n + 1) * d, d), np.zeros(0, np.int32), X.reshape(-1), d, "dense", "synthetic", [])
