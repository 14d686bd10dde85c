"""Common base of the text sources, which split files into blocks of whole lines.

A block is parsed by a fast parser, or line by line if that fails. A plain file is split into byte
ranges. A compressed file is decompressed into small files, one per block.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, NoReturn, TypeVar

import pyarrow as pa
from pyarrow import csv

from koco_stream.errors import WrongInput
from storage.sources.compressed import DAMAGE, OPENERS, opened
from storage.sources.numbers import LabelRule, at
from storage.sources.source import Piece, Source

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# decompressed bytes read at once; the line number in an error about damage is exact up to this much
STEP = 1 << 16

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class TextFile:
    """A source file of text: its rows begin after `begin` bytes of text, in line `line` (from 1).

    `n_bytes` is its size on disk.
    """

    path: Path
    begin: int
    line: int
    n_bytes: int


@dataclass(frozen=True)
class Block:
    """Lines of a text file that begin within a byte range of it.

    Attributes
    ----------
    path : Path
        Source file.
    unpacked : Path
        File to read from: the source file, or a file with decompressed text of it.
    start, stop : int
        Byte range in `unpacked`.
    line : int, optional
        Number of the first line in the source file, from 1; None if it has not been counted.
    n_bytes : int
        Bytes that the block adds to the progress.
    """

    path: Path
    unpacked: Path
    start: int
    stop: int
    line: int | None
    n_bytes: int


@dataclass(kw_only=True)
class TextSource(Source, Generic[Rows]):
    """Base class of the text sources; `Rows` is the type of a block's parsed rows.

    `slow` defines the result and reports errors. `fast` may decline any block by returning None;
    where it returns rows, they equal those of `slow`.
    """

    files: tuple[TextFile, ...]
    rule: LabelRule
    block_bytes: int

    def __post_init__(self) -> None:
        self.n_bytes = sum(file.n_bytes for file in self.files)

    @abstractmethod
    def fast(self, text: bytes) -> Rows | None:
        """Parse whole lines of text quickly; None if anything in them is unusual or wrong."""

    @abstractmethod
    def slow(self, text: bytes, path: Path, line: int) -> Rows:
        """Parse whole lines of text one by one; the first is line `line` of `path`.

        Raises `WrongInput` with the position of an error.
        """

    @abstractmethod
    def piece(self, rows: Rows) -> Piece:
        """Convert the parsed rows of a block of text to a piece."""

    def rows(self, block: Block) -> Rows:
        """Parse a block of text. Raises `WrongInput` for a malformed line."""
        text = text_of(block)
        rows = self.fast(text)
        if rows is not None:
            return rows
        try:
            return self.slow(text, block.path, block.line or 1)
        except WrongInput:
            # parse again to raise the same error, now with the true line number
            return self.slow(text, block.path, first_line(block))

    def pieces(self, scratch: Path) -> Iterator[Block]:
        """Blocks of all files of the source.

        Raises `WrongInput` for a truncated or damaged compressed file.
        """
        for number, file in enumerate(self.files):
            if file.path.suffix in OPENERS:
                yield from _unpacked_blocks(file, self.block_bytes, scratch / f"{number:04d}")
                continue
            for start in range(file.begin, file.n_bytes, self.block_bytes):
                stop = min(start + self.block_bytes, file.n_bytes)
                first = start == file.begin
                line, n_bytes = (file.line, stop) if first else (None, stop - start)
                yield Block(file.path, file.path, start, stop, line, n_bytes)

    def read(self, piece: Block) -> Piece:
        """Read and parse a block of text. Raises `WrongInput` for a malformed line."""
        return self.piece(self.rows(piece))

    def release(self, piece: Block) -> None:
        """Delete the file with the decompressed text of a block, if there is one."""
        if piece.unpacked != piece.path:
            piece.unpacked.unlink(missing_ok=True)


def _unpacked_blocks(file: TextFile, block_bytes: int, prefix: Path) -> Iterator[Block]:
    """Decompress a file into one file per block, and yield the blocks.

    The names of the decompressed files begin with `prefix`.
    """
    with opened(file.path) as (raw, text):
        text.read(file.begin)
        line, told = file.line, 0
        left = [b""]  # text that was read and belongs to no block yet
        more = True
        while more:
            try:
                step = text.read(min(STEP, block_bytes))
            except DAMAGE as error:
                refuse_damage(file.path, line - 1 + b"".join(left).count(b"\n"), error)
            more = bool(step)
            left.append(step)
            if more and (b"\n" not in step or sum(map(len, left)) < block_bytes):
                continue
            whole = b"".join(left)
            end = whole.rfind(b"\n") + 1 if more else len(whole)
            left = [whole[end:]]
            if end:
                unpacked = Path(f"{prefix}-{line:015d}.txt")
                unpacked.write_bytes(whole[:end])
                now = raw.tell() if more else file.n_bytes
                yield Block(file.path, unpacked, 0, end, line, now - told)
                line, told = line + whole.count(b"\n", 0, end), now


def text_of(block: Block) -> bytes:
    """Text of a block, in which each line ends with a line feed; a byte order mark is removed."""
    with block.unpacked.open("rb") as handle:
        start = _line_start(handle, block.start)
        stop = _line_start(handle, block.stop)
        handle.seek(start)
        text = handle.read(stop - start)
    if start == 0 and block.line == 1:
        text = text.removeprefix(BYTE_ORDER_MARK)
    return text + b"\n" if text and not text.endswith(b"\n") else text


def first_line(block: Block) -> int:
    """Number of a block's first line, counted from the file's beginning if it is not known."""
    if block.line is not None:
        return block.line
    with block.unpacked.open("rb") as handle:
        steps, rest = divmod(_line_start(handle, block.start), STEP)
        handle.seek(0)
        before = sum(handle.read(STEP).count(b"\n") for _ in range(steps))
        return 1 + before + handle.read(rest).count(b"\n")


def _line_start(handle: BinaryIO, position: int) -> int:
    """Position of the first line that begins at or after `position`, or the end of the file."""
    if position == 0:
        return 0
    handle.seek(position - 1)
    handle.readline()
    return handle.tell()


def with_unix_ends(text: bytes) -> bytes | None:
    """Convert CRLF line ends to LF; None for mixed line ends or other carriage returns."""
    returns = text.count(b"\r")
    if not returns:
        return text
    return text.translate(None, b"\r") if returns == text.count(b"\r\n") else None


def read_csv(
    text: bytes,
    delimiter: str,
    names: list[str],
    types: dict[str, pa.DataType],
    nulls: list[str],
    block_bytes: int,
) -> pa.Table | None:
    """Parse text with pyarrow's CSV reader.

    Parameters
    ----------
    text : bytes
        Lines without a header.
    delimiter : str
        Field separator.
    names : list of str
        Names given to all columns.
    types : dict
        Type of each column to return, by name.
    nulls : list of str
        Texts that are read as null.
    block_bytes : int
        The reader's block size.

    Returns
    -------
    pyarrow.Table or None
        None if a field does not have its column's type.
    """
    try:
        return csv.read_csv(
            pa.py_buffer(text),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=block_bytes, column_names=names
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter, quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=nulls,
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid:
        return None


def refuse_damage(path: Path, line: int, error: Exception) -> NoReturn:
    """Raise `WrongInput` for damage (an exception of `DAMAGE`) met after `line` whole lines.

    An error of the operating system, which has a number, is raised unchanged.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    raise WrongInput(
        f"{path}: cut short or damaged after line {line} ({error}); fetch the file again"
    ) from None


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines of a plain or compressed file as (number from 1, line without its end).

    Raises `WrongInput` for a truncated or damaged file, or a malformed line (`checked_lines`).
    """
    with opened(path) as (_, text):
        yield from checked_lines(path, _raw_lines(path, text), 1)


def _raw_lines(path: Path, text: Any) -> Iterator[bytes]:
    number = 0
    try:
        for number, line in enumerate(text, 1):
            yield line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
    except DAMAGE as error:
        refuse_damage(path, number, error)


def checked_lines(path: Path, lines: Iterable[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    """Number lines from `first` and remove their ends.

    Raises `WrongInput` for a NUL byte, and for a carriage return within a line, which some programs
    take for a line end.
    """
    for number, line in enumerate(lines, first):
        if b"\0" in line:
            raise WrongInput(
                f"{at(path, number, line.index(0) + 1)}: a NUL byte; this is not text, or it is"
                " compressed under a wrong name"
            )
        line = line.rstrip(b"\r\n")
        if b"\r" in line:
            column = line.index(b"\r") + 1
            raise WrongInput(
                f"{at(path, number, column)}: a carriage return within the line; save the file with"
                " line feeds as line ends"
            )
        yield number, line
