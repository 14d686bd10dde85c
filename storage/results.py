"""Reading of the result tables `runs`, `curves`, `windows` and `predictions`, and their faults."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.engine.result_file import read_result, result_files_folder
from koco_stream.errors import WrongInput
from koco_stream.io.files import text_hash
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.io.table_file import check, groups_of, named, read_table
from koco_stream.runs.row_checks import OPEN, SETTLED, check_rows
from koco_stream.runs.schemas import CURVES, PREDICTIONS, RUNS, WINDOWS, Columns, schema

ATTEMPTS = 20
NAMES = ("run_id", "status", "finished_at")  # what says which of a run's rows counts
FINISHED = (*SETTLED, "failed")  # the others may go on by themselves
KEYS = tuple(column for column in RUNS if column.name in NAMES)
OF_COHORTS = {"windows": WINDOWS, "predictions": PREDICTIONS}  # they have a file for each cohort
# the column of `runs` that says whether a run has rows in such a table
ASKED = {"windows": "window", "predictions": "kept_predictions"}
# of the tables whose rows are looked at, their columns
TABLES: dict[str, Columns] = {
    "curves": CURVES,
    "runs": RUNS,
    **dict.fromkeys(("windows", "predictions", "halving"), ()),
}
T = TypeVar("T")
# runs, with the columns `KEYS` at least, and a function that reads their curves
WithCurves = tuple[pa.Table, Callable[[], pa.Table]]


def table_files(store: AnyPath, table: str) -> list[StorePath]:
    return (store_path(store) / "results" / table).files(".parquet")


def result_files(store: AnyPath) -> list[StorePath]:
    return result_files_folder(store).files(".parquet")


def finished_runs(store: AnyPath, but_failed: bool = False) -> set[str]:
    """Ids of all runs in the store but those that were stopped."""
    if not but_failed:
        return ids_of(with_status(read_runs(store, ()), FINISHED))
    runs = with_status(read_runs(store, LACKING), SETTLED)
    return ids_of(runs).difference(*(lacking(store, table, runs) for table in OF_COHORTS))


def seconds_of_stopped(store: AnyPath) -> dict[str, float]:
    runs = with_status(read_runs(store, ["seconds"]), ["stopped"]).select(["run_id", "seconds"])
    return dict(zip(*runs.to_pydict().values(), strict=True))


def read_runs(store: AnyPath, names: Sequence[str] | None = None) -> pa.Table:
    """One row per run, with the columns `NAMES` and `names`, or all."""
    columns = tuple(c for c in RUNS if names is None or c.name in {*NAMES, *names})
    tables = _read_each(
        store, lambda _, table: conformed(columns, table), [column.name for column in columns]
    )
    # empty_table would make arrays, which imports pandas and costs a third of a second
    none = pa.Table.from_batches([], schema(columns))
    return first_of_each(pa.concat_tables([none, *tables]))


def read_curves(store: AnyPath, run_ids: Sequence[str] | None = None) -> pa.Table:
    """The curves of these runs, which take little memory even from large tables, or all."""
    only = None if run_ids is None else set(run_ids)

    def curves(file: StorePath, table: pa.Table) -> tuple[set[str], WithCurves]:
        conformed(KEYS, table)  # raises if it is no table of runs
        if only is not None:
            table = table.filter(among(table, only))
        due = ids_of(table.filter(pc.greater(table.column("rounds"), 0)))
        if "curve" in table.column_names:
            return due, (table, partial(curves_of, table))
        return due, with_curves(store, file, table, only)

    each = _read_each(store, curves, [*NAMES, "rounds"])
    found = pa.concat_tables(curves_once([of_file for _, of_file in each]))
    _check_all_there(store, "curves", set().union(*(due for due, _ in each)) - ids_of(found))
    return found


def _read_of_cohorts(store: AnyPath, run_ids: Sequence[str], table: str) -> pa.Table:
    """The rows of these runs in a table that has a file for each cohort, by run and round."""
    columns = OF_COHORTS[table]
    left = set(run_ids)
    found = [pa.Table.from_batches([], schema(columns))]
    for file in table_files(store, table):
        found.append(rows_in(file, columns, left))
        left -= ids_of(found[-1])
    if left:
        _check_all_there(store, table, left & lacking(store, table, read_runs(store, LACKING)))
    return pa.concat_tables(found).sort_by([(one.name, "ascending") for one in columns[:2]])


read_windows = partial(_read_of_cohorts, table="windows")
read_predictions = partial(_read_of_cohorts, table="predictions")


LACKING = ("rounds", *ASKED.values())  # columns that `lacking` needs


def lacking(store: AnyPath, table: str, runs: pa.Table) -> set[str]:
    asked = pc.and_(pc.greater(runs.column(ASKED[table]), 0), pc.greater(runs.column("rounds"), 0))
    due = ids_of(with_status(runs.filter(asked), SETTLED))
    for file in table_files(store, table) if due else ():
        due -= {group.first for group in groups_of(file)}
    return due


def _check_all_there(store: AnyPath, table: str, missing: set[str]) -> None:
    if missing:
        raise WrongInput(
            f"{store_path(store)}/results/{table} lacks the rows of {len(missing):,} run(s),"
            f" such as {min(missing)}; koco store verify says what to do"
        )


def file_name(runs: pa.Table) -> str:
    """A hash of the run_ids, and of which runs may be computed again."""
    ids = pa.concat_tables([runs, with_status(runs, OPEN)]).column("run_id").to_pylist()
    return f"{text_hash(''.join(ids))}.parquet"


def _read_each(
    store: AnyPath, read: Callable[[StorePath, pa.Table], T], columns: Sequence[str]
) -> list[T]:
    """Apply `read` to every runs file, with these columns, and then to every result file.

    Result files are listed first, because another process may be collecting. If a file has
    disappeared, everything is read again.
    """

    def found() -> list[T]:
        uncollected = result_files(store)
        collected = []
        for file in table_files(store, "runs"):
            with named(file):
                collected.append(read(file, read_table(file, columns)))
        tables = [(file, read_result(file)) for file in uncollected]
        return collected + [read(file, table) for file, table in tables]

    return repeated(found)


def repeated(work: Callable[[], T]) -> T:
    """Call `work`, and again if another process has removed a file meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with suppress(FileNotFoundError):
            return work()
    return work()


