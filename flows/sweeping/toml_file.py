"""TOML files written by users: reading, checking, and error messages with line numbers."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, ValidationError

from cluster.site import first_error
from koco_stream.errors import WrongInput

Model = TypeVar("Model", bound=BaseModel)
Keys = tuple[str | int, ...]  # the path to a value, such as ("learner", 0, "alpha")
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")]


class TomlFile:
    """The text and content of a TOML file.

    `examples` says where some are, and `tables` has the models of its tables. If `text` is given it
    is in no file, and messages name no line.
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
        try:
            self.text = path.read_text(encoding="utf-8") if text is None else text
            self.content = tomllib.loads(self.text)
            str(self.content)  # a number in it may be too long to be shown
        except OSError as error:
            raise WrongInput(
                f"{path}: no such {kind} file ({error.strerror or error}); {examples}"
            ) from None
        except ValueError as error:  # UnicodeDecodeError too
            raise WrongInput(
                f"{path}: {error}; a {kind} file is TOML: text in UTF-8, with texts in quotation"
                " marks"
            ) from None
        self.lines = {} if text else lines_of(self.text)

    def as_model(self, model: type[Model]) -> Model:
        """The content. The first error has its line and the nearest known key."""
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
        """Location of a key for messages, `FILE, line N, learner 2, alpha`."""
        shown = ".".join(map(str, keys[: 1 + (keys[0] in self.tables)]))
        if len(keys) > 2 and isinstance(keys[1], int):
            shown = f"{keys[0]} {keys[1] + 1}, {keys[2]}"
        lines = [self.lines.get(keys[:k]) for k in range(len(keys), 0, -1)]
        line = next((f", line {line}" for line in lines if line), "")
        return f"{self.path}{line}, {shown}"


def lines_of(text: str) -> dict[Keys, int]:
    found: dict[Keys, int] = {}
    table: Keys = ()
    counts = Counter[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.fullmatch(r'\s*(\[\[?)\s*"?([\w-]+)"?\s*\]\]?\s*(#.*)?', line):
            table = (header[2], counts[header[2]]) if header[1] == "[[" else (header[2],)
            counts[header[2]] += 1
            found[table] = number
        elif key := re.match(r'\s*"?([\w-]+)"?\s*[=.]', line):
            found.setdefault((*table, key[1]), number)
    return found
