"""Atomic file writing, file locks, and content hashes."""

import errno
import fcntl
import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def written_atomically(path: Path, remedy: str = "free some space on its disk") -> Iterator[Path]:
    """Give a temporary path, which is synced and renamed to `path` on success."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.tmp")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise OSError(
            error.errno, f"no disk space for {path} ({os.strerror(error.errno)}); {remedy}"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def remove_unfinished(folder: Path, older_than: float) -> None:
    """Remove temporary files that are older than so many seconds."""
    for path in folder.glob(".*.tmp"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > older_than:
                path.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with written_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold the lock file `path`; the lock ends with its holder.

    Without `wait`, a lock that is held raises `BlockingIOError`.
    """
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def sync(path: Path) -> None:
    """Flush a file's content, or a folder's entries, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def json_text(value: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    """The JSON of a value, with texts for what JSON lacks, and null for NaN and infinities."""
    return json.dumps(
        finite(value), indent=indent, sort_keys=sort_keys, allow_nan=False, default=str
    )


def finite(value: Any) -> Any:
    """The value, with None for numbers that are not finite."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def canonical_json(value: Any, allow_nan: bool = False) -> str:
    """JSON with sorted keys and without spaces: equal values give equal text."""
    return json.dumps(
        value,
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=allow_nan,
        default=lambda one: one.item(),
    )


def content_hash(value: Any) -> str:
    """32 hexadecimal digits of the SHA-256 of a value's canonical JSON."""
    return text_hash(canonical_json(value))


def text_hash(text: str) -> str:
    """32 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
