"""The command `koco serve`."""

from pathlib import Path

import click

from flows.commands.shared import STORE, example

EXAMPLE = Path(__file__).parent.parent / "schedules.toml"


@click.command()
@click.option(
    "--schedules",
    type=click.Path(path_type=Path),
    help="The schedules file.  [default: flows/schedules.toml]",
)
@STORE
@example("koco serve --schedules schedules.toml --store store")
def serve(schedules: Path | None, store: str) -> None:
    """Run nightly sweeps at the times in the schedules file, until stopped (Ctrl-C).

    Prefect's server runs on this machine, for this machine only, unless PREFECT_API_URL names one.
    Interrupted runs continue when this is started again; of the times that passed meanwhile, the
    last is made up for. --store is for schedules that name none. See docs/schedules.md.
    """
    from flows.schedules.service import serve_schedules

    serve_schedules(schedules or EXAMPLE, store)
