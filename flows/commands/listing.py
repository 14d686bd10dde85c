"""The command list: learners, datasets, and sweeps with their state."""

from collections.abc import Callable
from typing import Any

import click
from rich.filesize import decimal

from flows.commands.options import JSON, STORE, show
from koco_stream.io.files import json_text

# what koco list lists, and the columns that a terminal shows
LISTED = {
    "learners": ("learner", "from", "parameters"),
    "datasets": ("name", "task", "n_rows", "n_features", "prepared", "papers"),
    "sweeps": (
        *("sweep", "kind", "state", "runs", "done", "diverged", "failed", "rounds_per_second"),
        *("seconds_left", "bytes", "ended", "dashboard"),
    ),
}


@click.command("list")
@click.argument("what", type=click.Choice([*LISTED]), required=False)
@STORE
@JSON
def list_all(what: str | None, store: str, as_json: bool) -> None:
    """List learners, datasets, and the sweeps of a store with their state; or one of the three.

    The learners are those of the library and those that installed packages offer. The datasets are
    those of the store and of the catalogue, and those that are generated on demand; for one that is
    not prepared, n_rows and n_features come from the catalogue. --json also shows the files, their
    addresses and checksums, and the options they are prepared with.

    The state of a sweep is running, done, stopped (by Ctrl-C), ended by an error, or killed. A
    sweep that was stopped, ended by an error or killed continues with the same koco sweep command.
    The bytes are an estimate for the rows of its runs, and for its report; a run that several
    sweeps share counts for each of them. Nightly runs are listed too.

    \b
    Example:
      koco list sweeps --store store
    """
    from flows.housekeeping import learner_rows, sweep_rows
    from storage.store import existing_store

    if what == "sweeps":
        existing_store(store)
    readers: dict[str, Callable[[str], Any]] = {"learners": learner_rows, "sweeps": sweep_rows}
    if what in ("datasets", None):
        from flows.prepare.preparation import dataset_rows

        readers["datasets"] = dataset_rows
    found = {kind: list(readers[kind](store)) for kind in ([what] if what else LISTED)}
    if as_json:
        click.echo(json_text(found[what] if what else found))
        return
    for row in found.get("sweeps", ()):
        row["bytes"] = decimal(row["bytes"])
        row["ended"] = row["ended"] and f"{row['ended']:%Y-%m-%d %H:%M} UTC"
    for kind, rows in found.items():
        if not what:
            click.echo(f"\n{kind}:\n")
        show(rows, False, LISTED[kind])
