"""Messages on stderr."""

import sys
from textwrap import TextWrapper
from typing import TextIO

WIDTH = 100  # columns of a line


def say(message: str) -> None:
    print(wrapped(message), file=sys.stderr, flush=True)


def wrapped(message: str, stream: TextIO | None = None) -> str:
    """The message in lines of at most `WIDTH` columns; in a log its first line stays one."""
    message = "".join(one if one.isprintable() or one == "\n" else " " for one in message)
    indented = len(message) - len(message.lstrip())
    wrap = TextWrapper(
        WIDTH,
        break_on_hyphens=False,
        break_long_words=False,
        subsequent_indent=" " * (indented + 4),
    )
    first, *lines = message.split("\n")
    kept = [first] if not (stream or sys.stderr).isatty() else wrap.wrap(first) or [first]
    return "\n".join([*kept, *("\n".join(wrap.wrap(line)) for line in lines)])
