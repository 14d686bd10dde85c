"""Publication of a dataset: files are added to the store, then a manifest makes them visible."""

from dataclasses import replace
from pathlib import Path

from koco_stream.io.files import sync
from koco_stream.io.paths import StorePath
from koco_stream.streams.manifest import Manifest, dataset_path
from storage.sources.source import ParallelMap
from storage.store import LOCK, open_store


def publish(
    root: StorePath, written: Path, manifest: Manifest, parallel_map: ParallelMap
) -> Manifest:
    """Publish the files in the folder `written` as a dataset of the store at `root`.

    They are added first; writing the manifest then makes them visible atomically. Files of an
    earlier version are deleted last. Returns the manifest with the final paths.
    """
    open_store(root)
    folder = dataset_path(root, manifest.name)
    with (root / LOCK).locked():
        target = put_files(written, folder, manifest, parallel_map)
        shards = [replace(shard, path=f"{target}/{shard.path}") for shard in manifest.shards]
        manifest = replace(manifest, shards=shards)
        (folder / "manifest.json").write_text(manifest.to_json())
        for name in folder.names():
            if name not in (target, "manifest.json"):
                # those of an earlier version, or files of a terminated process
                left = folder / name
                left.remove() if left.is_file() else left.remove_tree()
    return manifest


def put_files(
    written: Path, folder: StorePath, manifest: Manifest, parallel_map: ParallelMap
) -> str:
    """Add the files in `written` to the dataset's `folder`; returns the name of their subfolder.

    Existing files are not replaced, because the current manifest may refer to them: identical
    files are reused, and different ones go to a new subfolder.
    """
    name, number = manifest.dataset_hash[:16], 1
    target = folder / name
    names = sorted(shard.path for shard in manifest.shards)
    while there := target.names():
        if there == names and all(
            (target / shard.path).sha256() == shard.sha256 for shard in manifest.shards
        ):
            return target.name
        number += 1
        target = folder / f"{name}-{number}"
    if target.is_local:
        target.path.parent.mkdir(parents=True, exist_ok=True)
        written.replace(target.path)
        sync(target.path.parent)
    else:
        list(parallel_map(lambda name: (target / name).put(written / name), names))
    return target.name
