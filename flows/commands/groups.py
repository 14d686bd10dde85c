"""Commands that have subcommands: learners, store, cluster."""

import sys
from pathlib import Path

import click
from rich.filesize import decimal

from flows.commands.options import JSON, STORE, show
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text


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
    show(
        [
            {"": "NOT KEPT" if one.found else "kept", "promise": one.promise, "found": one.found}
            for one in outcomes
        ],
        as_json,
    )
    sys.exit(any(one.found for one in outcomes))


@click.group("store")
def store_group() -> None:
    """Verify what a store has, and remove what is not needed any more.

    \b
    Example:
      koco store verify
    """


@store_group.command()
@click.argument("names", nargs=-1)
@STORE
@JSON
def verify(names: tuple[str, ...], store: str, as_json: bool) -> None:
    """Check the hashes of the datasets NAMES, or of the whole store.

    Files that are missing, altered or damaged are named with what to do; the exit status is then 1.

    \b
    Example:
      koco store verify 20news
    """
    from flows.preparing.preparation import verified

    rows = verified(store, names)
    show(rows, as_json)
    sys.exit(any(row["state"] != "ok" for row in rows))


@store_group.command()
@click.argument("kind", type=click.Choice(["dataset", "sweep"]))
@click.argument("name")
@STORE
@click.option(
    "--force", is_flag=True, help="Remove a dataset even if sweeps use it; results are kept."
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@JSON
def remove(kind: str, name: str, store: str, force: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the dataset or the sweep NAME.

    With a sweep go its entry, its report, and its runs, but for those that another sweep shares. If
    this is interrupted, the same command completes it. The bytes that become free are an estimate.

    With a dataset go its copies in the cache folder. One that a sweep uses is removed only with
    --force. The results of the sweep are kept, and can be read and reported as before. To repeat
    its runs, prepare the dataset again; from the same source it gets the same identity.

    Nothing is removed while a sweep or a nightly run is under way on the store.

    \b
    Example:
      koco store remove sweep ill-conditioned --dry-run
    """
    from flows.housekeeping import dataset_removal, sweep_removal

    of_sweep = kind == "sweep"
    freed, act = sweep_removal(store, name) if of_sweep else dataset_removal(store, name, force)
    if not dry_run:
        act()
    if as_json:
        told = {"kind": kind, "name": name, "runs": 0, "runs_kept": 0, **freed}
        click.echo(json_text({**told, "removed": not dry_run}))
        return
    runs = f", {freed['runs']:,} runs" if of_sweep else ""
    kept = f"; {freed['runs_kept']:,} runs of other sweeps stay" if freed.get("runs_kept") else ""
    click.echo(
        f"{kind} {name}: {'would free' if dry_run else 'freed'} {decimal(freed['bytes'])} in"
        f" {freed['files']:,} file{'s' * (freed['files'] != 1)}{runs}{kept}"
    )


@click.group()
def cluster() -> None:
    """Prepare and try out clusters for sweeps; see docs/clusters.md.

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
