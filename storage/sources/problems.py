"""Faults of a source's rows, collected so that all of them are told at once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from koco_stream.errors import WrongInput

MOST_TOLD = 10  # kinds of fault in one message, and columns named for a kind
MOST_MET = 1000  # faults after which reading ends

T = TypeVar("T")


@dataclass(frozen=True)
class Problem:
    """A kind of fault: the message on its first occurrence, how often and in which columns."""

    message: str
    times: int = 1
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.times == 1:
            return self.message
        where = f", in {few(self.columns)}" if len(self.columns) > 1 else ""
        return f"{self.message} (and {self.times - 1:,} more of this kind{where})"


def few(words: Sequence[str]) -> str:
    """The first of some words, and how many more there are."""
    beyond = len(words) - MOST_TOLD
    return ", ".join(words[:MOST_TOLD]) + (f" and {beyond:,} more" if beyond > 0 else "")


class Malformed(WrongInput):
    """Rows of a source are malformed; `problems` has every kind of fault once.

    The message names up to ten of them, a line each, and ends with `note`.
    """

    def __init__(self, problems: tuple[Problem, ...], note: str = "") -> None:
        super().__init__(problems, note)
        self.problems, self.note = problems, note

    def __str__(self) -> str:
        told = [str(problem) for problem in self.problems[:MOST_TOLD]]
        beyond = len(self.problems) - MOST_TOLD
        if len(told) > 1:
            told = [f"{len(told)} problems:", *(f"  {line}" for line in told)]
        notes = ["there are more problems after these"] if beyond > 0 else []
        return "\n".join([*told, *notes, *([self.note] if self.note else [])])


class Problems:
    """Faults that were met so far, by kind."""

    def __init__(self) -> None:
        self.met: dict[str, Problem] = {}
        self.n_met = 0

    def add(self, error: WrongInput, kind: str = "", column: str = "") -> None:
        """Count a fault; of each kind, the first message is kept.

        Raises `Malformed` once there are as many as are enough.
        """
        kind = kind or str(error)
        known = self.met.get(kind, Problem(str(error), 0))
        columns = dict.fromkeys((*known.columns, *([column] if column else [])))
        self.met[kind] = replace(known, times=known.times + 1, columns=tuple(columns))
        self.n_met += 1
        if self.n_met == MOST_MET:
            self.refuse(f"reading ended at {MOST_MET:,} problems")

    def noting(self, read: Callable[[], T], instead: T, kind: str, column: str = "") -> T:
        """Return what `read` does, or `instead` if it raises `WrongInput`, which is counted."""
        try:
            return read()
        except WrongInput as error:
            self.add(error, kind, column)
            return instead

    def until_fault(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate over items until their iterator raises `WrongInput`, which is counted."""
        try:
            yield from items
        except WrongInput as error:
            self.add(error)

    def refuse(self, note: str = "") -> None:
        """Raise `Malformed` if a fault was met."""
        if self.met:
            raise Malformed(tuple(self.met.values()), note)
