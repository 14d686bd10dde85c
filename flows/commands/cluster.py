"""The commands cluster show and cluster certificates."""

from pathlib import Path

import click


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
