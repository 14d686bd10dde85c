"""Records: what a sweep came to in one file, from which any run can be computed again.

A record is a table file with a row for each run that ended by itself: all columns of `runs`, and
its curve and windows. Its footer has the sweep file, the manifests, the versions and the processor,
and which columns are measured: a run does not determine them.
"""

import json
from math import comb
from random import Random
from typing import Any

from flows.runtime.processes import say
from flows.sweeping.checks import run_of
from flows.sweeping.file import read_sweep
from flows.tables.differences import differences
from flows.views.views import NAMES, Views, quoted
from koco_stream.engine.cohort import run_alone
from koco_stream.errors import refuse_first
from koco_stream.io.files import json_text
from koco_stream.io.fingerprint import processor, versions
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import read_table, write_tables
from koco_stream.runs.schemas import RUNS
from koco_stream.streams.manifest import load_manifest, prepared_names
from storage.generated.generators import prepare_synthetic
from storage.store import existing_store

ABOUT = b"koco_record"  # in the footer
MEASURED = {column.name for column in RUNS if column.measured}
NESTED = """
SELECT r.*, coalesce(curve, []) AS curve, coalesce(windows, []) AS windows
FROM ({}) r
LEFT JOIN (
    SELECT run_id, list(struct_pack(t, cumulative_loss, mistakes, dictionary_size) ORDER BY t)
        AS curve
    FROM curves GROUP BY run_id
) USING (run_id)
LEFT JOIN (
    SELECT run_id, list(w ORDER BY first) AS windows
    FROM (
        SELECT * EXCLUDE (stream, dataset, learner, params, order_seed, learner_seed) FROM windows
    ) w GROUP BY run_id
) USING (run_id)"""


def write_record(store: str, name: str, file: str, nested: bool = True) -> int:
    """Write the record of a sweep; returns its number of runs."""
    views = Views(existing_store(store), [name])
    query = f"SELECT {quoted(NAMES)} FROM runs WHERE status IN ('ok', 'diverged')"
    rows = views.table(f"FROM ({NESTED.format(query) if nested else query}) ORDER BY run_id")
    about = {
        "sweep": name,
        "file": views.notes[name]["file"],
        "manifests": [
            json.loads(load_manifest(store, dataset).to_json()) | {"shards": None}
            for dataset in views.datasets.values()
        ],
        "versions": versions(),
        "processor": processor(),
        "measured": sorted(MEASURED),
    }
    write_tables([rows], store_path(file), {ABOUT: json_text(about)})
    return rows.num_rows


def check_record(file: str, store: str, sample: int, seed: int, cell: str | None) -> dict[str, Any]:
    """Compute `cell` again, or a sample of the runs whose datasets are generated or in `store`."""
    table = read_table(store_path(file))
    about = json.loads((table.schema.metadata or {}).get(ABOUT, "null"))
    refuse_first([(not about, f"{file} is no record; koco record writes one")])
    rows = {row["run_id"]: row for row in table.sort_by("run_id").to_pylist()}
    sweep = read_sweep(file, about["file"])
    made = {use.name: use for use in sweep.datasets if use.given is not None}
    there = {name: load_manifest(store, name) for name in prepared_names(store)}
    here = [
        run_id
        for run_id, row in rows.items()
        if row["dataset"] in made
        or (row["dataset"] in there and there[row["dataset"]].dataset_hash == row["dataset_hash"])
    ]
    lacking = (
        f"{len(rows) - len(here):,} of {len(rows):,} runs need datasets that {store} does not have"
        " with the same rows (koco prepare makes them): "
        + ", ".join(sorted({rows[run_id]["dataset"] for run_id in rows.keys() - here}))
    )
    refuse_first(
        [
            (cell not in (None, *rows), f"{file} has no run {cell}"),
            (not here or cell not in (None, *here), lacking),
        ]
    )
    chosen = [cell] if cell else Random(seed).sample(here, min(sample, len(here)))
    checked = {}
    for number, row in enumerate(map(rows.__getitem__, chosen), 1):
        name = row["dataset"]
        manifest = (
            prepare_synthetic(store, made[name].table.name, made[name].given or {})
            if name in made
            else there[name]
        )
        now = run_alone(store, run_of(row, sweep, manifest))
        exact = (
            now["numbers"] == "own"
            and now["version"] == row["version"]
            and now["host"].partition(" (")[2] == row["host"].partition(" (")[2]
        )
        found = list(differences(row, now, [one for one in row if one not in MEASURED], exact))
        checked[row["run_id"]] = exact, found
        say(
            f"  {number} of {len(chosen)}: {row['learner']} on {name}, {row['run_id']}:"
            f" {len(found) or 'no'} differences"
        )
    to_the_bit = sum(exact for exact, _ in checked.values())
    least = least_found(len(chosen), len(here))
    return {
        "finding": f"{len(chosen):,} runs checked, {to_the_bit:,} of them to the bit"
        + f"; if {least:,} of the {len(here):,} runs ({least / len(here):.1%}) were false, one of"
        f" them would be found with 95 % (--seed {seed})"
        * (not cell)
        + f"; {lacking}" * (len(here) < len(rows)),
        "runs": len(rows),
        "runs_here": len(here),
        "checked": len(chosen),
        "to_the_bit": to_the_bit,
        "seed": None if cell else seed,
        "found_from": None if cell else least,
        "differences": [
            {"run_id": run_id, "column": column, "recorded": kept, "computed": computed}
            for run_id, (_, found) in checked.items()
            for column, kept, computed in found
        ],
    }


def least_found(checked: int, among: int) -> int:
    """The least number of false runs of which so many, drawn among all, have one with 95 %."""
    return next(
        false
        for false in range(1, among + 1)
        if 20 * comb(among - false, checked) <= comb(among, checked)
    )
