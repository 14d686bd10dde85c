"""koco results, report and compact: what came out of sweeps."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from flows.commands.shared import JSON, STORE, example, show


@click.command()
@STORE
@click.option("--sweep", "name", help="Only the runs of this sweep.")
@click.option("--runs", "single", is_flag=True, help="List single runs.")
@JSON
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--arrow", "arrow", type=click.Path(path_type=Path), help="Write an Arrow file.")
@example("koco results --sweep ill-conditioned | head")
def results(store: str, name: str | None, single: bool, as_json: bool, as_csv: bool, arrow: Path | None) -> None:
    """Show results: configurations averaged over orders and seeds, best first; or single runs."""
    import pyarrow as pa

    from flows.tables import SUMMARY, runs_of, summary_of
    from koco_stream.records import RUNS
    from storage.store import existing_store

    existing_store(store)
    table = runs_of(store, name)
    if not single:
        rows = summary_of(table)
        table = pa.Table.from_pylist(rows) if rows else pa.table({})
        columns: tuple[str, ...] = SUMMARY
    else:
        columns = tuple(c.name for c in RUNS)
        table = table.select(columns)
    if arrow:
        with pa.OSFile(str(arrow), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return
    if as_csv:
        import pyarrow.csv

        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    short = ("run_id", "dataset", "learner", "params", "status", "mean_loss", "error_rate", "seconds")
    show(table.to_pylist(), columns if as_json or not single else short, as_json)


@click.command()
@click.argument("name")
@STORE
@example("koco report ill-conditioned")
def report(name: str, store: str) -> None:
    """Write the HTML report of the sweep NAME again, and print its path."""
    from flows.report import write_report
    from storage.store import existing_store

    click.echo(str(write_report(existing_store(store), name)))


@click.command()
@STORE
@JSON
@example("koco compact")
def compact(store: str, as_json: bool) -> None:
    """Make one file of each table of results, of the many that sweeps have left.

    Nothing is lost wherever this is stopped, and koco results may be used meanwhile.
    """
    from storage.results import compact as compact_results
    from storage.store import existing_store

    before, after = compact_results(existing_store(store))
    click.echo(json.dumps({"before": before, "after": after}) if as_json else f"{before} files of runs before, {after} now")
