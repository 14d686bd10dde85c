"""Nightly runs: equal to the bit or named, slower or not; killed and gone on with."""

import json
import re
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from flows.nightly.night import NOTE, accept_last, opened_night
from flows.nightly.regression import SHORTEST, compared, result_of
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

ROW = {"sweep": "s", "dataset": "d", "learner": "L", "accepted": False}
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


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
    assert opened_night(store, sweep, NOON) == (night, NOON.isoformat())
    for change in ({"code": "other"}, {"file": "other"}, {}):
        (night / NOTE).write_text(json.dumps({**json.loads((night / NOTE).read_text()), **change}))
        if not change:  # it has ended
            add_night(store, "small", [{**ROW, "night": name}])
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
        "L on d: 1 of 2 runs have changed numbers, mean loss by up to 2.0e-12 of itself"
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
            ["L on d: 1 of 1 runs have changed numbers, mean loss by up to 0.0e+00 of itself"],
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
    tonight = seconds(*(0.1 * (k + 1) * time for k, time in enumerate(times)))
    rows = found(accepted, tonight)
    assert rows["L"]["speed"] == verdict
    assert any(f"{verdict}, " in line for line in rows["L"]["what"]) == (verdict != "same")
    assert result_of([*rows.values()]) == ("same numbers" if verdict == "same" else verdict)


@pytest.mark.parametrize("other", [{"host": "other"}, {"status": "diverged"}, {"params": "new"}])
def test_speeds__of_other_machines_or_runs_and_of_short_ones_are_not_compared(other):
    assert found(seconds(1.0, 1.0, 1.0), seconds(2.0, 2.0, 2.0, **other))["L"]["speed"] is None
    assert found(seconds(*[SHORTEST / 2] * 9), seconds(*[SHORTEST] * 9))["L"]["ratio"] is None
    assert found(seconds(1.0, 1.0), seconds(2.0, 2.0))["L"]["ratio"] is None


def test_retries__only_where_waiting_may_help(capsys):
    from prefect.states import Failed

    from flows.prefect_flows import RETRIED, may_pass

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
    assert len(RETRIED["retry_delay_seconds"]) == RETRIED["retries"]


def test_history__a_night_that_is_compared_again_is_there_once(tmp_path):
    for night, result in (("1", "first"), ("2", "slower"), ("2", "same numbers")):
        add_night(tmp_path, "s", [{**ROW, "night": night, "result": result}])
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
