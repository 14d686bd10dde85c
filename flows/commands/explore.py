"""The command `koco explore`."""

import os
import sys

import click

from flows.commands.shared import STORE, example


@click.command()
@STORE
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="The port on 127.0.0.1.  [default: a free one]",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@example("koco explore --store store")
def explore(store: str, port: int, no_browser: bool) -> None:
    """Look at all runs of a store in a browser: filters, parallel coordinates, curves.

    A page on 127.0.0.1 is served until Ctrl-C, and its address printed. It shows runs of a running
    sweep as they finish. Only who knows the address, which has a random word, can open it; nothing
    is changed in the store, and nothing is fetched from elsewhere.
    """
    from flows.exploring.server import Server, plotly_file
    from koco_stream.errors import WrongInput
    from storage.store import existing_store

    plotly_file()
    root = existing_store(store)
    try:
        server = Server(root, port)
    except OSError as error:
        if not port:
            raise
        raise WrongInput(f"port {port} cannot be used ({error}); choose another --port") from error
    with server:
        click.echo(server.url)
        sys.stdout.flush()
        click.echo(f"koco explore: shows {root}; end it with Ctrl-C", err=True)
        if not no_browser and _has_display():
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.wait()
        except KeyboardInterrupt:
            click.echo("koco explore: ended", err=True)


def _has_display() -> bool:
    """Whether a browser would be seen."""
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
