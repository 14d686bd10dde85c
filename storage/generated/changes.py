"""When the concept of a stream changes: the rule by which its rows are labelled."""

from dataclasses import dataclass

import numpy as np

from koco_stream.types import Array
from storage.sources.source import refuse_first

MOST_CONCEPTS = 10_000  # so that a manifest, which lists the changes, stays small


@dataclass(frozen=True)
class Changes:
    """Changes of a stream's concept, at equal distances.

    Parameters
    ----------
    n_rows : int
        Number of rows of the stream.
    every : int
        Rows from one change to the next.
    width : int
        Rows over which a change takes place. The probability that the new concept labels a row
        grows linearly: it is k/width for the k-th row of the change. With 1 the change is abrupt,
        with more it is gradual.
    cycle : int
        Number of concepts. After the last one the first comes back.

    Raises
    ------
    WrongInput
        If changes would overlap, or there are too many.
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
        """Number of rows before each change, in order."""
        return range(self.every, self.n_rows if self.cycle > 1 else 0, self.every)

    @property
    def n_concepts(self) -> int:
        """Number of different concepts that occur."""
        return min(self.cycle, len(self.rounds) + 1)

    def concepts(self, first: int, chance: Array) -> Array:
        """Concept, from 0, of each of the rows from number `first` on.

        `chance` (n,) has a uniform random number in [0, 1) for each row.
        """
        number, since = np.divmod(first + np.arange(chance.size), self.every)
        still_old = (number > 0) & (chance * self.width >= since + 1)
        return (number - still_old) % self.n_concepts