def result_problems(store: AnyPath) -> list[str]:
    """A line for each problem of the result tables, and of those of nightly runs."""
    root = store_path(store)
    problems = []
    curves = {path.name for path in table_files(root, "curves")}
    tables = [file for name in TABLES for file in table_files(root, name)]
    others = [file for name in ("history", "accepted") for file in (root / name).files(".parquet")]
    for path in (*result_files(root), *tables, *others):
        folder = str(path).split("/")[-2]
        try:
            check(path)
            if folder == "parts":
                read_result(path)
            elif columns := TABLES.get(folder):
                table = rows_in(path, columns)
        except FileNotFoundError:  # another process has collected the file
            continue
        except WrongInput as error:
            problems.append(str(error))
            continue
        again = "remove it, and the sweeps will compute its runs again"
        if folder == "runs" and path.name not in curves:
            problems.append(f"{path}: the curves of its runs are missing; {again}")
        elif folder == "runs" and file_name(table) != path.name:
            problems.append(f"{path} does not hold the runs of its name; {again}")
    if not problems:
        runs = read_runs(root, LACKING)
        problems += [
            f"{root}/results/{table} lacks the rows of {n:,} run(s); koco sweep --retry-failed will"
            " compute them again"
            for table in OF_COHORTS
            if (n := len(lacking(root, table, runs)))
        ]
    for name in (root / "nights").names():
        problems += result_problems(root / "nights" / name)
    return problems


# Functions that collecting uses too.


def rows_in(file: StorePath, columns: Columns, run_ids: Iterable[str] | None = None) -> pa.Table:
    with named(file):
        return conformed(columns, read_table(file, [column.name for column in columns], run_ids))


