"""The commands `koco sweep` and `koco status`."""

import sys

import click

from flows.commands.shared import JSON, PREFECT, STORE, example, in_words, of_a_sweep, show
from flows.runtime.console import say, wrapped
from flows.runtime.processes import seconds_since_start
from flows.sweeping.request import SweepRequest, description, packaged
from koco_stream.io.files import json_text


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """List the packaged sweeps, and end."""
    if wanted:
        rows = [{"sweep": name, "what": description(file)} for name, file in packaged().items()]
        show(rows, ("sweep", "what"), False)
        context.exit()


@click.command()
@of_a_sweep
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="List the packaged sweeps and do nothing.",
)
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Repeat the runs that have failed, or whose windows or predictions are gone.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and do nothing.")
@PREFECT
@JSON
@example("koco sweep ill-conditioned --store store")
def sweep(request: SweepRequest, dry_run: bool, prefect: bool | None, as_json: bool) -> None:
    """Run the sweep in SPEC: a TOML file, or the name of a packaged sweep.

    Runs that are in the store are not repeated, so the same command continues a sweep that was
    stopped or killed. If runs fail, the others are still completed, and the exit status is 1. A
    run that diverged does not count as failed; its row says in which round it diverged.
    """
    if dry_run:
        from flows.sweeping.planning import dry_run_of

        planned = dry_run_of(request)
        click.echo(
            json_text(planned)
            if as_json
            else "\n".join(
                wrapped(f"{name}: {in_words(value)}", sys.stdout) for name, value in planned.items()
            )
        )
        return
    from flows.sweeping.file import read_sweep

    given = read_sweep(request.sweep_file)  # a mistake in it is told before more is imported
    from flows.sweeping.launch import launch

    summary = launch(request, prefect, given)
    seconds = summary["seconds"]
    if not summary["computed"]:
        click.echo("nothing to compute: all runs are in the store", err=True)
    phases = {name: took for name, took in seconds.items() if name != "scans"}
    whole = seconds["total"] = round(seconds_since_start(), 2)
    phases["start-up"] = seconds["start-up"] = round(whole - sum(phases.values()), 2)
    computing = phases.pop("computing", 0.0)
    rest = ", ".join(f"{name} {took:.1f}" for name, took in phases.items())
    click.echo(
        f"computing {computing:.1f} s, the rest {whole - computing:.1f} s ({rest})", err=True
    )
    failed = summary["statuses"].get("failed", 0)
    if failed:
        for row in summary["failed"]:
            say(f"failed: {row['learner']} {row['params']} on {row['dataset']}: {row['error']}")
        command = f"koco sweep {request.sweep_file} --store {request.store} --retry-failed"
        click.echo(
            f"{failed:,} of {summary['runs']:,} runs have failed; to run them again: {command}",
            err=True,
        )
    click.echo(json_text(summary) if as_json else f"report: {summary['report']}")
    if failed:
        raise SystemExit(1)


@click.command()
@STORE
@JSON
@example("koco status")
def status(store: str, as_json: bool) -> None:
    """Show the progress of the sweeps in a store, and how finished ones ended.

    The state is running, done, stopped (by Ctrl-C), ended by an error, or killed. A sweep that was
    stopped, ended by an error or killed continues with the same koco sweep command.
    """
    from flows.sweeping.status import COLUMNS, statuses
    from storage.store import existing_store

    short = (
        "sweep",
        "state",
        "runs",
        "done",
        "diverged",
        "failed",
        "rounds_per_second",
        "seconds_left",
        "dashboard",
        "updated",
    )
    rows = list(map(vars, statuses(existing_store(store))))
    if as_json:
        show(rows, COLUMNS, True)
    else:  # the time in UTC, to the second, fits the line
        when = (str(row["updated"])[:19].replace("T", " ") for row in rows)
        shorter = [{**row, "updated": text} for row, text in zip(rows, when, strict=True)]
        show(shorter, short, False)
