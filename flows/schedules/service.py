"""Implementation of `koco serve`: Prefect's server, and nights at the times that Prefect keeps."""

import os
import signal
import threading
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from flows.runtime.console import say
from flows.runtime.prefect_server import PASSWORD, PrefectServer, announced, configure_prefect
from flows.runtime.processes import SERVER, locked
from flows.schedules.file import read_schedules
from storage.store import open_store

PORT = 4200  # Prefect's default; another is used if it is taken


def serve_schedules(file: Path | None, store: str) -> None:
    """Serve Prefect's pages, and the schedules of a file, until this process is stopped.

    Raises `WrongInput` as `read_schedules` does, and `RuntimeError` if another process serves one
    of the stores, or if Prefect's server does not start or ends.
    """
    if find_spec("prefect") is None:
        raise ModuleNotFoundError("there is no prefect", name="prefect")
    configure_prefect(serving=True)
    os.environ[SERVER] = str(os.getpid())
    server = PrefectServer(PORT)
    schedules = read_schedules(file, store) if file else []
    with ExitStack() as stack:
        for path in sorted({schedule.store for schedule in schedules}):
            open_store(path)
            try:
                stack.enter_context(locked(path, "serve", None))
            except BlockingIOError:
                raise RuntimeError(
                    f"another koco serve is running for {path}; stop it first"
                ) from None
        server.wait()
        if server.process:
            note = stack.enter_context(announced(server.port))
            say(f"Prefect's web interface: {server.pages}")
            say(f"it asks for the password, {PASSWORD} in {note}")
            threading.Thread(target=_end_with, args=(server,), daemon=True).start()
        # imported here, because prefect reads its settings when it is imported
        from flows.schedules.deployments import serve_nights

        serve_nights(schedules)
        server.check()


def _end_with(server: PrefectServer) -> None:
    """Interrupt this process when the server has ended."""
    if server.process:
        server.process.wait()
        os.kill(os.getpid(), signal.SIGINT)
