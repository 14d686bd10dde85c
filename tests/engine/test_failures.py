"""What one run or one dataset does wrong stays its own: all others are as if it had not been there,
and it can be run again.
"""

import json
import re
from collections import Counter

import pyarrow.parquet as pq
import pytest

from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.result_file import result_path
from koco_stream.learners import LEARNERS
from koco_stream.streams.manifest import dataset_path, load_manifest
from storage.results import read_curves, read_runs
from tests.helpers.sweeps import cohort_on, die_after, results_of, undisturbed

BAD = 7.0  # the step size, or alpha, of the run that is to fail
# what a run that has failed has of its own
COUNTED = ("rounds", "mean_loss", "error_rate", "dictionary_size")
CONSTANTS = ("constant_mean_loss", "constant_error_rate")  # unknown where a run could not start

SWEEP = """
name = "try"
[[dataset]]
name = "sparse"
positive_class = 1
[[dataset]]
name = "real"
[[learner]]
name = "OGD"
step_size = [0.1, 7, 0.3]
"""


@pytest.fixture
def sweep(koco, small_store, tmp_path):
    """Run the sweep, with more words; what `koco` gives, and the summary if it printed one."""
    (tmp_path / "try.toml").write_text(SWEEP)

    def run(*words):
        done = koco("sweep", tmp_path / "try.toml", "--store", small_store, "--json", *words)
        return done, json.loads(done.stdout or "null")

    return run


def cohort_of(store, *learners):
    return cohort_on(store, [(name, more, 1) for name, more in learners], order="as-stored")


def raising(function, calls, when=1):
    """The function, which raises from the `when`-th time on that it is called for the run that is
    to fail.
    """

    def stub(params, *words):
        if BAD in (getattr(params, "step_size", None), getattr(params, "alpha", None)):
            calls.append(1)
            if len(calls) >= when:
                raise RuntimeError("no such luck")
        return function(params, *words)

    return stub


def fails(patch, learner, where):
    """Have a learner's own function of this name raise for the run that is to fail, or the compiled
    rounds from the block of this number on.
    """
    of, calls = LEARNERS[learner], []
    name = where if isinstance(where, str) else "compiled"
    whole = getattr(of, name)
    stub = raising(whole, calls)
    if name == "compiled":
        stub = lambda *loop: raising(whole(*loop), calls, where)  # noqa: E731
    patch.setattr(of, name, staticmethod(stub))


LINEAR = [("OGD", {"step_size": BAD}), ("OGD", {"step_size": 0.1}), ("OGD", {"step_size": 0.3})]
KERNEL = [
    ("NORMA", {"step_size": BAD}),
    ("NORMA", {"step_size": 0.2}),
    ("NORMA", {"step_size": 0.4, "budget": 90}),
]
GROWING = [("CONKONS", {"alpha": BAD, "bandwidth": 0.2}), ("CONKONS", {"alpha": 0.2})]


@pytest.mark.parametrize(
    ("learners", "where", "rounds"),
    [
        (LINEAR, "init", 0),
        (LINEAR, 1, 0),
        (LINEAR, 3, 200),
        (KERNEL, "init", 0),
        (KERNEL, "with_room", 0),
        (KERNEL, 1, 0),
        (KERNEL, 20, 200),
        (GROWING, "enlarge", None),
    ],
)
def test_run_that_raises__is_a_failed_row_and_the_others_are_as_before(
    learners, where, rounds, small_store, monkeypatch
):
    cohort = cohort_of(small_store, *learners)
    whole = undisturbed(small_store, cohort)
    fails(monkeypatch, learners[0][0], where)
    receipt = run_cohort(str(small_store), "try", cohort, 100)
    assert (receipt.runs, receipt.failed, receipt.diverged) == (len(learners), 1, 0)
    failed, *others = results_of(small_store, cohort)
    assert others == whole[1:]
    assert failed["rounds"] == rounds or (rounds is None and failed["rounds"] % 100 == 0)
    assert failed == {
        **whole[0],
        **dict.fromkeys(("regret", "comparator_largest")),
        "status": "failed",
        "error": "RuntimeError: no such luck",
        "curve": [point for point in whole[0]["curve"] if point["t"] <= failed["rounds"]],
        **{name: failed[name] for name in COUNTED},
        **(dict.fromkeys(CONSTANTS) if where == "init" else {}),
    }


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("learner", ["OGD", "NORMA"])
def test_run_that_fails_to_begin_on_one_side_of_a_checkpoint__leaves_the_others_alone(
    learner, side, small_store, monkeypatch
):
    cohort = cohort_of(small_store, (learner, {"step_size": BAD}), (learner, {"step_size": 0.2}))
    whole = undisturbed(small_store, cohort)
    with monkeypatch.context() as patch:
        if side == "before":
            fails(patch, learner, "init")
        die_after(patch, small_store, cohort, 1, 200)
    if side == "after":
        fails(monkeypatch, learner, "init")
    assert run_cohort(str(small_store), "try", cohort).failed == 1
    failed, other = results_of(small_store, cohort)
    assert other == whole[1]
    assert (failed["status"], failed["error"]) == ("failed", "RuntimeError: no such luck")


