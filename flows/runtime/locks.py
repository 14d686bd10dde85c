"""One at a time: locks on a store that a process holds while it lives. Of a folder the lock is in
it; of an object store, which has none, in this machine's cache folder.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from flows.runtime.console import say
from koco_stream.io.cache import private_folder
from koco_stream.io.files import text_hash
from koco_stream.io.paths import AnyPath, LocalPath, store_path


@contextmanager
def locked(store: AnyPath, name: str, waiting: str | None) -> Iterator[None]:
    """Hold the store's lock of this name. If another process has it: say `waiting` and wait, or, if
    that is None, raise `BlockingIOError`.
    """
    root = store_path(store)
    file = (
        root.path / f"{name}.lock"
        if isinstance(root, LocalPath)
        else private_folder("locks") / f"{text_hash(str(root))}-{name}.lock"
    )
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is None:
                raise
            say(waiting)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
