"""What a process has to say of itself before it is given work: versions, machine, disks, and
whether it sees the store. Plain values.

It can be imported where a package that workers need is missing, so that this is what is reported.
"""

import hashlib
import os
import platform
import shutil
import sys
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from koco_stream.io.cache import cache_folder

PACKAGE = Path(__file__).parent.parent
PACKAGES = ("numpy", "numba", "llvmlite", "pyarrow", "scipy")


class VersionMismatch(Exception):
    """This process has other versions than the one that the work comes from: its numbers might be
    others.
    """


@cache
def source_hash() -> str:
    """Hash of every source file of `koco_stream` (64 hexadecimal digits)."""
    digest = hashlib.sha256()
    for source in sorted(PACKAGE.rglob("*.py")):
        digest.update(
            str(source.relative_to(PACKAGE)).encode() + b"\0" + source.read_bytes() + b"\0"
        )
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """The versions that must be the same everywhere, by name; what cannot be imported is there with
    the reason instead.
    """
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            found[name] = str(import_module(name).__version__)
        except Exception as error:  # a package may fail in any way while it is imported
            found[name] = (
                f"missing ({error})"
                if isinstance(error, ImportError)
                else f"broken ({type(error).__name__}: {error})"
            )
    return {**found, "koco_stream": source_hash()[:12]}


def check_versions(expected: dict[str, str]) -> None:
    """Raise `VersionMismatch` if this process has others than the `expected` versions."""
    differ = [
        f"{name} {have}, not {expected.get(name)}"
        for name, have in versions().items()
        if have != expected.get(name)
    ]
    if differ:
        raise VersionMismatch("; ".join(differ))


def facts(store: str, token: str) -> dict[str, Any]:
    """All that a preflight asks of a worker. `token` is in the store's folder `question_folder`, if
    it is the same store from here; an answer is then put beside it.
    """
    found: dict[str, Any] = {
        "versions": versions(),
        "python": sys.version.split()[0],
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "cache_free": free_bytes(cache_folder()),
        "store_free": None if "://" in store else free_bytes(Path(store)),
    }
    try:
        found["answer"], found["store_problem"] = answer(store, token), None
    except Exception as error:  # whatever it is, the store cannot be used from here
        found["answer"], found["store_problem"] = None, f"{type(error).__name__}: {error}"
    return {**found, "clock": time.time()}


def question_folder(token: str) -> str:
    """The name of the folder in which a preflight asks and is answered."""
    return f".preflight-{token}"


def answer(store: str, token: str) -> str | None:
    """Answer in the store; returns the name of the file, or None if the question is not there."""
    from koco_stream.io.paths import store_path

    folder = store_path(store) / question_folder(token)
    try:
        if (folder / "question").read_text() != token:
            return None
    except FileNotFoundError:
        return None
    name = f"answer-{uuid4().hex}"
    (folder / name).write_text(token)
    return name


def free_bytes(path: Path) -> int | None:
    """The free bytes of the disk on which `path` is, or would be; None if that cannot be seen."""
    try:
        return shutil.disk_usage(
            next(there for there in (path, *path.parents) if there.exists())
        ).free
    except OSError:
        return None


def processor() -> str:
    """This machine's processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux: the architecture's name has to do
    return platform.machine()
