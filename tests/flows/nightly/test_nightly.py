"""Nightly runs: equal to the bit or named, slower or not, whatever the noise; killed and gone on
with.
"""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.nightly.night import NOTE, accept_last, night_path, opened_night, read_note
from flows.nightly.regression import (
    CAP,
    FLOOR,
    Speed,
    band,
    changes,
    earlier_ratios,
    result_of,
    verdict_of,
)
from flows.sweep.file import read_sweep
from koco_stream import WrongInput
from koco_stream.errors import StoreUnavailable
from koco_stream.runs.schemas import schema
from koco_stream.streams.manifest import BORROWED, load_manifest
from storage.catalogue.fetch import Unreachable, WrongChecksum
from storage.nights import NUMBERS, add_night, numbers_of, read_nights
from storage.results import read_runs, result_files
from storage.store import open_store
from tests.helpers.disturbed import prefect_server
from tests.helpers.nights import SLOWER, TWELFTH_DIGIT, altered, in_environment, nights
from tests.helpers.project import ROOT, command

SPEC = """
name = "small"
[[dataset]]
name = "ill-conditioned"
n_rows = 3000
scale = "unit-mean-square"
[[learner]]
name = "OGD"
step_size = [0.1, 1]
[[learner]]
name = "AdaGrad"
step_size = [0.1, 1]
"""


