"""Schedules: what a file may say, and that each night is done once, whatever is killed; which
requests reach Prefect's server, and who finds its password. A night is equal to the bit or what is
other is named; slower or not; cut and gone on with.
"""

import asyncio
import json
import os
import signal
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest import mock

import numpy as np
import psutil
import pyarrow as pa
import pytest
from httpx import ASGITransport, AsyncClient
from starlette.responses import PlainTextResponse

from flows.nightly import night
from flows.nightly.night import (
    NOTE,
    SHORTEST,
    accept_last,
    compared,
    opened_night,
    result_of,
    run_night,
)
from flows.runtime.prefect_server import (
    ADDRESS,
    NAMES,
    PASSWORD,
    announced,
    configure_prefect,
    guarded,
    served,
)
from flows.schedules.service import read_schedules
from flows.sweeping.file import read_sweep
from flows.sweeping.request import SweepRequest
from koco_stream.runs.schemas import schema
from koco_stream.streams.manifest import BORROWED, load_manifest
from storage.nights import NUMBERS, accept, add_night, curve_hashes, read_accepted, read_nights
from storage.results import read_curves, read_runs
from storage.store import open_store
from tests.helpers.in_process import command
from tests.helpers.listening import family, listeners, loopback
from tests.helpers.lookups import beyond_loopback, logging_lookups
from tests.helpers.pages import browser
from tests.helpers.project import ROOT, begun, wait_until
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import koco, prepared, swept, written

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
    application = ASGITransport(guarded(PlainTextResponse("reached"), [*ORIGINS, "*"]))

    async def answered(**headers):
        async with AsyncClient(transport=application, base_url="http://any") as client:
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


TWO_LEARNERS = """
[[dataset]]
name = "plain"
[[learner]]
name = "OGD"
step_size = {steps}
[[learner]]
name = "AdaGrad"
step_size = {steps}
"""
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def night_words(spec, store):
    return ("nightly", spec, "--store", store, "--workers", 0, "--json")


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """A sweep's file, beside a store without sweeps but with the first night of it."""
    folder, draw = tmp_path_factory.mktemp("nights"), np.random.default_rng(0)
    X = draw.standard_normal((60, 3))
    prepared(folder, "plain", X, X.sum(1) / 3)
    spec = written(folder, f'name = "small"\n{TWO_LEARNERS.format(steps=[0.1, 0.2])}', "small.toml")
    first = json.loads(command(*night_words(spec, folder / "store"), status=0).stdout)
    assert (first["result"], first["computed"]) == ("first", 4)
    return spec


@pytest.fixture
def store(spec):
    return spec.parent / "store"


def test_night__is_named_where_it_is_not_asked_for__and_shown_where_it_is(store, koco):
    plain = koco("results", "--store", store, status=0)
    assert f"--store {store}/nights/small" in " ".join(plain.stderr.split())
    assert plain.stdout == ""
    asked = koco("results", "--store", store, "--sweep", "small", status=2).stderr
    assert f"only a nightly run of it: --store {store}/nights/small" in " ".join(asked.split())
    rows = json.loads(koco("results", "--store", f"{store}/nights/small", "--json").stdout)
    runs = read_runs(f"{store}/nights/small").to_pylist()
    losses = pytest.approx(sorted(row["mean_loss"] for row in runs), rel=1e-11)
    assert sorted(row["mean_loss_mean"] for row in rows) == losses
    [row] = json.loads(koco("list", "sweeps", "--store", store, "--json", status=0).stdout)
    assert (row["sweep"], row["kind"], row["runs"], row["done"]) == ("small", "nightly run", 4, 4)
    said = koco("store", "remove", "dataset", "plain", "--store", store, status=2).stderr
    assert "used by the nights of small; keep their results" in said


