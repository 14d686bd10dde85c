"""TOML files written by users: reading, checking, and error messages with line numbers."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError

from cluster.site import first_error
from koco_stream.errors import WrongInput

LARGEST = 2**63 - 1
NAME = "a name has up to 200 letters, digits, '.', '_' and '-', and begins with a letter or a digit"
Model = TypeVar("Model", bound=BaseModel)


def _checked_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", text):
        raise ValueError(NAME)
    return text


Name = Annotated[str, AfterValidator(_checked_name)]


class TomlFile:
    """The text and content of a TOML file.

    In messages, `kind` names the kind of file, and `examples` says where examples are. `tables` has
    the models of its tables. `text` is the content if it is in no file; messages then name no line.
    Raises `WrongInput` if the file cannot be read, is not TOML, or has an
    integer of more than 64 bits.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        examples: str,
        tables: dict[str, type[BaseModel]],
        text: str | None = None,
    ) -> None:
        self.path, self.examples, self.tables = path, examples, tables
        self.has_lines = text is None
        try:
            self.text = path.read_text(encoding="utf-8") if text is None else text
            self.content = tomllib.loads(self.text)
        except FileNotFoundError:
            raise WrongInput(f"{path}: no such {kind} file; {examples}") from None
        except OSError as error:
            raise WrongInput(
                f"{path}: {error.strerror or error}; give a {kind} file, {examples}"
            ) from None
        except ValueError as error:  # UnicodeDecodeError too
            raise WrongInput(
                f"{path}: {error}; a {kind} file is TOML, which is text in UTF-8"
            ) from None
        for keys in _large_numbers(self.content):
            raise WrongInput(f"{self.at(*keys)}: a whole number in TOML is at most {LARGEST}")

    def as_model(self, model: type[Model]) -> Model:
        """The content, checked by a model.

        Raises `WrongInput` for the first error, with the line and the nearest known key.
        """
        try:
            return model.model_validate(self.content)
        except ValidationError as error:
            keys, wrong = first_error(error, model, self.tables, self.examples)
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
        if not self.has_lines:
            return None
        lines = list(enumerate(self.text.splitlines(), 1))
        headers = [
            n for n, line in lines if re.match(rf'\s*\[*\s*"?{re.escape(str(name))}\b', line)
        ]
        number = rest[0] if rest and isinstance(rest[0], int) else 0
        if name not in self.content or number >= len(headers):
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