def conformed(columns: Columns, table: pa.Table) -> pa.Table:
    table = table.select([column.name for column in columns])
    made = []
    check_rows(table)
    for column in columns:
        try:
            made.append(table.column(column.name).cast(column.type))
        except (pa.ArrowException, ValueError) as error:
            raise pa.ArrowInvalid(f"column {column.name}: {error}") from error
    return pa.Table.from_arrays(made, schema=schema(columns))


def ids_of(table: pa.Table) -> set[str]:
    return set(pc.unique(table.column("run_id")).to_pylist())


def with_status(runs: pa.Table, statuses: Sequence[str]) -> pa.Table:
    return runs.filter(pc.is_in(runs.column("status"), pa.array(statuses, pa.string())))


def among(table: pa.Table, run_ids: Set[str]) -> pa.ChunkedArray:
    return pc.is_in(table.column("run_id"), pa.array(sorted(run_ids), pa.string()))


def without(table: pa.Table, run_ids: Set[str]) -> pa.Table:
    mine = ids_of(table) & run_ids  # few, where `run_ids` may be all of a store
    return table.filter(pc.invert(among(table, mine))) if mine else table


def first_of_each(table: pa.Table) -> pa.Table:
    """Of a run, the first row that is settled, or else the latest."""
    if pc.count_distinct(table.column("run_id")).as_py() == table.num_rows:
        return table
    ranks = ranks_of([table])
    rows = sorted(range(len(ranks)), key=lambda row: (ranks[row][1], -row))
    chosen = {ranks[row][0]: row for row in rows}  # the last one is the one that stays
    return table.take(sorted(chosen.values()))


def ranks_of(tables: Iterable[pa.Table]) -> list[tuple[str, float]]:
    """The run_id of each row, and its rank; of a run's rows, the one of the highest counts."""
    found = list[tuple[str, float]]()
    for table in tables:
        times = table.column("finished_at").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        ranks = pc.if_else(
            pc.is_in(table.column("status"), pa.array(SETTLED)), math.inf, times.fill_null(0)
        )
        found += zip(table.column("run_id").to_pylist(), ranks.to_pylist(), strict=True)
    return found


def with_curves(
    store: AnyPath, file: StorePath, runs: pa.Table, only: Set[str] | None = None
) -> WithCurves:
    """Runs of a runs file, and a function that reads their curves, or `only` these.

    Both are empty if another process replaced the curves file; the runs are then in its file too.
    Raises `FileNotFoundError` if the runs file has disappeared.
    """
    none = schema(CURVES).empty_table
    if only is not None and not runs.num_rows:
        return runs, none
    path = store_path(store) / "results" / "curves" / file.name
    try:
        curves = rows_in(path, CURVES, only)
    except FileNotFoundError:
        if not file.is_file():
            raise
        return runs.slice(0, 0), none
    return runs, lambda: curves


def curves_once(tables: list[WithCurves]) -> Iterator[pa.Table]:
    """Each run's curve belongs to the row that `first_of_each` selects."""
    yield schema(CURVES).empty_table()
    keys = [
        conformed(KEYS, runs).append_column("table", pa.repeat(number, runs.num_rows))
        for number, (runs, _) in enumerate(tables)
    ]
    chosen = first_of_each(pa.concat_tables(keys)) if keys else pa.table({})
    for number, (_, curves) in enumerate(tables):
        ids = ids_of(chosen.filter(pc.equal(chosen.column("table"), number)))
        if ids:
            table = curves()
            mask = among(table, ids)
            yield table if pc.all(mask).as_py() else table.filter(mask)


def curves_of(results: pa.Table) -> pa.Table:
    nested = results.column("curve").combine_chunks()
    which = pc.list_parent_indices(nested)
    flat = pa.Table.from_struct_array(pc.list_flatten(nested))
    flat = flat.add_column(0, "run_id", results.column("run_id").combine_chunks().take(which))
    return conformed(CURVES, flat)
