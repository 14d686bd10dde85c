"""The sweep files that come with koco-stream, found by name."""

import re
from itertools import takewhile
from pathlib import Path
from textwrap import shorten

from koco_stream.errors import WrongInput, nearest

FOLDER = Path(__file__).parent.parent / "sweeps"


def packaged() -> dict[str, Path]:
    """The packaged sweep files, by the name of their sweep."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}


def sweep_file(spec: str | Path) -> Path:
    """The sweep file that a user means: a file, or the name of a packaged sweep.

    A file in the present folder comes first. A path that does not exist is returned as it is, and
    is refused by what reads it. Raises `WrongInput`, with the nearest name, for what looks like a
    name and is none.
    """
    path, known = Path(spec), packaged()
    if path.is_file() or not re.fullmatch(r"[\w-]+", str(spec)):
        return path
    if str(spec) not in known:
        raise WrongInput(
            f"there is no sweep file {spec}, and no packaged sweep has this"
            f" name{nearest(str(spec), list(known))}; `koco sweep --list` shows them"
        )
    return known[str(spec)]


def description(file: Path) -> str:
    """The beginning of the comment at the top of a sweep file."""
    lines = takewhile(lambda line: line.startswith("#"), file.read_text("utf-8").splitlines())
    comment = " ".join(line.removeprefix("#").strip() for line in lines)
    return shorten(comment.partition(". ")[0].removesuffix("."), 110, placeholder=" …")
