"""The commands `koco nightly`, `koco nightly accept` and `koco serve`."""

from pathlib import Path

import click

from flows.commands.shared import JSON, PREFECT, STORE, example, of_a_sweep
from flows.sweeping.request import SweepRequest
from koco_stream.io.files import json_text


@click.command()
@of_a_sweep
@PREFECT
@JSON
@example("koco nightly ill-conditioned --store store")
def nightly(request: SweepRequest, prefect: bool | None, as_json: bool) -> None:
    """Compute all runs of the sweep in SPEC again and compare them with the accepted nightly run.

    Numbers must be equal bit for bit. A learner is slower if the median of its runs takes a quarter
    more time. After an interruption, the same command continues. Exit status 1 if numbers have
    changed or a learner has become slower; see docs/schedules.md.

    The first nightly run is accepted. To accept a later one whose numbers or speeds have changed
    for a known reason: koco nightly accept NAME. For its results: koco results --store
    STORE/nights/NAME.
    """
    from flows.nightly.night import launch_nightly
    from flows.nightly.regression import FAILING

    summary = launch_nightly(request, prefect)
    name = summary["sweep"]
    click.echo(f"its results: koco results --store {request.store}/nights/{name}", err=True)
    click.echo(
        json_text(summary) if as_json else f"{summary['result']}; report: {summary['report']}"
    )
    if summary["result"] in FAILING:
        raise SystemExit(1)


@click.command("nightly accept")
@click.argument("name")
@STORE
@example("koco nightly accept ill-conditioned")
def accept(name: str, store: str) -> None:
    """Accept the last nightly run of the sweep NAME.

    Later nightly runs are compared with its numbers and speeds.
    """
    from flows.nightly.night import accept_last

    click.echo(f"{name}: the nightly run of {accept_last(store, name)} is accepted")


@click.command()
@click.argument("schedules", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@STORE
@example("koco serve schedules.toml --store store")
def serve(schedules: Path | None, store: str) -> None:
    """Run nightly sweeps at the times in the schedules file FILE, until stopped (Ctrl-C).

    This starts a Prefect server that only this machine can reach, unless PREFECT_API_URL names one,
    and prints the address of its pages. While it runs, koco prepare, sweep and nightly are flow
    runs on it. Without FILE, it does nothing else.

    If scheduled times have passed while it was not running, only the last is run late. --store is
    for schedules that name no store. flows/schedules.toml is an example; see docs/schedules.md.
    """
    from flows.schedules.service import serve_schedules

    serve_schedules(schedules, store)
