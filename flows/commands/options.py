"""Options that commands share, and how they print a table."""

from collections.abc import Sequence
from typing import Any

import click

from cluster.machine import cores
from flows.tables.text import laid_out
from koco_stream.io.files import json_text

STORE = click.option(
    "--store",
    default="store",
    envvar="KOCO_STORE",
    show_default=True,
    metavar="PATH",
    help=(
        "The store: a folder, or s3://BUCKET/PREFIX or gs://BUCKET/PREFIX; KOCO_STORE sets it too."
    ),
)
CLUSTER = click.option(
    "--cluster",
    default="local",
    show_default=True,
    metavar="WHERE",
    help="local, a scheduler's address (tls://HOST:8786), or a site: a name or a file.",
)
WORKERS = click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=cores,
    help="Number of local worker processes; 0: only this process.  [default: one per core]",
)
PREFECT = click.option(
    "--prefect/--no-prefect",
    default=None,
    help=(
        "Whether this is a flow run of Prefect.  [default: if PREFECT_API_URL or koco serve has a"
        " server; --prefect starts one otherwise]"
    ),
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
CERTIFICATES = click.option(
    "--certificates",
    envvar="KOCO_CERTIFICATES",
    metavar="FOLDER",
    help="Folder of the certificates, for tls:// and sites; KOCO_CERTIFICATES sets it too.",
)
INSECURE = click.option(
    "--insecure",
    is_flag=True,
    help="Allow tcp:// to other machines. Whoever can connect to the cluster can run code on it.",
)


def show(
    rows: Sequence[dict[str, Any]], as_json: bool, columns: Sequence[str] | None = None
) -> None:
    """Print rows as JSON, or as a table without columns that hold nothing."""
    if as_json:
        click.echo(json_text(rows))
        return
    names = columns or list(rows[0])
    shown = [one for one in names if not rows or any(row[one] not in (None, "") for row in rows)]
    click.echo(laid_out(shown, [[row[one] for one in shown] for row in rows])[0])
