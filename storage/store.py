"""The store: a folder or object-store prefix that holds datasets, results and reports, and says
which format they have.
"""

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from psutil import pid_exists

import koco_stream
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath, StorePath, store_path

FORMAT = 1
MARK = "koco-store.json"
LOCK = "koco-store.lock"


def open_store(where: AnyPath) -> StorePath:
    """The store at `where`, created if there is none.

    Raises `WrongInput` if something else is there, or a store of a newer format.
    """
    store = store_path(where)
    if not check_store(store):
        (store / MARK).write_text(
            json.dumps({"format": FORMAT, "created_by": koco_stream.__version__}) + "\n"
        )
    return store


def existing_store(where: AnyPath) -> StorePath:
    """The store at `where`. Raises `WrongInput` if there is none."""
    store = store_path(where)
    if not check_store(store):
        raise WrongInput(
            f"there is no store at {store}; name one with --store, or make one with koco prepare or"
            " koco sweep"
        )
    return store


def check_store(where: AnyPath) -> bool:
    """Whether there is a store at this place; False if nothing is there yet, or an empty folder.

    Raises `WrongInput` if something else is there, or a store of a newer format; `StoreUnavailable`
    for an object store that does not answer, refuses access or has no such bucket.
    """
    store = store_path(where)
    mark = store / MARK
    if mark.is_file():
        try:
            found = int(json.loads(mark.read_text())["format"])
        except (ValueError, KeyError, TypeError):
            raise WrongInput(
                f'{mark} is damaged; a store of this version has the line {{"format": {FORMAT}}}'
                " there"
            ) from None
        if found > FORMAT:
            raise WrongInput(
                f"the store {store} has format {found}; this version reads up to {FORMAT}: upgrade"
                " koco-stream"
            )
        return True
    try:
        free = all(name == ".staging" or _unfinished_mark(name) for name in store.names())
    except NotADirectoryError:
        raise WrongInput(
            f"{store} is a file; a store is a folder: choose another --store"
        ) from None
    if not free and mark.is_file():  # another process has made it one meanwhile
        return check_store(store)
    if not free:
        raise WrongInput(
            f"{store} is not a store (it has no {MARK}) and is not empty; choose another --store"
        )
    return False


def _unfinished_mark(name: str) -> bool:
    """Whether this is the name of a mark that is being written, or that a killed process left."""
    return name.startswith(f".{MARK}.") and name.endswith(".tmp")


@contextmanager
def staging_folder(store: Path) -> Iterator[Path]:
    """A folder inside the store for unfinished work; removed at the end, together with those that
    dead processes of this machine left.

    Its name is the machine's, the process's number and something unique: the store may be shared,
    and numbers come again.
    """
    root = store / ".staging"
    created = [path for path in (root, *root.parents) if not path.exists()]
    with suppress(FileNotFoundError):
        for left in root.iterdir():
            host, _, process = left.name.rpartition("-")[0].rpartition("-")
            if host == socket.gethostname() and process.isdigit() and not pid_exists(int(process)):
                shutil.rmtree(left, ignore_errors=True)
    folder = _made_in(root)
    try:
        yield folder
    finally:
        # workers that were told to stop may still write: under its new name they do not find it
        with suppress(OSError):
            folder = folder.rename(folder.with_name(f"{folder.name}.gone"))
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # only what is empty: on failure the disk is as it was
            for path in dict.fromkeys((root, *created)):
                path.rmdir()


def _made_in(root: Path) -> Path:
    """A new folder in `root`, which another process may remove at any time as long as it is
    empty.
    """
    while True:
        root.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return Path(tempfile.mkdtemp(prefix=f"{socket.gethostname()}-{os.getpid()}-", dir=root))
