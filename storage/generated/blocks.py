"""Rows that are generated block by block, each block from a counter.

The rows of a block depend only on the parameters and the block's number, so a stream of any size
takes the memory of a block, and any process can generate any block.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.sources.source import Piece, Source

BLOCK_ROWS = 16_384
BLOCK_VALUES = 1 << 22  # approximate limit on the values of a block
MODEL = 1 << 47  # block number reserved for the random numbers that all rows share


@dataclass(kw_only=True)
class Blocks(Source):
    """Source of rows that are generated block by block.

    Parameters
    ----------
    make : callable
        Module-level function; `make(number, **model)` generates one block.
    model : dict
        Keyword arguments of `make`.
    n_rows : int
        Number of rows.
    block_rows : int
        Rows per block; the last block is generated in full and truncated.
    """

    make: Callable[..., Piece]
    model: dict[str, Any]
    n_rows: int
    block_rows: int
    format: str = "synthetic"

    def __post_init__(self) -> None:
        self.n_bytes = self.n_rows

    def pieces(self, scratch: Path) -> Iterator[tuple[int, int]]:
        """Blocks of generated rows as (first row, number of rows); the last may be truncated."""
        for first in range(0, self.n_rows, self.block_rows):
            yield first, min(self.block_rows, self.n_rows - first)

    def read(self, piece: tuple[int, int]) -> Piece:
        """Generate the rows of a block, or of any range of rows within one block."""
        first, n = piece
        number, begin = divmod(first, self.block_rows)
        return self.make(number, **self.model).between(begin, begin + n)

    def piece_bytes(self, piece: tuple[int, int]) -> int:
        """Number of rows of a block, by which progress is counted."""
        return piece[1]


def block_rows_of(values_per_row: float) -> int:
    """Number of rows of a block whose rows have about so many values."""
    return max(1, min(BLOCK_ROWS, int(BLOCK_VALUES / max(values_per_row, 1.0))))


def too_noisy(noise: float) -> tuple[bool, str]:
    """Whether more than half of the labels would be wrong, and the message, for `refuse_first`."""
    return noise > 0.5, f"noise = {noise:g} is the share of wrong labels, at most 0.5"


def draw_of(data_seed: int, kind: int, number: int) -> np.random.Generator:
    """Counter-based random number generator of one block, with its own key."""
    return np.random.Generator(
        np.random.Philox(key=np.array([data_seed, (kind << 48) + number], np.uint64))
    )
