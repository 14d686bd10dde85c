"""The top of a text file: comments, and the line that decides how its rows are told apart."""

import re
from pathlib import Path

from koco_stream.errors import WrongInput
from storage.sources.compressed import OPENERS, opened
from storage.sources.numbers import NUMBER, at, is_other_number
from storage.sources.text.source import lines_of

NAMED = {".csv": "csv", ".tsv": "csv", ".vw": "vw", ".svm": "libsvm", ".libsvm": "libsvm"}
SEPARATORS = (",", ";", "\t")
MARKS = (b"#", b"%")
MATRIX = b"%%MatrixMarket"
MOST_BYTES = 1_000_000  # of comments and blank lines before the rows
MOST_SEEN = 10_000  # bytes of a line whose numbers are looked at
LIBSVM = re.compile(rb"\S+(\s+\d+:\S+)+\s*(#.*)?\Z")


def top_of(path: Path) -> tuple[list[tuple[int, bytes]], int, bytes]:
    """The top of a plain or compressed text file: the lines marked as comments; the number of the
    first line that is neither marked nor blank, and this line, which is empty if there is none.

    Raises `WrongInput` as `lines_of` does, if there is nothing but blank lines, too much comes
    before the first row, or a mark says that the lines after it are no rows.
    """
    comments: list[tuple[int, bytes]] = []
    size = 0
    for number, line in lines_of(path):
        text = line.strip()
        if text and not text.startswith(MARKS):
            return comments, number, line
        size += len(line) + 1
        if size > MOST_BYTES or text.startswith(MATRIX):
            late = f"no row in the first {MOST_BYTES:,} bytes; remove what comes before the rows"
            wrong = late if size > MOST_BYTES else "no table of rows; write them as LIBSVM text"
            raise WrongInput(f"{at(path, number)}: {wrong}")
        comments += [(number, line)] if text else []
    if not comments:
        raise WrongInput(f"{path}: the file holds no rows")
    return comments, 0, b""


def format_of(path: Path, line: bytes) -> str | None:
    """Format of a text file by its name or its first line; None if neither tells.

    What separates columns decides before numbers do, so that an empty field between tabs is one.
    """
    if named := NAMED.get(_suffix(path)):
        return named
    text = line.strip()
    words = text[:MOST_SEEN].split()[: -1 if len(text) > MOST_SEEN else None]
    if not text:
        raise WrongInput(f"{path}: the file holds no rows")
    if b"|" in text:
        return "vw"
    if b"," in text or b";" in text:
        return "csv"
    if LIBSVM.match(b" ".join(words)):
        return "libsvm"
    if b"\t" in line and not _blanks_too(line[:MOST_SEEN].strip()):
        return "csv"
    if NUMBER.match(text.partition(b"#")[0].strip()):
        return "libsvm"
    return "space" if words and all(map(NUMBER.match, words)) else None


def separator_of(path: Path, line: bytes) -> str:
    """What separates the columns of a CSV file, by its first line: a comma, a semicolon or a tab.

    It is the one that occurs most often outside quotes, and the comma if several do. The comma is
    none if all commas are within numbers, such as `1,5;2,5`. A tab is if the file's name says so.
    """
    outside = b"".join(line[:MOST_SEEN].split(b'"')[::2]).decode("utf-8", "replace")
    other = max((";", "\t"), key=outside.count)
    fields = outside.split(other)
    if len(fields) > 1 and all("," not in text or is_other_number(text.strip()) for text in fields):
        return other
    tabs = "\t" in outside and _suffix(path) == ".tsv"
    return "\t" if tabs else max(SEPARATORS, key=outside.count)


def begin_of(path: Path, number: int) -> int:
    """Bytes of text before a line."""
    with opened(path) as (_, text):
        return sum(len(text.readline()) for _ in range(number - 1))


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in OPENERS else path).suffix.lower()


def _blanks_too(line: bytes) -> bool:
    """Whether not only tabs but also blanks separate numbers in a line without empty fields.

    A number such as `1 234` is one.
    """
    fields = [field.split() for field in line.split(b"\t")]
    several = [words for words in fields if len(words) > 1 and all(map(NUMBER.match, words))]
    one = [words for words in several if is_other_number(b" ".join(words).decode())]
    return all(fields) and len(several) > len(one)
