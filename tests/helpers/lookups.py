"""Who looks up or contacts whom: an audit hook in every Python process that is started, which
writes each address to a file.
"""

import os
from ipaddress import ip_address
from pathlib import Path

HOOK = """
import os, sys

def _noted(event, words):
    if event in ("socket.connect", "socket.sendto"):
        address = words[1]
        told = address[0] if isinstance(address, tuple) else "unix socket"
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        told = words[0][0] if isinstance(words[0], tuple) else words[0]
    else:
        return
    line = f"{event} {told.decode() if isinstance(told, bytes) else told}\\n".encode()
    file = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line)
    os.close(file)

sys.addaudithook(_noted)
"""


def logging_lookups(folder: Path) -> tuple[Path, Path]:
    """A folder for PYTHONPATH whose processes note what they contact, and the file in which they
    do.
    """
    folder.mkdir()
    log = folder / "lookups.txt"
    (folder / "sitecustomize.py").write_text(HOOK.replace("FILE", repr(os.fspath(log))))
    return folder, log


def beyond_loopback(log: Path) -> list[str]:
    """What was looked up or contacted that is not this machine's loopback interface."""
    found = []
    for line in sorted(set(log.read_text().splitlines())):
        host = line.partition(" ")[2]
        try:
            inside = (
                ip_address(host.partition("%")[0]).is_loopback or ip_address(host).is_unspecified
            )
        except ValueError:
            inside = host in ("localhost", "unix socket", "None", "")
        if not inside:
            found.append(line)
    return found
