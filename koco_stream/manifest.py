"""The manifest of a prepared dataset: its shards in order, its identity, and all that was done to its source."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from koco_stream.errors import WrongInput, nearest
from koco_stream.places import Place, Where, place

FORMAT = 2


@dataclass(frozen=True)
class Shard:
    """One Parquet file: a contiguous range of rows. `path` is relative to the dataset's folder."""

    path: str
    n_rows: int
    n_values: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What is known of a dataset.

    `dataset_hash` identifies its rows in canonical form and its schema, whatever the sharding. `layout` is "sparse" or "dense", `task`
    "classification" or "regression"; `classes` are the distinct labels of a classification set. `statistics` holds the label's and the
    rows' summary; `transformations` says in order what was done to the source's values.
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
    format: int = FORMAT
    feature_names: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """The manifest file's text."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def datasets_folder(store: str | Path) -> Path:
    """The folder that holds the datasets of a store that is a folder."""
    return Path(store) / "datasets"


def dataset_place(store: Where, name: str) -> Place:
    """Where a store has dataset `name`: its manifest and, below, its shards."""
    return place(store) / "datasets" / name


def prepared_names(store: Where) -> list[str]:
    """The names of the datasets in a store, sorted."""
    return [name for name in (place(store) / "datasets").names() if (dataset_place(store, name) / "manifest.json").is_file()]


def load_manifest(store: Where, name: str) -> Manifest:
    """The manifest of dataset `name`. Raises `WrongInput` if it is not prepared, or of a newer format."""
    path = dataset_place(store, name) / "manifest.json"
    if not path.is_file():
        there = prepared_names(store)
        hint = nearest(name, there) if there else "; the store has no dataset yet"
        raise WrongInput(
            f"dataset {name!r} is not prepared in {store}{hint} (to prepare it: koco prepare {name} --from FILE --store {store})"
        )
    try:
        content = json.loads(path.read_text())
        if content["format"] > FORMAT:
            raise WrongInput(f"{path} has format {content['format']}; this version reads up to {FORMAT}: upgrade koco-stream")
        content["shards"] = [Shard(**shard) for shard in content["shards"]]
        return Manifest(**content)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, WrongInput):
            raise
        raise WrongInput(f"{path} is damaged ({error}); prepare the dataset again") from None
