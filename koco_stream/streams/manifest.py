"""The manifest of a prepared dataset: shards in order, identity, and transformations."""

import hashlib
import json
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from koco_stream.errors import WrongInput, nearest, other_format, refuse_first, similar
from koco_stream.io.files import canonical_json, json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path

FORMAT = 1
FEW = 5  # datasets that a message names
SEAL = "manifest_hash"
# A file in a store that is nested in another store and uses its datasets. It holds the outer
# store's name.
BORROWED = "koco-datasets.txt"


@dataclass(frozen=True)
class Shard:
    """A Parquet file with consecutive rows of a dataset."""

    path: str
    n_rows: int
    n_values: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The description of a prepared dataset.

    `dataset_hash` identifies its canonical rows and schema, whatever the sharding. After each of
    the rounds `changes`, another concept labels a generated stream.
    """

    name: str
    n_rows: int
    n_features: int
    n_values: int
    layout: str
    value_type: str
    task: str
    classes: list[float]
    dataset_hash: str
    shards: list[Shard]
    source: dict[str, Any]
    transformations: list[str]
    statistics: dict[str, float]
    feature_names: list[str]
    changes: tuple[int, ...]
    class_names: list[str] = field(default_factory=list)

    @property
    def names_of_classes(self) -> dict[float, str]:
        """The classes' names, or their numbers as texts."""
        names = self.class_names or [f"{label:.15g}" for label in self.classes]
        return dict(zip(self.classes, names, strict=False))

    def class_of(self, given: float | str) -> float:
        """The number of a class, by name or number."""
        names = self.names_of_classes
        found = [label for label, name in names.items() if given in (label, name)]
        if found:
            return found[0]
        close = similar(str(given), [*names.values()], 1)
        known = ", ".join([*names.values()][:30]) or "real numbers"
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise WrongInput(f"dataset {self.name!r} has no label {given!r}; it has {known}{hint}")

    def to_json(self) -> str:
        """The manifest file, which ends with a hash of the rest."""
        content = {**asdict(self), "format": FORMAT}
        return json_text({**content, SEAL: seal_of(content)}, indent=1, sort_keys=True) + "\n"


def seal_of(content: dict[str, Any]) -> str:
    """The SHA-256 of a manifest's content."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def datasets_path(store: AnyPath) -> StorePath:
    """The folder of a store's datasets, or of the enclosing store's if a file says so."""
    own = store_path(store)
    try:
        lender = (own / BORROWED).read_text().strip()
    except FileNotFoundError:
        return own / "datasets"
    if not lender or not str(own).startswith(f"{lender}/"):
        raise WrongInput(
            f"{own / BORROWED} names {lender!r}, but a store can only use the datasets of a store"
            " that contains it; remove the file"
        )
    return store_path(lender) / "datasets"


def dataset_path(store: AnyPath, name: str) -> StorePath:
    """The folder of a dataset's manifest and shards."""
    return datasets_path(store) / name


def prepared_names(store: AnyPath) -> list[str]:
    """The names of a store's prepared datasets, sorted."""
    folder = datasets_path(store)
    return [name for name in folder.names() if (folder / name / "manifest.json").is_file()]


def load_manifest(store: AnyPath, name: str) -> Manifest:
    """Read and check the manifest of dataset `name`."""
    path = dataset_path(store, name) / "manifest.json"
    if not path.is_file():
        there = prepared_names(store)
        own_first = sorted(there, key=lambda one: ("," in one, one))  # then generated ones
        some = similar(name, there, 1) or own_first[:FEW] + ["…"] * (len(there) > FEW)
        hint = nearest(name, some) if there else "; the store has no dataset yet"
        raise WrongInput(
            f"dataset {name!r} is not prepared in {store}{hint} (to prepare it: koco prepare"
            f" {shlex.quote(name)} --from FILE --store {shlex.quote(str(store))})"
        )
    try:
        content = json.loads(path.read_text())
        if content["format"] != FORMAT:
            raise WrongInput(
                f"{path} {other_format(content['format'], FORMAT, 'prepare the dataset again')}"
            )
        if content.pop(SEAL) != seal_of(content):
            raise WrongInput(f"{path} was altered after it was written; prepare the dataset again")
        content["shards"] = [Shard(**shard) for shard in content["shards"]]
        content["changes"] = tuple(content["changes"])
        del content["format"]
        manifest = Manifest(**content)
        for one in (manifest, *manifest.shards):  # all other code trusts the types
            for key, value in vars(one).items():
                if not POSSIBLE[key](value):
                    raise ValueError(f"{key} is {str(value)[:50]!r}")
    except WrongInput:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise WrongInput(f"{path} is damaged ({error}); prepare the dataset again") from None
    refuse_first(
        [
            (
                manifest.name != name,
                f"{path} is the manifest of dataset {manifest.name!r}; a dataset cannot be renamed:"
                " prepare it under the new name",
            ),
            *(
                (
                    bool({"\\", "\0"} & {*file.path} or {"", ".", ".."} & {*file.path.split("/")}),
                    f"{path}: the file {file.path!r} is not in the dataset's folder; prepare the"
                    " dataset again",
                )
                for file in manifest.shards
            ),
            (
                sum(shard.n_rows for shard in manifest.shards) != manifest.n_rows,
                f"{path} is damaged (its shards do not have {manifest.n_rows} rows in all); prepare"
                " the dataset again",
            ),
        ]
    )
    return manifest


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _all(
    kind: type[list[Any]] | type[tuple[Any, ...]], of: Callable[[Any], bool]
) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind) and all(of(one) for one in value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


# By name of an attribute of `Manifest` or `Shard`: whether it can have a value.
POSSIBLE: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("n_rows", "n_features", "n_values"), _is_count),
    **dict.fromkeys(("name", "path"), _is_text),
    **dict.fromkeys(
        ("dataset_hash", "sha256"),
        lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{32,64}", value) is not None,
    ),
    **dict.fromkeys(("transformations", "feature_names", "class_names"), _all(list, _is_text)),
    "layout": lambda value: value in ("sparse", "dense"),
    "value_type": lambda value: value in ("float32", "float64"),
    "task": lambda value: value in ("classification", "regression"),
    "classes": _all(list, _is_number),
    "changes": _all(tuple, _is_count),
    "shards": _all(list, lambda value: isinstance(value, Shard)),
    "source": lambda value: isinstance(value, dict),
    "statistics": lambda value: (
        isinstance(value, dict) and all(_is_number(one) for one in value.values())
    ),
}
