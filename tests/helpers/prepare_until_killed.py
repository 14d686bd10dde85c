"""Run by tests as a process of its own: prepares a dataset, and kills itself before a given one of
its changes to the store.
"""

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq

import storage.preparing.files
from storage.preparing.prepare import prepare_file

CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")


STORE, SOURCE, AT = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
MADE = count(1)


def change() -> None:
    """One more change is about to be made; the process is killed before number `AT` (0: never)."""
    if next(MADE) == AT:
        os.kill(os.getpid(), signal.SIGKILL)


def hook(event: str, arguments: tuple[object, ...]) -> None:
    """Python's own calls: folders made, files opened for writing, renamed, removed."""
    writing = event == "open" and isinstance(arguments[1], str) and {*arguments[1]} & {*"wax+"}
    if (writing or event in CHANGES) and STORE in str(arguments[0]):
        change()


def around(write: Callable[..., object]) -> Callable[..., None]:
    """A function that writes files without Python's knowing, with a change before and after it."""

    def counted(*words: object, **more: object) -> None:
        change()
        write(*words, **more)
        change()

    return counted


if __name__ == "__main__":
    sys.addaudithook(hook)
    pq.write_table = around(pq.write_table)
    storage.preparing.files.write_rows = around(storage.preparing.files.write_rows)
    prepare_file(STORE, "x", SOURCE, scale="unit-rows", values_per_shard=300)
    print(next(MADE) - 1)
