"""What the sources of text have in common: their files are cut into blocks of whole lines, and a
block is parsed fast if it can be, else line by line.

A plain file is cut by byte ranges; a compressed one is unpacked into small files.
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
# read at once from an archive: how much text may be lost sight of when the rest is damaged
STEP = 1 << 16

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class TextFile:
    """A source file. Its rows begin after `begin` bytes of text, in line `line`; it has `n_bytes`
    bytes as it is stored.
    """

    path: Path
    begin: int
    line: int
    n_bytes: int


@dataclass(frozen=True)
class Block:
    """The lines that begin in bytes start to stop of the file `unpacked`, which holds text of the
    source file `path`, or is that file.

    line: the number of the first one, or None if it would have to be counted. n_bytes: what the
    block counts for in the progress.
    """

    path: Path
    unpacked: Path
    start: int
    stop: int
    line: int | None
    n_bytes: int


@dataclass(kw_only=True)
class TextSource(Source, Generic[Rows]):
    """A `Source` of text files; `Rows` is what a block's rows are parsed to.

    `fast` may give up for whatever reason, `slow` is the specification: where `fast` gives rows,
    they are those of `slow`, which is the one to tell what is wrong, and where.
    """

    files: tuple[TextFile, ...]
    rule: LabelRule
    block_bytes: int

    def __post_init__(self) -> None:
        self.n_bytes = sum(file.n_bytes for file in self.files)

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
            # it is wrong again, and now the line's number is known
            return self.slow(text, block.path, first_line(block))

    def pieces(self, scratch: Path) -> Iterator[Block]:
        """The blocks of all files. Raises `WrongInput` for an archive that is cut short or
        damaged.
        """
        for number, file in enumerate(self.files):
            if file.path.suffix in OPENERS:
                yield from _unpacked(file, self.block_bytes, scratch / f"{number:04d}")
                continue
            for start in range(file.begin, file.n_bytes, self.block_bytes):
                stop = min(start + self.block_bytes, file.n_bytes)
                first = start == file.begin
                line, n_bytes = (file.line, stop) if first else (None, stop - start)
                yield Block(file.path, file.path, start, stop, line, n_bytes)

    def read(self, piece: Block) -> Piece:
        """The rows of a block. Raises `WrongInput`."""
        return self.piece(self.rows(piece))

    def release(self, piece: Block) -> None:
        """Remove the text that was unpacked for the block."""
        if piece.unpacked != piece.path:
            piece.unpacked.unlink(missing_ok=True)


def _unpacked(file: TextFile, block_bytes: int, prefix: Path) -> Iterator[Block]:
    """The blocks of a compressed file, each in a file of its own whose name begins with
    `prefix`.
    """
    with opened(file.path) as (raw, text):
        text.read(file.begin)
        line, told = file.line, 0
        left = [b""]  # what was read and is in no block yet
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
    """The block's lines, each with a line end; without the mark that some editors write at a file's
    beginning.
    """
    with block.unpacked.open("rb") as handle:
        start = _line_start(handle, block.start)
        stop = _line_start(handle, block.stop)
        handle.seek(start)
        text = handle.read(stop - start)
    if start == 0 and block.line == 1:
        text = text.removeprefix(BYTE_ORDER_MARK)
    return text + b"\n" if text and not text.endswith(b"\n") else text


def first_line(block: Block) -> int:
    """The number of the block's first line, counted if need be."""
    if block.line is not None:
        return block.line
    with block.unpacked.open("rb") as handle:
        steps, rest = divmod(_line_start(handle, block.start), STEP)
        handle.seek(0)
        before = sum(handle.read(STEP).count(b"\n") for _ in range(steps))
        return 1 + before + handle.read(rest).count(b"\n")


def _line_start(handle: BinaryIO, position: int) -> int:
    """The first beginning of a line at or after `position`, or the file's end."""
    if position == 0:
        return 0
    handle.seek(position - 1)
    handle.readline()
    return handle.tell()


def with_unix_ends(text: bytes) -> bytes | None:
    """Lines that all end with a line feed, or all with a carriage return before it, with the line
    feed alone; None for any other carriage return.
    """
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
    """The columns `types` of the columns `names` of a text, by pyarrow's reader; None if something
    there is not of its type. An empty text is null if it is one of `nulls`.
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
    """Raise `WrongInput` for one of `DAMAGE` met while reading on after `line` whole lines; an
    error of the system (which has a number) is raised as it is.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    raise WrongInput(
        f"{path}: cut short or damaged after line {line} ({error}); fetch the file again"
    ) from None


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line without its end) of a plain or compressed file. Raises `WrongInput` if
    it is cut short or damaged.
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
    """(number, line without its end), counted from `first`. Raises `WrongInput` for a NUL byte, and
    for a carriage return within a line, where some programs begin a new one.
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
