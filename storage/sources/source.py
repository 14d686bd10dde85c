"""What preparing reads from: a source names pieces of itself, in the order of their rows, and reads
each into arrays.

Pieces are cheap to name and costly to read: naming happens in one process, reading wherever there
is a core. A piece is bounded in size, so that memory is too, whatever the source's size.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from koco_stream.io.files import file_hash
from koco_stream.types import Array

PIECE_BYTES = 8 << 20  # text that is read at once, if no line is longer

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Piece:
    """Consecutive rows: labels (n,) and canonical CSR (indptr (n + 1,) int64, indices int32, values
    float64 or float32), or dense rows, of equal length: then `indices` is empty and indptr counts
    by that length. Values and labels are finite.
    """

    labels: Array
    indptr: Array
    indices: Array
    values: Array

    @property
    def n_rows(self) -> int:
        """n."""
        return int(self.labels.size)


def dense_piece(labels: Array, matrix: Array) -> Piece:
    """The rows of `matrix` (n, d) with labels (n,) as dense rows."""
    n, d = matrix.shape
    return Piece(labels, np.arange(n + 1) * d, np.zeros(0, np.int32), matrix.reshape(-1))


class Each(Protocol):
    """How work on many items is done: one after the other in this process, or on a cluster. Results
    come in the items' order, a bounded number of items being under way; the first exception, in the
    items' order, is raised.
    """

    def __call__(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield function(item) for each item."""
        ...


class Source(Protocol):
    """A source of rows. Picklable and small: it is sent along with every piece."""

    @property
    def format(self) -> str:
        """Its name in the manifest."""
        ...

    @property
    def layout(self) -> str:
        """ "dense" or "sparse": how its pieces are."""
        ...

    @property
    def n_features(self) -> int | None:
        """d, or None if it is the largest feature number in any piece plus one."""
        ...

    @property
    def feature_names(self) -> list[str]:
        """Names (d,), or none."""
        ...

    @property
    def done(self) -> tuple[str, ...]:
        """What reading does besides reading, in words."""
        ...

    @property
    def n_bytes(self) -> int:
        """The size that progress is counted in."""
        ...

    @property
    def origin(self) -> dict[str, Any]:
        """What the manifest says of where the rows came from."""
        ...

    def surveyed(self, each: Each, scratch: Path) -> "Source":
        """The source after what has to be known of all of it before the first piece can be read (a
        column's texts, a vocabulary).

        Raises `WrongInput` for what is wrong with the source.
        """
        ...

    def pieces(self, scratch: Path) -> Iterator[Any]:
        """Its pieces by name, in order; small and picklable. Files may be written to `scratch`.

        Raises `WrongInput` if the source cannot be read on (a damaged archive).
        """
        ...

    def read(self, piece: Any) -> Piece:
        """The rows of a piece. Raises `WrongInput` naming the file, the line, the column, the text
        found there and the remedy.
        """
        ...

    def release(self, piece: Any) -> None:
        """Remove what was written to `scratch` for a piece; it was read, and will not be again."""
        ...

    def piece_bytes(self, piece: Any) -> int:
        """What the piece counts for in the progress; `n_bytes` in all."""
        ...


def with_hashes(origin: dict[str, Any], paths: Sequence[Path], each: Each) -> dict[str, Any]:
    """What the manifest says of where the rows came from, with the names and hashes of the files at
    `paths`.
    """
    files = [
        {"file": path.name, "sha256": sha256}
        for path, sha256 in zip(paths, each(file_hash, paths), strict=True)
    ]
    return {**origin, "files": files}


def one_by_one(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The `Each` of one process: the specification of the others."""
    return map(function, items)
