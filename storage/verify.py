"""Verifying a store: every hash that it holds is computed again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pyarrow as pa

from koco_stream.errors import WrongInput
from koco_stream.manifest import Manifest, dataset_place, load_manifest
from koco_stream.places import Where
from storage.dataset import prepared_rows
from storage.results import table_files
from storage.shards import BLOCK, digests_of, identity_of, joined, tail
from storage.source import Piece

IDENTITY_SINCE = 2  # the format of manifests from which on the identity is the one of `storage.shards`


def dataset_problems(store: Where, name: str) -> list[str]:
    """What is wrong with a dataset, each as one line; nothing if every file is the one that was prepared and holds the rows of its
    identity."""
    try:
        manifest = load_manifest(store, name)
    except WrongInput as error:
        return [str(error)]
    problems = []
    for shard in manifest.shards:
        path = dataset_place(store, name) / shard.path
        if not path.is_file():
            problems.append(f"{path} is missing; prepare the dataset again")
        elif path.sha256() != shard.sha256:
            problems.append(f"{path} is not the file that was prepared: it was altered or damaged; prepare the dataset again")
    if problems or manifest.format < IDENTITY_SINCE:
        return problems
    try:
        found = identity_of(block_digests(store, manifest), manifest.n_rows, manifest.n_features, manifest.layout, manifest.value_type)
    except (pa.ArrowInvalid, KeyError) as error:
        return [f"{dataset_place(store, name)}: its shards cannot be read ({error}); prepare the dataset again"]
    if found != manifest.dataset_hash:
        problems.append(f"{dataset_place(store, name)}: the manifest is not that of these shards; prepare the dataset again")
    return problems


def block_digests(store: Where, manifest: Manifest) -> Iterator[bytes]:
    """The hashes of the dataset's blocks of rows, read from its shards one after the other."""
    left: Piece | None = None
    for number, shard in enumerate(manifest.shards):
        rows = prepared_rows((dataset_place(store, manifest.name) / shard.path).read_table(), manifest.layout)
        rows = joined(left, rows) if left is not None else rows
        last = number == len(manifest.shards) - 1
        whole = rows.n_rows if last else rows.n_rows // BLOCK * BLOCK
        left = tail(rows, whole)
        end = int(rows.indptr[whole])
        indices = rows.indices[:end] if rows.indices.size else rows.indices
        yield digests_of(Piece(rows.labels[:whole], rows.indptr[: whole + 1], indices, rows.values[:end]), manifest.layout)[0]


def result_problems(store: Where) -> list[str]:
    """What is wrong with the tables of results: a file's name is the hash of the runs in it."""
    problems = []
    for path in table_files(store, "runs"):
        try:
            names = "".join(path.read_table(["run_id"]).column("run_id").to_pylist())
        except (OSError, pa.ArrowInvalid) as error:
            problems.append(f"{path} cannot be read ({error}); remove it, and its runs will be run again")
            continue
        if hashlib.sha256(names.encode()).hexdigest()[:32] != path.name.removesuffix(".parquet"):
            problems.append(f"{path} does not hold the runs of its name; remove it, and its runs will be run again")
    return problems
