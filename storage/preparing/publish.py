"""Publishing a dataset: its shards are put into the store, then the manifest that makes them
visible, at once.
"""

from dataclasses import replace
from pathlib import Path

from koco_stream.io.files import sync_folder
from koco_stream.io.paths import LocalPath, StorePath
from koco_stream.streams.manifest import Manifest, dataset_path
from storage.sources.source import ParallelMap
from storage.store import LOCK, open_store


def publish(
    root: StorePath, written: Path, manifest: Manifest, parallel_map: ParallelMap
) -> Manifest:
    """Make the shards in the folder `written` the dataset: put them into the store, then its
    manifest, which makes them visible at once.
    """
    open_store(root)
    folder = dataset_path(root, manifest.name)
    with (root / LOCK).locked():
        manifest, target = put_shards(written, folder, manifest, parallel_map)
        (folder / "manifest.json").write_text(manifest.to_json())
        for name in folder.names():
            if name not in (target, "manifest.json"):
                left = folder / name  # the shards before these, or what a killed process left
                left.remove() if left.is_file() else left.remove_tree()
    return manifest


def put_shards(
    written: Path, folder: StorePath, manifest: Manifest, parallel_map: ParallelMap
) -> tuple[Manifest, str]:
    """Put the shards from `written` into the dataset's `folder`; returns the manifest that has
    their folder, and its name.

    Nothing there is replaced, because the present manifest may point to it: the same files stay,
    and others get a folder of their own.
    """
    name, number = manifest.dataset_hash[:16], 1
    target = folder / name
    while target.names():
        if all(_holds(target / shard.path, shard.sha256) for shard in manifest.shards):
            break
        number += 1
        target = folder / f"{name}-{number}"
    else:
        if isinstance(target, LocalPath):
            target.path.parent.mkdir(parents=True, exist_ok=True)
            written.replace(target.path)
            sync_folder(target.path.parent)
        else:
            names = [shard.path for shard in manifest.shards]
            list(parallel_map(_put, [(written / name, target / name) for name in names]))
    shards = [replace(shard, path=f"{target.name}/{shard.path}") for shard in manifest.shards]
    return replace(manifest, shards=shards), target.name


def _put(what: tuple[Path, StorePath]) -> None:
    """Copy a shard into an object store."""
    path, target = what
    target.put(path)


def _holds(path: StorePath, sha256: str) -> bool:
    """Whether the file is there and has this hash."""
    return path.is_file() and path.sha256() == sha256
