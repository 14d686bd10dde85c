"""Where a key of a TOML file is written, and what is wrong with it, in words for messages."""

import re
from pathlib import Path

from pydantic import BaseModel, ValidationError

from koco_stream.errors import nearest


def spot(path: Path, text: str, table: str, number: int, key: str) -> str:
    """`FILE, line N, learner 2, alpha`: where a key of the number-th [[table]] (from 0) is written;
    without the line if it is not found.
    """
    seen = -1
    found = None
    for line_number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([\w-]+)", line):
            seen = seen + 1 if header[1] == table else seen
            inside = header[1] == table and seen == number
            found = line_number if inside and found is None else found
        elif seen == number and re.match(rf'\s*"?{re.escape(key)}"?\s*=', line):
            found = line_number
            break
    line_text = f", line {found}" if found else ""
    return f"{path}{line_text}, {table} {number + 1}, {key}"


def _line_of(text: str, key: str, first: int) -> int | None:
    """The first line, from that number on, that begins with the key or is its table's header."""
    lines = enumerate(text.splitlines()[first - 1 :], first)
    return next(
        (number for number, line in lines if re.match(rf"\s*\[*\s*{re.escape(key)}\b", line)), None
    )


def explained(
    path: Path,
    text: str,
    error: ValidationError,
    whole: type[BaseModel],
    tables: dict[str, type[BaseModel]],
    examples: str,
) -> str:
    """The first of pydantic's complaints, of unknown keys before others, with the line and the
    nearest name. `whole` is the file's model, `tables` are those of its tables by name, `examples`
    says where there are some.
    """
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    keys = list(first["loc"])
    numbered = len(keys) > 1 and isinstance(keys[1], int)
    keys = keys[: 3 if numbered else 2 if keys[:1] and keys[0] in tables else 1]  # not pydantic's
    key = str(keys[-1]) if keys else ""
    known = tables.get(str(keys[0]), whole) if len(keys) > 1 else whole
    if len(keys) > 2 and isinstance(keys[1], int):
        at = spot(path, text, str(keys[0]), keys[1], key)
    else:
        line = (
            _line_of(text, str(keys[0]), 1)
            if keys and (len(keys) > 1 or first["type"] != "missing")
            else None
        )
        if line and len(keys) > 1:
            line = _line_of(text, key, line) or line  # within a table on one line, that line
        at = f"{path}{f', line {line}' if line else ''}, {'.'.join(map(str, keys))}"
    if first["type"] == "missing":
        return f"{at}: this key is missing; {examples}"
    if first["type"] == "extra_forbidden":
        return f"{at}: unknown key{nearest(key, list(known.model_fields))}"
    found = first.get("input")
    if first["type"] == "string_pattern_mismatch":
        return (
            f"{at}: a name has letters, digits, '.', '_' and '-', and begins with a letter or a"
            f" digit; it is {found!r}"
        )
    said = first["msg"].removeprefix("Value error, ")
    return f"{at}: {said[0].lower()}{said[1:]}" + (
        "" if isinstance(found, dict | list) else f", not {found!r}"
    )
