"""A real Slurm of one node for tests: munged, slurmctld and slurmd on loopback ports that are free,
with all they keep in one folder.
"""

import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.helpers.project import environment, free_ports, running

PROGRAMS = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "squeue": "slurm-client",
}
NODE, PARTITION = "here", "main"
STATE = "sinfo --noheader --format=%T"  # "idle" if the node waits for jobs
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


def why_not() -> str | None:
    """Why this machine cannot have such a Slurm; None if it can."""
    if os.getuid() != 0:
        return "needs to be root: slurmd starts jobs"
    lacking = ", ".join(
        sorted({PROGRAMS[name] for name in PROGRAMS if not shutil.which(name, path=PATH)})
    )
    return f"needs {lacking}: make test-packages" if lacking else None


@contextmanager
def slurm(folder: Path, cpus: int = 4, megabytes: int = 8000) -> Iterator[Path]:
    """The configuration file of a running Slurm that keeps all in `folder`; stopped at the end.
    Raises `RuntimeError`.
    """
    controller_port, node_port = free_ports(2)
    munge, file = folder / "munge", folder / "slurm.conf"
    for folder_of in (munge, folder / "state", folder / "spool"):
        folder_of.mkdir(mode=0o755)
    (munge / "key").write_bytes(secrets.token_bytes(128))
    (munge / "key").chmod(0o400)
    user = pwd.getpwuid(os.getuid()).pw_name
    text = CONFIGURATION.format(
        folder=folder,
        user=user,
        host=socket.gethostname().partition(".")[0],
        cpus=cpus,
        megabytes=megabytes,
        controller_port=controller_port,
        node_port=node_port,
        node=NODE,
        partition=PARTITION,
    )
    file.write_text(text)
    munged = f"munged --foreground --force --key-file={munge}/key --socket={munge}/socket"
    munged += f" --pid-file={munge}/pid --log-file={munge}/log --seed-file={munge}/seed"
    more = {"PATH": PATH, "SLURM_CONF": str(file)}
    ready = {
        munged: (munge / "socket").exists,
        f"slurmctld -D -f {file}": lambda: True,
        f"slurmd -D -f {file} -N {NODE}": lambda: slurm_says(STATE, False, **more) == "idle\n",
    }
    with ExitStack() as stack:
        for line, there in ready.items():
            words = line.split()
            out = folder / f"{words[0]}.out"
            stack.enter_context(running(words, out, there, signal.SIGTERM, **more))
        try:
            yield file
        finally:
            slurm_says(f"scancel --user {user}", False, **more)


def slurm_says(line: str, check: bool = True, **more: str) -> str:
    """What a command of Slurm's prints."""
    words, pipes = shlex.split(line), {"capture_output": True, "text": True, "timeout": 30}
    return subprocess.run(words, env=environment(**more), check=check, **pipes).stdout
