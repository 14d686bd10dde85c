"""Schedules: what a file may say, which times are due, and that each is done once, whatever is
killed.
"""

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import psutil
import pytest
from prefect.server.schemas.schedules import CronSchedule

from flows.nightly.times import Times
from flows.runtime.prefect_server import ADDRESS, PASSWORD, served
from flows.schedules.file import read_schedules
from koco_stream import WrongInput
from storage.nights import add_night, read_nights
from tests.helpers.listening import family, listeners, loopback
from tests.helpers.lookups import beyond_loopback, logging_lookups
from tests.helpers.pages import browser
from tests.helpers.project import ROOT, begun, wait_until
from tests.helpers.swept import koco

SPEC = (
    'name = "small"\n[[dataset]]\nname = "ill-conditioned"\nn_rows = 500\n[[learner]]\nname ='
    ' "OGD"\n'
)
TABLE = '[[schedule]]\nname = "minute"\ncron = "* * * * *"\nsweep = "small.toml"\nworkers = 0\n'
NO_CRON = "line 3, schedule 1, cron: .*is not a cron expression"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "small.toml").write_text(SPEC)
    (tmp_path / "schedules.toml").write_text(TABLE)
    return tmp_path / "schedules.toml"


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
        (
            "workers = 0\n",
            f"\n{TABLE.replace('minute', 'other')}",
            "line 9, schedule 2, sweep: two schedules are for the sweep 'small'",
        ),
        ("[[schedule]]", "[[schedule", "a schedules file is TOML"),
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
    with pytest.raises(WrongInput, match=said):
        read_schedules(file, "store")


def test_prefect_yaml__names_flows_and_parameters_that_there_are():
    import inspect

    import yaml
    from prefect.flows import load_flow_from_entrypoint

    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    flows = [load_flow_from_entrypoint(table["entrypoint"]) for table in deployments]
    assert [flow.name for flow in flows] == ["prepare", "sweep", "report", "nightly"]
    for flow, table in zip(flows, deployments, strict=True):
        inspect.signature(flow.fn).bind(**table["parameters"])


def test_schedules_file__the_one_that_is_shipped_can_be_read():
    (schedule,) = read_schedules(ROOT / "flows" / "schedules.toml", "store")
    assert (schedule.sweep.is_file(), schedule.parameters()["seconds"]) == (True, 4 * 3600)


def done(store, *planned):
    """Nights of these planned times are in the history of `small`."""
    for time in planned:
        row = {"night": time.isoformat(), "sweep": "small", "dataset": "d", "learner": "L"}
        add_night(store, "small", [{**row, "accepted": False}])


CHANGES = [
    ("Europe/Paris", "2026-03-29T01:00:00+00:00"),
    ("Europe/Paris", "2026-10-25T01:00:00+00:00"),
    ("America/New_York", "2026-03-08T07:00:00+00:00"),
    ("America/Havana", "2026-03-08T05:00:00+00:00"),  # at midnight
    ("Australia/Lord_Howe", "2026-10-03T15:30:00+00:00"),  # by half an hour
    ("Australia/Lord_Howe", "2026-04-04T15:00:00+00:00"),
    ("Pacific/Apia", "2011-12-30T10:00:00+00:00"),  # a day is left out
]


@pytest.mark.parametrize(("zone", "change"), CHANGES)
@pytest.mark.parametrize("cron", ["0 2 * * *", "30 2 * * *", "0 0-3 * * *"])
def test_night__around_a_change_of_the_clock__is_each_that_prefect_plans_once(
    zone, change, cron, tmp_path
):
    begin = datetime.fromisoformat(change) - timedelta(days=2)
    schedule = CronSchedule(cron=cron, timezone=zone)
    dates = asyncio.run(schedule.get_dates(100, begin, begin + timedelta(days=4)))
    planned = [datetime.fromtimestamp(date.timestamp(), UTC) for date in dates]
    assert len(planned) >= 3
    Times(tmp_path, "small").begin(cron, zone, begin - timedelta(seconds=1))
    for time in planned:
        assert Times(tmp_path, "small").due(time - timedelta(seconds=1)) is None
        # Prefect has started the run a second early
        night = Times(tmp_path, "small").night_of(time, time - timedelta(seconds=1))
        assert night == time
        done(tmp_path, night)
        assert Times(tmp_path, "small").night_of(time, time + timedelta(minutes=9)) is None
    if cron != "0 0-3 * * *":
        days = {night.astimezone(ZoneInfo(zone)).date() for night in planned}
        assert len(days) == len(planned)


def test_nights__that_were_missed__are_one__the_last(tmp_path):
    Times(tmp_path, "small").begin("0 2 * * *", "UTC", NOON)
    three = [NOON + timedelta(days=k, hours=-10) for k in (1, 2, 3)]
    now = three[2] + timedelta(hours=5)
    times = Times(tmp_path, "small")
    assert times.due(NOON) is None  # planned before the schedule was there
    assert {times.night_of(asked, now) for asked in three} == {three[2]}
    done(tmp_path, three[2])
    times = Times(tmp_path, "small")
    assert {times.night_of(asked, now) for asked in three} == {None}
    assert times.night_of(now, now) == now  # asked for by hand
    times.begin("0 2 * * *", "UTC", now)
    assert times.done == three[2]  # nothing is forgotten


def test_schedule__counts_from_when_it_is_new_or_another_or_the_clock_was_ahead(tmp_path):
    for now, cron in ((NOON, "0 2 * * *"), (NOON + timedelta(1), "0 3 * * *"), (NOON, "0 3 * * *")):
        Times(tmp_path, "small").begin(cron, "UTC", now)
        assert Times(tmp_path, "small").done == now


def test_night__without_a_schedule__is_that_of_its_own_time_once(tmp_path):
    assert Times(tmp_path, "small").night_of(NOON, NOON + timedelta(days=3)) == NOON
    done(tmp_path, NOON)
    assert Times(tmp_path, "small").night_of(NOON, NOON + timedelta(days=3)) is None


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "{}", '{"cron": "* * * * *"}'])
def test_schedule__in_a_damaged_file__is_refused_with_the_file(text, tmp_path):
    Times(tmp_path, "small").begin("* * * * *", "UTC", NOON)
    file = tmp_path / "schedules" / "small.json"
    for wrong in (text, file.read_text().replace("2026", "soon")):
        file.write_text(wrong)
        with pytest.raises(WrongInput, match=f"{file} is damaged; remove it"):
            Times(tmp_path, "small")


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
