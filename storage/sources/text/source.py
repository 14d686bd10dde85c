"""Text files: their lines, what the first ones tell, and the common base of their sources."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import pyarrow as pa
from pyarrow import csv

from koco_stream.errors import WrongInput, refuse_first
from storage.sources.compressed import DAMAGE, OPENERS, opened, refuse_damage
from storage.sources.numbers import NUMBER, LabelRule, at, is_other_number
from storage.sources.source import Source

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MOST_LINE = 100_000_000  # bytes
MOST_FIELD = 10_000_000
NAMED = {
    ".csv": "csv",
    ".tsv": "csv",
    ".vw": "vw",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".arff": "arff",
}
MARKS = (b"#", b"%")
NO_TEXT = {
    b"\0": "a NUL byte, so this is a workbook, text in UTF-16, or compressed under a wrong name;"
    " save it as CSV in UTF-8",
    b"\r": "a carriage return within the line; save the file with line feeds as line ends",
}
MOST_SEEN = 10_000  # bytes of a line whose numbers are looked at
# columns with '|' between them, unlike a row of VW: several without blanks, or single words
BARRED = re.compile(
    rb"[^|:']+((?<!\s)\|[^|:]*){2,}\Z|[^\s|:']+(\s*\|\s*[^\s|:]*){2,}\Z|[^\s|:']+\|[^\s|:]+\Z"
)
LIBSVM = re.compile(rb"\S+(\s+[^\s:#]+:\S+)+\s*(#.*)?\Z")

Rows = TypeVar("Rows")


class Unusual(WrongInput):
    """Text that the fast parser leaves to the slow one."""


DECLINED = (WrongInput, pa.ArrowInvalid, UnicodeDecodeError)  # what `TextSource.fast` may raise


@dataclass(frozen=True)
class TextFile:
    """Rows begin in line `line` (from 1), after `n_comments` lines of comments."""

    path: Path
    line: int
    n_comments: int = 0


@dataclass(frozen=True)
class Block:
    """Whole lines of a text file, from its line `line` (from 1)."""

    path: Path
    unpacked: Path
    start: int
    stop: int
    line: int
    n_bytes: int


@dataclass(kw_only=True)
class TextSource(Source, Generic[Rows]):
    """Base class of the text sources; `Rows` is the type of a block's parsed rows.

    `slow` defines the result and reports errors. `fast` may decline any block; its rows equal those
    of `slow`.
    """

    files: tuple[TextFile, ...]
    rule: LabelRule
    block_bytes: int
    between: tuple[bytes, ...] = (b" ", b"\t")

    def __post_init__(self) -> None:
        self.n_bytes = sum(file.path.stat().st_size for file in self.files)
        if n_comments := sum(file.n_comments for file in self.files):
            said = f"left out: {n_comments} line(s) of comments at the top"
            self.done = tuple(dict.fromkeys((*self.done, said)))

    @abstractmethod
    def fast(self, text: bytes) -> Rows:
        """Raises one of `DECLINED` if lines are unusual or wrong."""

    @abstractmethod
    def slow(self, lines: Iterable[tuple[int, bytes]], path: Path) -> Rows:
        """Raises `Malformed` with every kind of fault."""

    def rows(self, piece: Block) -> Rows:
        text = text_of(piece)
        refuse_long(piece.path, piece.line, text, "field", MOST_FIELD, self.between)
        with suppress(*DECLINED):
            return self.fast(text)
        return self.slow(checked_lines(piece.path, text.split(b"\n"), piece.line), piece.path)

    def pieces(self, scratch: Path) -> Iterator[Block]:
        """Blocks of at least `block_bytes` of text, but for the last of a file."""
        for number, file in enumerate(self.files):
            yield from _blocks(file, self.block_bytes, scratch / f"{number:04d}")

    def release(self, piece: Block) -> None:
        if piece.unpacked != piece.path:
            piece.unpacked.unlink(missing_ok=True)


def _blocks(file: TextFile, block_bytes: int, prefix: Path) -> Iterator[Block]:
    line = file.line
    told = 0
    more = True
    with opened(file.path) as (raw, text):
        start = sum(len(text.readline()) for _ in range(1, line))
        while more:
            try:
                lines = text.read(block_bytes) + text.readline(MOST_LINE + 1)
                refuse_long(file.path, line, lines, "line", MOST_LINE)
                more = bool(text.peek(1))
            except DAMAGE as error:
                refuse_damage(file.path, f"line {line - 1}", error)
            if not more or lines.strip(b" \r\n"):
                now = raw.tell() if more else file.path.stat().st_size
                unpacked = file.path
                begin = start
                if file.path.suffix in OPENERS:
                    unpacked = Path(f"{prefix}-{line:015d}.txt")
                    begin = 0
                    unpacked.write_bytes(lines)
                yield Block(file.path, unpacked, begin, begin + len(lines), line, now - told)
                told = now
            line = line + lines.count(b"\n")
            start = start + len(lines)


def refuse_long(
    path: Path, line: int, text: bytes, what: str, most: int, between: tuple[bytes, ...] = ()
) -> None:
    """Raise `WrongInput` for `what` of more than `most` bytes."""
    begin = 0
    while begin + most < len(text):
        end = max(text.rfind(one, begin, begin + most + 1) for one in (b"\n", *between))
        if end < begin:
            number = line + text.count(b"\n", 0, begin)
            raise WrongInput(
                f"{at(path, number)}: a {what} of more than {most:,} bytes; this is no table as"
                " text, or it has no line ends: write one row a line"
            )
        begin = end + 1


def text_of(block: Block) -> bytes:
    """Each line ends with a line feed, and a byte order mark is removed."""
    with block.unpacked.open("rb") as handle:
        handle.seek(block.start)
        text = handle.read(block.stop - block.start)
    if block.line == 1:
        text = text.removeprefix(BYTE_ORDER_MARK)
    return text + b"\n" if text and not text.endswith(b"\n") else text


def with_unix_ends(text: bytes) -> bytes:
    returns = text.count(b"\r")
    if returns not in (0, text.count(b"\r\n")):
        raise Unusual
    return text.translate(None, b"\r") if returns else text


def read_csv(
    text: bytes,
    delimiter: str,
    names: Iterable[str],
    types: dict[str, pa.DataType],
    nulls: list[str],
    block_bytes: int,
) -> pa.Table:
    """Raises `pa.ArrowInvalid` if a field does not have the type of its column in `types`."""
    return csv.read_csv(
        pa.py_buffer(text),
        read_options=csv.ReadOptions(
            use_threads=False, block_size=block_bytes, column_names=list(names)
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


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    with opened(path) as (_, text):
        lines = iter(partial(text.readline, MOST_LINE + 1), b"")
        try:
            for number, line in checked_lines(path, lines, 1):
                yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        except DAMAGE as error:
            refuse_damage(path, f"line {number}", error)


def checked_lines(path: Path, lines: Iterable[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    """A carriage return within a line is refused: some programs take it for a line end."""
    for number, line in enumerate(lines, first):
        refuse_long(path, number, line, "line", MOST_LINE)
        text = line.rstrip(b"\r\n")
        for byte, wrong in NO_TEXT.items():
            if byte in text:
                raise WrongInput(f"{at(path, number, text.find(byte) + 1)}: {wrong}")
        yield number, text


def top_of(path: Path) -> tuple[list[tuple[int, bytes]], int, bytes]:
    """The marked lines at the top, and the first line that is neither marked nor blank."""
    comments: list[tuple[int, bytes]] = []
    for number, line in lines_of(path):
        text = line.strip()
        if text and not text.startswith(MARKS):
            return comments, number, line
        if text.startswith(b"%%MatrixMarket"):
            raise WrongInput(f"{at(path, number)}: no table of rows; write them as LIBSVM text")
        comments += [(number, line)] if text else []
    if not comments:
        raise WrongInput(f"{path}: the file holds no rows")
    return comments, 0, b""


def format_of(path: Path, line: bytes) -> str | None:
    """None if neither the name nor the first line tells."""
    named = NAMED.get(_suffix(path))
    text = line.strip()
    refuse_first(
        [
            (not named and not text, f"{path}: the file holds no rows"),
            (
                not named and BARRED.match(text[:MOST_SEEN]) is not None,
                f"{path}: '|' between columns is not read; write commas or tabs instead",
            ),
        ]
    )
    words = text[:MOST_SEEN].split()[: -1 if len(text) > MOST_SEEN else None]
    told = [
        (text.lower().startswith(b"@relation"), "arff"),
        (b"|" in text, "vw"),
        (b"," in text or b";" in text, "csv"),
        (LIBSVM.match(b" ".join(words)), "libsvm"),
        (b"\t" in line and not _blanks_too(line[:MOST_SEEN].strip()), "csv"),
        (NUMBER.match(text.partition(b"#")[0].strip()), "libsvm"),
        (words and all(map(NUMBER.match, words)), "space"),
    ]
    return named or next((form for fits, form in told if fits), None)


def separator_of(path: Path, line: bytes) -> str:
    """A comma, a semicolon or a tab: which occurs most often outside quotes in the first line.

    Commas within numbers, such as `1,5;2,5`, are none. A tab is one if the file's name says so.
    """
    outside = b"".join(line[:MOST_SEEN].split(b'"')[::2]).decode("utf-8", "replace")
    other = max((";", "\t"), key=outside.count)
    fields = outside.split(other)
    if len(fields) > 1 and all("," not in text or is_other_number(text.strip()) for text in fields):
        return other
    tabs = "\t" in outside and _suffix(path) == ".tsv"
    return "\t" if tabs else max(",;\t", key=outside.count)


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in OPENERS else path).suffix.lower()


def _blanks_too(line: bytes) -> bool:
    """Whether blanks, too, separate numbers in a line of tabs."""
    fields = [field.split() for field in line.split(b"\t")]
    several = [words for words in fields if len(words) > 1 and all(map(NUMBER.match, words))]
    one = [words for words in several if is_other_number(b" ".join(words).decode())]
    return all(fields) and len(several) > len(one)
