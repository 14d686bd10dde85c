"""What a worker process reports before it gets work: versions, machine, disks, store access."""

import os
import platform
import shutil
import sys
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from koco_stream.io.cache import cache_folder
from koco_stream.io.source_files import hash_of

PACKAGE = Path(__file__).parent.parent
PACKAGES = ("numpy", "numba", "llvmlite", "pyarrow", "scipy")


class VersionMismatch(Exception):
    """The package versions differ from the sender's."""


@cache
def source_hash() -> str:
    """A hash of all source files of `koco_stream`."""
    return hash_of(
        {str(path.relative_to(PACKAGE)): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    )


@cache
def versions() -> dict[str, str]:
    """The versions that must be equal on all workers, or why an import fails."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            found[name] = str(import_module(name).__version__)
        except Exception as error:  # importing a package may raise anything
            found[name] = (
                f"missing ({error})"
                if isinstance(error, ImportError)
                else f"broken ({type(error).__name__}: {error})"
            )
    return {**found, "koco_stream": source_hash()[:12]}


def check_versions(expected: dict[str, str]) -> None:
    """Raise `VersionMismatch` unless this process has the versions `expected`."""
    differ = [
        f"{name} {have}, not {expected.get(name)}"
        for name, have in versions().items()
        if have != expected.get(name)
    ]
    if differ:
        raise VersionMismatch("; ".join(differ))


def facts(store: str, token: str) -> dict[str, Any]:
    """Everything that the preflight check asks of a worker."""
    from koco_stream.io.paths import store_path

    found: dict[str, Any] = {
        "versions": versions(),
        "python": sys.version.split()[0],
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "cache_free": free_bytes(cache_folder()),
        "store_free": None if "://" in store else free_bytes(Path(store)),
        "answer": None,
        "store_problem": None,
    }
    try:
        folder, name = store_path(store) / question_folder(token), f"answer-{uuid4().hex}"
        with suppress(FileNotFoundError):
            if (folder / "question").read_text() == token:
                (folder / name).write_text(token)
                found["answer"] = name
    except Exception as error:  # any failure means that the store cannot be used
        found["store_problem"] = f"{type(error).__name__}: {error}"
    return {**found, "clock": time.time()}


def question_folder(token: str) -> str:
    """The store's folder for the preflight check."""
    return f".preflight-{token}"


def free_bytes(path: Path) -> int | None:
    """The free bytes on the disk of `path`, if known."""
    try:
        return shutil.disk_usage(
            next(there for there in (path, *path.parents) if there.exists())
        ).free
    except OSError:
        return None


@cache
def processor() -> str:
    """The processor's model, or its architecture."""
    with suppress(OSError):  # not Linux
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()
