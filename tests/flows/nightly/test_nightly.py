"""Nightly runs: equal to the bit or named, slower or not, whatever the noise; killed and gone on
with.
"""

import json
import re

import pyarrow as pa
import pytest

from flows.nightly.night import NOTE, accept_last, opened_night
from flows.nightly.regression import (
    CAP,
    FLOOR,
    Change,
    Speed,
    band,
    changes,
    earlier_ratios,
    result_of,
    verdict_of,
)
from flows.nightly.times import read_json
from flows.sweeping.file import read_sweep
from koco_stream.errors import StoreUnavailable, WrongInput
from koco_stream.runs.schemas import schema
from koco_stream.streams.manifest import BORROWED, load_manifest
from storage.catalogue.fetch import Unreachable, WrongChecksum
from storage.nights import NUMBERS, add_night, read_nights
from storage.store import open_store
from tests.helpers.disturbed import prefect_server
from tests.helpers.nights import TWELFTH_DIGIT, altered, nightly_run
from tests.helpers.project import ROOT

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


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "small.toml").write_text(SPEC)
    return tmp_path / "small.toml"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a Prefect server."""
    with prefect_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.mark.system
def test_nights__of_the_same_code_have_the_same_numbers__and_the_twelfth_digit_is_named(
    spec, server, tmp_path
):
    store = tmp_path / "store"
    first, second = (nightly_run(ROOT, spec, store, server) for _ in range(2))
    other = altered(tmp_path / "digit", TWELFTH_DIGIT)
    changed = nightly_run(other, spec, store, server, status=1)
    results = [one["result"] for one in (first, second, changed)]
    assert results == ["first", "same numbers", "changed numbers"], second
    assert first["computed"] == second["computed"] == 4  # anew each night
    (named,) = [line for line in changed["details"] if "changed numbers" in line]
    assert re.match("AdaGrad on ill-conditioned.*2 of 2 runs", named)
    assert any("code or versions are not those" in line for line in changed["details"])
    history = read_nights(store, "small").to_pylist()
    (row,) = [row for row in history if row["numbers"] == "changed"]
    assert (row["learner"], row["night"]) == ("AdaGrad", changed["night"])
    assert 1e-14 < row["largest_change"] < 1e-10
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
        (night / NOTE).write_text(json.dumps({**read_json(night / NOTE), **change}))
        (night / "left").path.mkdir(exist_ok=True)
        _, again = opened_night(store, sweep)
        assert again != name
        assert not (night / "left").path.exists()
        name = again


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
    found = changes(before, after)
    assert found == [
        Change("d", "L", "numbers", 1, 2, pytest.approx(2e-12, rel=1e-3)),
        Change("d", "M", "gone", 1, 1),
        Change("d", "M", "new", 1, 1),
    ]
    assert result_of(False, found, []) == "changed numbers"
    assert result_of(False, found[2:], []) == "same numbers"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({}, []),
        ({"digest": "!", "dataset_hash": "k"}, [Change("d", "L", "data", 1, 1)]),
        # a curve is enough
        ({"digest": "y"}, [Change("d", "L", "numbers", 1, 1, 0.0)]),
    ],
    ids=["nothing", "data", "curve"],
)
def test_changes__of_one_run(after, expected):
    run = {"params": "a", "mean_loss": 1.0, "digest": "x"}
    assert changes(numbers(run), numbers({**run, **after})) == expected


@pytest.mark.parametrize("ratios", [[4.0], [4.0, 4.02, 3.98, 4.01], [3.2, 4.0, 4.8, 3.4, 4.4]])
def test_band__takes_in_noise_and_not_thirty_per_cent(ratios):
    centre, least, most = band(ratios)
    assert FLOOR * centre * 0.999 <= most - centre <= CAP * centre * 1.001
    assert centre - least == pytest.approx(most - centre)
    verdicts = [verdict_of(ratio, ratios) for ratio in (1.3 * centre, centre / 1.3, 1.1 * centre)]
    assert verdicts == ["slower", "faster", "same"]


def test_verdict__where_nothing_is_known_yet_and_on_a_busy_machine():
    assert verdict_of(4.0, []) == "first"
    verdicts = [verdict_of(ratio, [1.0], others=0.5) for ratio in (1.1, 1.3, 1.6)]
    assert verdicts == ["same", "unclear", "slower"]
    assert "+30%" in str(Speed("d", "L", "p", 9, 1.3, 1.0, "slower"))
    assert str(Speed("d", "L", "p", 9, 1.3, verdict="unclear", others=0.5)).endswith(
        "other processes took 50% of the machine, so this does not count"
    )


def test_earlier_ratios__are_of_the_same_rounds_on_the_same_machine_since_the_accepted_night():
    common = {
        "dataset": "d",
        "learner": "L",
        "probe": "p",
        "probe_rows": 9,
        "host": "h",
        "calibration": 1,
    }
    history = [
        {**common, "ratio": ratio, "speed": speed, "accepted": accepted}
        for ratio, speed, accepted in (
            (1.4, "unclear", True),
            (1.0, "first", True),
            (1.1, "same", False),
            (2.0, "slower", False),
            (2.1, "slower", True),
            (2.2, "same", False),
        )
    ]
    others = [{**history[-1], name: "other"} for name in ("dataset", "probe", "probe_rows", "host")]

    def earlier(rows):
        return earlier_ratios(rows, ("d", "L"), "p", 9, "h", 1)

    assert earlier(history[:1]) == []
    assert earlier(history[:4]) == [1.0, 1.1]
    assert earlier([*history, *others]) == [2.1, 2.2]
    assert earlier(others) == []


@pytest.fixture(scope="module")
def nightly_tasks():
    """The tasks of a nightly run. They are imported before a test captures what is printed: Prefect
    logs to the stream that it finds when it is imported, and a test's stream is closed after it.
    """
    from flows.nightly.flow import compare, compute
    from flows.prepare.flow import prepare_one

    return compute, compare, prepare_one


def test_retries__only_where_waiting_may_help(nightly_tasks, capsys):
    from prefect.states import Failed

    from flows.prepare.flow import may_pass

    refused = WrongInput("get the files")
    refused.__context__ = Unreachable("no network")  # as it is raised while the other is handled
    for condition, error, again in (
        (may_pass, StoreUnavailable("no answer"), True),
        (may_pass, WrongInput("no such key"), False),
        (may_pass, MemoryError(), False),
        (may_pass, refused, True),
        (may_pass, WrongChecksum("another file"), False),
        (may_pass, ConnectionError("failed again and again"), True),
    ):
        assert condition(None, None, Failed(data=error)) == again, error
        assert ("trying again" in capsys.readouterr().err) == again, error
    for task in nightly_tasks:
        assert (task.retries, task.retry_delay_seconds) == (4, [30.0, 60.0, 120.0, 240.0])


def test_history__a_night_that_is_compared_again_is_there_once(tmp_path):
    row = {"sweep": "s", "dataset": "d", "learner": "L", "accepted": False}
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
