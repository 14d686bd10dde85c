"""The results of a store as views of DuckDB, which `views.sql` defines and describes.

Everything that selects or averages runs reads them. Each view may be queried with SQL::

    views = Views(store, ["sweep"])
    views.table("SELECT learner, params, merit FROM best WHERE stream = ?", ["year, shuffled"])
    views.rows("FROM configurations WHERE whole")
    views.table("SELECT c.* FROM curves c WHERE run_id IN (SELECT unnest(run_ids) FROM best)")
"""

import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from flows.scores import deviations, means, of_lists
from flows.tables.sweep_runs import read_decisions, sweep_names, sweep_note
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath
from koco_stream.runs.schemas import CURVES, PREDICTIONS, RUNS, WINDOWS, schema, typed
from storage.results import read_curves, read_predictions, read_runs, read_windows

SETTINGS: dict[str, Any] = {
    "enable_external_access": False,  # what is read, our readers have opened and verified
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "memory_limit": "4GB",
}
OF_ARROW: dict[str, Any] = {"type": "arrow", "null_handling": "special"}  # functions
NAMES = [column.name for column in RUNS]
IN_ORDER = "stream, learner, params, order_seed, learner_seed, run_id"
# what in a query needs a table to be read, where it is not the table's name
NEEDED = {
    "configurations": r"\b(configurations|best)\b",
    "curves": r"\b(curves|halves|first_\w+)\b",
}
EVERY = "SELECT '' AS sweep, run_id, false AS halved FROM stored_runs"
MOST = 20  # values of a column in a message
# columns whose names are words of SQL, outside of quotes
KEYWORDS = re.compile(r"""('[^']*'|"[^"]*")|\b(order|window)\b(?!\s+by\b)""", re.IGNORECASE)


