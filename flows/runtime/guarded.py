"""Prefect's server for requests to its own address, from its own pages or from no page.

Run as `python -m flows.runtime.guarded N` with the number of a listening socket. Pages of other
sites reach a server on the loopback interface too, by its address or by a name that is theirs.
"""

import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import uvicorn
from starlette.responses import PlainTextResponse

# Prefect's variable for the addresses of pages; what the user names there is added to its own.
ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"
NAMES = ("127.0.0.1", "localhost", "[::1]")
REFUSED = f"refused: this is no address of this server; {ORIGINS} names further ones\n"


class Guarded:
    """An ASGI application that gets only requests which name one of its origins as their host.

    Those of a page come with the page's origin, which must be one of them too.
    """

    def __init__(self, application: Callable[..., Awaitable[None]], origins: Iterable[str]) -> None:
        self.application = application
        self.origins = {origin.lower().encode() for origin in origins if "://" in origin}
        self.hosts = {origin.partition(b"://")[2] for origin in self.origins}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it, whether HTTP or a web socket."""
        allowed = scope["type"] == "lifespan" or self.allows(scope["headers"])
        answer = self.application if allowed else PlainTextResponse(REFUSED, 403)
        await answer(scope, receive, send)

    def allows(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a request with these headers is for this server."""
        given = [(name.lower(), value.lower()) for name, value in headers]
        hosts = {value for name, value in given if name == b"host"}
        pages = {value for name, value in given if name == b"origin"}
        return bool(hosts) and hosts <= self.hosts and pages <= self.origins


def main() -> None:
    """Serve Prefect on the socket that this process was given."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    port = listening.getsockname()[1]
    named = [origin.strip(" /") for origin in os.environ.get(ORIGINS, "").split(",")]
    origins = [*(f"http://{name}:{port}" for name in NAMES), *filter(None, named)]
    os.environ[ORIGINS] = ",".join(origins)
    # imported here, because prefect reads its settings when it is imported
    from prefect.server.api.server import create_app

    guarded = Guarded(create_app(final=True), origins)
    uvicorn.Server(uvicorn.Config(guarded, log_level="error")).run([listening])


if __name__ == "__main__":
    main()
