"""Text files, plain or compressed: their lines, the numbers in them, and the rule by which labels become numbers."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from koco_stream.errors import WrongInput

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
MISSING = ("nan", "inf", "infinity", "", "?", "na")


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line without its end) of a plain or compressed file. Raises `WrongInput` if it is cut short or damaged."""
    number = 0
    opener = OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rb") as handle:
            for number, line in enumerate(handle, 1):
                if b"\0" in line:
                    raise WrongInput(f"{path}, line {number}: a NUL byte; this is not text, or it is compressed under a wrong name")
                if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                    line = line[3:]
                yield number, line.rstrip(b"\r\n")
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise WrongInput(f"{path}: cut short or damaged after line {number} ({error}); fetch the file again") from None
    except OSError as error:
        if path.suffix == ".bz2" and "Invalid data stream" in str(error):
            raise WrongInput(f"{path}: damaged after line {number} ({error}); fetch the file again") from None
        raise


def number_of(token: bytes, path: Path, line: int, what: str, remedy: str = "correct it") -> float:
    """A finite decimal number. Raises `WrongInput` for anything else, also for what Python's float() would forgive; `remedy` is what to
    do about a text that is not a mark of a missing value."""
    if NUMBER.match(token):
        value = float(token)
        if math.isfinite(value):
            return value
    shown = token.decode("utf-8", "replace")[:60]
    if shown.lower().lstrip("+-") in MISSING:
        remedy = "remove the row or fill the value in"
    raise WrongInput(f"{path}, line {line}: {what} is {shown!r}, not a finite number; {remedy}")


class LabelRule:
    """How the labels' texts become numbers: `g=1,b=-1`, or `letters` for A to Z as 1 to 26. Without a rule they are numbers already.

    A text is looked up as it stands, then without a dot at its end (the UCI test files have one), then as a number. Raises `WrongInput`
    for a rule that is not written so.
    """

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.values: dict[str, float] = {}
        self.numbers: dict[float, float] = {}
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
        self.numbers = {float(name): value for name, value in self.values.items() if NUMBER.match(name.encode())}

    def __call__(self, token: bytes, path: Path, line: int, what: str) -> float:
        """The number for a label's text. Raises `WrongInput` naming the place for a text that the rule does not have."""
        if self.text is None:
            return number_of(token, path, line, what, "give its number with --labels, for example --labels 'g=1,b=-1'")
        name = token.decode("utf-8", "replace")
        for known in (name, name.removesuffix(".")):
            if known in self.values:
                return self.values[known]
        if NUMBER.match(token) and float(token) in self.numbers:
            return self.numbers[float(token)]
        raise WrongInput(f"{path}, line {line}: {what} is {name[:60]!r}, which --labels {self.text!r} does not have; add it there")

    @property
    def done(self) -> tuple[str, ...]:
        """The rule in words, for the manifest."""
        return () if self.text is None else (f"labels by the rule {self.text}",)
