"""The cache folder, which may be deleted at any time.

It is `$KOCO_CACHE`, or `koco-stream` in `$XDG_CACHE_HOME` or `~/.cache`, or else in the temporary
directory.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.io.files import content_hash, json_text, locked, write_text


def cache_folder() -> Path:
    """The cache folder, which may not exist yet."""
    if chosen := os.environ.get("KOCO_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        folder = base.expanduser().absolute() / "koco-stream"
        _make(folder)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # it cannot be made, or nobody knows a home
        pass
    folder = Path(tempfile.gettempdir(), f"koco-stream-{os.getuid()}")
    print(
        f"koco: nothing can be written to {base}, so compiled code and copies of datasets are kept"
        f" in {folder}; KOCO_CACHE sets another folder",
        file=sys.stderr,
    )
    os.environ["KOCO_CACHE"] = str(folder)  # said once, and for the processes that this one starts
    return folder


def private_folder(*names: str) -> Path:
    """A folder below the cache folder, made with mode 0700."""
    folder = cache_folder()
    for name in ("", *names):
        folder = folder / name
        try:
            _make(folder)
        except OSError as error:
            raise WrongInput(
                f"the cache folder {folder} cannot be made ({error.strerror}); set KOCO_CACHE to"
                " another folder"
            ) from error
        _check(folder)
    return folder


def computed_once(folder: str, identity: object, compute: Callable[[], Any]) -> Any:
    """The result of `compute`, as decoded from JSON, cached by its `identity`."""
    path = private_folder(folder) / f"{content_hash(identity)}.json"
    if not path.is_file():
        with locked(path.with_suffix(".lock")):
            if not path.is_file():
                write_text(path, json_text(compute()))
    return json.loads(path.read_text())


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _check(folder: Path) -> None:
    state = folder.stat()
    if state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise PermissionError(
            f"the cache folder {folder} must belong to you and be writable by nobody else, because"
            f" compiled code is read from it; run: chmod 700 {folder}  (or set KOCO_CACHE to"
            " another folder)"
        )
