"""Publishing a dataset: its shards are put into the store, then the manifest that makes them
visible, at once.
"""

from collections import deque
from dataclasses import replace
from pathlib import Path

from koco_stream.io.files import sync_folder
from koco_stream.io.paths import LocalPath, StorePath
from koco_stream.streams.manifest import Manifest, dataset_path
from storage.preparing.parallel import OnDask, Serially
from storage.store import LOCK, open_store


def publish(
    root: StorePath, written: Path, manifest: Manifest, worker: Serially | OnDask
) -> Manifest:
    """Make the shards in the folder `written` the dataset: put them into the store, then its
    manifest, which makes them visible at once.
    """
    open_store(root)
    folder = dataset_path(root, manifest.name)
    with (root / LOCK).locked():
        manifest, target = place_shards(written, folder, manifest, worker)
        (folder / "manifest.json").write_text(manifest.to_json())
        for name in folder.names():
            if name not in (target, "manifest.json"):
                left = folder / name  # the shards before these, or what a killed process left
                left.remove() if left.is_file() else left.remove_tree()
    return manifest


def place_shards(
    written: Path, folder: StorePath, manifest: Manifest, worker: Serially | OnDask
) -> tuple[Manifest, str]:
    """Put the shards from `written` into the dataset's `folder`; returns the manifest that has
    their place, and that place's name.

    Nothing there is replaced, because the present manifest may point to it: the same files stay,
    and others get a folder of their own.
    """
    name, number = manifest.dataset_hash[:16], 1
    target = folder / name
    while target.names():
        if all(holds(target / shard.path, shard.sha256) for shard in manifest.shards):
            break
        number += 1
        target = folder / f"{name}-{number}"
    else:
        if isinstance(target, LocalPath):
            target.path.parent.mkdir(parents=True, exist_ok=True)
            written.replace(target.path)
            sync_folder(target.path.parent)
        else:
            deque(
                worker.each(
                    put_shard,
                    [(written / shard.path, target / shard.path) for shard in manifest.shards],
                ),
                maxlen=0,
            )
    shards = [replace(shard, path=f"{target.name}/{shard.path}") for shard in manifest.shards]
    return replace(manifest, shards=shards), target.name


def put_shard(what: tuple[Path, StorePath]) -> None:
    """Copy a shard to its place in an object store."""
    path, target = what
    target.put(path)


def holds(path: StorePath, sha256: str) -> bool:
    """Whether the file is there and has this hash."""
    return path.is_file() and path.sha256() == sha256