def test_night__is_computed_anew_and_once__and_other_numbers_are_named(
    spec, store, koco, monkeypatch
):
    request, sweep = SweepRequest(str(spec), str(store)), read_sweep(spec)
    second = run_night(request, sweep, NOON)
    assert (second["result"], second["computed"]) == ("same numbers", 4)
    assert (second["night"], run_night(request, sweep, NOON)) == (NOON.isoformat(), {})
    known = read_accepted(store, "small").to_pylist()
    for row in known[:2]:
        row["digest"] = "other"
    accept(store, "small", second["night"], pa.Table.from_pylist(known, schema(NUMBERS)))
    for code in ("code and versions are those of", "code or versions are not those of"):
        changed = json.loads(koco(*night_words(spec, store), status=1).stdout)
        lines = " ".join(changed["details"])
        assert (changed["result"], changed["computed"]) == ("changed numbers", 4)
        assert "AdaGrad on plain: 2 of 2 runs have changed numbers" in lines
        assert f"{code} the accepted run" in lines
        monkeypatch.setattr(night, "versions", lambda: {"python": "another"})
    koco("nightly accept", "small", "--store", store, status=0)
    accepted = [row["accepted"] for row in read_nights(store, "small").to_pylist()]
    assert accepted == [True] * 4 + [False] * 2 + [True] * 2
    assert not (store / "results").exists()  # the sweep's own results are not touched


def test_digest__sees_the_last_bit_of_a_curve(store):
    curves = read_curves(f"{store}/nights/small")
    known, losses = curve_hashes(curves), curves.column("cumulative_loss").to_numpy().copy()
    losses[-1] = np.nextafter(losses[-1], np.inf)
    place = curves.column_names.index("cumulative_loss")
    other = curve_hashes(curves.set_column(place, "cumulative_loss", pa.array(losses)))
    assert [name for name in known if known[name] != other[name]] == [curves["run_id"][-1].as_py()]


def test_night__stands_beside_a_sweep_of_the_same_name(store, koco):
    swept(store.parent, TWO_LEARNERS.format(steps=0.3), "small")
    rows = json.loads(koco("results", "--store", store, "--sweep", "small", "--json").stdout)
    assert {json.loads(row["params"])["step_size"] for row in rows} == {0.3}
    of_night = koco("results", "--store", f"{store}/nights/small", "--json").stdout
    assert len(json.loads(of_night)) == 4
    kinds = [
        row["kind"] for row in json.loads(koco("list", "sweeps", "--store", store, "--json").stdout)
    ]
    assert kinds == ["sweep", "nightly run"]


def test_night__goes_on_where_it_was_cut__unless_code_or_sweep_are_others(spec, tmp_path, koco):
    store, sweep = open_store(tmp_path / "store"), read_sweep(spec)
    refusal("no nightly run", accept_last, store, "small")
    path = opened_night(store, sweep, "first")
    (path / "results").path.mkdir()
    assert opened_night(store, sweep, "second") == path
    assert (path / "results").path.exists()
    refusal("that began at second has not ended", accept_last, store, "small")
    for change in ({"code": "other"}, {"file": "other"}, {}):
        note = json.loads((path / NOTE).read_text())
        (path / NOTE).write_text(json.dumps({**note, **change}))
        if not change:  # it has ended
            row = {"sweep": "small", "dataset": "d", "learner": "L", "accepted": False}
            add_night(store, "small", [{**row, "night": note["night"]}])
        (path / "left").path.mkdir(exist_ok=True)
        opened_night(store, sweep, "third")
        assert not (path / "left").path.exists()
    for text in ("", "{", "[]", "{}", '{"night": 1, "code": "", "file": ""}'):
        (path / NOTE).write_text(text)
        said = koco("nightly accept", "small", "--store", store, status=2).stderr
        assert f"{path / NOTE} is damaged; remove it" in " ".join(said.split())


def numbers(*rows):
    common = {
        "dataset": "d",
        "dataset_hash": "h",
        "order": "as-stored",
        "learner": "L",
        "params": "{}",
        "status": "ok",
        "rounds": 9,
    }
    return pa.Table.from_pylist([{**common, **row} for row in rows], schema(NUMBERS))


def found(accepted, tonight):
    """The rows of the comparison by learner, without those of the night."""
    return {row["learner"]: row for row in compared(accepted, tonight)}