LIMITED = """
import sys
from flows.nightly.flow import nightly_flow
state = nightly_flow(sys.argv[1], sys.argv[2], seconds=0.05, return_state=True)
print(state.type.value, state.name)
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


def test_nights__of_the_same_code_have_the_same_numbers__and_the_twelfth_digit_is_named(
    spec, tmp_path
):
    store = tmp_path / "store"
    first, second = nights(ROOT, spec, store, 2)
    assert (first["result"], first["state"], first["type"]) == ("first", "First", "COMPLETED")
    assert (second["result"], second["state"], second["type"]) == (
        "same numbers",
        "Same numbers",
        "COMPLETED",
    ), second
    assert first["computed"] == second["computed"] == 4  # anew each night
    (changed,) = nights(altered(tmp_path / "digit", TWELFTH_DIGIT), spec, store)
    assert (changed["result"], changed["state"], changed["type"]) == (
        "changed numbers",
        "Changed numbers",
        "FAILED",
    )
    (named,) = [line for line in changed["details"] if "other numbers" in line]
    assert named.startswith("AdaGrad on ill-conditioned")
    assert "2 of 2 runs" in named
    assert any("code or versions are not those" in line for line in changed["details"])
    history = pq.read_table(store / "history").to_pylist()
    changes_of = {
        (row["learner"], row["night"]): row["largest_change"]
        for row in history
        if row["numbers"] == "changed"
    }
    assert list(changes_of) == [("AdaGrad", changed["night"])]
    assert 1e-14 < changes_of["AdaGrad", changed["night"]] < 1e-10
    assert [row["accepted"] for row in history] == [True, True, *[False] * 4]
    assert not (store / "results").exists()  # the sweep's own results are not touched
    assert accept_last(store, "small") == changed["night"]
    assert [row["accepted"] for row in read_nights(store, "small").to_pylist()] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]


def test_night__goes_on_where_it_was_cut__unless_code_or_sweep_are_others(spec, tmp_path):
    store = open_store(tmp_path / "store")
    sweep = read_sweep(spec)
    with pytest.raises(WrongInput, match="no nightly run"):
        accept_last(store, "small")
    night, name = opened_night(store, sweep)
    (night / "results").path.mkdir()
    assert opened_night(store, sweep) == (night, name)
    assert (night / "results").path.exists()
    with pytest.raises(WrongInput, match="has not ended"):
        accept_last(store, "small")
    for change in ({"code": "other"}, {"file": "other"}, {"ended": True}):
        (night / NOTE).write_text(json.dumps({**read_note(night), **change}))
        (night / "left").path.mkdir(exist_ok=True)
        _, again = opened_night(store, sweep)
        assert again != name
        assert not (night / "left").path.exists()
        name = again


@pytest.mark.soak
def test_night__that_was_killed_goes_on_to_the_same_numbers(spec, tmp_path):
    spec.write_text(
        SPEC.replace("[0.1, 1]", "{ powers_of_two = [-150, 149] }").replace("3000", "20000")
    )
    words = [
        sys.executable,
        str(ROOT / "tests" / "helpers" / "nights.py"),
        str(spec),
        str(tmp_path / "store"),
        "1",
    ]
    home = {
        "PREFECT_HOME": os.path.join(os.environ["KOCO_CACHE"], "prefect"),
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
    }
    begun = subprocess.Popen(
        words, env=in_environment(ROOT, **home), stderr=subprocess.PIPE, text=True
    )
    night = night_path(tmp_path / "store", "small")
    while begun.poll() is None and not (read_note(night) and result_files(night)):
        time.sleep(0.01)
    begun.kill()
    said = begun.communicate()[1]
    assert begun.returncode == -signal.SIGKILL, said
    note, there = read_note(night), read_runs(night).num_rows
    assert there
    (ended,) = nights(ROOT, spec, tmp_path / "store")
    assert (ended["result"], ended["night"]) == ("first", note["night"])
    assert 0 < ended["computed"] <= 600 - there
    nights(ROOT, spec, tmp_path / "undisturbed")
    assert numbers_of(night) == numbers_of(night_path(tmp_path / "undisturbed", "small"))
    assert len(read_nights(tmp_path / "store", "small")) == 2


def numbers(**columns):
    rows = len(next(iter(columns.values())))
    common = {
        "dataset": "d",
        "dataset_hash": "h",
        "order": "as-stored",
        "learner": "L",
        "params": "{}",
        "status": "ok",
        "rounds": 9,
    }
    given = {name: columns.get(name, [common.get(name)] * rows) for name in schema(NUMBERS).names}
    return pa.table(given).cast(schema(NUMBERS))


def test_changes__name_learner_and_dataset_and_what_it_is():
    before = numbers(
        params=["a", "b", "c"],
        learner=["L", "L", "M"],
        mean_loss=[1.0, 2.0, 3.0],
        digest=["x", "y", "z"],
    )
    assert changes(before, before) == []
    after = numbers(
        params=["a", "b", "e"],
        learner=["L", "L", "M"],
        mean_loss=[1.0, 2.0 + 4e-12, 3.0],
        digest=["x", "!", "z"],
    )
    found = {(change.learner, change.what): change for change in changes(before, after)}
    assert set(found) == {("L", "numbers"), ("M", "gone"), ("M", "new")}
    assert (found["L", "numbers"].runs, found["L", "numbers"].of) == (1, 2)
    assert found["L", "numbers"].largest == pytest.approx(2e-12, rel=1e-3)
    other = numbers(params=["a"], dataset_hash=["k"], mean_loss=[1.0], digest=["!"])
    assert [
        change.what
        for change in changes(numbers(params=["a"], mean_loss=[1.0], digest=["x"]), other)
    ] == ["data"]
    curve = numbers(params=["a"], mean_loss=[1.0], digest=["y"])
    (change,) = changes(numbers(params=["a"], mean_loss=[1.0], digest=["x"]), curve)
    assert (change.what, change.largest) == ("numbers", 0.0)  # a curve alone is enough
    only_new = [change for change in changes(before, after) if change.what == "new"]
    assert result_of(False, only_new, []) == "same numbers"
    assert result_of(False, changes(before, after), []) == "changed numbers"


def test_band__takes_in_noise_and_not_thirty_per_cent():
    for ratios in ([4.0], [4.0, 4.02, 3.98, 4.01], [3.2, 4.0, 4.8, 3.4, 4.4]):
        centre, least, most = band(ratios)
        assert FLOOR * centre * 0.999 <= most - centre <= CAP * centre * 1.001
        assert centre - least == pytest.approx(most - centre)
        assert verdict_of(1.3 * centre, ratios) == "slower"
        assert verdict_of(centre / 1.3, ratios) == "faster"
        assert verdict_of(1.1 * centre, ratios) == "same"
    assert verdict_of(4.0, []) == "first"
    assert "+30%" in str(Speed("d", "L", "p", 9, 1.3, 1.0, "slower"))
    # a busy machine
    assert [verdict_of(ratio, [1.0], others=0.5) for ratio in (1.1, 1.3, 1.6)] == [
        "same",
        "unclear",
        "slower",
    ]


def test_earlier_ratios__are_of_the_same_rounds_on_the_same_machine_since_the_accepted_night():
    common = {
        "dataset": "d",
        "learner": "L",
        "probe": "p",
        "probe_rows": 9,
        "host": "h",
        "calibration": 1,
        "accepted": False,
    }
    told = [(1.4, "unclear", True), (1.0, "first", True), (1.1, "same", False)]
    told += [(2.0, "slower", False), (2.1, "slower", True), (2.2, "same", False)]
    history = [
        {**common, "ratio": ratio, "speed": speed, "accepted": accepted}
        for ratio, speed, accepted in told
    ]
    others = [{**history[-1], name: "other"} for name in ("dataset", "probe", "probe_rows", "host")]

    def earlier(rows):
        return earlier_ratios(rows, ("d", "L"), "p", 9, "h", 1)

    assert earlier(history[:1]) == []
    assert earlier(history[:4]) == [1.0, 1.1]
    assert earlier([*history, *others]) == [2.1, 2.2]
    assert earlier(others) == []


def test_retries__only_where_waiting_may_help(capsys):
    from prefect.states import Failed

    from flows.nightly.flow import compare, compute, store_unavailable
    from flows.prepare.flow import may_pass, prepare_one

    def unreachable():
        try:
            raise Unreachable("no network")
        except Unreachable:
            raise WrongInput("get the files") from None

    with pytest.raises(WrongInput) as refused:
        unreachable()
    for condition, error, again in (
        (store_unavailable, StoreUnavailable("no answer"), True),
        (store_unavailable, WrongInput("no such key"), False),
        (store_unavailable, MemoryError(), False),
        (may_pass, refused.value, True),
        (may_pass, WrongChecksum("another file"), False),
        (may_pass, ConnectionError("failed again and again"), True),
    ):
        assert condition(None, None, Failed(data=error)) == again
        assert ("trying again" in capsys.readouterr().err) == again
    for task in (compute, compare, prepare_one):
        assert task.retries == 4
        assert task.retry_delay_seconds == [30.0, 60.0, 120.0, 240.0]


def test_history__a_night_that_is_compared_again_is_there_once(tmp_path):
    row = {
        "night": "1",
        "sweep": "s",
        "dataset": "d",
        "learner": "L",
        "result": "first",
        "accepted": False,
    }
    for night, result in (("1", "first"), ("2", "slower"), ("2", "same numbers")):
        add_night(tmp_path, "s", [{**row, "night": night, "result": result}])
    assert [(r["night"], r["result"]) for r in read_nights(tmp_path, "s").to_pylist()] == [
        ("1", "first"),
        ("2", "same numbers"),
    ]


def test_datasets__are_lent_only_by_the_store_that_a_store_is_inside_of(small_store, tmp_path):
    inside = small_store / "nights" / "x"
    inside.mkdir(parents=True)
    (inside / BORROWED).write_text(f"{small_store}\n")
    assert load_manifest(inside, "real") == load_manifest(small_store, "real")
    for lender in (tmp_path / "elsewhere", inside, f"{small_store}/nights/x/..", ""):
        (inside / BORROWED).write_text(f"{lender}\n")
        with pytest.raises(WrongInput, match="names"):
            load_manifest(inside, "real")


@pytest.mark.soak
def test_twenty_nights__of_unchanged_code_raise_no_alarm(spec, tmp_path):
    # each in a process of its own: where arrays lie in memory differs from process to process
    results = [nights(ROOT, spec, tmp_path / "store")[0]["result"] for _ in range(21)]
    assert results == ["first", *["same numbers"] * 20]


@pytest.mark.soak
def test_command__ends_as_the_result_says(spec, tmp_path):
    store = tmp_path / "store"

    def koco(root, *words, **more):
        return subprocess.run(
            command(*words, "--store", store),
            cwd=root,
            env=in_environment(root, **more),
            capture_output=True,
            text=True,
        )

    with prefect_server(tmp_path) as address:
        server = {"PREFECT_API_URL": address, "PREFECT_HOME": str(tmp_path / "prefect")}

        def night(root, status, result):
            done = koco(root, "nightly", spec, "--workers", "0", "--json", **server)
            history = read_nights(store, "small").to_pylist()
            ogd = [row for row in history if row["learner"] == "OGD"][-1]
            if result == "slower" and ogd["speed"] in ("first", "unclear"):
                pytest.skip("the machine is busy with something else: no speed can be judged")
            assert json.loads(done.stdout)["result"] == result
            assert done.returncode == status, done.stderr
            return done.stderr

        night(ROOT, 0, "first")
        night(ROOT, 0, "same numbers")
        assert "AdaGrad on ill-conditioned" in night(
            altered(tmp_path / "digit", TWELFTH_DIGIT), 1, "changed numbers"
        )
        words = [sys.executable, "-c", LIMITED, str(spec), str(store)]
        late = subprocess.run(
            words, env=in_environment(ROOT, **server), capture_output=True, text=True
        )
        assert late.stdout == "FAILED Time limit\n", late.stderr
        assert koco(ROOT, "nightly", tmp_path / "none.toml", **server).returncode == 2
        assert koco(ROOT, "accept", "smal").returncode == 2
        night(ROOT, 0, "same numbers")  # it goes on where the limit has stopped it
        assert koco(ROOT, "accept", "small").returncode == 0
        assert "OGD on ill-conditioned" in night(altered(tmp_path / "slow", SLOWER), 1, "slower")
