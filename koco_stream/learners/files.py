"""The code of learners that are files of a user: its hash, its copies, and how it is imported.

The code is the file and what it imports beside it. It is copied to the cache folder under the hash
of its content and imported from there. Workers take it from the store, by the hash that comes with
a cohort, and run no file whose hash differs.
"""

import json
import sys
import threading
from pathlib import Path
from types import ModuleType

from koco_stream.errors import LearnerChanged, WrongInput
from koco_stream.io.cache import private_folder
from koco_stream.io.files import json_text, write_text
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.io.source_files import hash_of, import_file, source_files

IMPORTING = threading.RLock()
ORIGINS: dict[str, Path] = {}  # where this process has found the files of each hash


def copied_to_cache(path: Path) -> str:
    """Copy a learner's files to the cache folder; returns their hash."""
    files = source_files(path)
    code = hash_of(files)
    ORIGINS[code] = path.absolute()
    _write(files, code)
    return code


def _folder(code: str) -> Path:
    return private_folder("learners") / code


def _write(files: dict[str, str], code: str) -> None:
    """Write a learner's files to the cache folder, but for those that are there."""
    for name, text in files.items():
        if not (_folder(code) / name).exists():
            write_text(_folder(code) / name, text)


def _cached(code: str) -> dict[str, str]:
    """A learner's files in the cache folder; empty if they are not there."""
    folder = _folder(code)
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.py")
    }


def send(store: AnyPath, code: str) -> None:
    """Write a learner's files from the cache folder to the store, from where workers take them."""
    _sent(store, code).write_text(json_text({"files": _cached(code), "origin": str(ORIGINS[code])}))


def fetch(store: AnyPath, name: str, code: str) -> None:
    """Copy a learner's files from the store to the cache folder, or raise `LearnerChanged` if they,
    or those they were copied from, where this process sees them, have another hash.
    """
    note = json.loads(_sent(store, code).read_text())
    _check(name, code, hash_of(note["files"]), str(_sent(store, code)))
    origin = Path(note["origin"])
    if origin.exists():
        _check(name, code, hash_of(source_files(origin)), str(origin))
    _write(note["files"], code)


def _sent(store: AnyPath, code: str) -> StorePath:
    return store_path(store) / "learners" / f"{code}.json"


def _check(name: str, code: str, found: str, where: str) -> None:
    if found != code:
        raise LearnerChanged(
            f"{name} was changed while its sweep ran: {where} now has the hash {found}, and the"
            f" sweep started with {code}; start the sweep again, and the changed file makes new"
            " runs, or put the file back as it was"
        )


def imported(place: str, code: str) -> ModuleType:
    """The module of a learner's file, imported from the cache folder."""
    name, folder, files = f"{Path(place).stem}_{code}", _folder(code), _cached(code)
    _check(place, code, hash_of(files), str(folder))
    with IMPORTING:
        if name in sys.modules:
            return sys.modules[name]
        for other in files:
            if other != place:
                _refuse_another(folder, Path(other).parts[0].removesuffix(".py"), place)
        try:
            return import_file(name, folder / place)
        except Exception as error:
            raise WrongInput(
                f"{place} cannot be imported: {type(error).__name__}: {error}"
            ) from error


def _refuse_another(folder: Path, name: str, place: str) -> None:
    """Raise `WrongInput` if the module of this name, which the file imports, is another one."""
    there = getattr(sys.modules.get(name), "__file__", None)
    if there is None or Path(there).is_relative_to(folder):
        return
    mine = folder / f"{name}.py"
    if not mine.exists() or Path(there).read_bytes() != mine.read_bytes():
        raise WrongInput(
            f"{place} imports {name}.py beside it, and another module is called {name} as well"
            f" ({there}); give the file another name"
        )
