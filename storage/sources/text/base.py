"""What the sources of text have in common: their files are cut into blocks, and a block is parsed
fast if it can be, else line by line.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule
from storage.sources.source import Each, Piece, with_hashes
from storage.sources.text.blocks import Block, TextFile, blocks_of, first_line, remove, text_of

Rows = TypeVar("Rows")


@dataclass
class TextSource(ABC, Generic[Rows]):
    """A `Source` of text files; `Rows` is what a block's rows are parsed to.

    `fast` may give up for whatever reason, `slow` is the specification: where `fast` gives rows,
    they are those of `slow`, which is the one to tell what is wrong, and where.
    """

    format: str
    layout: str
    n_features: int | None
    feature_names: list[str]
    done: tuple[str, ...]
    n_bytes: int
    origin: dict[str, Any]
    files: tuple[TextFile, ...]
    rule: LabelRule
    block_bytes: int

    @abstractmethod
    def fast(self, text: bytes) -> Rows | None:
        """The rows of some lines, or None if there is anything unusual or wrong in them."""

    @abstractmethod
    def slow(self, text: bytes, path: Path, line: int) -> Rows:
        """The rows of some lines of `path`, the first being number `line`. Raises `WrongInput`
        naming the place.
        """

    @abstractmethod
    def piece(self, rows: Rows) -> Piece:
        """The rows as the source gives them."""

    def rows(self, block: Block) -> Rows:
        """The rows of a block. Raises `WrongInput`."""
        text = text_of(block)
        rows = self.fast(text)
        if rows is not None:
            return rows
        try:
            return self.slow(text, block.path, block.line or 1)
        except WrongInput:
            return self.slow(
                text, block.path, first_line(block)
            )  # it is wrong again, and now the line's number is known

    def surveyed(self, each: Each, scratch: Path) -> Self:
        """The source, its origin with the files' hashes."""
        return replace(
            self, origin=with_hashes(self.origin, [file.path for file in self.files], each)
        )

    def pieces(self, scratch: Path) -> Iterator[Block]:
        """The blocks of all files. Raises `WrongInput` for an archive that is cut short or
        damaged.
        """
        for number, file in enumerate(self.files):
            yield from blocks_of(file, scratch, number, self.block_bytes)

    def read(self, piece: Block) -> Piece:
        """The rows of a block. Raises `WrongInput`."""
        return self.piece(self.rows(piece))

    def release(self, piece: Block) -> None:
        """Remove the text that was unpacked for the block."""
        remove(piece)

    def piece_bytes(self, piece: Block) -> int:
        """Its share of the source's bytes, as they are stored."""
        return piece.n_bytes
