"""The koco command, with all its subcommands."""

import errno
import os
import shlex
import signal
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

import koco_stream
from flows.commands.data import list_all, prepare
from flows.commands.groups import cluster, learners, store_group
from flows.commands.results import compare, report, results
from flows.commands.sweep import accept, check, nightly, record, reproduce, serve, sweep
from flows.runtime.processes import interrupt, say
from koco_stream.errors import WrongInput
from koco_stream.extras import remedy

COMMANDS: dict[str, tuple[click.Command, ...]] = {
    "Run a sweep": (prepare, sweep, list_all, results, compare, report),
    "Reproduce papers": (reproduce,),
    "Repeat sweeps": (record, check, nightly, accept, serve),
    "Use clusters, and learners of your own": (cluster, learners),
    "Maintain a store": (store_group,),
}
# exit status and remedy, by the number of an error of the system
REMEDIES = {
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        (1, "change its permissions, or choose another --store"),
    ),
    errno.ENOTDIR: (2, "a store is a folder; choose another --store"),
    errno.ELOOP: (2, "a link leads to itself; choose another --store"),
    errno.ENAMETOOLONG: (2, "a file's name has at most 255 bytes; choose a shorter one"),
}


class Usage(click.Group):
    """The command group. Its help has titles, and an error becomes a message and an exit status."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Make the first two words one if a command is called so."""
        two = " ".join(args[:2])
        return super().parse_args(ctx, [two, *args[2:]] if two in self.commands else args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{one.name:{width}}", one.get_short_help_str(200)) for one in commands]
                )

    def invoke(self, ctx: click.Context) -> Any:
        again = f"; finished work is kept. To continue: {shlex.join(['koco', *sys.argv[1:]])}"
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            status, said = 1, f"stopped{again}"
        except WrongInput as error:
            status, said = 2, str(error)
        except ModuleNotFoundError as error:
            if not (missing := remedy(error)):
                raise
            status, said = 2, missing
        except (OSError, MemoryError, RuntimeError) as error:
            status, said = outcome_of(error)
            if status == 1 and ctx.invoked_subcommand in ("sweep", "nightly"):
                said += again
        say(f"koco: {said}")
        ctx.exit(status)


def outcome_of(error: Exception) -> tuple[int, str]:
    if isinstance(error, OSError) and error.errno in REMEDIES:
        status, words = REMEDIES[error.errno]
        path = Path(error.filename or ".")
        # what is not there yet has no permissions
        there = next(filter(os.path.exists, (path, *path.parents))) if status == 1 else path
        return status, f"{f'{there}: ' * bool(error.filename)}{error.strerror}; {words}"
    said = f"{type(error).__name__}: {error}"
    return 1, "stopped" if said == "RuntimeError: Query interrupted" else said  # by Ctrl-C


@click.group(
    cls=Usage,
    commands=[one for commands in COMMANDS.values() for one in commands],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(koco_stream.__version__, message="koco %(version)s")
def koco() -> None:
    """Benchmarks of second-order online learners.

    koco COMMAND --help shows the options of a command, with an example.

    Data goes to stdout, progress and errors to stderr. Exit status: 0 done, 1 the work failed, 2
    the input is wrong.

    Files are written only to the store (--store) and the cache folder ($KOCO_CACHE, by default
    ~/.cache/koco-stream, or a private folder in the temporary directory if there is no home).
    $KOCO_CACHE_BYTES limits the size of the copies of datasets in the cache folder; the least
    recently used are removed first. By default they may take half of the disk space that would be
    free without them.
    """
    import pyarrow

    without: Any = SimpleNamespace(find_spec=_no_pandas)
    sys.meta_path.insert(0, without)
    pyarrow.scalar(0)  # Arrow looks for pandas once
    sys.meta_path.remove(without)


def _no_pandas(name: str, *_: object) -> None:
    """Keep Arrow from importing pandas, which takes half a second: no command has a frame."""
    if name == "pandas":
        raise ModuleNotFoundError(name)


def main() -> None:
    signal.signal(signal.SIGTERM, interrupt)
    warnings.formatwarning = lambda message, *_, **__: f"koco: warning: {message}\n"
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    koco(prog_name="koco")
