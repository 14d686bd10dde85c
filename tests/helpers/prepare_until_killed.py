"""Run by tests as a process of its own: prepares a dataset, and kills itself before a given one of
its changes to the store.
"""

import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet as pq

import storage.preparing.files
from storage.preparing.prepare import prepare_file

CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")


class Killer:
    """Counts the process's changes below a folder; before the one of the given number the process
    is killed (never, for 0).
    """

    def __init__(self, folder: str, at: int) -> None:
        self.folder, self.at, self.made = folder, at, 0

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        """Python's own calls: folders made, files opened for writing, renamed, removed."""
        writing = (
            event == "open"
            and isinstance(arguments[1], str)
            and bool(set(arguments[1]) & set("wax+"))
        )
        if (writing or event in CHANGES) and self.folder in str(arguments[0]):
            self.count()

    def count(self) -> None:
        """One more change is about to be made."""
        self.made += 1
        if self.made == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, module: object, name: str) -> None:
        """Count before and after a function that writes files without Python's knowing."""
        original = getattr(module, name)

        def counted(*args: object, **kwargs: object) -> object:
            self.count()
            result = original(*args, **kwargs)
            self.count()
            return result

        setattr(module, name, counted)


if __name__ == "__main__":
    store, source, at = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    killer = Killer(store, at)
    sys.addaudithook(killer.hook)
    killer.around(pq, "write_table")
    killer.around(storage.preparing.files, "write_rows")
    prepare_file(store, "x", source, scale="unit-rows", values_per_shard=300)
    print(killer.made)
