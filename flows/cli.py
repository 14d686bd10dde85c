"""The koco command, with all its subcommands."""

import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import click

import koco_stream
from flows.commands.cluster import cluster
from flows.commands.compare import compare
from flows.commands.data import datasets, prepare, verify
from flows.commands.housekeeping import compact, list_sweeps, remove
from flows.commands.learners import learners
from flows.commands.nightly import accept, nightly, serve
from flows.commands.reproduce import reproduce
from flows.commands.results import report, results
from flows.commands.shared import Usage
from flows.commands.sweep import status, sweep
from flows.runtime.processes import interrupt


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version, and end."""
    if wanted:
        commit = _commit()
        click.echo(f"koco {koco_stream.__version__}" + (f", commit {commit}" if commit else ""))
        context.exit()


def _commit() -> str | None:
    """The commit of the checkout that this file is in, with "-dirty" after changes; else None."""
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return None
    with suppress(FileNotFoundError):  # no git
        found = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"],
            capture_output=True,
            text=True,
            check=False,
        )
        return found.stdout.strip() or None
    return None


@click.group(
    cls=Usage, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version, and the commit in a checkout.",
)
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

    sys.meta_path.insert(0, _NoPandas)  # type: ignore[arg-type]
    pyarrow.scalar(0)  # Arrow looks for pandas once
    sys.meta_path.remove(_NoPandas)  # type: ignore[arg-type]


class _NoPandas:
    """Keeps Arrow from importing pandas, which takes half a second: no command has a frame."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse to find pandas."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


COMMANDS = {
    "Run a sweep": (prepare, sweep, status, results, compare, report),
    "List": (datasets, learners, list_sweeps),
    "Reproduce papers": (reproduce,),
    "Repeat sweeps": (nightly, accept, serve),
    "Use clusters": (cluster,),
    "Maintain a store": (verify, compact, remove),
}
for title, commands in COMMANDS.items():
    koco.add_under(title, commands)


def main() -> None:
    """Run the koco command."""
    signal.signal(signal.SIGTERM, interrupt)
    warnings.formatwarning = lambda message, *_, **__: f"koco: warning: {message}\n"
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    koco(prog_name="koco")
