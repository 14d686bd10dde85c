"""What the page asks of a store's runs, and the answers, as what JSON can have."""

import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from flows.exploring.best import KEYS, best_on_streams
from flows.exploring.chosen import COLUMNS, LISTS, Chosen, column
from flows.exploring.curves import curves
from flows.exploring.summary import dataset_rows, sweep_rows
from koco_stream.errors import WrongInput
from koco_stream.io.files import text_hash
from koco_stream.io.paths import AnyPath, store_path
from koco_stream.learners import LEARNERS
from koco_stream.metrics import METRICS
from koco_stream.streams.manifest import Manifest, load_manifest
from storage.following import Followed, Snapshot
from storage.notes import read_note
from storage.results import repeated

MOST_LINES = 2000  # in parallel coordinates
MOST_ROWS = 500  # of the table, in one answer
MOST_CURVES = 20
MOST_VALUES = 200  # of a list to pick from
PARAMETERS = {one.name for learner in LEARNERS.values() for one in learner.parameters}
MEASURES = ("error_rate", "mean_loss", *METRICS)
RESULTS = (*MEASURES, "regret", "dictionary_size", "seconds")
AXES = 7  # shown unless others are asked for
Answer = dict[str, Any]


class Shown(NamedTuple):
    """What answers are made from: the runs, which sweeps they belong to, and a word for both.

    Both tables have the keys of `KEYS` too, which are no columns that can be asked for.
    """

    snapshot: Snapshot
    runs: pa.Table
    members: pa.Table
    stamp: str


