"""Shared by all subcommands: common options, error handling, and tables on the terminal."""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from inspect import cleandoc
from typing import Any

import click

from cluster.machine import cores
from flows.sweeping.request import SweepRequest
from flows.tables.text import text_table

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
KEPT = "what was finished is kept. To go on:"  # the command that was run follows
CLUSTER = click.option(
    "--cluster",
    default="local",
    show_default=True,
    metavar="WHERE",
    help="local, a scheduler's address (tls://HOST:8786), or a site: a name or a file.",
)
CERTIFICATES = click.option(
    "--certificates",
    envvar="KOCO_CERTIFICATES",
    metavar="FOLDER",
    help="For tls:// and for sites: the folder; KOCO_CERTIFICATES sets it too.",
)
INSECURE = click.option(
    "--insecure",
    is_flag=True,
    help="Allow tcp:// to other machines: whoever reaches such a cluster can run code on it.",
)
WORKERS = click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=cores,
    help="Local worker processes; 0 to run in this one.  [default: the cores]",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Usage(click.Group):
    """Command group that turns errors into one message and an exit status.

    The status is 2 for wrong input, and 1 for a failure of the work.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand, and end the process with a message if it raises a known error."""
        from koco_stream.errors import WrongInput
        from koco_stream.extras import remedy

        again = " ".join(["koco", *sys.argv[1:]])
        try:
            return super().invoke(ctx)
        except WrongInput as error:
            click.echo(f"koco: {error}", err=True)
            ctx.exit(2)
        except ModuleNotFoundError as error:
            if not (message := remedy(error)):
                raise
            click.echo(f"koco: {message}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo(f"koco: stopped; {KEPT} {again}", err=True)
            ctx.exit(1)
        except (click.exceptions.Exit, BrokenPipeError):
            raise
        except (OSError, MemoryError, RuntimeError) as error:
            kept = f"; {KEPT} {again}" if ctx.invoked_subcommand in ("sweep", "nightly") else ""
            click.echo(f"koco: {type(error).__name__}: {error}{kept}", err=True)
            ctx.exit(1)


def of_a_sweep(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that adds a sweep file, its store and cluster options to a command.

    The command gets them as a `SweepRequest`, with those of its own options that are
    fields of `SweepRequest`.
    """

    @wraps(function)
    def command(spec: str, **more: Any) -> Any:
        from flows.sweeping.packaged import sweep_file

        given = {
            field.name: more.pop(field.name) for field in fields(SweepRequest) if field.name in more
        }
        return function(SweepRequest(str(sweep_file(spec)), **given), **more)

    for given in (WORKERS, INSECURE, CERTIFICATES, CLUSTER, STORE, click.argument("spec")):
        command = given(command)
    return command


def example(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that appends an example to a command's help."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__doc__ = f"{cleandoc(function.__doc__ or '')}\n\n\b\nExample:\n  {text}"
        return function

    return decorate


def in_words(planned: Any) -> str:
    """Format a value of a dry run as text: numbers with commas, lists and dicts on one line."""
    if isinstance(planned, dict):
        return ", ".join(f"{name} {in_words(value)}" for name, value in planned.items())
    if isinstance(planned, list):
        return "; ".join(in_words(value) for value in planned)
    return f"{planned:,}" if isinstance(planned, int | float) else str(planned)


def show(rows: Iterable[dict[str, Any]], columns: tuple[str, ...], as_json: bool) -> None:
    """Print some columns of rows as JSON or as an aligned table."""
    rows = list(rows)
    if as_json:
        click.echo(json.dumps([{c: row[c] for c in columns} for row in rows], default=str))
        return
    click.echo(text_table(columns, [[row[c] for c in columns] for row in rows]))
