"""The manifest of a prepared dataset: its shards in order, its identity, and all that was done to
its source.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.files import canonical_json
from koco_stream.io.paths import AnyPath, StorePath, store_path

FORMAT = 2
SEAL = "manifest_hash"
# in a store inside another one whose datasets it uses: that one's name
BORROWED = "koco-datasets.txt"


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

    `dataset_hash` identifies its rows in canonical form and its schema, whatever the sharding.
    `layout` is "sparse" or "dense", `task` "classification" or "regression"; `classes` are the
    distinct labels of a classification set. `statistics` holds the label's and the rows' summary;
    `transformations` says in order what was done to the source's values.
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
        """The manifest file's text. It ends up with a hash of all the rest: what is read from it
        later is what was written.
        """
        content = asdict(self)
        return json.dumps({**content, SEAL: seal_of(content)}, indent=1, sort_keys=True) + "\n"


def seal_of(content: dict[str, Any]) -> str:
    """The SHA-256 of a manifest's content."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def datasets_path(store: AnyPath) -> StorePath:
    """Where a store has its datasets: its own folder, or that of the store it is inside of, if it
    says so. Raises `WrongInput` if it names another one: nothing leads out of a store.
    """
    own = store_path(store)
    try:
        lender = (own / BORROWED).read_text().strip()
    except FileNotFoundError:
        return own / "datasets"
    if not lender or not str(own).startswith(f"{lender}/"):
        raise WrongInput(
            f"{own / BORROWED} names {lender!r}, and only a store that this one is inside of can"
            " lend it datasets; remove it"
        )
    return store_path(lender) / "datasets"


def dataset_path(store: AnyPath, name: str) -> StorePath:
    """Where a store has dataset `name`: its manifest and, below, its shards."""
    return datasets_path(store) / name


def prepared_names(store: AnyPath) -> list[str]:
    """The names of the datasets in a store, sorted."""
    folder = datasets_path(store)
    return [name for name in folder.names() if (folder / name / "manifest.json").is_file()]


def load_manifest(store: AnyPath, name: str) -> Manifest:
    """The manifest of dataset `name`. Raises `WrongInput` if it is not prepared, of a newer format,
    damaged or altered, or if it leads to files that are not the dataset's own.
    """
    path = dataset_path(store, name) / "manifest.json"
    if not path.is_file():
        there = prepared_names(store)
        hint = nearest(name, there) if there else "; the store has no dataset yet"
        raise WrongInput(
            f"dataset {name!r} is not prepared in {store}{hint} (to prepare it: koco prepare {name}"
            f" --from FILE --store {store})"
        )
    try:
        content = json.loads(path.read_text())
        if content["format"] > FORMAT:
            raise WrongInput(
                f"{path} has format {content['format']}; this version reads up to {FORMAT}: upgrade"
                " koco-stream"
            )
        seal = content.pop(SEAL, None)  # manifests of the first version have none
        if seal is not None and seal != seal_of(content):
            raise WrongInput(f"{path} was altered after it was written; prepare the dataset again")
        content["shards"] = [Shard(**shard) for shard in content["shards"]]
        manifest = Manifest(**content)
        _check_own(manifest, name, path)
        return manifest
    except WrongInput:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise WrongInput(f"{path} is damaged ({error}); prepare the dataset again") from None


def _check_own(manifest: Manifest, name: str, path: StorePath) -> None:
    """Refuse a manifest of another dataset, with shards outside of the dataset's folder, or whose
    shards do not have its rows.
    """
    if manifest.name != name:
        raise WrongInput(
            f"{path} is the manifest of dataset {manifest.name!r}; a dataset is not renamed:"
            " prepare it under the new name"
        )
    for shard in manifest.shards:
        if "\\" in shard.path or any(part in ("", ".", "..") for part in shard.path.split("/")):
            raise WrongInput(
                f"{path}: the shard {shard.path!r} is not in the dataset's folder; prepare the"
                " dataset again"
            )
    if sum(shard.n_rows for shard in manifest.shards) != manifest.n_rows:
        raise WrongInput(
            f"{path} is damaged (its shards do not have {manifest.n_rows} rows together); prepare"
            " the dataset again"
        )
