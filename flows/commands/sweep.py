"""Commands that run sweeps, and on what: sweep, reproduce, record, check, nightly, serve."""

import shlex
import sys
from pathlib import Path
from secrets import randbits
from typing import Any

import click

from flows.commands.options import (
    CERTIFICATES,
    CLUSTER,
    INSECURE,
    JSON,
    PREFECT,
    STORE,
    WORKERS,
    show,
)
from flows.runtime.processes import say, seconds_since_start, wrapped
from flows.sweeping.request import SweepRequest, description, packaged
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        show([{"sweep": name, "what": description(one)} for name, one in packaged().items()], False)
        context.exit()


@click.command()
@click.argument("spec")
@STORE
@CLUSTER
@CERTIFICATES
@INSECURE
@WORKERS
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
@click.option(
    "--positive",
    metavar="CLASS",
    help="Of the classes of a dataset, learn this one against the rest.  [default: all of them]",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Do nothing, and print the plan; of a dataset, the sweep file, ready to be kept.",
)
@PREFECT
@JSON
def sweep(
    spec: str,
    positive: str | None,
    dry_run: bool,
    prefect: bool | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Run the sweep SPEC: a TOML file, a packaged sweep, or the usual sweep on a prepared dataset.

    The usual sweep needs no file: it runs six learners with small grids on the dataset, in about
    two minutes at most. --dry-run prints it as a file.

    Runs that are in the store are not repeated, so the same command continues a sweep that was
    stopped or killed. If runs fail, the others are still completed, and the exit status is 1. A
    run that diverged does not count as failed; its row says in which round it diverged.

    \b
    Example:
      koco sweep ill-conditioned --store store
    """
    from flows.sweeping.file import sweep_called

    if positive and (Path(spec).is_file() or spec in packaged()):
        raise WrongInput(
            f"--positive is for a dataset; in {spec}, add positive_class = {json_text(positive)}"
            " below a dataset's name"
        )
    spec = f"{spec}:{positive}" if positive else spec
    request = SweepRequest(spec, **where)
    given = sweep_called(spec, request.store)  # a mistake in it is told before more is imported
    if dry_run:
        from flows.sweeping.planning import dry_run_of

        # the usual sweep is in no file, so that it is printed, to be kept in one
        keeps = given.usual and not as_json
        click.echo(given.text * keeps, nl=False)
        planned = dry_run_of(request)
        lines = (f"{name}: {in_words(value)}" for name, value in planned.items() if value != {})
        stream = sys.stderr if keeps else sys.stdout
        words = "\n".join(wrapped(line, stream) for line in lines)
        click.echo(json_text(planned) if as_json else words, stream)
        return
    from flows.sweeping.launch import launch

    summary = launch(request, prefect, given)
    seconds = summary["seconds"]
    if not summary["computed"]:
        say("nothing to compute: all runs are in the store")
    phases = {name: took for name, took in seconds.items() if name != "scans"}
    whole = seconds["total"] = round(seconds_since_start(), 2)
    phases["start-up"] = seconds["start-up"] = round(whole - sum(phases.values()), 2)
    computing = phases.pop("computing", 0.0)
    rest = ", ".join(f"{name} {took:.1f}" for name, took in phases.items())
    say(f"computing {computing:.1f} s, the rest {whole - computing:.1f} s ({rest})")
    failed = summary["statuses"].get("failed", 0)
    if failed:
        for row in summary["failed"]:
            say(f"failed: {row['learner']} {row['params']} on {row['dataset']}: {row['error']}")
        again = shlex.join(
            ["koco", "sweep", request.sweep_file, "--store", str(request.store), "--retry-failed"]
        )
        say(f"{failed:,} of {summary['runs']:,} runs have failed; with the cause mended: {again}")
    if stopped := summary["statuses"].get("stopped", 0):
        say(
            f"{stopped:,} of {summary['runs']:,} runs were stopped by time_limit; with a larger one"
            " in the sweep file, the same command goes on with them"
        )
    finding = wrapped(summary["finding"], sys.stdout)
    click.echo(json_text(summary) if as_json else f"{finding}\nreport: {summary['report']}")
    sys.exit(failed > 0)


def in_words(planned: Any) -> str:
    if isinstance(planned, dict):
        return ", ".join(f"{name} {in_words(value)}" for name, value in planned.items())
    if isinstance(planned, list):
        return "; ".join(in_words(value) for value in planned)
    return f"{planned:,}" if isinstance(planned, int | float) else str(planned)


@click.command()
@click.argument("target", required=False)
@click.option("--list", "listed", is_flag=True, help="List what can be reproduced.")
@STORE
@click.option(
    "--data",
    envvar="KOCO_DATA",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder with the datasets' files; KOCO_DATA sets it too.  [default: download them]",
)
@CLUSTER
@WORKERS
@JSON
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

    \b
    Example:
      koco reproduce son-figure-1 --store store
    """
    from flows.report.papers.experiment import EXPERIMENTS

    if listed or target is None:
        show([{"target": one.name, "about": one.about} for one in EXPERIMENTS.values()], as_json)
        return
    from flows.reproduce import reproduce as reproduce_target

    done = reproduce_target(target, store, data, workers, cluster)
    if as_json:
        named = {"target": target, "claims": done.claims, "datasets": done.sets}
        click.echo(json_text({**named, "report": done.page}))
    else:
        click.echo("\n".join(wrapped(line, sys.stdout) for line in done.lines))
    sys.exit(done.failed > 0)


@click.command()
@click.argument("name", metavar="SWEEP")
@click.argument("file")
@STORE
@click.option("--no-curves", is_flag=True, help="Leave out curves and windows.")
def record(name: str, file: str, store: str, no_curves: bool) -> None:
    """Write what SWEEP came to into FILE, a record that koco check checks.

    It is one Parquet file with the runs that did not fail and were not stopped, their curves and
    windows, the sweep file, the datasets' manifests and the versions.

    \b
    Example:
      koco record ill-conditioned ill-conditioned.parquet --store store
    """
    from flows.record import write_record

    click.echo(f"{file}: {write_record(store, name, file, not no_curves):,} runs")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@STORE
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many runs are drawn.",
)
@click.option(
    "--seed",
    type=int,
    default=lambda: randbits(32),
    help="The seed of the draw.  [default: another each time, and printed]",
)
@click.option("--cell", metavar="RUN_ID", help="Check this run.")
@JSON
def check(file: str, store: str, as_json: bool, **asked: Any) -> None:
    """Compute runs of the record FILE again, and compare all that a run determines.

    Numbers must be equal to the bit, or with other versions or another processor in six digits;
    docs/results.md says more. Generated datasets are made in the store, others must be there. A
    learner of your own is read beside FILE. Exit status 1 if a number differs.

    \b
    Example:
      koco check ill-conditioned.parquet --sample 20
    """
    from flows.record import check_record

    done = check_record(file, store, **asked)
    lines = [
        f"{one['run_id']} {one['column']}: {one['recorded']!r} in the record, {one['computed']!r}"
        " computed"
        for one in done["differences"]
    ]
    click.echo(json_text(done) if as_json else "\n".join([*lines, done["finding"]]))
    sys.exit(bool(lines))


