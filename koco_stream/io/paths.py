"""Paths in a store: a folder or file on this machine, or under a prefix of an object store.
Everything that is kept in a store goes through here; what is certainly local (the cache folder,
source files) stays a Path.
"""

import re
from pathlib import Path

from koco_stream.errors import WrongInput
from koco_stream.io.local import LocalPath, StorePath

__all__ = ["AnyPath", "LocalPath", "StorePath", "store_path"]

AnyPath = str | Path | StorePath


def store_path(where: AnyPath) -> StorePath:
    """The path that a user names: a folder, or `s3://bucket/prefix` or `gs://bucket/prefix`.

    Nothing is looked up there yet (of a bucket of Amazon's perhaps the region, where the
    environment does not say it). Raises `WrongInput` if it is an address of another kind, or has
    more in it than a bucket and a prefix.
    """
    if isinstance(where, StorePath):
        return where
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", where) if isinstance(where, str) else None
    if scheme is None:
        return LocalPath(Path(where).expanduser().absolute())
    if scheme[1] not in ("s3", "gs"):
        raise WrongInput(
            "a store is a folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, not an address of"
            f" {scheme[1]}://"
        )
    # Only now: who keeps a store in a folder does not wait for its library.
    from koco_stream.io.object_store import object_path

    return object_path(str(where))
