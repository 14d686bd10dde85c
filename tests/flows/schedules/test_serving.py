"""Schedules: what a file may say, and that each night is done once, whatever is killed; which
requests reach Prefect's server, and who finds its password.
"""

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest import mock

import psutil
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
from flows.schedules.service import read_schedules
from storage.nights import read_nights
from tests.helpers.listening import family, listeners, loopback
from tests.helpers.lookups import beyond_loopback, logging_lookups
from tests.helpers.pages import browser
from tests.helpers.project import ROOT, begun, wait_until
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import koco, written

SPEC = (
    'name = "small"\n[[dataset]]\nname = "ill-conditioned"\nn_rows = 500\n[[learner]]\nname ='
    ' "OGD"\n'
)
TABLE = '[[schedule]]\nname = "minute"\ncron = "* * * * *"\nsweep = "small.toml"\nworkers = 0\n'
NO_CRON = "line 3, schedule 1, cron: .*is not a cron expression"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "small.toml").write_text(SPEC)
    return written(tmp_path, TABLE, "schedules.toml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("cron =", "crom =", "line 3, schedule 1, crom: unknown key; did you mean 'cron'"),
        ('cron = "* * * * *"\n', "", "schedule 1, cron: this key is missing"),
        ("small.toml", "smal.toml", "line 4, schedule 1, sweep: .*no such sweep file"),
        ("workers = 0", 'workers = "0"', "line 5, schedule 1, workers: .*not '0'"),
        (
            "workers = 0",
            'timezone = "Europe/Pariss"',
            "line 5, schedule 1, timezone: .*did you mean 'Europe/Paris'",
        ),
        ("workers = 0", 'time_limit = "4 h"', "line 5, schedule 1, time_limit: .*HH:MM:SS"),
        (
            "workers = 0",
            'cluster = "tcp://10.0.0.1:1"',
            "line 5, schedule 1, cluster: .*not on the loopback",
        ),
        ("workers = 0", 'store = "ftp://x/y"', "line 5, schedule 1, store: a store is a folder"),
        ("[[schedule]]", "[[schedul]]", "schedul"),
        (
            "workers = 0\n",
            f"\n{TABLE}",
            "line 7, schedule 2, name: two schedules are called 'minute'",
        ),
        ("[[schedule]]", "[[schedule", r"is not TOML in UTF-8 \(.*; a text stands in quotation"),
        ("* * * * *", "* * * *", NO_CRON),
        ("* * * * *", "61 * * * *", NO_CRON),
        ("* * * * *", "0 0 30 2 *", NO_CRON),
        ("* * * * *", "every night", NO_CRON),
        ("* * * * *", "0 0 2 * * *", NO_CRON),
        ("* * * * *", "0 0 2 * * * 2026", NO_CRON),
        ("* * * * *", "@daily", NO_CRON),
        ("* * * * *", "R(0-30) 2 * * *", NO_CRON),
    ],
)
def test_schedules_file__what_is_wrong_is_named(file, old, new, said):
    file.write_text(TABLE.replace(old, new, 1))
    refusal(said, read_schedules, file, "store")


def test_prefect_yaml__names_flows_and_parameters_that_there_are():
    import inspect

    import yaml
    from prefect.flows import load_flow_from_entrypoint

    for table in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]:
        flow = load_flow_from_entrypoint(table["entrypoint"])
        inspect.signature(flow.fn).bind(**table["parameters"])


def test_schedules_file__the_one_that_is_shipped_can_be_read():
    (schedule,) = read_schedules(ROOT / "flows" / "schedules.toml", "store")
    assert (schedule.sweep.is_file(), schedule.time_limit) == (True, "04:00:00")


@pytest.mark.parametrize(
    ("change", "planned"),
    [("2026-03-29", "2026-03-29T00:00:00+00:00"), ("2026-10-25", "2026-10-25T00:00:00+00:00")],
)
def test_two_o_clock__when_it_is_skipped_or_comes_twice__is_one_night(change, planned):
    from prefect.server.schemas.schedules import CronSchedule

    clock = CronSchedule(cron="0 2 * * *", timezone="Europe/Paris")
    start = datetime.fromisoformat(f"{change}T00:00:00+00:00") - timedelta(hours=12)
    dates = asyncio.run(clock.get_dates(10, start, start + timedelta(days=1)))
    assert [datetime.fromtimestamp(date.timestamp(), UTC).isoformat() for date in dates] == [
        planned
    ]


def ended(store):
    """The planned times of the nights that have ended."""
    nights = read_nights(store, "small").column("night").to_pylist()
    return sorted(map(datetime.fromisoformat, nights))


def struck(process, blow):
    """What `koco serve` has said, when it is ended so and nothing of it is left."""
    everyone = family(process.pid)
    process.send_signal(blow)
    said = process.communicate(timeout=60.0)[1]
    wait_until(lambda: not any(map(psutil.pid_exists, everyone)), "processes are left", 30.0)
    assert served() == {}
    assert "Traceback" not in said
    return said


@pytest.mark.system
def test_serve__each_minute_once__with_pages_for_who_has_the_password(file, tmp_path):
    hook, lookups = logging_lookups(tmp_path / "hook")
    more = {"PREFECT_HOME": str(tmp_path / "prefect"), ADDRESS: ""}
    more["PYTHONPATH"] = os.pathsep.join([str(hook), str(ROOT)])
    store = tmp_path / "store"
    words = ("serve", file, "--store", store)
    wait = partial(wait_until, what="koco serve does nothing", patience=150.0)
    with begun(*words, **more) as serving, browser() as started:
        given = wait(served)
        koco("sweep", file.parent / "small.toml", "--store", "other", cwd=tmp_path, **more)
        pages = given[ADDRESS].removesuffix("/api")
        for address in (pages, pages.replace("127.0.0.1", "localhost")):
            page = started.new_page()
            page.goto(f"{address}/deployments")
            page.locator("input[type=password]").fill(given[PASSWORD])
            page.keyboard.press("Enter")
            page.get_by_text("minute-").first.wait_for()
            page.goto(f"{address}/runs")
            page.get_by_text("small", exact=True).first.wait_for()  # the sweep
        assert "another koco serve" in koco(*words, cwd=tmp_path, status=1, **more).stderr
        wait(lambda: ended(store))
        assert {loopback(address) for address, _ in listeners(family(serving.pid))} == {True}
        struck(serving, signal.SIGKILL)
    before = ended(store)[-1]
    enough = before + timedelta(seconds=125)  # two times pass
    wait(lambda: datetime.now(UTC) > enough)
    with begun(*words, **more) as serving:
        wait(lambda: ended(store)[-1] > before)
        assert given[PASSWORD] not in struck(serving, signal.SIGINT)
    nights = read_nights(store, "small").to_pylist()
    done = ended(store)
    assert len({*done}) == len(done)  # each once, and of those that passed only the last
    assert done[done.index(before) + 1] - before > timedelta(minutes=1)
    same = ["same numbers"] * (len(nights) - 1)
    assert [night["result"] for night in nights] == ["first", *same]
    assert beyond_loopback(lookups) == []
    assert "connect" in lookups.read_text()


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
