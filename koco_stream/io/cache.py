"""The cache folder: compiled code, copies of datasets, Prefect's home, Dask's scratch space.

All of its content can be deleted at any time. It is `$KOCO_CACHE` if set, else `koco-stream` in
`$XDG_CACHE_HOME` or `~/.cache`. `$KOCO_CACHE_BYTES` limits the copies of datasets (see
`koco_stream.streams.shard_cache`).
"""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The path of the cache folder, which may not exist yet."""
    if chosen := os.environ.get("KOCO_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "koco-stream"


def private_folder(*names: str) -> Path:
    """A folder below the cache folder, created with mode 0700, as are the folders above it.

    Raises `PermissionError` if the cache folder, or one between it and this folder, belongs to
    someone else or others may write to it: compiled code is read from it and executed.
    """
    folder = cache_folder()
    _make(folder)
    _check(folder)
    for name in names:
        folder = folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        _check(folder)
    return folder


def _make(folder: Path) -> None:
    """Create a folder, and those above it, with mode 0700; existing ones stay as they are."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _check(folder: Path) -> None:
    """Raise `PermissionError` if a folder is not this user's, or others may write to it."""
    state = folder.stat()
    if state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise PermissionError(
            f"the cache folder {folder} must belong to you and be writable by nobody else, because"
            f" compiled code is read from it; run: chmod 700 {folder}  (or set KOCO_CACHE to"
            " another folder)"
        )
