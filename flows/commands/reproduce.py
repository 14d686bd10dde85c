"""The command `koco reproduce`."""

import sys
from pathlib import Path

import click

from flows.commands.shared import JSON, STORE, WORKERS, example
from koco_stream.io.files import json_text


@click.command()
@click.argument("target")
@STORE
@click.option(
    "--data",
    envvar="KOCO_DATA",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder with the datasets' files; KOCO_DATA sets it too.  [default: download them]",
)
@click.option(
    "--cluster", default="local", show_default=True, metavar="WHERE", help="As for koco sweep."
)
@WORKERS
@JSON
@example("koco reproduce son-figure-1 --store store")
def reproduce(
    target: str, store: str, data: Path | None, cluster: str, workers: int, as_json: bool
) -> None:
    """Reproduce a published figure, table or claim.

    TARGET is son-figure-1, son-figure-2, son-figure-3, sketch-start, pros-n-kons-table,
    section-6-adversary, sampling-floor or benchmark.

    Prepares the data, runs the sweeps, writes a page, and prints a line for each of the paper's
    claims: whether it is reproduced, the criterion, and the outcome. Datasets that are not
    available are named. Exit status 1 if runs have failed, but not if a claim does not hold.
    """
    from flows.reproduce.outcome import SETS
    from flows.reproduce.reproduction import reproduce as reproduce_target
    from flows.runtime.console import wrapped

    done, page = reproduce_target(target, store, data, workers, cluster)
    if as_json:
        click.echo(
            json_text(
                {
                    "target": target,
                    "claims": [claim._asdict() for _, claim in done.claims],
                    "datasets": [dict(zip(SETS, row, strict=True)) for row in done.sets],
                    "report": page,
                }
            )
        )
    else:
        for line in [*done.lines, f"report: {page}"]:
            click.echo(wrapped(line, sys.stdout))
    if done.failed:
        raise SystemExit(1)