def test_changes__name_learner_and_dataset_and_what_it_is():
    before = numbers(
        {"params": "a", "mean_loss": 1.0, "digest": "x"},
        {"params": "b", "mean_loss": 2.0, "digest": "y"},
        {"params": "c", "mean_loss": 3.0, "digest": "z", "learner": "M"},
    )
    after = numbers(
        {"params": "a", "mean_loss": 1.0, "digest": "x"},
        {"params": "b", "mean_loss": 2.0 + 4e-12, "digest": "!"},
        {"params": "e", "mean_loss": 3.0, "digest": "z", "learner": "M"},
    )
    rows = found(before, after)
    assert rows["L"]["what"] == [
        "L on d: 1 of 2 runs have changed numbers (mean_loss was 2.0, is 2.000000000004), mean loss"
        " by up to 2.0e-12 of itself"
    ]
    assert rows["M"]["what"] == [
        "M on d: 1 of 1 runs of the accepted run are gone",
        "M on d: 1 runs that the accepted run did not have",
    ]
    assert rows["L"]["largest_change"] == pytest.approx(2e-12, rel=1e-3)
    assert [(row["numbers"], row["changed"], row["runs"]) for row in rows.values()] == [
        ("changed", 1, 2),
        ("changed", 1, 1),
    ]
    assert result_of([*rows.values()]) == "changed numbers"
    assert result_of([*found(before.slice(0, 2), before).values()]) == "same numbers"
    assert result_of([*found(before.slice(0, 0), before).values()]) == "first"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({}, []),
        (
            {"digest": "!", "dataset_hash": "k"},
            ["L on d: the dataset has other rows than in the accepted run (1 runs)"],
        ),
        # a curve is enough
        (
            {"digest": "y"},
            [
                "L on d: 1 of 1 runs have changed numbers (digest was x, is y), mean loss by up to"
                " 0.0e+00 of itself"
            ],
        ),
    ],
    ids=["nothing", "data", "curve"],
)
def test_changes__of_one_run(after, expected):
    run = {"params": "a", "mean_loss": 1.0, "digest": "x"}
    assert found(numbers(run), numbers({**run, **after}))["L"]["what"] == expected


def seconds(*each, **more):
    """Numbers of a learner whose runs took these seconds."""
    rows = [{"params": str(k), "seconds": one} for k, one in enumerate(each)]
    return numbers(*({"host": "h", "digest": "x", **row, **more} for row in rows))


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ((1.3, 1.3, 1.0, 1.4), "slower"),
        ((1.2, 1.0, 5.0, 1.0, 1.1), "same"),  # one run was disturbed
        ((0.7, 0.7, 9.0), "faster"),
    ],
)
def test_speeds__are_medians_of_paired_runs(times, verdict):
    accepted = seconds(*(0.1 * (k + 1) for k in range(len(times))))
    rows = found(accepted, seconds(*(0.1 * (k + 1) * time for k, time in enumerate(times))))
    assert rows["L"]["speed"] == verdict
    assert any(f"{verdict}, " in line for line in rows["L"]["what"]) == (verdict != "same")
    assert result_of([*rows.values()]) == ("same numbers" if verdict == "same" else verdict)


@pytest.mark.parametrize("other", [{"host": "other"}, {"status": "diverged"}, {"params": "new"}])
def test_speeds__of_other_machines_or_runs_and_of_short_ones_are_not_compared(other):
    assert found(seconds(1.0, 1.0, 1.0), seconds(2.0, 2.0, 2.0, **other))["L"]["speed"] is None
    assert found(seconds(*[SHORTEST / 2] * 9), seconds(*[SHORTEST] * 9))["L"]["ratio"] is None
    assert found(seconds(1.0, 1.0), seconds(2.0, 2.0))["L"]["ratio"] is None


def test_datasets__are_lent_only_by_the_store_that_a_store_is_inside_of(small_store, tmp_path):
    inside = small_store / "nights" / "x"
    inside.mkdir(parents=True)
    (inside / BORROWED).write_text(f"{small_store}\n")
    assert load_manifest(inside, "real") == load_manifest(small_store, "real")
    for lender in (tmp_path / "elsewhere", inside, f"{small_store}/nights/x/..", ""):
        (inside / BORROWED).write_text(f"{lender}\n")
        refusal("names", load_manifest, inside, "real")
