"""The store: a folder or object-store prefix with datasets, results and reports."""

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from psutil import pid_exists

import koco_stream
from koco_stream.errors import WrongInput, other_format
from koco_stream.io.files import json_text
from koco_stream.io.paths import AnyPath, StorePath, store_path

FORMAT = 1
MARK = "koco-store.json"
LOCK = "koco-store.lock"


def open_store(where: AnyPath) -> StorePath:
    store = store_path(where)
    if not check_store(store):
        try:
            (store / MARK).write_text(
                json_text({"format": FORMAT, "created_by": koco_stream.__version__}) + "\n"
            )
        except (FileNotFoundError, FileExistsError, NotADirectoryError) as error:
            raise WrongInput(
                f"{store} cannot be made ({error.strerror}); choose another --store"
            ) from None
    return store


def existing_store(where: AnyPath) -> StorePath:
    store = store_path(where)
    if not check_store(store):
        raise WrongInput(
            f"there is no store at {store}; choose one with --store, or create one with koco"
            " prepare or koco sweep"
        )
    return store


def check_store(where: AnyPath) -> bool:
    """Whether there is a store at `where`; False if nothing or an empty folder is there."""
    store = store_path(where)
    mark = store / MARK
    if mark.is_file():
        try:
            said = json.loads(mark.read_text())
            found = int(said["format"])
            wrote = said.get("created_by")
        except (ValueError, KeyError, TypeError):
            raise WrongInput(
                f'{mark} is damaged; a store of this version has the line {{"format": {FORMAT}}}'
                " there"
            ) from None
        if found != FORMAT:
            words = other_format(found, FORMAT, "choose another --store", wrote)
            raise WrongInput(f"the store {store} {words}")
        return True
    try:
        # a mark in writing, or left by a terminated process, does not count
        left = [name for name in store.names() if not name.startswith((".staging", f".{MARK}."))]
    except NotADirectoryError:
        raise WrongInput(
            f"{store} is a file, or within one; a store is a folder: choose another --store"
        ) from None
    if not left:
        return False
    # another process may have created the store meanwhile
    if mark.is_file():
        return check_store(store)
    raise WrongInput(
        f"{store} is not a store (it has no {MARK}) and is not empty; choose another --store"
    )


def check_makeable(where: AnyPath) -> None:
    if (root := store_path(where)).is_local:
        with staging_folder(root.path):
            pass


@contextmanager
def staging_folder(store: Path) -> Iterator[Path]:
    """Temporary folder inside the store for unfinished work, deleted at the end.

    Folders of terminated processes of this machine are deleted, too: its name has the host and the
    process id.
    """
    root = store / ".staging"
    host = socket.gethostname()
    created = [path for path in (root, *root.parents) if not path.exists()]
    with suppress(FileNotFoundError):
        for left in root.iterdir():
            where, _, process = left.name.rpartition("-")[0].rpartition("-")
            if where == host and process.isdigit() and not pid_exists(int(process)):
                shutil.rmtree(left, ignore_errors=True)
    folder = None
    while folder is None:
        try:
            root.mkdir(parents=True, exist_ok=True)
        except (FileNotFoundError, FileExistsError, NotADirectoryError) as error:
            raise WrongInput(
                f"{store} cannot be made ({error.strerror}); choose another --store"
            ) from None
        with suppress(FileNotFoundError):  # another process has deleted `root` while it was empty
            folder = Path(tempfile.mkdtemp(prefix=f"{host}-{os.getpid()}-", dir=root))
    try:
        yield folder
    finally:
        # rename first, so that workers that are still stopping can no longer write into the folder
        with suppress(OSError):
            folder = folder.rename(folder.with_name(f"{folder.name}.gone"))
        shutil.rmtree(folder, ignore_errors=True)
        # remove only empty folders, so that a failure leaves the disk as it was
        with suppress(OSError):
            for path in dict.fromkeys((root, *created)):
                path.rmdir()


def read_note(file: StorePath) -> dict[str, Any]:
    try:
        note: dict[str, Any] = json.loads(file.read_text())
        names = [*note["datasets"], *note["datasets"].values()]
        texts = [note["file"], *note["figures"], *note["run_ids"], *names]
        lists = all(isinstance(note[name], list) for name in ("figures", "run_ids"))
        if not (lists and all(isinstance(one, str) for one in texts)):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WrongInput(
            f"{file} is damaged; start its sweep again, which writes it anew"
        ) from None
    return note
