"""TOML files written by users: reading, checking, and error messages with line numbers."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ValidationError

from cluster.site import first_error, written
from koco_stream.errors import WrongInput

Model = TypeVar("Model", bound=BaseModel)
# [[name]], or [[outer.name]]
HEADER = re.compile(r'\s*(\[\[?)\s*(?:"?([\w-]+)"?\s*\.\s*)?"?([\w-]+)"?\s*\]\]?\s*(#.*)?')
Keys = tuple[str | int, ...]  # the path to a value, such as ("learner", 0, "alpha")
Name = Annotated[
    str,
    written(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}",
        "a name has up to 200 letters, digits and . _ -, and begins with a letter or digit",
    ),
]


class TomlFile:
    def __init__(
        self,
        path: Path,
        kind: str,
        examples: str,
        tables: dict[str, type[BaseModel]],
        text: str | None = None,
    ) -> None:
        self.path, self.examples, self.tables, self.text = path, examples, tables, text or "\n"
        try:
            self.text = path.read_text(encoding="utf-8-sig") if text is None else text
            self.content = tomllib.loads(self.text)
            str(self.content)  # a number in it may be too long to be shown
        except OSError as error:
            raise WrongInput(
                f"{path}: no such {kind} file ({error.strerror or error}); {examples}"
            ) from None
        except ValueError as error:  # UnicodeDecodeError too
            why, _, place = str(error).partition(" (at line ")
            number = int(place.partition(",")[0] or 0)
            line = f", line {number}: {(self.text.splitlines()[number - 1]).strip()[:60]!r}"
            raise WrongInput(
                f"{path}{line * (number > 0)} is not TOML in UTF-8 ({why}); a text stands in"
                " quotation marks, a number is written as 0.5 or 1e-3, true and false in small"
                " letters, and a key once"
                + "; rows are first prepared: koco prepare NAME --from FILE"
                * (path.suffix != ".toml")
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
        if len(keys) > 1 and isinstance(keys[1], int) and keys[0] in self.tables:
            rest = (
                [f"member {int(keys[3]) + 1}", *keys[4:]]
                if keys[2:3] == ("member",) and keys[3:]
                else keys[2:3]
            )
            shown = ", ".join((f"{keys[0]} {keys[1] + 1}", *map(str, rest)))
        lines = [self.lines.get(keys[:k]) for k in range(len(keys), 0, -1)]
        line = next((f", line {line}" for line in lines if line), "")
        return f"{self.path}{line}, {shown}"


def lines_of(text: str) -> dict[Keys, int]:
    found: dict[Keys, int] = {}
    table: Keys = ()
    counts = Counter[Keys]()
    for number, line in enumerate(text.splitlines(), 1):
        if header := HEADER.fullmatch(line):
            place = (*table[:2], header[3]) if header[2] else (header[3],)
            found.setdefault(place, number)
            table = (*place, counts[place]) if header[1] == "[[" else place
            counts[place] += 1
            found[table] = number
        elif key := re.match(r'\s*"?([\w-]+)"?\s*[=.]', line):
            found.setdefault((*table, key[1]), number)
    return found