def test_result_file_that_is_there__is_not_computed_again_and_a_damaged_one_is(small_store):
    cohort = cohort_of(small_store, ("OGD", {}))

    def rounds():
        receipt = run_cohort(str(small_store), "try", cohort)
        assert receipt.runs == 1
        return receipt.rounds

    assert rounds() == 500
    path = result_path(small_store, cohort).path
    whole = path.read_bytes()
    assert rounds() == 0
    assert path.read_bytes() == whole
    for position in (10, len(whole) - 6):
        harmed = bytearray(whole)
        harmed[position] ^= 255
        path.write_bytes(harmed)
        assert rounds() == 500, position
        assert pq.read_table(path).num_rows == 1


def test_sweep__names_what_failed_and_replaces_it_when_it_is_run_again(
    sweep, small_store, tmp_path, monkeypatch
):
    def check(swept, exit_code, computed, failed):
        done, summary = swept
        assert (done.exit_code, summary["computed"]) == (exit_code, computed)
        status = {row["run_id"]: row["status"] for row in read_runs(small_store).to_pylist()}
        assert Counter(status.values()) == Counter(ok=6 - failed, failed=failed)
        with_curve = {run for run in status if status[run] == "ok"}
        assert set(read_curves(small_store).column("run_id").to_pylist()) == with_curve

    with monkeypatch.context() as patch:
        fails(patch, "OGD", "init")
        done, summary = sweep()
        check((done, summary), 1, 6, failed=2)
        assert summary["statuses"] == {"ok": 4, "failed": 2}
        again = f"koco sweep {tmp_path / 'try.toml'} --store {small_store} --retry-failed"
        told = [done.stderr.count(t) for t in ("failed: OGD", "RuntimeError: no such luck", again)]
        assert told == [2, 2, 1], done.stderr
        # what failed is not tried again unasked, and is not forgotten
        check(sweep(), 1, 0, failed=2)
        check(sweep("--retry-failed"), 1, 2, failed=2)
    check(sweep("--retry-failed"), 0, 2, failed=0)


def test_dataset_that_is_damaged__stops_only_its_own_runs(
    sweep, koco, small_store, tmp_path, monkeypatch
):
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "cache"))  # no copies of its shards yet
    shard = dataset_path(small_store, "real") / load_manifest(small_store, "real").shards[0].path
    whole = shard.read_bytes()
    shard.write_bytes(whole[:99] + bytes([whole[99] ^ 1]) + whole[100:])
    done, _ = sweep()
    assert done.exit_code == 2, done.stderr
    assert re.search(
        "real.*it was altered or damaged; prepare the dataset again"
        ".*the runs on other datasets are done and kept",
        done.stderr,
    )
    assert read_runs(small_store).column("dataset").to_pylist() == ["sparse"] * 3
    (status,) = json.loads(koco("list", "sweeps", "--store", small_store, "--json").stdout)
    assert status["state"] == "ended by an error"
    assert "altered or damaged" in status["error"]
    shard.write_bytes(whole)
    done, summary = sweep()
    assert (done.exit_code, summary["computed"]) == (0, 3)
