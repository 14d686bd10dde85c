"""Which requests reach Prefect's server, and who finds its password."""

import asyncio
import os
from unittest import mock

import pytest
from httpx import ASGITransport, AsyncClient
from starlette.responses import PlainTextResponse

from flows.runtime.prefect_server import (
    ADDRESS,
    NAMES,
    PASSWORD,
    Guarded,
    announced,
    configure_prefect,
    served,
)

ORIGINS = [*(f"http://{name}:4200" for name in NAMES), "https://named.example"]
HOSTS = [origin.partition("://")[2] for origin in ORIGINS]
FOREIGN = [
    *("evil.example", "evil.example:4200", "127.0.0.1.evil.example:4200", "localhost.:4200", "*"),
    *("127.0.0.1", "127.0.0.1:4201", "[::1]", "[::1]:80", "[::ffff:7f00:1]:4200", "0.0.0.0:4200"),
    *("evil@127.0.0.1:4200", "127.0.0.1:4200,evil.example", "named.example:4200", " ", ""),
]
PASSWORDS = set()
PAGES = [*(f"{kind}://{host}" for host in FOREIGN for kind in ("http", "https")), "null", "*", ""]


def test_request__reaches_the_server_by_its_names_and_from_its_pages_alone():
    guarded = ASGITransport(Guarded(PlainTextResponse("reached"), [*ORIGINS, "*"]))

    async def answered(**headers):
        async with AsyncClient(transport=guarded, base_url="http://any") as client:
            return (await client.get("/", headers=headers)).status_code

    def status(host, **more):
        return asyncio.run(answered(host=host, **more))

    for host in HOSTS:
        assert status(host.upper()) == 200
        assert {status(host, origin=page) for page in ORIGINS} == {200}
        assert {status(host, origin=page) for page in PAGES} == {403}
        assert {status(other, origin=ORIGINS[0]) for other in FOREIGN} == {403}
    assert {status(other) for other in FOREIGN} == {403}


@pytest.fixture
def without():
    """The environment without a server, and without a password: an empty variable is none."""
    none = {ADDRESS: "", "PREFECT_SERVER_API_AUTH_STRING": ""}
    with mock.patch.dict(os.environ, none):
        yield


@pytest.mark.parametrize("time", [1, 2])
def test_password__is_another_each_time__and_stands_in_a_file_of_the_user_s_own(time, without):
    configure_prefect(serving=True)
    assert os.environ[PASSWORD] == os.environ["PREFECT_SERVER_API_AUTH_STRING"]
    assert len(os.environ[PASSWORD]) > 40
    assert os.environ[PASSWORD] not in PASSWORDS
    PASSWORDS.add(os.environ[PASSWORD])
    os.environ[ADDRESS] = "http://127.0.0.1:4200/api"
    given = {name: os.environ[name] for name in (ADDRESS, PASSWORD)}
    with announced(4200) as file:
        assert file.stat().st_mode & 0o777 == 0o600
        assert served() == given
        os.environ.update(dict.fromkeys((*given, "PREFECT_SERVER_API_AUTH_STRING"), ""))
        configure_prefect()  # as another process of this user does
        assert {name: os.environ[name] for name in given} == given
    assert file.exists()  # as if the process were killed
    assert served() == {}


def test_another_server__is_not_given_our_password(without):
    theirs = {ADDRESS: "http://127.0.0.1:1/api", PASSWORD: "theirs"}
    os.environ.update(theirs)
    configure_prefect()
    assert {name: os.environ[name] for name in theirs} == theirs
