"""Errors caused by wrong input or an unavailable store, and warnings."""

import math
import sys
import warnings
from collections.abc import Iterable

MOST = 100  # names in a message


class WrongInput(ValueError):
    """The input is invalid and nothing was changed.

    The message names the file and line, what was found there, and the remedy. The command line
    prints it and exits with status 2.
    """


class WrongType(WrongInput, TypeError):
    """The input's type is not numeric."""


class Unreadable(WrongInput):
    """A file cannot be read, and the message has its name."""


class Damaged(Unreadable):
    """A hash in a table file does not match."""


class TimeLimit(Exception):
    """A run has reached its time limit, and may go on with a larger one."""


class LearnerChanged(WrongInput):
    """A learner's code has changed since the sweep's beginning."""


class StoreUnavailable(OSError):
    """An object store does not answer, refuses access, or has no such bucket.

    The command line exits with status 1.
    """


def refuse_first(problems: Iterable[tuple[bool, str]]) -> None:
    """Raise `WrongInput` with the first message whose problem is there."""
    for is_there, message in problems:
        if is_there:
            raise WrongInput(message)


def other_format(found: object, reads: int, again: str, wrote: object = None) -> str:
    """What is wrong with a file of another format, and the remedy, after its name."""
    version = f"koco-stream {wrote}" if wrote else "another version of koco-stream"
    return (
        f"was written by {version} (format {str(found)[:20]}; this one reads {reads}): use that"
        f" version, or {again}"
    )


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the line of the caller outside this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("koco_stream."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)


def nearest(word: str, words: list[str]) -> str:
    """The end of a message about an unknown word: the most similar, or the first of `words`."""
    close = similar(word, words, 1)
    some = ", ".join([*sorted(words)[:MOST], *["…"] * (len(words) > MOST)])
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {some}"


def similar(word: str, words: list[str], most: int) -> list[str]:
    """The most similar of `words` in any case, the closest first."""
    from difflib import get_close_matches

    lower = {one.casefold(): one for one in reversed(words)}
    # "kind" and "window" are 0.6 alike
    return [lower[one] for one in get_close_matches(word.casefold(), list(lower), most, 0.65)]


def why_diverged(where: str, prediction: float) -> str:
    """What is wrong with a prediction that is not finite, and the remedy."""
    lost = ": numbers grew so large that their digits are lost" if math.isnan(prediction) else ""
    return (
        f"the prediction for {where} is {prediction}{lost}; scale the features (koco prepare"
        " --scale), or take a larger alpha, a larger bandwidth or a smaller step"
    )
