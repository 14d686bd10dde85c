"""A PostgreSQL of a test session: its data in a temporary folder, on the loopback interface only,
run by a user that is not root.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.project import free_port

USER = "postgres"


def programs() -> Path:
    """The folder of PostgreSQL's programs; skips the test where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else pytest.skip("needs postgresql: make test-packages")


@contextmanager
def postgres() -> Iterator[str]:
    """The address of an empty database, as Prefect takes it."""
    where, port = programs(), free_port()
    prefix = ["runuser", "-u", USER, "--"] if os.getuid() == 0 else []
    run = partial(subprocess.run, check=True, capture_output=True, cwd="/")
    with tempfile.TemporaryDirectory(prefix="koco-postgres-") as folder:
        if prefix:
            shutil.chown(folder, USER)
        data = f"{folder}/data"
        run([*prefix, where / "initdb", "-D", data, "-U", "prefect", "--auth=trust"])
        options = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories= -p {port}"
        control = [*prefix, where / "pg_ctl", "-D", data, "-w"]
        run([*control, "-l", f"{folder}/log", "-o", options, "start"])
        try:
            run(
                [where / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "prefect", "prefect"]
            )
            yield f"postgresql+asyncpg://prefect@127.0.0.1:{port}/prefect"
        finally:
            run([*control, "-m", "immediate", "stop"])
