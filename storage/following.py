"""The table `runs` of a store that others write to: what is new is read, and nothing twice."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from koco_stream.engine.result_file import read_result, result_files_folder
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.runs.schemas import RUNS, schema
from storage.later_parameters import with_later_defaults
from storage.results import among, conformed, first_of_each, named, read_columns, repeated

Version = tuple[StorePath, int, int]  # a file, and what `StorePath.versions` says of it
FILE = pa.field("file", pa.int64())


class Snapshot(NamedTuple):
    """A store's runs at some moment.

    `runs` has one row per run, as `storage.results.read_runs`, and a column `file`: the position in
    `files` of the file that the row is from, a file of the table `runs` or a result file. `state`
    is what these files and the notes of the sweeps were; it changes whenever one of them does.
    """

    state: tuple[Version, ...]
    files: tuple[StorePath, ...]
    runs: pa.Table

    def files_of(self, run_ids: Sequence[str]) -> dict[StorePath, list[str]]:
        """The files that have these runs, and which; runs that are not in the store are left out.

        The curves of a file of the table `runs` are in the file of that name in the table `curves`.
        """
        rows = self.runs.filter(among(self.runs, set(run_ids)))
        found: dict[StorePath, list[str]] = {}
        ids, files = (rows.column(name).to_pylist() for name in ("run_id", "file"))
        for run_id, file in zip(ids, files, strict=True):
            found.setdefault(self.files[file], []).append(run_id)
        return found


class Followed:
    """Reads the runs of a store again and again; a file that has not changed is read once."""

    def __init__(self, store: AnyPath) -> None:
        self.store = store_path(store)
        self._kept: dict[Version, pa.Table | None] = {}
        self._last: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """The runs that are there now; the same object as before if nothing has changed.

        Raises `WrongInput` for a damaged file of the table; a damaged result file is left out.
        """
        if self._last is None or self._last.state != self._state():
            self._last = repeated(self._read)
        return self._last

    def _state(self) -> tuple[Version, ...]:
        # Result files are listed before the table, so that each run is seen at least once.
        folders = (
            result_files_folder(self.store),
            self.store / "results" / "runs",
            self.store / "sweeps",
        )
        return tuple(
            (folder / name, size, changed)
            for folder in folders
            for name, size, changed in folder.versions()
            if name.endswith((".parquet", ".json"))
        )

    def _read(self) -> Snapshot:
        state = self._state()
        readers: dict[str, Callable[[StorePath], pa.Table | None]] = {
            f"{self.store / 'results' / 'runs'}/": read_columns,
            f"{result_files_folder(self.store)}/": read_result,
        }
        kept = dict[Version, pa.Table | None]()
        for folder, read in readers.items():  # the table first: its rows are taken first
            for version in state:
                file = version[0]
                if str(file).startswith(folder):
                    if version in self._kept:
                        kept[version] = self._kept[version]
                        continue
                    with named(file):
                        kept[version] = _rows(read(file))
        self._kept = kept
        tables = [
            table.append_column(FILE, pa.repeat(pa.scalar(number, FILE.type), table.num_rows))
            for number, table in enumerate(kept.values())
            if table is not None
        ]
        none = pa.Table.from_batches([], schema(RUNS).append(FILE))
        runs = first_of_each(pa.concat_tables([none, *tables]).combine_chunks())
        return Snapshot(state, tuple(file for file, _, _ in kept), runs)


def _rows(table: pa.Table | None) -> pa.Table | None:
    return None if table is None else with_later_defaults(conformed(RUNS, table))
