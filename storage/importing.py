"""Import of results that were made elsewhere, so that they stand in the same tables and reports.

They are rows of the table `runs` with `numbers` "imported". Their identity is a hash of their
content, so that the same file is imported once, and no sweep takes them for runs of its own.
"""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.files import canonical_json, text_hash
from koco_stream.io.paths import AnyPath, store_path
from koco_stream.learners import LEARNERS
from koco_stream.runs.run import configuration_of
from koco_stream.runs.schemas import CURVES, RUNS, schema
from koco_stream.streams.manifest import load_manifest, prepared_names
from koco_stream.streams.orders import AS_STORED
from storage.notes import read_note
from storage.results import file_name, finished_runs, ids_of, without, write_tables
from storage.store import LOCK, open_store

IMPORTED = "imported"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
NEEDED = ("dataset", "learner", "mean_loss")
STATUSES = ("ok", "diverged", "failed")
# the store says these of a row itself
OWN = (
    *("run_id", "sweep", "dataset_hash", "numbers", "numbers_version", "learner_code", "host"),
    *("version", "finished_at", "cohort_size", "params"),
)
COLUMNS = {column.name: column.type for column in RUNS if column.name not in OWN}
PARAMETERS = {q.name for learner in LEARNERS.values() for q in learner.parameters}


def import_results(store: AnyPath, file: Path, name: str) -> tuple[int, int]:
    """Add the rows of a Parquet file to the table `runs`, as those of a sweep of this name.

    Columns are those of the table; `dataset`, `learner` and `mean_loss` are needed. Any other
    column is a parameter of the learner, and so are those of the table that begin with "parameter".

    Returns
    -------
    tuple of (int, int)
        Number of rows that are new in the store, and of all rows of the file.

    Raises
    ------
    WrongInput
        For a file, column or value that cannot be; the message names the row. Nothing is imported
        then. Also if a sweep of that name has run, or if the entry of that name is damaged.
    """
    if not NAME.match(name):
        raise WrongInput(f"{name!r} cannot be a sweep's name; give another one with --sweep")
    root = open_store(store)
    note = root / "sweeps" / f"{name}.json"
    known: dict[str, Any] = {"run_ids": [], IMPORTED: True}
    if note.is_file():
        known = read_note(note)
    if not known.get(IMPORTED):
        raise WrongInput(f"{root} already has a sweep {name!r}; choose another name with --sweep")
    hashes = {one: load_manifest(root, one).dataset_hash for one in prepared_names(root)}
    rows = [
        _run(row, f"{file}, row {number}", name, hashes, file.name)
        for number, row in enumerate(_read(file), 1)
    ]
    runs = pa.Table.from_pylist(rows, schema=schema(RUNS))
    new = without(runs, finished_runs(root))
    with (store_path(root) / LOCK).locked():
        if new.num_rows:
            results = root / "results"
            write_tables([schema(CURVES).empty_table()], results / "curves" / file_name(new))
            write_tables([new], results / "runs" / file_name(new))
        run_ids = sorted(ids_of(runs) | set(known["run_ids"]))
        content = {"name": name, "file": "", "figures": [], "run_ids": run_ids, IMPORTED: True}
        note.write_text(json.dumps(content) + "\n")
    return new.num_rows, runs.num_rows


def _read(file: Path) -> list[dict[str, Any]]:
    """Rows of a Parquet file, with the table's columns in its types."""
    try:
        table = pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        raise WrongInput(
            f"{file} cannot be read as Parquet: {str(error).splitlines()[0]}"
        ) from None
    names = table.column_names
    for needed in NEEDED:
        if names.count(needed) != 1:
            raise WrongInput(f"{file}: needs one column {needed!r}{nearest(needed, names)}")
    for own in OWN:
        if own in names:
            raise WrongInput(
                f"{file}: column {own!r} is the store's own; leave it out"
                + (", and give each parameter a column" if own == "params" else "")
            )
    for place, name in enumerate(names):
        if name in COLUMNS:
            try:
                column = table.column(name).cast(COLUMNS[name])
            except (pa.ArrowException, ValueError) as error:
                raise WrongInput(
                    f"{file}: column {name!r} is {table.column(name).type}, but it must be"
                    f" {COLUMNS[name]}: {str(error).splitlines()[0]}"
                ) from None
            table = table.set_column(place, name, column)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _run(
    row: dict[str, Any], where: str, name: str, hashes: dict[str, str], source: str
) -> dict[str, Any]:
    """The row of the table `runs` for a row of the file."""
    given = {"status": "ok", "order": AS_STORED}
    given |= {key: value for key, value in row.items() if value is not None}
    for needed in NEEDED:
        if needed not in given and (needed != "mean_loss" or given["status"] == "ok"):
            raise WrongInput(f"{where}: {needed} is missing; fill it in")
    for key, value in given.items():
        if key != "error" and isinstance(value, str) and not value.isprintable():
            raise WrongInput(f"{where}: {key} is {value!r}; leave its control characters out")
    if given["status"] not in STATUSES:
        raise WrongInput(
            f"{where}: status is {given['status']!r}; it is one of {', '.join(STATUSES)}"
        )
    fixed = {key: value for key, value in given.items() if key in COLUMNS and key not in PARAMETERS}
    params = {key: value for key, value in given.items() if key not in fixed}
    for key, value in params.items():
        if not isinstance(value, bool | int | float | str):
            raise WrongInput(f"{where}: parameter {key} is {value!r}; give a number or a text")
    if fixed["learner"] in LEARNERS:
        try:
            _, params, _ = configuration_of(fixed["learner"], params, 0)
        except WrongInput as error:
            raise WrongInput(f"{where}: {error}") from None
    made = {
        **{key: params.get(key) for key in PARAMETERS if key in COLUMNS},
        **fixed,
        "params": canonical_json(params),
        "sweep": name,
        "dataset_hash": hashes.get(fixed["dataset"]),
        "numbers": IMPORTED,
        "version": f"imported from {source}",
    }
    return {**made, "run_id": text_hash(f"{IMPORTED} {canonical_json(made)}")}
