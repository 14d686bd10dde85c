"""A PostgreSQL of a test session: its data in a temporary folder, on the loopback interface only,
run by a user that is not root.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.debian import installed
from tests.helpers.project import free_port

USER = "postgres"


def programs() -> Path:
    """The folder of PostgreSQL's programs, installed where that is possible; skips the test where
    it is not.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found and (reason := installed(["postgresql"])):
        pytest.skip(reason)
    found = found or sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The address of an empty database, as Prefect takes it. `folder` must be one that the user
    postgres can reach.
    """
    where, port, prefix = programs(), free_port(), list[str]()
    folder.mkdir()
    if os.getuid() == 0:
        shutil.chown(folder, USER)
        prefix = ["runuser", "-u", USER, "--"]
    data = folder / "data"
    subprocess.run(
        [*prefix, where / "initdb", "-D", data, "-U", "prefect", "--auth=trust"],
        check=True,
        capture_output=True,
        cwd="/",
    )
    options = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories= -p {port}"
    control = [*prefix, where / "pg_ctl", "-D", data, "-w"]
    subprocess.run(
        [*control, "-l", folder / "log", "-o", options, "start"],
        check=True,
        capture_output=True,
        cwd="/",
    )
    try:
        make = [where / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "prefect", "prefect"]
        subprocess.run(make, check=True, capture_output=True)
        yield f"postgresql+asyncpg://prefect@127.0.0.1:{port}/prefect"
    finally:
        subprocess.run(
            [*control, "-m", "immediate", "stop"], check=True, capture_output=True, cwd="/"
        )
