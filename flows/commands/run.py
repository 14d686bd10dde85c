"""The commands that compute, `koco prepare`, `sweep`, `reproduce`, `nightly` and `serve`, and those
that try what is computed with: `koco learners` and `cluster`.
"""

import sys
from pathlib import Path
from typing import Any

import click

from flows.commands.shared import CLUSTER, JSON, PREFECT, STORE, WORKERS, of_a_sweep, show
from flows.runtime.console import say, wrapped
from flows.runtime.processes import seconds_since_start
from flows.sweeping.packaged import description, packaged, sweep_file
from flows.sweeping.request import SweepRequest
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text

# copies of those in storage.sources, whose import is slow
FORMATS = ("libsvm", "vw", "csv", "space", "parquet", "documents")
MOST_SAID = 400  # characters of a sentence on the columns


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    help=(
        "The source file: LIBSVM, CSV, space-separated or VW text (plain, .gz, .bz2, .xz or .zst)"
        " or Parquet, or a folder of Parquet files; may be repeated. Or a folder with the files of"
        " a dataset of the catalogue. Or documents: a folder or .tar archive of GROUP/DOCUMENT"
        " files."
    ),
)
@click.option(
    "--target", help="Tables: the target column, by name or number from 1.  [default: the last]"
)
@click.option(
    "--labels",
    help="Numbers for labels that are texts, such as g=1,b=-1; letters maps A to Z to 1 to 26.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    help="Tables: leave this column out; may be repeated.",
)
@click.option(
    "--one-hot",
    is_flag=True,
    default=None,
    help="Tables: turn each text column into features, one for each text.",
)
@click.option(
    "--missing",
    type=click.Choice(["mean", "drop"]),
    help=(
        "Tables: replace missing numbers by the mean of their column, or leave out their rows"
        " (drop).  [default: refuse them]"
    ),
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Tables: whether the first line holds column names.  [default: recognised]",
)
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    help="LIBSVM, VW: the number of features.  [default: up to the largest in the file]",
)
@click.option(
    "--zero-based/--one-based",
    default=None,
    help="Whether features are counted from 0 or 1.  [default: LIBSVM from 1, VW from 0]",
)
@click.option(
    "--layout",
    type=click.Choice(["dense", "sparse"]),
    help="How rows are stored.  [default: as in the source]",
)
@click.option(
    "--scale",
    help=(
        "Scale features: none, minmax, unit-rows, unit-mean-square or tf-idf.  [default: none, or"
        " as in the catalogue]"
    ),
)
@click.option(
    "--scale-rows",
    type=click.IntRange(min=1),
    metavar="N",
    help=(
        "Compute the scale, and the replacements of missing values, from the first N rows only, so"
        " that nothing is taken from later rows.  [default: all rows]"
    ),
)
@click.option(
    "--hash-bits",
    type=click.IntRange(1, 30),
    metavar="B",
    help="Hash the features into 2^B features, after scaling.",
)
@click.option(
    "--strip",
    metavar="PARTS",
    callback=lambda *given: tuple(part.strip() for part in given[2].split(",")) if given[2] else (),
    help="Documents: remove headers, footers, quotes (a list with commas).",
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="Whether labels are classes or numbers.  [default: recognised]",
)
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Format of the source.  [default: recognised; a folder of documents needs it]",
)
@click.option("--replace", is_flag=True, help="Replace a dataset that is already in the store.")
@WORKERS
@STORE
@PREFECT
@JSON
def prepare(
    name: str,
    sources: tuple[Path, ...],
    store: str,
    workers: int,
    replace: bool,
    prefect: bool | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Turn source files into the dataset NAME: Parquet shards and a manifest, all or nothing.

    For a dataset of the catalogue (koco list datasets), the options are known, so --from FOLDER is
    enough. Without --from, its files are downloaded into the cache folder; if that fails, the
    command says which files it needs and where they come from. Options given here override those of
    the catalogue.

    If --from names files, only the options given here are used, even if the catalogue has NAME.

    \b
    Example:
      koco prepare cpusmall --from cpu.small.csv.xz --target usr --scale minmax
    """
    from flows.prepare.launch import launch_preparation

    given = {option: value for option, value in options.items() if value not in (None, ())}
    manifest = launch_preparation(
        store, name, sources, prefect, given=given, workers=workers, replace=replace
    )
    if as_json:
        click.echo(manifest.to_json(), nl=False)
        return
    values = f"{manifest.n_values / manifest.n_rows:.2f} values a row"
    click.echo(
        f"{name}: {manifest.n_rows:,} rows, {manifest.n_features:,} features, {values}"
        f" ({manifest.layout}, {manifest.value_type})\n  {labels_of(manifest.classes)};"
        f" {len(manifest.shards)} shard(s), identity {manifest.dataset_hash[:12]}"
    )
    for said in (*manifest.source.get("columns", ()), *manifest.transformations):
        click.echo(f"  {said if len(said) <= MOST_SAID else said[:MOST_SAID] + ' …'}")


def labels_of(classes: list[float]) -> str:
    """Describe a dataset's labels in words. `classes` is sorted, and empty for real targets."""
    if len(classes) > 12:
        return f"{len(classes)} classes, labels {classes[0]:g} to {classes[-1]:g}"
    return f"labels {', '.join(f'{c:g}' for c in classes)}" if classes else "real targets"


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """List the packaged sweeps, and end."""
    if wanted:
        rows = [{"sweep": name, "what": description(file)} for name, file in packaged().items()]
        show(rows, False)
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
def sweep(spec: str, dry_run: bool, prefect: bool | None, as_json: bool, **where: Any) -> None:
    """Run the sweep in SPEC: a TOML file, or the name of a packaged sweep.

    Runs that are in the store are not repeated, so the same command continues a sweep that was
    stopped or killed. If runs fail, the others are still completed, and the exit status is 1. A
    run that diverged does not count as failed; its row says in which round it diverged.

    \b
    Example:
      koco sweep ill-conditioned --store store
    """
    request = SweepRequest(str(sweep_file(spec)), **where)
    if dry_run:
        from flows.sweeping.planning import dry_run_of

        planned = dry_run_of(request)
        lines = (f"{name}: {in_words(value)}" for name, value in planned.items())
        plain = "\n".join(wrapped(line, sys.stdout) for line in lines)
        click.echo(json_text(planned) if as_json else plain)
        return
    from flows.sweeping.file import read_sweep

    starting = seconds_since_start()
    given = read_sweep(request.sweep_file)  # a mistake in it is told before more is imported
    from flows.sweeping.launch import launch

    summary = launch(request, prefect, given)
    from flows.sweeping.steps import failed_lines

    seconds = summary["seconds"] = {"Python": round(starting, 2), **summary["seconds"]}
    if not summary["computed"]:
        say("nothing to compute: all runs are in the store")
    phases = {name: took for name, took in seconds.items() if name != "scans"}
    whole = seconds["total"] = round(sum(phases.values()), 2)
    computing = phases.pop("computing", 0.0)
    rest = ", ".join(f"{name} {took:.1f}" for name, took in phases.items())
    say(f"computing {computing:.1f} s, the rest {whole - computing:.1f} s ({rest})")
    failed = summary["statuses"].get("failed", 0)
    if failed:
        for line in failed_lines(summary):
            say(line)
        again = f"koco sweep {request.sweep_file} --store {request.store} --retry-failed"
        say(f"{failed:,} of {summary['runs']:,} runs have failed; to run them again: {again}")
    click.echo(json_text(summary) if as_json else f"report: {summary['report']}")
    sys.exit(failed > 0)


def in_words(planned: Any) -> str:
    """Format a value of a dry run as text: numbers with commas, lists and dicts on one line."""
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
    type=click.Path(path_type=Path),
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
    from flows.reproduce.reproduction import SETS
    from flows.reproduce.reproduction import reproduce as reproduce_target

    done = reproduce_target(target, store, data, workers, cluster)
    if as_json:
        claims = [claim._asdict() for _, claim in done.claims]
        sets = [dict(zip(SETS, row, strict=True)) for row in done.sets]
        found = {"target": target, "claims": claims, "datasets": sets, "report": done.page}
        click.echo(json_text(found))
    else:
        click.echo("\n".join(wrapped(line, sys.stdout) for line in done.lines))
    sys.exit(done.failed > 0)


@click.command()
@of_a_sweep
@PREFECT
@JSON
def nightly(spec: str, prefect: bool | None, as_json: bool, **where: Any) -> None:
    """Compute all runs of the sweep in SPEC again and compare them with the accepted nightly run.

    Numbers must be equal bit for bit. A learner is slower if the median of its runs takes a quarter
    more time. After an interruption, the same command continues. Exit status 1 if numbers have
    changed or a learner has become slower; see docs/schedules.md.

    The first nightly run is accepted. To accept a later one whose numbers or speeds have changed
    for a known reason: koco nightly accept NAME. For its results: koco results --store
    STORE/nights/NAME.

    \b
    Example:
      koco nightly ill-conditioned --store store
    """
    request = SweepRequest(str(sweep_file(spec)), **where)
    from flows.nightly.launch import launch_nightly
    from flows.nightly.regression import FAILING

    summary = launch_nightly(request, prefect)
    say(f"its results: koco results --store {request.store}/nights/{summary['sweep']}")
    words = f"{summary['result']}; report: {summary['report']}"
    click.echo(json_text(summary) if as_json else words)
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
    for schedules that name no store. flows/schedules.toml is an example; see docs/schedules.md.

    \b
    Example:
      koco serve schedules.toml --store store
    """
    from flows.schedules.service import serve_schedules

    serve_schedules(schedules, store)


@click.group()
def learners() -> None:
    """Check learners of your own; koco list learners shows those that there are.

    A sweep file can name a class in a file (file.py:Class, relative to the sweep file), a River or
    scikit-learn estimator (package.module:Class), or Vowpal Wabbit (vw).

    \b
    Example:
      koco learners check nlms.py:NLMS
    """


@learners.command()
@click.argument("name")
@JSON
def check(name: str, as_json: bool) -> None:
    """Check whether a learner keeps the promises of every learner, and say which ones it breaks.

    NAME is file.py:Class, package.module:Class, or the name of a learner in the list. The checks
    take a minute, most of it for compiling. Exit status 1 if a promise is broken.

    \b
    Example:
      koco learners check nlms.py:NLMS
    """
    from koco_stream.learners import Learner, learner_called, learner_named
    from koco_stream.learners.contract import check_contract

    learner = learner_named(learner_called(name, Path()))
    if not issubclass(learner, Learner):
        raise WrongInput(
            f"{name} is not a koco_stream.Learner; other learners do not make the promises that"
            " this command checks"
        )
    outcomes = check_contract(learner)
    rows = [
        {"": "NOT KEPT" if one.found else "kept", "promise": one.promise, "found": one.found}
        for one in outcomes
    ]
    show(rows, as_json)
    sys.exit(any(one.found for one in outcomes))


@click.group()
def cluster() -> None:
    """Prepare and try out clusters for sweeps; see docs/clusters.md and docs/security.md.

    \b
    Example:
      koco cluster show slurm
    """


@cluster.command("show")
@click.argument("site")
def cluster_show(site: str) -> None:
    """Print the job script or Kubernetes manifest that a sweep on SITE would submit.

    Nothing is submitted or started. SITE is the name of a site file that comes with koco-stream
    (slurm, pbs, sge, lsf, kubernetes), or the path of your own.

    \b
    Example:
      koco cluster show slurm
    """
    from cluster.clusters import submission
    from cluster.site import read_site

    click.echo(submission(read_site(site)).rstrip("\n"))


@cluster.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    required=True,
    help="Name or address of a machine; may be repeated, the scheduler's machine first.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True, max=366),
    default=7,
    show_default=True,
    help="How many days the certificates are valid.",
)
def certificates(folder: Path, hosts: tuple[str, ...], days: float) -> None:
    """Create certificates for a cluster in the new FOLDER, and print the commands that use them.

    There is one for the scheduler, one for its workers and one for the client. Only processes with
    a key from the folder can connect. The key of the authority is not kept: to change anything,
    create a new folder.

    \b
    Example:
      koco cluster certificates ~/certificates --host 10.0.0.1 --host 10.0.0.2 --host 10.0.0.3
    """
    from cluster.certificates import make_certificates, start_commands

    folder = folder.expanduser().absolute()
    until = make_certificates(folder, hosts, days)
    click.echo(
        f"certificates in {folder}, valid until {until:%Y-%m-%d %H:%M} UTC ({days:g} days),"
        " readable only by you\nCopy to a worker's machine only authority.pem, worker.pem and"
        " worker-key.pem. Dashboards listen on loopback only."
    )
    for name, command in start_commands(folder, hosts[0]).items():
        click.echo(f"\n{name}:\n  {command}")
