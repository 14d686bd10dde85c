"""TOML files written by users: reading, checking, and error messages with line numbers."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from koco_stream.errors import WrongInput, nearest

LARGEST = 2**63 - 1
Model = TypeVar("Model", bound=BaseModel)


class TomlFile:
    """The text and content of a TOML file.

    Parameters
    ----------
    path : Path
        Path of the file.
    kind : str
        Kind of file for messages: `sweep` or `schedules`.
    examples : str
        Words for messages that say where examples are.
    tables : dict of str to model
        Pydantic models of its tables, by name.

    Raises
    ------
    WrongInput
        If the file cannot be read, is not TOML, or has an integer of more than 64 bits.
    """

    def __init__(
        self, path: Path, kind: str, examples: str, tables: dict[str, type[BaseModel]]
    ) -> None:
        self.path, self.examples, self.tables = path, examples, tables
        try:
            self.text = path.read_text(encoding="utf-8")
            self.content = tomllib.loads(self.text)
        except FileNotFoundError:
            raise WrongInput(f"{path}: no such {kind} file; {examples}") from None
        except OSError as error:
            raise WrongInput(
                f"{path}: {error.strerror or error}; give a {kind} file, {examples}"
            ) from None
        except UnicodeDecodeError as error:
            raise WrongInput(
                f"{path}: {error.reason} at byte {error.start}; a {kind} file is TOML, which is"
                " text in UTF-8"
            ) from None
        except ValueError as error:
            raise WrongInput(f"{path}: {error}; the file is TOML") from None
        for keys in _large_numbers(self.content):
            raise WrongInput(f"{self.at(*keys)}: a whole number in TOML is at most {LARGEST}")

    def as_model(self, model: type[Model]) -> Model:
        """The content, checked by a pydantic model.

        Raises `WrongInput` for the first error, unknown keys before others, with the line and the
        nearest known key.
        """
        try:
            return model.model_validate(self.content)
        except ValidationError as error:
            first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        keys = self._shown(first["loc"])
        if first["type"] == "missing":
            at = self.at(*keys) if len(keys) > 1 else f"{self.path}, {keys[0]}"
            raise WrongInput(f"{at}: this key is missing; {self.examples}")
        known = self.tables[str(keys[0])] if len(keys) > 1 else model
        found = first["input"]
        message = first["msg"].removeprefix("Value error, ")
        wrong = f"{message[0].lower()}{message[1:]}"
        if first["type"] == "extra_forbidden":
            wrong = f"unknown key{nearest(str(keys[-1]), list(known.model_fields))}"
        elif first["type"] == "string_pattern_mismatch":
            wrong = (
                "a name has letters, digits, '.', '_' and '-', and begins with a letter or a"
                f" digit; it is {found!r}"
            )
        elif not isinstance(found, dict | list):
            wrong += f", not {found!r}"
        raise WrongInput(f"{self.at(*keys)}: {wrong}")

    @contextmanager
    def blaming(self, *keys: str | int) -> Iterator[None]:
        """Context manager that adds the location of a key to any `WrongInput` raised within."""
        try:
            yield
        except WrongInput as error:
            raise WrongInput(f"{self.at(*keys)}: {error}") from None

    def at(self, *keys: str | int) -> str:
        """Location of a key for messages: `FILE, line N, learner 2, alpha`.

        `keys` is the path to it in the content. The line is left out if it is not found.
        """
        keys = self._shown(keys)
        line = self._line(*keys)
        shown = ".".join(map(str, keys))
        if len(keys) == 3:
            shown = f"{keys[0]} {int(keys[1]) + 1}, {keys[2]}"
        return f"{self.path}{f', line {line}' if line else ''}, {shown}"

    def _shown(self, keys: tuple[str | int, ...]) -> tuple[str | int, ...]:
        """The path to a table's key, without keys inside its value."""
        if len(keys) > 2 and isinstance(keys[1], int):
            return keys[:3]
        return keys[: 2 if keys[0] in self.tables else 1]

    def _line(self, name: str | int, *rest: str | int) -> int | None:
        """Line number of a key, or else of its table; None if neither is found."""
        lines = list(enumerate(self.text.splitlines(), 1))
        headers = [
            n for n, line in lines if re.match(rf'\s*\[*\s*"?{re.escape(str(name))}\b', line)
        ]
        number = rest[0] if rest and isinstance(rest[0], int) else 0
        if number >= len(headers):
            return None
        for n, line in lines[headers[number] :]:
            if not rest or re.match(r"\s*\[", line):
                break
            if re.match(rf'\s*"?{re.escape(str(rest[-1]))}"?\s*=', line):
                return n
        return headers[number]


def _large_numbers(value: Any, *keys: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the path to each integer of more than 64 bits, which TOML does not allow."""
    if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
        yield keys
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _large_numbers(inner, *keys, key)
