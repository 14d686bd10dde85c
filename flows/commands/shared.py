"""Shared by all subcommands: common options, error handling, and tables on the terminal."""

import errno
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from inspect import cleandoc
from typing import Any

import click

from cluster.machine import cores
from flows.runtime.console import wrapped
from flows.sweeping.request import SweepRequest, sweep_file
from flows.tables.text import text_table
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
NO_PERMISSION = (errno.EACCES, errno.EPERM, errno.EROFS)
TOO_LONG = "a file's name has at most 255 bytes; choose a shorter one"
KEPT = "finished work is kept. To continue:"  # the command that was run follows
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
    help="Folder of the certificates, for tls:// and sites; KOCO_CERTIFICATES sets it too.",
)
INSECURE = click.option(
    "--insecure",
    is_flag=True,
    help="Allow tcp:// to other machines. Whoever can connect to the cluster can run code on it.",
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


class Usage(click.Group):
    """Command group that turns errors into one message and an exit status.

    The status is 2 for wrong input, and 1 for a failure of the work. Its help has the commands
    under titles, in the order in which they were added. A command's name may have two words.
    """

    titles: dict[str, list[str]]  # names of commands, by the title that they stand under

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.titles = {}

    def add_under(self, title: str, commands: Iterable[click.Command]) -> None:
        """Add commands, which the help shows under a title."""
        for command in commands:
            self.add_command(command)
            self.titles.setdefault(title, []).append(str(command.name))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command's name, the command, and the words after it."""
        two = " ".join(args[:2])
        if len(args) > 1 and two in self.commands:
            return two, self.commands[two], args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their titles, with the first sentence of their help."""
        width = max(map(len, self.commands))
        for title, names in self.titles.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:{width}}", first_sentence(self.commands[name])) for name in names]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand, and end the process with a message if it raises a known error."""
        from koco_stream.errors import WrongInput
        from koco_stream.extras import remedy

        again = " ".join(["koco", *sys.argv[1:]])
        try:
            return super().invoke(ctx)
        except WrongInput as error:
            click.echo(wrapped(f"koco: {error}"), err=True)
            ctx.exit(2)
        except ModuleNotFoundError as error:
            if not (message := remedy(error)):
                raise
            click.echo(wrapped(f"koco: {message}"), err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo(wrapped(f"koco: stopped; {KEPT} {again}"), err=True)
            ctx.exit(1)
        except (click.exceptions.Exit, BrokenPipeError):
            raise
        except (OSError, MemoryError, RuntimeError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                click.echo(wrapped(f"koco: {error.filename or error}: {TOO_LONG}"), err=True)
                ctx.exit(2)
            kept = f"; {KEPT} {again}" if ctx.invoked_subcommand in ("sweep", "nightly") else ""
            click.echo(wrapped(f"koco: {reason_of(error)}{kept}"), err=True)
            ctx.exit(1)


def reason_of(error: Exception) -> str:
    """An error as a part of a message, with the remedy if this user may not write to a file."""
    if isinstance(error, OSError) and error.errno in NO_PERMISSION:
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return f"{what}; change its permissions, or choose another --store"
    return f"{type(error).__name__}: {error}"


def of_a_sweep(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that adds a sweep file, its store and cluster options to a command.

    The command gets them as a `SweepRequest`, with those of its own options that are
    fields of `SweepRequest`.
    """

    @wraps(function)
    def command(spec: str, **more: Any) -> Any:
        given = {
            field.name: more.pop(field.name) for field in fields(SweepRequest) if field.name in more
        }
        return function(SweepRequest(str(sweep_file(spec)), **given), **more)

    for given in (WORKERS, INSECURE, CERTIFICATES, CLUSTER, STORE, click.argument("spec")):
        command = given(command)
    return command


def first_sentence(command: click.Command) -> str:
    """The first sentence of a command's help."""
    words = " ".join((command.help or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", words)[0].removesuffix(".")


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
    """Print some columns of rows as JSON, or those that hold anything as an aligned table."""
    rows = list(rows)
    if as_json:
        click.echo(json_text([{c: row[c] for c in columns} for row in rows]))
        return
    shown = [c for c in columns if not rows or any(row[c] not in (None, "") for row in rows)]
    click.echo(text_table(shown, [[row[c] for c in shown] for row in rows]))
