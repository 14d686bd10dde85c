"""Interface between data sources and the preparation pipeline."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash
from koco_stream.types import Array
from storage.sources.numbers import is_numeric

MISSING_CHOICES = ("mean", "drop")
# the fields of `Reading` for sources that have columns
OF_COLUMNS = ("target", "drop", "categorical", "numeric", "one_hot", "missing")
UNDECIDED = "undecided"  # layout of a source that has to be surveyed first
PIECE_BYTES = 8 << 20  # bytes of text read at once, unless one line is longer
MOST_TOLD = 10  # kinds of fault in one message, and columns named for a kind
MOST_MET = 1000  # faults after which reading ends

T = TypeVar("T")

# `map`, or its equivalent on a cluster: results come in the order of the items, a bounded number of
# items is processed at a time, and the first exception in that order is raised.
ParallelMap = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def few(words: Sequence[str]) -> str:
    beyond = len(words) - MOST_TOLD
    return ", ".join(words[:MOST_TOLD]) + (f" and {beyond:,} more" if beyond > 0 else "")


def with_classes(source: Any, classes: Collection[str]) -> Any:
    """The source with numbers of these classes, if there are any: −1 and 1 if two, else 1, 2, …"""
    if not classes:
        return source
    # labels of a UCI test file end with a dot
    names = sorted(text for text in classes if not (text[-1] == "." and text[:-1] in classes))
    numbers = (-1.0, 1.0) if len(names) == 2 else map(float, range(1, len(names) + 1))
    rule = copy(source.rule)
    rule.values = dict(zip(names, numbers, strict=True))
    done = (*source.done, f"classes in sorted order: {few(names)}")
    return replace(source, rule=rule, class_names=rule.names, done=done)


class Malformed(WrongInput):
    """Every kind of fault of a source's rows, up to ten of them, a line each."""


Fault = tuple[int, WrongInput, str]  # the row (from 0), the error, its column
VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")  # what differs between faults of one kind


class Problems:
    """Faults that were met: by kind, the first one's message, and the column of each."""

    def __init__(self) -> None:
        self.met: dict[str, tuple[str, list[str]]] = {}

    def add(self, error: WrongInput, column: str = "") -> None:
        """Raises `Malformed` once there are enough faults."""
        _, columns = self.met.setdefault(VARYING.sub("", f"{error}"), (f"{error}", []))
        columns.append(column)
        if sum(len(columns) for _, columns in self.met.values()) == MOST_MET:
            self.refuse([f"reading ended at {MOST_MET:,} problems"])

    def until_fault(self, items: Iterable[T]) -> Iterator[T]:
        """Items until a `WrongInput`, which is counted."""
        try:
            yield from items
        except WrongInput as error:
            self.add(error)

    def refuse(self, notes: Sequence[str] = ()) -> None:
        if self.met:
            told = [_told(*kind) for kind in self.met.values()][:MOST_TOLD]
            beyond = ["there are more problems after these"] if len(self.met) > MOST_TOLD else []
            if len(told) > 1:
                told = [f"{len(told)} problems:", *(f"  {line}" for line in told)]
            raise Malformed("\n".join([*told, *beyond, *notes]))


def _told(message: str, columns: list[str]) -> str:
    if len(columns) == 1:
        return message
    named = list(dict.fromkeys(filter(None, columns)))
    where = f", in {few(named)}" if len(named) > 1 else ""
    return f"{message} (and {len(columns) - 1:,} more of this kind{where})"


@dataclass(frozen=True)
class Reading:
    """Options that say how source files are read.

    `target` is the label column, by name or by number from 1. `categorical` columns are of
    categories whatever they hold, and a text in a `numeric` one is a missing value.
    """

    format: str | None = None
    target: str | None = None
    labels: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    one_hot: bool = False
    header: bool | None = None
    n_features: int | None = None
    zero_based: bool | None = None
    strip: tuple[str, ...] = ()
    missing: str | None = None

    def given(self) -> dict[str, Any]:
        """Options that differ from their defaults, for the manifest."""
        return {
            one.name: list(value) if isinstance(value, tuple) else value
            for one in fields(self)
            if (value := getattr(self, one.name)) != one.default
        }


@dataclass(frozen=True)
class Piece:
    """Consecutive rows in canonical CSR form or dense; all numbers are finite, but for missing
    ones.

    Dense rows have empty `indices`, and `indptr` advances by the row length d. `n_dropped` rows
    were left out for their missing values.
    """

    labels: Array
    indptr: Array
    indices: Array
    values: Array
    n_dropped: int = 0

    @property
    def n_rows(self) -> int:
        return int(self.labels.size)

    def between(self, start: int, stop: int) -> "Piece":
        a = int(self.indptr[start])
        b = int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - a
        return Piece(self.labels[start:stop], indptr, self.indices[a:b], self.values[a:b])


def dense_piece(labels: Array, matrix: Array) -> Piece:
    n, d = matrix.shape
    return Piece(labels, np.arange(n + 1) * d, np.zeros(0, np.int32), matrix.reshape(-1))


def concatenated(pieces: Sequence[Piece]) -> Piece:
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
    """Base class of data sources, small and picklable: one is sent with every task.

    `layout` may be "undecided" before the survey. `n_features` is None if only the rows tell.
    `changes` has the rows before each change of the concept. With `missing` None missing values are
    refused, with "drop" their rows left out. In rows without columns that are `named`, labels may
    be texts.
    """

    format: str
    layout: str
    paths: tuple[Path, ...] = ()
    n_features: int | None = None
    n_bytes: int = 0
    feature_names: list[str] = field(default_factory=list)
    class_names: dict[float, str] = field(default_factory=dict)
    changes: Sequence[int] = ()
    done: tuple[str, ...] = ()
    origin: dict[str, Any] = field(default_factory=dict)
    missing: str | None = None
    named: bool = False

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        """Copy of this source with what must be known of all rows before a piece is read."""
        if not self.paths:
            return self
        hashes = zip(self.paths, parallel_map(file_hash, self.paths), strict=True)
        files = [{"file": path.name, "sha256": sha256} for path, sha256 in hashes]
        pieces = self.pieces(scratch) if self.named else ()
        names = {*chain.from_iterable(parallel_map(self.names_in, pieces))}
        source = replace(self, origin={**self.origin, "files": files})
        return source if any(map(is_numeric, names)) else with_classes(source, names)

    def names_in(self, piece: Any) -> Iterable[str]:
        raise NotImplementedError

    @abstractmethod
    def pieces(self, scratch: Path) -> Iterator[Any]:
        """Descriptions of the pieces in row order, each small and picklable."""

    @abstractmethod
    def read(self, piece: Any) -> Piece:
        """Raises `Malformed` with every kind of fault: file, line, column, text and remedy."""

    def piece_bytes(self, piece: Any) -> int:
        return int(piece.n_bytes)

    def release(self, piece: Any) -> None:  # noqa: B027  (most sources write nothing)
        """Delete the temporary files of a piece."""
