"""Which requests reach Prefect's server, and who can read its password."""

import asyncio
import os
from unittest import mock

import pytest

from flows.runtime.guarded import NAMES, Guarded
from flows.runtime.prefect_server import ADDRESS, PASSWORD, PrefectServer, configure_prefect, served

ORIGINS = [*(f"http://{name}:4200" for name in NAMES), "https://named.example", "*"]
OWN = [origin.partition("://")[2] for origin in ORIGINS[:-1]]
FOREIGN = [
    *("evil.example", "evil.example:4200", "127.0.0.1.evil.example:4200", "localhost.:4200", "*"),
    *("127.0.0.1", "127.0.0.1:4201", "[::1]", "[::1]:80", "[::ffff:7f00:1]:4200", "0.0.0.0:4200"),
    *("evil@127.0.0.1:4200", "127.0.0.1:4200,evil.example", "named.example:4200", " ", ""),
]
PAGES = [*(f"{kind}://{host}" for host in FOREIGN for kind in ("http", "https")), "null", "*", ""]


def reaches(*headers):
    """Whether requests with these headers reach the application, else they are refused."""

    async def application(scope, receive, send):
        await send("reached")

    async def answers(kind):
        sent = []

        async def send(message):
            sent.append(message)

        words = [(name.encode(), value.encode()) for name, value in headers]
        scope = {"type": kind, "headers": words, "extensions": {}}
        await Guarded(application, ORIGINS)(scope, None, send)
        return [message if message == "reached" else message.get("status") for message in sent]

    http, web_socket = (asyncio.run(answers(kind)) for kind in ("http", "websocket"))
    assert http == web_socket
    assert http in (["reached"], [403, None])
    return http == ["reached"]


def test_request__reaches_the_server_by_its_own_names_and_from_its_own_pages_alone():
    for host in OWN:
        assert reaches(("host", host.upper()))
        assert all(reaches(("host", host), ("origin", page)) for page in ORIGINS[:-1])
        assert not any(reaches(("host", host), ("origin", page)) for page in PAGES)
    assert not any(reaches(("host", host)) for host in FOREIGN)
    assert not any(reaches(("host", OWN[0]), ("Host", host)) for host in FOREIGN)
    assert not reaches()


@pytest.fixture
def environment():
    """This process's environment, without what names a server; as it was, afterwards."""
    with mock.patch.dict(os.environ):
        for name in (ADDRESS, PASSWORD, "PREFECT_SERVER_API_AUTH_STRING"):
            os.environ.pop(name, None)
        yield os.environ


def test_password__is_another_each_time__and_stands_in_a_file_of_the_user_s_own(environment):
    environment["PREFECT_SERVER_API_AUTH_STRING"] = ""  # no password: as if it were not set
    passwords = set()
    for port in (0, 0, None):
        with mock.patch.dict(os.environ):
            configure_prefect()
            server = PrefectServer(port)
            passwords.add(environment[PASSWORD])
            assert environment["PREFECT_SERVER_API_AUTH_STRING"] == environment[PASSWORD]
            assert len(environment[PASSWORD]) > 40
            with server.announced() as file:
                assert file.stat().st_mode & 0o777 == 0o600
                assert served() == {name: environment[name] for name in (ADDRESS, PASSWORD)}
            assert file.exists()  # as if the process were killed
            assert served() == {}
            server.socket.close()
    assert len(passwords) == 3


def test_server_of_another_s__is_not_given_our_password(environment):
    environment[ADDRESS] = "http://127.0.0.1:1/api"
    configure_prefect()
    assert PrefectServer().socket is None
    assert (environment[ADDRESS], environment.get(PASSWORD)) == ("http://127.0.0.1:1/api", None)
