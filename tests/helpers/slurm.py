"""A real Slurm of one node for tests: munged, slurmctld and slurmd on loopback ports that are free,
with all they keep in one folder.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.helpers.debian import installed
from tests.helpers.project import free_ports

PROGRAMS = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "squeue": "slurm-client",
}
STARTS_WITHIN = 60.0  # seconds
NODE, PARTITION = "here", "main"
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ReturnToService=2
KillWait=5
OverTimeLimit=0
MinJobAge=300
SchedulerParameters=sched_interval=2,batch_sched_delay=0,sched_min_interval=0
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={megabytes}
PartitionName={partition} Nodes={node} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """The packages of Debian that are not installed."""
    return sorted(
        {
            package
            for program, package in PROGRAMS.items()
            if shutil.which(program, path=PATH) is None
        }
    )


def install() -> str | None:
    """Install what is missing where that is possible; why it is not, otherwise."""
    if os.getuid() != 0:
        return "needs to be root: slurmd starts jobs"
    if reason := installed(missing()):
        return reason
    return (
        f"needs Slurm: {', '.join(missing())} did not come with its packages" if missing() else None
    )


@contextmanager
def slurm(folder: Path, cpus: int = 4, megabytes: int = 8000) -> Iterator[Path]:
    """The configuration file of a running Slurm that keeps all in `folder`; stopped at the end.
    Raises `RuntimeError`.
    """
    user, ports = pwd.getpwuid(os.getuid()).pw_name, free_ports(2)
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(mode=0o755)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    file = folder / "slurm.conf"
    named = {
        "folder": folder,
        "user": user,
        "host": socket.gethostname().partition(".")[0],
        "cpus": cpus,
        "megabytes": megabytes,
    }
    named |= {
        "controller_port": ports[0],
        "node_port": ports[1],
        "node": NODE,
        "partition": PARTITION,
    }
    file.write_text(CONFIGURATION.format(**named))
    munge = folder / "munge"
    munged = [
        "munged",
        "--foreground",
        "--force",
        f"--key-file={key}",
        f"--socket={munge}/socket",
        f"--pid-file={munge}/pid",
    ]
    munged += [f"--log-file={munge}/log", f"--seed-file={munge}/seed"]
    environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(file)}
    with ExitStack() as stack:
        stack.enter_context(_running(munged, environment, folder / "munged.out"))
        _wait("munged", lambda: (munge / "socket").exists(), folder / "munged.out")
        stack.enter_context(
            _running(["slurmctld", "-D", "-f", str(file)], environment, folder / "slurmctld.out")
        )
        stack.enter_context(
            _running(
                ["slurmd", "-D", "-f", str(file), "-N", NODE], environment, folder / "slurmd.out"
            )
        )
        _wait(
            "Slurm", lambda: _is_idle(environment), folder / "slurmctld.log", folder / "slurmd.log"
        )
        try:
            yield file
        finally:
            subprocess.run(
                ["scancel", "--user", user],
                env=environment,
                check=False,
                capture_output=True,
                timeout=30,
            )


@contextmanager
def _running(words: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    """The program, until the end; its jobs are gone by then or go with it."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            words, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()


def _is_idle(environment: dict[str, str]) -> bool:
    words = ["sinfo", "--noheader", "--format=%T"]
    return (
        subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=30
        ).stdout.strip()
        == "idle"
    )


def _wait(name: str, ready: object, *logs: Path) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while not ready():  # type: ignore[operator]
        if time.monotonic() > end:
            said = [log.read_text(errors="replace")[-1500:] for log in logs if log.exists()]
            raise RuntimeError(f"{name} did not start: {' '.join(said)}")
        time.sleep(0.1)
