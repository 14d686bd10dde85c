"""Text files, plain or compressed: their lines, the numbers in them, and the rule by which labels become numbers."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa

from koco_stream.errors import WrongInput
from storage.members import members


def _zst(raw: BinaryIO) -> Any:
    return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))


OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": gzip.open,
    ".bz2": partial(members, new=bz2.BZ2Decompressor),
    ".xz": partial(members, new=lzma.LZMADecompressor),
    ".zst": _zst,
}
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, OSError)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
MISSING = ("nan", "inf", "infinity", "", "?", "na")


def at(path: Path, line: int, column: int | None = None) -> str:
    """A place in words, for a message; line and column are counted from 1."""
    return f"{path}, line {line}" if column is None else f"{path}, line {line}, column {column}"


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Any]]:
    """The file itself, and its text to read from: two names for one file if it is not compressed."""
    with path.open("rb") as raw:
        if path.suffix not in OPENERS:
            yield raw, raw
            return
        with OPENERS[path.suffix](raw) as text:
            yield raw, text


def refuse_damage(path: Path, line: int, error: Exception) -> NoReturn:
    """Raise `WrongInput` for one of `DAMAGE` met while reading on after `line` whole lines; an error of the system (which has a number)
    is raised as it is."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    raise WrongInput(f"{path}: cut short or damaged after line {line} ({error}); fetch the file again") from None


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line without its end) of a plain or compressed file. Raises `WrongInput` if it is cut short or damaged."""
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
    """(number, line without its end), counted from `first`. Raises `WrongInput` for a NUL byte, and for a carriage return within a line,
    where some programs begin a new one."""
    for number, line in enumerate(lines, first):
        if b"\0" in line:
            raise WrongInput(f"{at(path, number, line.index(0) + 1)}: a NUL byte; this is not text, or it is compressed under a wrong name")
        line = line.rstrip(b"\r\n")
        if b"\r" in line:
            place = at(path, number, line.index(b"\r") + 1)
            raise WrongInput(f"{place}: a carriage return within the line; save the file with line feeds as line ends")
        yield number, line


def number_of(token: bytes, path: Path, line: int, what: str, remedy: str = "correct it", column: int | None = None) -> float:
    """A finite decimal number. Raises `WrongInput` for anything else, also for what Python's float() would forgive; `remedy` is what to
    do about a text that is not a mark of a missing value."""
    if NUMBER.match(token):
        value = float(token)
        if math.isfinite(value):
            return value
    shown = token.decode("utf-8", "replace")[:60]
    if shown.lower().lstrip("+-") in MISSING:
        remedy = "remove the row or fill the value in"
    raise WrongInput(f"{at(path, line, column)}: {what} is {shown!r}, not a finite number; {remedy}")


class LabelRule:
    """How the labels' texts become numbers: `g=1,b=-1`, or `letters` for A to Z as 1 to 26. Without a rule they are numbers already.

    A text is looked up as it stands, then without a dot at its end (the UCI test files have one), then as a number. Raises `WrongInput`
    for a rule that is not written so.
    """

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.values: dict[str, float] = {}
        if text == "letters":
            self.values = {chr(ord("A") + k): float(k + 1) for k in range(26)}
        elif text is not None:
            for pair in text.split(","):
                name, equals, value = (part.strip() for part in pair.rpartition("="))
                if not equals or not name or not NUMBER.match(value.encode()) or not math.isfinite(float(value)):
                    raise WrongInput(f"--labels {text!r}: {pair.strip()!r} is not LABEL=NUMBER; write for example g=1,b=-1, or letters")
                if name in self.values:
                    raise WrongInput(f"--labels {text!r}: {name!r} is given twice")
                self.values[name] = float(value)
        numeric = [name for name in self.values if NUMBER.match(name.encode())]
        self.numbers = {float(name): self.values[name] for name in numeric}
        self.one_text_a_number = len(self.numbers) == len(numeric)  # then a number's value says all about its text

    def __call__(self, token: bytes, path: Path, line: int, what: str, column: int | None = None) -> float:
        """The number for a label's text. Raises `WrongInput` naming the place for a text that the rule does not have."""
        if self.text is None:
            return number_of(token, path, line, what, "give its number with --labels, for example --labels 'g=1,b=-1'", column)
        name = token.decode("utf-8", "replace")
        for known in (name, name.removesuffix(".")):
            if known in self.values:
                return self.values[known]
        if NUMBER.match(token) and float(token) in self.numbers:
            return self.numbers[float(token)]
        raise WrongInput(f"{at(path, line, column)}: {what} is {name[:60]!r}, which --labels {self.text!r} does not have; add it there")

    @property
    def done(self) -> tuple[str, ...]:
        """The rule in words, for the manifest."""
        return () if self.text is None else (f"labels by the rule {self.text}",)
