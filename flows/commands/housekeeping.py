"""The commands `koco list`, `koco compact` and `koco remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from flows.commands.shared import JSON, STORE, example, show
from koco_stream.io.files import json_text

if TYPE_CHECKING:
    from flows.housekeeping.removal import Removal

DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Say what would be removed, and remove nothing."
)


@click.command("list")
@STORE
@JSON
@example("koco list --store store")
def list_sweeps(store: str, as_json: bool) -> None:
    """List the sweeps of a store: runs, bytes, and when the last run ended.

    The bytes are an estimate for the rows of the runs in the result tables, and for the report. A
    run that several sweeps share counts for each of them. Nightly runs are listed too.
    """
    from flows.housekeeping.listing import COLUMNS, bytes_text, sweep_rows
    from storage.store import existing_store

    rows = list(sweep_rows(existing_store(store)))
    if not as_json:
        for row in rows:
            ended = row["ended"]
            row["bytes"] = bytes_text(row["bytes"])
            row["ended"] = ended and f"{ended:%Y-%m-%d %H:%M} UTC"
    show(rows, COLUMNS, as_json)


@click.command()
@STORE
@JSON
@example("koco compact")
def compact(store: str, as_json: bool) -> None:
    """Merge the many files of each result table into one.

    Nothing is lost if this is interrupted. koco results works in the meantime.
    """
    from storage.collecting import compact as compact_results
    from storage.store import existing_store

    before, after = compact_results(existing_store(store))
    click.echo(
        json_text({"before": before, "after": after})
        if as_json
        else f"files of the table runs: {before} before, {after} now"
    )


@click.group()
@example("koco remove sweep ill-conditioned --dry-run")
def remove() -> None:
    """Remove a dataset or a sweep.

    Nothing is removed while a sweep or a nightly run is under way on the store.
    """


@remove.command("dataset")
@click.argument("name")
@STORE
@click.option(
    "--force", is_flag=True, help="Remove the dataset even if sweeps use it; results are kept."
)
@DRY_RUN
@JSON
@example("koco remove dataset cpusmall --dry-run")
def remove_dataset(name: str, store: str, force: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the prepared dataset NAME, and its copies in the cache folder.

    A dataset that a sweep uses is removed only with --force. The results of the sweep are kept, and
    can be read and reported as before. To repeat its runs, prepare the dataset again; from the
    same source it gets the same identity.
    """
    from flows.housekeeping.removal import dataset_removal

    _remove(dataset_removal(store, name, force), dry_run, as_json)


@remove.command("sweep")
@click.argument("name")
@STORE
@DRY_RUN
@JSON
@example("koco remove sweep ill-conditioned --dry-run")
def remove_sweep(name: str, store: str, dry_run: bool, as_json: bool) -> None:
    """Remove the sweep NAME: its entry, its report, and its runs.

    Runs that another sweep shares are kept. If this is interrupted, the same command completes it.
    The bytes that become free are an estimate.
    """
    from flows.housekeeping.removal import sweep_removal

    _remove(sweep_removal(store, name), dry_run, as_json)


def _remove(removal: Removal, dry_run: bool, as_json: bool) -> None:
    """Remove something, unless it is a dry run, and say what this frees."""
    from flows.housekeeping.listing import bytes_text

    if not dry_run:
        removal.do()
    told = {
        "kind": removal.kind,
        "name": removal.name,
        "files": removal.files,
        "bytes": removal.n_bytes,
        "runs": removal.runs,
        "runs_kept": removal.runs_kept,
        "removed": not dry_run,
    }
    if as_json:
        click.echo(json_text(told))
        return
    runs = f", {removal.runs:,} runs" if removal.kind == "sweep" else ""
    kept = f"; {removal.runs_kept:,} runs of other sweeps stay" if removal.runs_kept else ""
    click.echo(
        f"{removal.kind} {removal.name}: {'would free' if dry_run else 'freed'}"
        f" {bytes_text(removal.n_bytes)} in {removal.files:,} file{'s' * (removal.files != 1)}"
        f"{runs}{kept}"
    )
