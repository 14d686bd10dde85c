"""What preparing reads from: a source names pieces of itself, in the order of their rows, and reads
each into arrays.

Pieces are cheap to name and costly to read: naming happens in one process, reading wherever there
is a core. A piece is bounded in size, so that memory is too, whatever the source's size.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash
from koco_stream.types import Array

PIECE_BYTES = 8 << 20  # text that is read at once, if no line is longer

# `map`, or the same on a cluster: the results in the order of the items, of which a bounded number
# are under way; the first exception in that order is raised.
ParallelMap = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def refuse_first(problems: Iterable[tuple[bool, str]]) -> None:
    """Raise `WrongInput` with the message of the first problem that is there."""
    for is_there, message in problems:
        if is_there:
            raise WrongInput(message)


@dataclass(frozen=True)
class Reading:
    """How sources are read. `format` None is seen from the first line.

    target: the column of labels, by name or by number from 1. labels: the rule by which their texts
    become numbers (`LabelRule`). drop: columns to leave out. one_hot: columns of texts become one
    feature a value. header: whether the first line holds names. n_features: d of a LIBSVM or VW
    file, if its largest feature does not occur. zero_based: whether such a file counts from 0.
    strip: what is taken away from documents: "headers", "footers", "quotes".
    """

    format: str | None = None
    target: str | None = None
    labels: str | None = None
    drop: tuple[str, ...] = ()
    one_hot: bool = False
    header: bool | None = None
    n_features: int | None = None
    zero_based: bool | None = None
    strip: tuple[str, ...] = ()

    def given(self) -> dict[str, Any]:
        """What differs from the defaults, for the manifest."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            f.name: list(values[f.name]) if isinstance(f.default, tuple) else values[f.name]
            for f in fields(self)
            if values[f.name] != f.default
        }


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

    def between(self, start: int, stop: int) -> "Piece":
        """The rows from `start` up to, but without, `stop`."""
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - a
        return Piece(self.labels[start:stop], indptr, self.indices[a:b], self.values[a:b])


def dense_piece(labels: Array, matrix: Array) -> Piece:
    """The rows of `matrix` (n, d) with labels (n,) as dense rows."""
    n, d = matrix.shape
    return Piece(labels, np.arange(n + 1) * d, np.zeros(0, np.int32), matrix.reshape(-1))


def concatenated(pieces: Sequence[Piece]) -> Piece:
    """The rows of one or more pieces, one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    sizes = np.concatenate([np.diff(piece.indptr) for piece in pieces])
    return Piece(
        np.concatenate([piece.labels for piece in pieces]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([piece.indices for piece in pieces]),
        np.concatenate([piece.values for piece in pieces]),
    )


@dataclass(kw_only=True)
class Source(ABC):
    """A source of rows. Picklable and small: it is sent along with every piece.

    format: its name in the manifest. layout: "dense" or "sparse", how its pieces are. paths: its
    files, if it is files of rows. n_features: d, or None if it is the largest feature number in any
    piece plus one. n_bytes: the size that progress is counted in. feature_names: (d,), or none.
    done: what reading does besides reading, in words. origin: what the manifest says of where the
    rows came from.
    """

    format: str
    layout: str
    paths: tuple[Path, ...] = ()
    n_features: int | None = None
    n_bytes: int = 0
    feature_names: list[str] = field(default_factory=list)
    done: tuple[str, ...] = ()
    origin: dict[str, Any] = field(default_factory=dict)

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        """The source after what has to be known of all of it before the first piece can be read:
        the hashes of its files, and in subclasses a column's texts or a vocabulary.

        Raises `WrongInput` for what is wrong with the source.
        """
        if not self.paths:
            return self
        hashes = zip(self.paths, parallel_map(file_hash, self.paths), strict=True)
        files = [{"file": path.name, "sha256": sha256} for path, sha256 in hashes]
        return replace(self, origin={**self.origin, "files": files})

    @abstractmethod
    def pieces(self, scratch: Path) -> Iterator[Any]:
        """Its pieces by name, in order; small and picklable. Files may be written to `scratch`.

        Raises `WrongInput` if the source cannot be read on (a damaged archive).
        """

    @abstractmethod
    def read(self, piece: Any) -> Piece:
        """The rows of a piece. Raises `WrongInput` naming the file, the line, the column, the text
        found there and the remedy.
        """

    def piece_bytes(self, piece: Any) -> int:
        """What the piece counts for in the progress; `n_bytes` in all. A piece that has `n_bytes`
        says it.
        """
        return int(piece.n_bytes)

    def release(self, piece: Any) -> None:  # noqa: B027  (most sources write nothing)
        """Remove what was written to `scratch` for a piece; it was read, and will not be again."""
