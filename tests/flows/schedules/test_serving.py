"""Schedules: what a file may say, which times are due, and that each is done once, whatever is
killed.
"""

import os
import signal
from datetime import UTC, datetime, timedelta
from functools import partial

import psutil
import pytest

from flows.nightly.times import KEPT, Times, last_planned
from flows.runtime.prefect_server import ADDRESS, PASSWORD, served
from flows.schedules.file import read_schedules
from koco_stream import WrongInput
from storage.nights import read_nights
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


@pytest.mark.parametrize(
    ("cron", "zone", "now", "expected"),
    [
        ("* * * * *", "UTC", "2026-03-04T12:00:59+00:00", "2026-03-04T12:00:00+00:00"),
        ("* * * * *", "UTC", "2026-03-04T12:00:00+00:00", "2026-03-04T12:00:00+00:00"),
        ("0 2 * * *", "Europe/Paris", "2026-03-04T12:00:00+00:00", "2026-03-04T01:00:00+00:00"),
        ("0 2 * * *", "Europe/Paris", "2026-07-04T12:00:00+00:00", "2026-07-04T00:00:00+00:00"),
        ("0 3 1 1 *", "UTC", "2026-03-04T12:00:00+00:00", "2026-01-01T03:00:00+00:00"),
        # that hour comes twice
        ("30 2 * * 0", "Europe/Paris", "2026-10-25T23:00:00+00:00", "2026-10-25T00:30:00+00:00"),
        ("0 0 29 2 *", "UTC", "2026-03-04T12:00:00+00:00", "2024-02-29T00:00:00+00:00"),
    ],
)
def test_last_planned__is_the_last_time_of_the_cron(cron, zone, now, expected):
    now, expected = datetime.fromisoformat(now), datetime.fromisoformat(expected)
    assert last_planned(cron, zone, now) == expected


@pytest.mark.parametrize(
    ("zone", "change", "moved"),
    [
        ("Europe/Paris", "2026-03-29T01:00:00+00:00", 1),
        ("Europe/Paris", "2026-10-25T01:00:00+00:00", -1),
        ("America/Havana", "2026-03-08T05:00:00+00:00", 1),  # at midnight
        ("Australia/Lord_Howe", "2026-10-03T15:30:00+00:00", 0.5),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00+00:00", -0.5),
        ("Pacific/Apia", "2011-12-30T10:00:00+00:00", 24),  # a day is left out
    ],
)
@pytest.mark.parametrize(("cron", "hours"), [("*/20 * * * *", 1 / 3), ("30 2 * * *", 24)])
def test_last_planned__around_a_change_of_the_clock__is_each_once(zone, change, moved, cron, hours):
    nows = [datetime.fromisoformat(change) + k * timedelta(hours=0.25) for k in range(-40, 120, 5)]
    found = [last_planned(cron, zone, now) for now in nows]
    assert found == sorted(found)
    longest = timedelta(hours=hours + abs(moved))
    assert all(now - longest <= one <= now for one, now in zip(found, nows, strict=True))
    assert hours < 24 or len(set(found)) <= 3


def test_times__of_those_that_passed_the_last_is_due_until_it_has_ended(tmp_path):
    times, minute, second = Times(tmp_path, "minute"), timedelta(minutes=1), timedelta(seconds=1)
    assert times.begin("* * * * *", "UTC", NOON + second) == NOON + second
    assert times.due(NOON + 30 * second) is None  # planned before the schedule was there
    planned, now = NOON + 5 * minute, NOON + 5 * minute + 3 * second
    # what was begun and did not end was cut
    for count in (1, 2):
        assert times.due(now) == planned
        assert times.why_not(planned, now) is None
        assert "is due too" in times.why_not(planned - minute, now)
        assert times.note_begun(planned, now) == count
    assert "has begun already" in times.why_not(planned - minute, planned - 0.5 * minute)
    times.note_ended(planned, now, "Same numbers")
    assert times.due(now) is None
    assert "has ended already: Same numbers" in times.why_not(planned, now)
    # started again: nothing is forgotten
    assert times.begin("* * * * *", "UTC", now) == NOON + second
    assert times.begin("0 * * * *", "UTC", now) == now
    assert times.due(now) is None
    for k in range(KEPT + 5):
        times.note_ended(NOON + k * minute, now, "First")
    assert len(times.done()) == KEPT


def test_times__noted_while_the_clock_was_ahead__stop_no_later_run(tmp_path):
    times, hour = Times(tmp_path, "hour"), timedelta(hours=1)
    ahead = NOON + timedelta(days=900)
    times.begin("0 * * * *", "UTC", ahead)
    for k in range(KEPT + 5):
        times.note_ended(ahead + k * hour, ahead + k * hour, "Same numbers")
    # the clock is right again
    assert times.begin("0 * * * *", "UTC", NOON) == NOON
    for k in range(1, 5):
        planned = NOON + k * hour
        assert times.due(planned) == planned
        assert times.why_not(planned, planned) is None
        assert times.note_begun(planned, planned) == 1
        times.note_ended(planned, planned, "Same numbers")
        assert times.due(planned) is None
    # and set back once more: what has ended is not done twice
    assert "has ended already" in times.why_not(NOON + hour, NOON + hour)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"x"', '{"2026-01-01T00:00:00+00:00": 1}', '{"x": {}}']
)
def test_times__in_a_damaged_file__are_refused_with_the_file(text, tmp_path):
    times = Times(tmp_path, "minute")
    times.begin("* * * * *", "UTC", NOON)
    times.times.write_text(text)
    with pytest.raises(WrongInput, match=f"{times.times} is damaged; remove it"):
        times.due(NOON + timedelta(minutes=2))
    times.rule.write_text(text)
    for work in (times.due, lambda now: times.begin("* * * * *", "UTC", now)):
        with pytest.raises(WrongInput, match=f"{times.rule} is damaged; remove it"):
            work(NOON)


def ended(store):
    """The planned times that have ended."""
    done = Times(store, "minute").done().items()
    return sorted(datetime.fromisoformat(planned) for planned, one in done if "ended" in one)


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
    words = ("serve", "--schedules", file, "--store", store)
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
    done = [night["planned"] for night in nights]
    assert done == ended(store)  # each once, and of those that passed only the last
    assert done[done.index(before) + 1] - before > timedelta(minutes=1)
    same = ["same numbers"] * (len(nights) - 1)
    assert [night["result"] for night in nights] == ["first", *same]
    assert beyond_loopback(lookups) == []
    assert "connect" in lookups.read_text()
