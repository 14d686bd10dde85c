"""A scheduler and workers as processes of their own, as a user starts them: `dask scheduler` and
`dask worker`.
"""

import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from tests.helpers.project import end, environment, free_ports, wait_ready


class Processes:
    """Processes of one cluster, their logs in `folder`; `prefix` are words before each command,
    `more` go into the environment.
    """

    def __init__(self, folder: Path, more: dict[str, str] | None = None) -> None:
        self.folder, self.running = folder, dict[str, subprocess.Popen[bytes]]()
        folder.mkdir(exist_ok=True)
        self.more = {"DASK_TEMPORARY_DIRECTORY": str(folder), **(more or {})}

    def start(
        self, name: str, words: Sequence[str], prefix: Sequence[str] = (), **more: str
    ) -> subprocess.Popen[bytes]:
        """Start `dask WORDS`, in a session of its own."""
        command = [*prefix, sys.executable, "-m", "dask", *words]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(**{**self.more, **more}),
                start_new_session=True,
                cwd=self.folder,
            )
        self.running[name] = process
        return process

    def start_line(
        self, name: str, line: str, prefix: Sequence[str] = (), **more: str
    ) -> subprocess.Popen[bytes]:
        """Start a line `NAME=VALUE … dask WORDS`, as `koco cluster certificates` prints it."""
        words = shlex.split(line)
        first = words.index("dask")
        settings = dict(word.split("=", 1) for word in words[:first])
        return self.start(name, words[first + 1 :], prefix, **{**settings, **more})

    def scheduler(self, *words: str, prefix: Sequence[str] = (), **more: str) -> str:
        """Start a scheduler, on a free loopback port unless the words say where; returns its
        address once it is there.
        """
        [port] = free_ports(1)
        where = words or ("--host", "127.0.0.1", "--port", str(port))
        self.start("scheduler", ["scheduler", *where, "--no-dashboard"], prefix, **more)
        self.wait_for("scheduler", "Scheduler at:")
        return f"tcp://127.0.0.1:{port}"

    def worker(
        self, name: str, address: str, *words: str, prefix: Sequence[str] = (), **more: str
    ) -> subprocess.Popen[bytes]:
        """Start a worker with one thread; without a nanny nothing of ours is preloaded. It may not
        be there yet when this returns.
        """
        common = ["--nthreads", "1", "--no-dashboard", "--memory-limit", "1GB", "--name", name]
        preemptible = (
            []
            if "--no-nanny" in words
            else ["--preload", "cluster.preemption", "--preload-nanny", "cluster.preemption"]
        )
        given = ["worker", address, *common, "--local-directory", str(self.folder), *preemptible]
        return self.start(name, [*given, *words], prefix, **more)

    def log(self, name: str) -> str:
        """What the process has printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_for(self, name: str, text: str) -> None:
        """Wait until the process has printed this. Raises `RuntimeError` if it ends before, or
        takes long.
        """
        wait_ready(self.running[name], self.folder / f"{name}.log", lambda: text in self.log(name))

    def kill(self, name: str) -> None:
        """SIGKILL to the process and all that it started."""
        end(self.running.pop(name))

    def close(self) -> None:
        """Kill what is left."""
        for name in list(self.running):
            self.kill(name)


@contextmanager
def processes(folder: Path, more: dict[str, str] | None = None) -> Iterator[Processes]:
    """A cluster's processes, killed at the end."""
    with closing(Processes(folder, more)) as found:
        yield found
