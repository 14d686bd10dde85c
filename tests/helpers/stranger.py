"""A client that should not get in, as a process: `stranger.py ADDRESS FILE [CERTIFICATES]` tries to
have FILE written by the cluster.

It speaks to a scheduler or a worker, plainly or with certificates of another authority. Prints how
it was refused; exit status 1 if it was not.
"""

import asyncio
import sys

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
    call = {"function": dumps(write), "args": dumps((path,)), "kwargs": dumps({}), "wait": True}
    for op in ("run", "run_function"):
        await comm.write({"op": op, **call, "reply": True})
        print(await asyncio.wait_for(comm.read(), 4))


def submit(address: str, path: str, security: Security | None) -> None:
    """What a client does."""
    with Client(address, security=security, timeout=4, set_as_default=False) as client:
        client.submit(write, path, pure=False).result(timeout=4)


def main(address: str, path: str, certificates: str | None = None) -> int:
    files = {"ca_file": "authority", "client_cert": "client", "client_key": "client-key"}
    given = {f"tls_{kind}": f"{certificates}/{name}.pem" for kind, name in files.items()}
    security = Security(require_encryption=True, **given) if certificates else None
    refused = 0
    for send in (submit, lambda *words: asyncio.run(ask_to_run(*words))):
        try:
            send(address, path, security)
        except Exception as error:
            refused += 1
            print(f"refused: {type(error).__name__}: {error}")
    return int(refused < 2)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
