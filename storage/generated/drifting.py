"""Synthetic streams whose concept changes (concept drift). Labels are −1 and +1.

`Changes` says when the concepts change. Each generator says what they are. A label is wrong with
probability `noise`, whatever the concept.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from koco_stream.errors import refuse_first
from koco_stream.types import Array
from storage.generated.streams import MODEL, Blocks, draw_of, sparse_text, too_noisy
from storage.sources.source import Piece, dense_piece

MOST_CONCEPTS = 10_000  # so that a manifest, which lists the changes, stays small


@dataclass(frozen=True)
class Changes:
    """Changes of a stream's concept, one `every` so many rows.

    A change takes place over `width` rows. The probability that the new concept labels a row grows
    linearly: it is k/width for the k-th row of the change. With 1 the change is abrupt, with more
    it is gradual. After `cycle` concepts the first comes back. Raises `WrongInput` if changes would
    overlap, or there are too many.
    """

    n_rows: int
    every: int
    width: int
    cycle: int

    def __post_init__(self) -> None:
        least = -(-self.n_rows // MOST_CONCEPTS)
        refuse_first(
            [
                (
                    self.width > self.every,
                    f"width = {self.width} is more than every = {self.every}, so a change would"
                    f" begin before the last one has ended; give a width of at most {self.every}",
                ),
                (
                    self.every < least,
                    f"n_rows = {self.n_rows} with every = {self.every} has more than"
                    f" {MOST_CONCEPTS:,} concepts one after another; give every = {least} or more",
                ),
            ]
        )

    @property
    def rounds(self) -> range:
        return range(self.every, self.n_rows if self.cycle > 1 else 0, self.every)

    @property
    def n_concepts(self) -> int:
        return min(self.cycle, len(self.rounds) + 1)

    def concepts(self, first: int, chance: Array) -> Array:
        """Concept, from 0, of each of the rows from number `first` on.

        `chance` (n,) are uniform random numbers in [0, 1).
        """
        number, since = np.divmod(first + np.arange(chance.size), self.every)
        still_old = (number > 0) & (chance * self.width >= since + 1)
        return (number - still_old) % self.n_concepts


DRIFTING = 0xD7
REVERSED = 0.1  # probability that a moving weight of a hyperplane is turned around
THRESHOLDS = (8.0, 9.0, 7.0, 9.5)  # of SEA's concepts, in the paper's order
MOST_FEATURES = 1000  # the weights of all concepts, (concepts, d), are in memory

# The weights (concepts, d) and thresholds (concepts,) of linear concepts. A concept's label is +1
# if the product of weights and row is at least the threshold.
Linear = tuple[Array, Array]


def hyperplane(
    n_rows: int = 100_000,
    n_features: int = 10,
    every: int = 10_000,
    width: int = 1,
    concepts: int = MOST_CONCEPTS,
    moving: int = 5,
    step: float = 0.3,
    noise: float = 0.05,
    data_seed: int = 1,
) -> Blocks:
    """Rotating hyperplane, after Hulten, Spencer and Domingos (KDD 2001), in float32.

    Features are uniform in [0, 1), and so are the weights w at first. The label is +1 if wᵀx ≥ ½Σw,
    which half of the rows meet for any w. The weights of the first `moving` features move by `step`
    at each change, at first upwards. Before they move, each is turned around with probability 0.1;
    they are reflected at 0 and 1. After so many `concepts` the first hyperplane comes back; with 1
    nothing changes.
    """
    refuse_first(
        [
            (
                n_features < 2,
                f"n_features = {n_features}, but a hyperplane needs two to rotate; give 2 or more",
            ),
            (
                moving > n_features,
                f"moving = {moving} is more than n_features = {n_features}; give at most"
                f" {n_features}",
            ),
        ]
    )
    changes = Changes(n_rows, every, width, concepts)
    make = partial(_hyperplanes, changes.n_concepts, n_features, moving, step, data_seed)
    return _dense(make, changes, n_features, (0.0, 1.0), noise, data_seed)


def sea(
    n_rows: int = 60_000,
    n_features: int = 3,
    every: int = 15_000,
    width: int = 1,
    noise: float = 0.1,
    data_seed: int = 1,
) -> Blocks:
    """The concepts of Street and Kim's streaming ensemble algorithm, SEA (KDD 2001), in float32.

    Features are uniform in [0, 10). The label is +1 if x₁ + x₂ ≤ θ with θ = 8, 9, 7, 9.5, and then
    8 again.
    """
    refuse_first(
        [(n_features < 2, f"n_features = {n_features}, but the concepts need two; give 2 or more")]
    )
    return _dense(
        partial(_sea, n_features),
        Changes(n_rows, every, width, len(THRESHOLDS)),
        n_features,
        (0.0, 10.0),
        noise,
        data_seed,
    )


def swapped_dense(
    n_rows: int = 100_000,
    n_features: int = 10,
    every: int = 10_000,
    width: int = 1,
    noise: float = 0.05,
    data_seed: int = 1,
) -> Blocks:
    """Dense float32 rows with a linear concept whose two labels are swapped at each change.

    Features and the weights w are uniform in [−1, 1). The label is +1 if wᵀx ≥ 0, or with swapped
    labels if −wᵀx ≥ 0.
    """
    changes = Changes(n_rows, every, width, 2)
    make = partial(_and_its_opposite, n_features, data_seed)
    return _dense(make, changes, n_features, (-1.0, 1.0), noise, data_seed)


def swapped_text(
    n_rows: int = 100_000,
    n_features: int = 10_000,
    mean_nonzeros: float = 50.0,
    every: int = 10_000,
    width: int = 1,
    noise: float = 0.05,
    scale: str = "unit-rows",
    data_seed: int = 1,
) -> Blocks:
    """Rows of `sparse_text` whose two labels are swapped at each change."""
    changes = Changes(n_rows, every, width, 2)
    text = sparse_text(n_rows, n_features, mean_nonzeros, noise, scale, data_seed)
    make = partial(_swapped_block, text=text, changes=changes, data_seed=data_seed)
    return replace(text, make=make, changes=changes.rounds)


def _swapped_block(
    number: int, block_rows: int, text: Blocks, changes: Changes, data_seed: int
) -> Piece:
    rows = text.make(number, block_rows)
    chance = draw_of(data_seed, DRIFTING, number).random(block_rows)
    swapped = changes.concepts(number * block_rows, chance) == 1
    return replace(rows, labels=np.where(swapped, -rows.labels, rows.labels))


def _dense(
    linear: Callable[[], Linear],
    changes: Changes,
    n_features: int,
    ends: tuple[float, float],
    noise: float,
    data_seed: int,
) -> Blocks:
    refuse_first(
        [
            too_noisy(noise),
            (
                n_features > MOST_FEATURES,
                f"n_features = {n_features} is more than {MOST_FEATURES}; for more features use"
                " swapped-text",
            ),
        ]
    )
    return Blocks(
        make=partial(
            _dense_block,
            linear=linear,
            changes=changes,
            ends=ends,
            noise=noise,
            data_seed=data_seed,
            n_features=n_features,
        ),
        n_rows=changes.n_rows,
        n_features=n_features,
        layout="dense",
        changes=changes.rounds,
    )


def _dense_block(
    number: int,
    block_rows: int,
    linear: Callable[[], Linear],
    changes: Changes,
    ends: tuple[float, float],
    noise: float,
    data_seed: int,
    n_features: int,
) -> Piece:
    weights, thresholds = linear()
    draw = draw_of(data_seed, DRIFTING, number)
    X = ends[0] + (ends[1] - ends[0]) * draw.random((block_rows, n_features), np.float32)
    chance, flip = draw.random((2, block_rows))
    concept = changes.concepts(number * block_rows, chance)
    score = np.zeros(block_rows)
    for j in range(n_features):  # in this order on every machine, which a product by BLAS is not
        score += X[:, j] * weights[concept, j]
    positive = (score >= thresholds[concept]) != (flip < noise)
    return dense_piece(np.where(positive, 1.0, -1.0), X)


@lru_cache(maxsize=2)
def _hyperplanes(
    n_concepts: int, n_features: int, moving: int, step: float, data_seed: int
) -> Linear:
    draw = draw_of(data_seed, DRIFTING, MODEL)
    moves = np.zeros((n_concepts, n_features))
    moves[0] = draw.random(n_features)
    turns = np.where(draw.random((n_concepts - 1, moving)) < REVERSED, -1.0, 1.0)
    moves[1:, :moving] = step * np.cumprod(turns, axis=0)
    # reflected at 0 and 1, as often as needed
    weights = 1.0 - np.abs(1.0 - np.mod(np.cumsum(moves, axis=0), 2.0))
    return weights, 0.5 * np.cumsum(weights, axis=1)[:, -1]


def _sea(n_features: int) -> Linear:
    weights = np.zeros((len(THRESHOLDS), n_features))
    weights[:, :2] = -1.0
    return weights, -np.array(THRESHOLDS)


def _and_its_opposite(n_features: int, data_seed: int) -> Linear:
    w = 2.0 * draw_of(data_seed, DRIFTING, MODEL).random(n_features) - 1.0
    return np.stack([w, -w]), np.zeros(2)