class Views:
    """The views of a store's runs: of all, or of some sweeps, whose runs count once.

    A dataset has the name that the first of the sweeps gives it.
    """

    def __init__(self, store: AnyPath, sweeps: Sequence[str] = ()) -> None:
        self.store = store
        self.notes = {sweep: sweep_note(store, sweep) for sweep in sweeps}
        import duckdb  # it takes a tenth of a second, which a refusal does not pay

        self._there = set[str]()
        self.connection = duckdb.connect(":memory:", config=SETTINGS)
        weakref.finalize(self, self.connection.close)  # or its functions are leaked at the end
        for name, numbers in (("exact_mean", means), ("deviation", deviations)):
            self.connection.create_function(
                name, partial(of_lists, numbers), ["DOUBLE[]"], "DOUBLE", **OF_ARROW
            )
        self.connection.register("stored_runs", read_runs(store))
        names = (note["datasets"].items() for note in reversed(self.notes.values()))
        self.datasets: dict[str, str] = dict(chain.from_iterable(names))  # by hash
        self.connection.register(
            "named", table_of(self.datasets.items(), dataset_hash=str, dataset=str)
        )
        self.connection.register(
            "class_names",
            table_of(self._class_names(), dataset_hash=str, positive_class=float, class_name=str),
        )
        self.choose(sweeps)
        for name, (columns_of, _) in READERS.items():
            self.connection.register(f"stored_{name}", columns_of.empty_table())
        self.connection.execute(Path(__file__).with_name("views.sql").read_text())

    def _class_names(self) -> list[tuple[str, float, str]]:
        if not self.rows("FROM stored_runs WHERE positive_class IS NOT NULL LIMIT 1"):
            return []
        noted = (sweep_note(self.store, sweep) for sweep in sweep_names(self.store))
        names = {
            (of, label): name
            for note in self.notes.values() or noted
            for of, pairs in note.get("classes", {}).items()
            for label, name in pairs
        }
        return [(of, label, name) for (of, label), name in names.items()]

    def choose(self, sweeps: Sequence[str]) -> None:
        halved = {sweep: read_decisions(self.store, sweep).num_rows > 0 for sweep in sweeps}
        self.halved = any(halved.values())
        rows = [(one, of, halved[one]) for one in sweeps for of in self.notes[one]["run_ids"]]
        chosen = table_of(rows, sweep=str, run_id=str, halved=bool)
        self.connection.register("chosen", chosen if sweeps else self.table(EVERY))
        self._there.discard("configurations")  # they are of other runs

    def table(self, query: str, values: Sequence[object] = ()) -> pa.Table:
        """The answer to a query in SQL, whose question marks stand for `values`."""
        self._read(query)
        with _asked(query):
            return self.connection.sql(query, params=list(values) or None).to_arrow_table()

    def rows(self, query: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        return self.table(query, values).to_pylist()

    def column(self, query: str) -> list[Any]:
        """The values of the answer to a query for one column."""
        return self.table(query).column(0).to_pylist()

    def _read(self, query: str) -> None:
        """Read the tables that a query names, and compute `configurations`, once for these runs."""
        for name in {"configurations", *READERS} - self._there:
            if not re.search(NEEDED.get(name, rf"\b{name}\b"), query, re.IGNORECASE):
                continue
            if name == "configurations":
                self.connection.execute(
                    "CREATE OR REPLACE TABLE kept AS FROM averages;"
                    "CREATE OR REPLACE VIEW configurations AS FROM kept"
                )
            else:
                found = READERS[name][1](self.store, self.column("SELECT run_id FROM runs"))
                self.connection.register(f"stored_{name}", found)
            self._there.add(name)

    def select(self, where: Sequence[str]) -> None:
        """Leave only the runs that meet these conditions; refuse one that no run meets."""
        met = self.connection.view("runs")
        for condition in where:
            self._read(condition)  # it may be on what other views have now
            before = met
            words = f"--where {condition!r}"
            quoted = KEYWORDS.sub(lambda m: m[1] or f'"{m[2]}"', condition)
            with _asked(words, """; it is SQL, such as "learner = 'OGD' AND alpha > 1\""""):
                met = before.filter(f"({quoted}\n)")
                found = met.limit(1).fetchall()
            if not found and before.limit(1).fetchall():
                raise WrongInput(f"{words}: no run matches{''.join(_values(condition, before))}")
        if where:
            self.connection.register("met", met.project("run_id").to_arrow_table())
            self.connection.execute(
                "CREATE OR REPLACE VIEW selected AS FROM runs WHERE run_id IN (FROM met)"
            )
        self._there.discard("configurations")  # they are of other runs

    def measure(self, chosen_by: str, score: str) -> None:
        """Choose and compare by other numbers: expressions of columns of `runs` and `halves`."""
        self._read(f"{chosen_by} {score}")
        halves = " LEFT JOIN halves USING (run_id)" if "first_" in chosen_by else ""
        self.connection.execute(
            f"CREATE OR REPLACE VIEW measured AS SELECT *, {chosen_by} AS chosen_by,"
            f" {score} AS score FROM selected{halves}"
        )
        self._there.discard("configurations")  # they are of other runs


def runs_of(views: Views, view: str = "runs") -> pa.Table:
    return views.table(f"SELECT {quoted(NAMES)} FROM {view} ORDER BY {IN_ORDER}").cast(schema(RUNS))


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def table_of(rows: Iterable[Sequence[object]], **columns: type) -> pa.Table:
    lists = [list(values) for values in zip(*rows, strict=True)] or [[] for _ in columns]
    return pa.table(dict(zip(columns, lists, strict=True)), schema=typed(**columns))


def _members(store: AnyPath, _: Sequence[str]) -> pa.Table:
    rows = (
        (sweep, run_id)
        for sweep in sweep_names(store)
        for run_id in sweep_note(store, sweep)["run_ids"]
    )
    return table_of(rows, sweep=str, run_id=str)


# columns of tables that are read when a query names them, and what reads them
READERS: dict[str, tuple[pa.Schema, Callable[..., pa.Table]]] = {
    "members": (typed(sweep=str, run_id=str), _members),
    "curves": (schema(CURVES), read_curves),
    "windows": (schema(WINDOWS), read_windows),
    "predictions": (schema(PREDICTIONS), read_predictions),
}


def _values(condition: str, among: Any) -> Iterator[str]:
    words = set(re.findall(r"\w+", condition))
    for name in filter(words.__contains__, NAMES):
        values = among.project(f'"{name}" AS v').filter("v IS NOT NULL").distinct().order("v")
        texts = [str(value) for (value,) in values.fetchall()]
        more = f" and {len(texts) - MOST:,} more" if len(texts) > MOST else ""
        yield f"; {name} is {', '.join(texts[:MOST]) or 'NULL'}{more}"


@contextmanager
def _asked(asked: str, how: str = "") -> Iterator[None]:
    """Context in which DuckDB answers. Raises `WrongInput`, with what was asked, if it cannot."""
    import duckdb

    try:
        yield
    except (duckdb.OperationalError, duckdb.InternalError):  # of memory, not of what was asked
        raise
    except duckdb.Error as error:
        text = str(error)
        if unknown := re.search(r'Referenced column "(.+?)" not found', text):
            raise WrongInput(
                f"{asked}: there is no column {unknown[1]!r} (a text stands in single quotes, as in"
                f" status = 'ok'; --runs --json shows all columns){nearest(unknown[1], NAMES)}"
            ) from None
        raise WrongInput(f"{asked}: {text.splitlines()[0]}{how}") from None
