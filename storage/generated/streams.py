"""Synthetic streams of any size, generated block by block, each block from a counter.

The rows of a block depend only on the parameters and the block's number, so a stream takes the
memory of a block, and any process can generate any block.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from koco_stream.errors import WrongInput, refuse_first
from koco_stream.numerics.linear_algebra import gram_schmidt, product
from koco_stream.types import Array
from storage.sources.source import Piece, Source, dense_piece

BLOCK_ROWS = 16_384
BLOCK_VALUES = 1 << 22  # approximate limit on the values of a block
MODEL = 1 << 47  # block number reserved for the random numbers that all rows share
SPARSE = 0x7E
DENSE = 0xDE
# offset c of the word distribution: the most frequent word is about as frequent as the third word
# of Zipf's law, 3 % of all words for a vocabulary of 100,000
HEAD = 3.0
SHAPE = 2.0  # shape of the Gamma distribution of the row lengths
RELEVANT = 0.1  # fraction of the features on which the labels depend
MOST_DENSE_FEATURES = 4096  # the mixing matrix of dense features is (d, d)


@dataclass(kw_only=True)
class Blocks(Source):
    """Source of rows that are generated block by block.

    `make` generates so many rows of the block with a number, and can be pickled. The last block is
    generated in full and truncated.
    """

    make: Callable[[int, int], Piece]
    n_rows: int
    n_features: int
    values_per_row: float | None = None
    format: str = "synthetic"

    def __post_init__(self) -> None:
        self.n_bytes = self.n_rows
        per_row = self.values_per_row or self.n_features
        self.block_rows = max(1, min(BLOCK_ROWS, int(BLOCK_VALUES / max(per_row, 1.0))))

    def pieces(self, scratch: Path) -> Iterator[tuple[int, int]]:
        for first in range(0, self.n_rows, self.block_rows):
            yield first, min(self.block_rows, self.n_rows - first)

    def read(self, piece: tuple[int, int]) -> Piece:
        first, n = piece
        number, begin = divmod(first, self.block_rows)
        return self.make(number, self.block_rows).between(begin, begin + n)

    def piece_bytes(self, piece: tuple[int, int]) -> int:
        return piece[1]


def too_noisy(noise: float) -> tuple[bool, str]:
    """A problem for `refuse_first`."""
    return noise > 0.5, f"noise = {noise:g} is the share of wrong labels, at most 0.5"


def draw_of(data_seed: int, kind: int, number: int) -> np.random.Generator:
    """Each block has a counter-based generator with a key of its own."""
    return np.random.Generator(
        np.random.Philox(key=np.array([data_seed, (kind << 48) + number], np.uint64))
    )


def sparse_text(
    n_rows: int = 18_846,
    n_features: int = 101_631,
    mean_nonzeros: float = 94.0,
    noise: float = 0.1,
    scale: str = "unit-rows",
    data_seed: int = 1,
) -> Blocks:
    """Synthetic sparse word counts of the size and shape of 20 Newsgroups, in float32.

    The number of words in a row is Poisson with a Gamma-distributed mean, such that a row has
    `mean_nonzeros` distinct words on average. The word of popularity rank r, from 0, has a
    probability ∝ log((r + 1 + c)/(r + c)) with c = 3; feature numbers are a random permutation of
    the ranks. A tenth of the features have Gaussian weights. The label is +1 if the total weight of
    a row's words is at least its expectation for that number of words, else −1. It is flipped with
    probability `noise`. Rows have unit norm with the `scale` "unit-rows", and are counts with
    "none".
    """
    refuse_first(
        [
            (
                mean_nonzeros > n_features / 2,
                f"mean_nonzeros = {mean_nonzeros:g} is more than half of n_features ="
                f" {n_features}; use a dense stream",
            ),
            too_noisy(noise),
            (n_features > 2**31 - 1, f"n_features = {n_features} is more than {2**31 - 1}"),
        ]
    )
    return Blocks(
        make=partial(
            _sparse_block,
            n_features=n_features,
            mean_nonzeros=mean_nonzeros,
            data_seed=data_seed,
            noise=noise,
            unit=scale == "unit-rows",
        ),
        n_rows=n_rows,
        n_features=n_features,
        values_per_row=mean_nonzeros,
        layout="sparse",
    )


def dense_stream(
    n_rows: int = 515_345,
    n_features: int = 90,
    condition_number: float = 100.0,
    noise: float = 0.3,
    data_seed: int = 1,
) -> Blocks:
    """Synthetic regression rows of the size of YearPredictionMSD, in float32.

    x = V diag(λ)^½ z with z Gaussian and V a random orthonormal basis. The eigenvalues λ decrease
    geometrically by a total factor of `condition_number` and sum to 1, which is the mean square
    norm. The target is ½ + ½ u/(1 + |u|), within [0, 1], with u = θᵀz + `noise` times a standard
    Gaussian and θ a random unit vector, so directions of small variance in x matter as much as the
    others.
    """
    if n_features > MOST_DENSE_FEATURES:
        raise WrongInput(f"n_features = {n_features} is more than {MOST_DENSE_FEATURES}")
    return Blocks(
        make=partial(
            _dense_block,
            n_features=n_features,
            condition_number=condition_number,
            data_seed=data_seed,
            noise=noise,
        ),
        n_rows=n_rows,
        n_features=n_features,
        layout="dense",
    )


@lru_cache(maxsize=2)
def _words(
    n_features: int, mean_nonzeros: float, data_seed: int
) -> tuple[float, Array, Array, float]:
    """The Gamma distribution's scale, the words' features and weights, and the expected weight."""
    chance = np.diff(np.log(HEAD + np.arange(n_features + 1))) / math.log1p(n_features / HEAD)
    low = 0.0
    high = 1.0
    while _expected_nonzeros(chance, high) < mean_nonzeros:
        low = high
        high = 2.0 * high
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if _expected_nonzeros(chance, middle) < mean_nonzeros else (low, middle)
        )
    draw = draw_of(data_seed, SPARSE, MODEL)
    feature = draw.permutation(n_features).astype(np.int32)
    weight = draw.standard_normal(n_features) * (draw.random(n_features) < RELEVANT)
    return high, feature, weight, float(np.cumsum(chance * weight)[-1])


def _expected_nonzeros(chance: Array, unit: float) -> float:
    """Expected number of distinct words in a row; `chance` (d,) has the word probabilities.

    The mean number of words is `unit` times a Gamma number.
    """
    return float((1.0 - (1.0 + chance * unit) ** -SHAPE).sum())


def _sparse_block(
    number: int,
    block_rows: int,
    n_features: int,
    mean_nonzeros: float,
    data_seed: int,
    noise: float,
    unit: bool,
) -> Piece:
    length, feature, weight, expected = _words(n_features, mean_nonzeros, data_seed)
    draw = draw_of(data_seed, SPARSE, number)
    n_words = draw.poisson(length * draw.standard_gamma(SHAPE, block_rows))
    row = np.repeat(np.arange(block_rows), n_words)
    word = (HEAD * np.expm1(draw.random(row.size) * math.log1p(n_features / HEAD))).astype(np.int64)
    word = np.minimum(word, n_features - 1)  # the product above may have been rounded up
    score = np.bincount(row, weight[word], block_rows) - expected * n_words
    flipped = draw.random(block_rows) < noise
    labels = np.where((score >= 0) != flipped, 1.0, -1.0)
    cells, counts = np.unique(row * n_features + feature[word], return_counts=True)
    row, indices = np.divmod(cells, n_features)
    values = counts.astype(np.float64)
    if unit:
        values /= np.sqrt(np.bincount(row, values * values, block_rows))[row]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=block_rows))])
    return Piece(labels, indptr, indices.astype(np.int32), values.astype(np.float32))


@lru_cache(maxsize=2)
def _mixing(n_features: int, condition_number: float, data_seed: int) -> tuple[Array, Array]:
    """What all rows share: diag(λ)^½ Vᵀ (d, d) and θ (d, 1)."""
    V, theta = basis_and_direction(draw_of(data_seed, DENSE, MODEL), n_features)
    gram_schmidt(theta, 1, np.empty(1))
    spectrum = condition_number ** -(np.arange(n_features) / max(n_features - 1, 1))
    return np.ascontiguousarray(V.T) * np.sqrt(spectrum / np.cumsum(spectrum)[-1])[:, None], theta


def basis_and_direction(draw: np.random.Generator, d: int) -> tuple[Array, Array]:
    """A random orthonormal basis (d, d), and a Gaussian vector (d, 1)."""
    V = draw.standard_normal((d, d))
    theta = draw.standard_normal((d, 1))
    for _ in range(2):
        gram_schmidt(V, d, np.empty(d))
    return V, theta


def _dense_block(
    number: int,
    block_rows: int,
    n_features: int,
    condition_number: float,
    data_seed: int,
    noise: float,
) -> Piece:
    mixing, theta = _mixing(n_features, condition_number, data_seed)
    draw = draw_of(data_seed, DENSE, number)
    Z = draw.standard_normal((block_rows, n_features))
    u = multiplied(Z, theta)[:, 0] + noise * draw.standard_normal(block_rows)
    X = multiplied(Z, mixing).astype(np.float32)
    return dense_piece(0.5 + 0.5 * u / (1.0 + np.abs(u)), X)


def multiplied(left: Array, right: Array) -> Array:
    out = np.empty((len(left), right.shape[1]))
    product(left, right, out)
    return out
