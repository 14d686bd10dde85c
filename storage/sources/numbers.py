"""Texts as numbers: finite ones, or refused with their place; and the rule by which labels become
numbers.
"""

import math
import re
from pathlib import Path

from koco_stream.errors import WrongInput

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
MISSING = ("nan", "inf", "infinity", "", "?", "na")


def at(path: Path, line: int, column: int | None = None) -> str:
    """A place in words, for a message; line and column are counted from 1."""
    return f"{path}, line {line}" if column is None else f"{path}, line {line}, column {column}"


def number_of(
    token: bytes,
    path: Path,
    line: int,
    what: str,
    remedy: str = "correct it",
    column: int | None = None,
) -> float:
    """A finite decimal number. Raises `WrongInput` for anything else, also for what Python's
    float() would forgive; `remedy` is what to do about a text that is not a mark of a missing
    value.
    """
    if NUMBER.match(token):
        value = float(token)
        if math.isfinite(value):
            return value
    shown = token.decode("utf-8", "replace")[:60]
    if shown.lower().lstrip("+-") in MISSING:
        remedy = "remove the row or fill the value in"
    raise WrongInput(
        f"{at(path, line, column)}: {what} is {shown!r}, not a finite number; {remedy}"
    )


class LabelRule:
    """How the labels' texts become numbers: `g=1,b=-1`, or `letters` for A to Z as 1 to 26. Without
    a rule they are numbers already.

    A text is looked up as it stands, then without a dot at its end (the UCI test files have one),
    then as a number. Raises `WrongInput` for a rule that is not written so.
    """

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.values: dict[str, float] = {}
        if text == "letters":
            self.values = {chr(ord("A") + k): float(k + 1) for k in range(26)}
        elif text is not None:
            for pair in text.split(","):
                name, equals, value = (side.strip() for side in pair.rpartition("="))
                if (
                    not equals
                    or not name
                    or not NUMBER.match(value.encode())
                    or not math.isfinite(float(value))
                ):
                    raise WrongInput(
                        f"--labels {text!r}: {pair.strip()!r} is not LABEL=NUMBER; write for"
                        " example g=1,b=-1, or letters"
                    )
                if name in self.values:
                    raise WrongInput(f"--labels {text!r}: {name!r} is given twice")
                self.values[name] = float(value)
        numeric = [name for name in self.values if NUMBER.match(name.encode())]
        self.numbers = {float(name): self.values[name] for name in numeric}
        # whether a number's value says all about its text
        self.one_text_a_number = len(self.numbers) == len(numeric)

    def __call__(
        self, token: bytes, path: Path, line: int, what: str, column: int | None = None
    ) -> float:
        """The number for a label's text. Raises `WrongInput` naming the place for a text that the
        rule does not have.
        """
        if self.text is None:
            return number_of(
                token,
                path,
                line,
                what,
                "give its number with --labels, for example --labels 'g=1,b=-1'",
                column,
            )
        name = token.decode("utf-8", "replace")
        for known in (name, name.removesuffix(".")):
            if known in self.values:
                return self.values[known]
        if NUMBER.match(token) and float(token) in self.numbers:
            return self.numbers[float(token)]
        if not name.strip():
            raise WrongInput(
                f"{at(path, line, column)}: {what} is empty; fill it in, or remove the row"
            )
        raise WrongInput(
            f"{at(path, line, column)}: {what} is {name[:60]!r}, which --labels {self.text!r} does"
            " not have; add it there"
        )

    @property
    def done(self) -> tuple[str, ...]:
        """The rule in words, for the manifest."""
        return () if self.text is None else (f"labels by the rule {self.text}",)
