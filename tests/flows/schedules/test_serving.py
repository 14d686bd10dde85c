"""Schedules: what a file may say, which times are due, and that each is done once, whatever is
killed.
"""

import asyncio
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

import psutil
import pytest

from flows.nightly.times import KEPT, Times, last_planned
from flows.runtime.processes import locked
from flows.schedules.file import read_schedules
from koco_stream import WrongInput
from storage.nights import read_nights
from storage.store import open_store
from tests.helpers.disturbed import prefect_server
from tests.helpers.listening import family, listeners, loopback
from tests.helpers.lookups import beyond_loopback, logging_lookups
from tests.helpers.postgres import postgres
from tests.helpers.project import ROOT, command, environment, wait_until

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


def test_times__of_those_that_passed_the_last_is_due_until_it_has_ended(tmp_path):
    times, minute, second = Times(tmp_path, "minute"), timedelta(minutes=1), timedelta(seconds=1)
    assert times.begin("* * * * *", "UTC", NOON + second) == NOON + second
    assert times.due(NOON + 30 * second) is None  # planned before the schedule was there
    planned, now = NOON + 5 * minute, NOON + 5 * minute + 3 * second
    # what was begun and did not end was cut
    for begun in (1, 2):
        assert times.due(now) == planned
        assert times.why_not(planned, now) is None
        assert "is due too" in times.why_not(planned - minute, now)
        assert times.note_begun(planned, now) == begun
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


def test_alone__a_second_one_is_refused_until_the_first_lets_go(tmp_path):
    serving = partial(locked, tmp_path, "serve", None)
    for _ in range(2):
        with serving(), locked(tmp_path, "nightly", None):
            with pytest.raises(BlockingIOError), serving():
                pass


@pytest.mark.system
def test_made_up__once_for_the_last_time_that_passed__and_what_was_cut_again(file, tmp_path):
    """Against a server of Prefect's, without its scheduler's and the runner's minutes."""
    from prefect import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings
    from prefect.states import Completed, Pending, Scheduled

    from flows.schedules.deployments import (
        StateType,
        clear_up,
        deployment_of,
        make_up,
        runs_of_deployment,
    )

    store = tmp_path / "store"
    (schedule,) = read_schedules(file, str(open_store(store)))
    times, now = Times(store, "minute"), datetime.now(UTC)
    times.begin("0 0 1 1 *", "UTC", now - timedelta(days=800))  # due since January
    due, grace = times.due(now), timedelta()

    async def tried():
        async with get_client() as client:
            await clear_up(client, schedule)  # nothing was ever registered
            deployment = await (await deployment_of(schedule)).aapply()
            await make_up(client, schedule, deployment, timedelta(days=800))
            flow_runs = partial(runs_of_deployment, client, deployment, *StateType)
            assert await flow_runs() == []  # Prefect may still be about to
            await make_up(client, schedule, deployment, grace)
            await make_up(client, schedule, deployment, grace)
            (run,) = await flow_runs()
            assert datetime.fromtimestamp(run.expected_start_time.timestamp(), UTC) == due
            assert datetime.fromisoformat(run.parameters["planned"]) == due
            await client.set_flow_run_state(run.id, Pending(), force=True)  # then all is killed
            await client.create_flow_run_from_deployment(
                deployment, state=Scheduled(scheduled_time=due - timedelta(days=1))
            )
            await clear_up(client, schedule)
            await make_up(client, schedule, deployment, grace)
            states = sorted(str(run.state.name) for run in await flow_runs())
            assert states == ["Crashed", "Scheduled", "Scheduled"]  # the one by hand stays too
            for run in await flow_runs():
                if run.state.is_scheduled():
                    await client.set_flow_run_state(run.id, Completed(), force=True)
            times.note_ended(due, now, "First")
            await make_up(client, schedule, deployment, grace)
            assert len(await flow_runs()) == 3

    with prefect_server(tmp_path) as address, temporary_settings({PREFECT_API_URL: address}):
        asyncio.run(tried())


class Serving:
    """`koco serve` in a session of its own."""

    def __init__(self, folder, file, store, environment):
        self.store = store
        self.log = folder / f"serve-{time.monotonic_ns()}.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command("serve", "--schedules", file, "--store", store),
                env=environment,
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # it hears Ctrl-C, also where the tests run in the background
                preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            )

    def said(self):
        return self.log.read_text()

    def times(self):
        return Times(self.store, "minute").done()

    def ended(self):
        """The planned times that have ended."""
        return sorted(
            datetime.fromisoformat(planned)
            for planned, noted in self.times().items()
            if "ended" in noted
        )

    def wait_for(self, count, patience):
        """Until so many planned times have ended."""
        wait_until(
            lambda: self.process.poll() is not None or len(self.ended()) >= count,
            f"no {count} nights: {self.said()}",
            patience,
        )
        assert self.process.poll() is None, self.said()

    def kill(self, blow):
        """End it so; then nothing of it is left."""
        everyone = family(self.process.pid)
        os.kill(self.process.pid, blow)
        self.process.wait(60)
        wait_until(
            lambda: not any(psutil.pid_exists(pid) for pid in everyone), "processes are left", 30.0
        )


@pytest.mark.soak
@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_serve__each_minute_once__also_when_it_is_killed(database, file, tmp_path):
    with ExitStack() as stack:
        hook, lookups = logging_lookups(tmp_path / "hook")
        more = environment(
            PYTHONPATH=os.pathsep.join([str(hook), str(ROOT)]), KOCO_CACHE=str(tmp_path / "cache")
        )
        if database == "PostgreSQL":
            more["PREFECT_API_DATABASE_CONNECTION_URL"] = stack.enter_context(postgres())
        store = tmp_path / "store"

        def served():
            begun = Serving(tmp_path, file, store, more)
            stack.callback(begun.process.kill)
            return begun

        first = served()
        first.wait_for(2, 260)
        addresses = listeners(family(first.process.pid))
        assert addresses
        assert all(loopback(address) for address, _ in addresses), addresses
        for planned, noted in first.times().items():
            late = datetime.fromisoformat(noted["begun"][0]) - datetime.fromisoformat(planned)
            print(f"\n  {database}: planned for {planned}, begun {late} later", end="")
            assert timedelta(0) <= late < timedelta(seconds=10)
        other = served()
        assert other.process.wait(120) == 1
        assert "another koco serve" in other.said()
        seen = len(first.times())
        first.kill(signal.SIGKILL)
        assert len(first.times()) <= seen + 1
        before = first.ended()
        # two times at least pass
        enough = before[-1] + timedelta(seconds=135)
        wait_until(lambda: datetime.now(UTC) > enough, "time passes", 200.0)
        second = served()
        second.wait_for(len(before) + 2, 260)
        second.kill(signal.SIGINT)
        assert second.process.returncode == 1, second.said()
        assert "Traceback" not in first.said() + second.said(), second.said()
        done = second.ended()
        restarted = [planned for planned in done if planned > before[-1]]
        # of those that passed meanwhile only the last
        assert restarted[0] - before[-1] > timedelta(minutes=1)
        assert all(b - a == timedelta(minutes=1) for a, b in pairwise(restarted)), restarted
        nights = read_nights(store, "small").to_pylist()
        assert [night["planned"] for night in nights] == done  # each once
        same = ["same numbers"] * (len(nights) - 1)
        assert [night["result"] for night in nights] == ["first", *same]
        assert beyond_loopback(lookups) == []
        assert "connect" in lookups.read_text()
