"""A client that should not get in, as a process: `stranger.py ADDRESS FILE [CERTIFICATES]` tries to
have FILE written by the cluster.

It speaks to a scheduler or a worker, plainly or with certificates of another authority. Prints how
it was refused; exit status 1 if it was not.
"""

import asyncio
import sys
from pathlib import Path

from distributed import Client, Security
from distributed.core import connect
from distributed.protocol.pickle import dumps


def write(path: str) -> str:
    with open(path, "w") as file:
        file.write("a stranger was here")
    return path


async def ask_to_run(address: str, path: str, security: Security | None) -> None:
    """What `Client.run` and `Client.run_on_scheduler` send, without a client's manners."""
    more = security.get_connection_args("client") if security else {}
    comm = await connect(address, timeout=4, **more)
    for op in ("run", "run_function"):
        await comm.write(
            {
                "op": op,
                "function": dumps(write),
                "args": dumps((path,)),
                "kwargs": dumps({}),
                "wait": True,
                "reply": True,
            }
        )
        print(await asyncio.wait_for(comm.read(), 4))


def main(address: str, path: str, certificates: str | None = None) -> int:
    security = None
    if certificates:
        folder = Path(certificates)
        files = {
            "tls_client_cert": str(folder / "client.pem"),
            "tls_client_key": str(folder / "client-key.pem"),
        }
        security = Security(
            require_encryption=True, tls_ca_file=str(folder / "authority.pem"), **files
        )
    got_in = False
    try:
        with Client(address, security=security, timeout=4, set_as_default=False) as client:
            client.submit(write, path, pure=False).result(timeout=4)
            got_in = True
    except Exception as error:
        print(f"refused: {type(error).__name__}: {error}")
    try:
        asyncio.run(ask_to_run(address, path, security))
        got_in = True
    except Exception as error:
        print(f"refused: {type(error).__name__}: {error}")
    return int(got_in)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
