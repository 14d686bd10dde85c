"""The lines of a text file, plain or compressed."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from koco_stream.errors import WrongInput
from storage.sources.compressed import DAMAGE, opened
from storage.sources.numbers import at

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
            place = at(path, number, line.index(b"\r") + 1)
            raise WrongInput(
                f"{place}: a carriage return within the line; save the file with line feeds as line"
                " ends"
            )
        yield number, line