@click.command()
@click.argument("spec")
@STORE
@CLUSTER
@CERTIFICATES
@INSECURE
@WORKERS
@PREFECT
@JSON
def nightly(spec: str, prefect: bool | None, as_json: bool, **where: Any) -> None:
    """Compute all runs of the sweep SPEC again and compare them with the accepted nightly run.

    Numbers must be equal bit for bit. A learner is slower if the median of its runs takes a quarter
    more time. After an interruption, the same command continues. Exit status 1 if numbers have
    changed or a learner has become slower; see docs/prefect.md.

    The first nightly run is accepted. To accept a later one whose numbers or speeds have changed
    for a known reason: koco nightly accept NAME. For its results: koco results --store
    STORE/nights/NAME.

    \b
    Example:
      koco nightly ill-conditioned --store store
    """
    request = SweepRequest(spec, **where)
    from flows.nightly.night import FAILING, launch_nightly

    summary = launch_nightly(request, prefect)
    say(
        f"its results: koco results --store {shlex.quote(str(request.store))}"
        f"/nights/{summary['sweep']}"
    )
    click.echo(
        json_text(summary) if as_json else f"{summary['result']}; report: {summary['report']}"
    )
    sys.exit(summary["result"] in FAILING)


@click.command("nightly accept")
@click.argument("name")
@STORE
def accept(name: str, store: str) -> None:
    """Accept the last nightly run of the sweep NAME.

    Later nightly runs are compared with its numbers and speeds.

    \b
    Example:
      koco nightly accept ill-conditioned
    """
    from flows.nightly.night import accept_last

    click.echo(f"{name}: the nightly run of {accept_last(store, name)} is accepted")


@click.command()
@click.argument("schedules", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@STORE
def serve(schedules: Path | None, store: str) -> None:
    """Run nightly sweeps at the times in the schedules file FILE, until stopped (Ctrl-C).

    This starts a Prefect server that only this machine can reach, unless PREFECT_API_URL names one,
    and prints the address of its pages. While it runs, koco prepare, sweep and nightly are flow
    runs on it. Without FILE, it does nothing else.

    If scheduled times have passed while it was not running, only the last is run late. --store is
    for schedules that name no store. flows/schedules.toml is an example; see docs/prefect.md.

    \b
    Example:
      koco serve schedules.toml --store store
    """
    from flows.schedules.service import serve_schedules

    serve_schedules(schedules, store)
