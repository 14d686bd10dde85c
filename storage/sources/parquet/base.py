"""What the sources of Parquet files have in common: their files are cut into slices, of which some
columns are read.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from storage.sources.numbers import LabelRule
from storage.sources.parquet.slices import Slice, remove, rows_of, slices
from storage.sources.source import Each, Piece, with_hashes


@dataclass
class ParquetRows(ABC):
    """A `Source` of Parquet files, one after the other, of which `columns` are read, those in
    `texts` as dictionaries.
    """

    paths: tuple[Path, ...]
    rule: LabelRule
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    layout: str
    n_features: int | None
    feature_names: list[str]
    done: tuple[str, ...]
    n_bytes: int
    origin: dict[str, Any]
    format: str

    @abstractmethod
    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """What the rows of a row group take in memory as a piece, at most or about."""

    @abstractmethod
    def piece(self, rows: pa.RecordBatch, part: Slice) -> Piece:
        """The rows of a slice as the source gives them. Raises `WrongInput` naming the place."""

    def surveyed(self, each: Each, scratch: Path) -> Self:
        """The source, its origin with the files' hashes."""
        return replace(self, origin=with_hashes(self.origin, self.paths, each))

    def pieces(self, scratch: Path) -> Iterator[Slice]:
        """The slices of all files. Raises `WrongInput` for a damaged file."""
        for number, path in enumerate(self.paths):
            yield from slices(
                path, self.columns, self.texts, self.decoded_bytes, scratch / f"slice-{number}"
            )

    def read(self, piece: Slice) -> Piece:
        """The rows of a slice. Raises `WrongInput` naming file, row group, row and column."""
        return self.piece(rows_of(piece, self.columns, self.texts), piece)

    def release(self, piece: Slice) -> None:
        """Remove the slice of a large row group."""
        remove(piece)

    def piece_bytes(self, piece: Slice) -> int:
        """Its share of the files' bytes, as they are stored."""
        return piece.n_bytes