class Explorer:
    """Answers questions on the runs of a store, as they were when `refresh` was last called.

    Threads may ask while another one refreshes.
    """

    def __init__(self, store: AnyPath) -> None:
        self.store = store_path(store)
        self._followed = Followed(self.store)
        self._database = duckdb.connect()
        # What is asked is over tables in memory: no file or address can be named.
        self._database.execute("SET enable_external_access = false")
        self._database.execute("SET lock_configuration = true")
        self._manifests = dict[tuple[str, str], Manifest | None]()
        self.refresh()

    def refresh(self) -> None:
        """Read what is new in the store.

        Raises `WrongInput` for a damaged table, and for the damaged entry of a sweep.
        """
        snapshot = self._followed.snapshot()
        times = snapshot.runs.schema.get_field_index("finished_at")
        finished = snapshot.runs.column("finished_at").cast(pa.timestamp("us"))
        runs, members = self._with_keys(
            snapshot.runs.set_column(times, "finished_at", finished), self._members(snapshot.runs)
        )
        self._shown = Shown(snapshot, runs, members, text_hash(repr(snapshot.state))[:16])

    def _members(self, runs: pa.Table) -> pa.Table:
        """Which runs each sweep asked for; of a sweep without a note, those that it computed."""
        noted: dict[str, list[str]] = {}
        for note in (self.store / "sweeps").files(".json"):
            with suppress(FileNotFoundError):
                noted[note.name.removesuffix(".json")] = read_note(note)["run_ids"]
        tables = [
            pa.table({"sweep": pa.repeat(name, len(ids)), "run_id": pa.array(ids, pa.string())})
            for name, ids in noted.items()
        ]
        there = pc.is_in(runs.column("sweep"), pa.array(list(noted), pa.string()))
        return pa.concat_tables(
            [*tables, runs.select(["sweep", "run_id"]).filter(pc.invert(there))]
        )

    def _with_keys(self, runs: pa.Table, members: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Both tables with the keys of streams and configurations, and of runs."""
        with self._database.cursor() as cursor:
            cursor.register("runs", runs)
            cursor.register("members", members)
            keys = cursor.sql(KEYS).to_arrow_table()
            mine = cursor.sql("SELECT hash(run_id) AS run_key FROM members").to_arrow_table()
        for name in keys.column_names:
            runs = runs.append_column(name, keys.column(name))
        return runs, members.append_column("run_key", mine.column("run_key"))

    def stamp(self) -> Answer:
        """A word that changes whenever answers may."""
        return {"stamp": self._shown.stamp}

    def overview(self) -> Answer:
        """The store, how many runs it has, its columns, and the values to pick from."""
        shown = self._shown
        there = [name for name in COLUMNS if shown.runs.column(name).null_count < len(shown.runs)]
        sql = {
            name: f"SELECT {column(name)}, count(*) FROM runs GROUP BY ALL ORDER BY ALL"
            for name in LISTS
        }
        sql["sweep"] = "SELECT sweep, count(*) FROM members SEMI JOIN runs USING (run_id)"
        sql["sweep"] += " GROUP BY ALL ORDER BY ALL"
        return {
            "store": str(self.store),
            "runs": shown.runs.num_rows,
            "columns": [
                {
                    "name": name,
                    "number": _is_number(name),
                    "unit": COLUMNS[name].unit,
                    "meaning": COLUMNS[name].meaning,
                }
                for name in there
            ],
            "lists": {
                name: self._ask(shown, f"{words} LIMIT {MOST_VALUES}")
                for name, words in sql.items()
            },
            **self.stamp(),
        }

    def summary(self, chosen: Chosen) -> Answer:
        """Which learner is best in each sweep and on each dataset, how sure that is, its cost.

        `seconds` is the time of all chosen runs.
        """
        shown, (holds, values) = self._shown, chosen.sql()
        sweeps = set(chosen.picked[LISTS.index("sweep")])

        def ask(sql: str, given: Sequence[Any]) -> list[Answer]:
            return self._rows(shown, sql, given)

        each = best_on_streams(ask, holds, values, each_sweep=True)
        of_sweep = f"SELECT sum(seconds) AS seconds FROM runs WHERE {holds}"
        [total] = ask(of_sweep, values)
        took = ask(
            "SELECT members.sweep, sum(seconds) AS seconds FROM members JOIN"
            f" (SELECT run_key, seconds FROM runs WHERE {holds}) USING (run_key) GROUP BY ALL",
            values,
        )
        return {
            "seconds": total["seconds"],
            "sweeps": sweep_rows(
                [one for one in each if not sweeps or one.part in sweeps],
                {row["sweep"]: row["seconds"] or 0.0 for row in took},
            ),
            "datasets": dataset_rows(
                best_on_streams(ask, holds, values, each_sweep=False), self._manifest
            ),
        }

    def _manifest(self, name: str, dataset_hash: str) -> Manifest | None:
        """The manifest of a dataset, if the store has it."""
        key = name, dataset_hash
        if key not in self._manifests:
            found = None
            with suppress(WrongInput, OSError):
                found = load_manifest(self.store, name)
            self._manifests[key] = found if found and found.dataset_hash == dataset_hash else None
        return self._manifests[key]

    def runs(
        self,
        chosen: Chosen,
        columns: Sequence[str],
        sort: str = "run_id",
        descending: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> Answer:
        """Some columns of the chosen runs, sorted, from a position on; missing values come last.

        By a measure of how well they predicted, runs that failed or diverged come after the others,
        because theirs is that of a few rounds.

        Raises `WrongInput` for an unknown column.
        """
        shown, (holds, values) = self._shown, chosen.sql()
        names = ", ".join(column(name) for name in ("run_id", *columns))
        way = "DESC" if descending else "ASC"
        well = "status != 'ok', " if sort in MEASURES else ""
        [[matched]] = self._ask(shown, f"SELECT count(*) FROM runs WHERE {holds}", values)
        rows = self._ask(
            shown,
            f"SELECT {names} FROM runs WHERE {holds}"
            f" ORDER BY {well}{column(sort)} {way} NULLS LAST, run_id LIMIT ? OFFSET ?",
            [*values, min(limit, MOST_ROWS), offset],
        )
        return {"matched": matched, "rows": rows}

    def parallel(self, chosen: Chosen, axes: Sequence[str] = (), colour: str = "learner") -> Answer:
        """The chosen runs in some columns, for parallel coordinates.

        Of more than `MOST_LINES` runs it has those whose run_id is first, which are always the same
        and, as run_id is a hash, no particular ones. Without `axes` it has the parameters that
        vary, and results.
        """
        shown, (holds, values) = self._shown, chosen.sql()
        varying = self._varying(shown, holds, values)
        axes = axes or _usual(varying)
        names = ", ".join(column(name) for name in ("run_id", colour, *axes))
        [[matched]] = self._ask(shown, f"SELECT count(*) FROM runs WHERE {holds}", values)
        lines = self._ask(
            shown,
            f"SELECT {names} FROM runs WHERE {holds} ORDER BY run_id LIMIT {MOST_LINES}",
            values,
        )
        return {"matched": matched, "axes": list(axes), "varying": varying, "lines": lines}

    def curves(self, run_ids: Sequence[str]) -> Answer:
        """The curves of a few runs, and what tells them apart. Raises `WrongInput` for too many."""
        if len(run_ids) > MOST_CURVES:
            raise WrongInput(f"{len(run_ids)} curves are more than {MOST_CURVES}; choose fewer")

        def found() -> Answer:
            try:
                return curves(self.store, self._shown.snapshot, run_ids)
            except FileNotFoundError:  # collected meanwhile
                self.refresh()
                raise

        names = ("run_id", "dataset", "order_seed", "learner", "params", "learner_seed")
        sql = f"SELECT {', '.join(names)} FROM runs WHERE run_id IN (SELECT unnest(?))"
        points = repeated(found)
        return {
            "runs": [
                {
                    **dict(zip(names, row, strict=True)),
                    "points": [
                        {name: _plain(value) for name, value in point.items() if name != "run_id"}
                        for point in points.get(row[0], [])
                    ],
                }
                for row in self._ask(self._shown, sql, [list(run_ids)])
            ]
        }

    def _varying(self, shown: Shown, holds: str, values: Sequence[Any]) -> list[str]:
        """The parameters and results that differ among some runs, in the order of the table."""
        names = [name for name in COLUMNS if name in PARAMETERS or name in RESULTS]
        differ = ", ".join(f"min({column(n)}) IS DISTINCT FROM max({column(n)})" for n in names)
        [row] = self._ask(shown, f"SELECT {differ} FROM runs WHERE {holds}", values)
        return [name for name, differs in zip(names, row, strict=True) if differs]

    def _ask(self, shown: Shown, sql: str, values: Sequence[Any] = ()) -> list[list[Any]]:
        """The rows of a query on the tables `runs` and `members`, as what JSON can have."""
        return [list(map(_plain, row.values())) for row in self._rows(shown, sql, values)]

    def _rows(self, shown: Shown, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows of a query as they are, by the names of their columns."""
        with self._database.cursor() as cursor:
            cursor.register("runs", shown.runs)
            cursor.register("members", shown.members)
            cursor.execute(sql, list(values))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _usual(varying: Sequence[str]) -> list[str]:
    """The axes that are shown unless others are asked for: the last are results."""
    results = [name for name in ("seconds", "mean_loss", "error_rate") if name in varying]
    return [name for name in varying if name in PARAMETERS][: AXES - len(results)] + results


def _is_number(name: str) -> bool:
    kind = COLUMNS[name].type
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _plain(value: Any) -> Any:
    """A value as JSON can have it: numbers that are not finite, and times, are texts."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
