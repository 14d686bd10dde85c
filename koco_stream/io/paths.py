"""Paths in a store: on this machine, or in an object store."""

import re
from pathlib import Path

from koco_stream.errors import WrongInput
from koco_stream.io.local import StorePath, T

__all__ = ["AnyPath", "StorePath", "T", "store_path"]

AnyPath = str | Path | StorePath


def store_path(where: AnyPath) -> StorePath:
    """Parse a store's address: a folder, `s3://bucket/prefix` or `gs://bucket/prefix`."""
    if isinstance(where, StorePath):
        return where
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", where) if isinstance(where, str) else None
    if scheme is None:
        return StorePath(str(Path(where).expanduser().absolute()))
    if scheme[1] not in ("s3", "gs"):
        raise WrongInput(
            "a store is a folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, not an address of"
            f" {scheme[1]}://"
        )
    # Imported here, so that local stores do not wait for the object store library.
    from koco_stream.io.object_store import object_path

    return object_path(str(where))
