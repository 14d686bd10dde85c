"""The command `koco reproduce`."""

import sys
from pathlib import Path

import click

from flows.commands.shared import JSON, STORE, WORKERS, example, show
from koco_stream.io.files import json_text


@click.command()
@click.argument("target", required=False)
@click.option("--list", "listed", is_flag=True, help="List what can be reproduced.")
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
    target: str | None,
    listed: bool,
    store: str,
    data: Path | None,
    cluster: str,
    workers: int,
    as_json: bool,
) -> None:
    """Reproduce TARGET: a published figure, table or claim, or the benchmark.

    Prepares the data, runs the sweeps, writes a page, and prints a line for each of the paper's
    claims: whether it is reproduced, the criterion, and the outcome. Datasets that are not
    available are named. Exit status 1 if runs have failed, but not if a claim does not hold.
    """
    from flows.report.papers.experiment import EXPERIMENTS

    if listed or target is None:
        rows = [{"target": one.name, "about": one.about} for one in EXPERIMENTS.values()]
        show(rows, ("target", "about"), as_json)
        return
    from flows.reproduce import SETS
    from flows.reproduce import reproduce as reproduce_target
    from flows.runtime.console import wrapped

    done = reproduce_target(target, store, data, workers, cluster)
    if as_json:
        click.echo(
            json_text(
                {
                    "target": target,
                    "claims": [claim._asdict() for _, claim in done.claims],
                    "datasets": [dict(zip(SETS, row, strict=True)) for row in done.sets],
                    "report": done.page,
                }
            )
        )
    else:
        for line in done.lines:
            click.echo(wrapped(line, sys.stdout))
    if done.failed:
        raise SystemExit(1)
