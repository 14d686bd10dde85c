"""The search that learns from results: its trials follow from the store, however it was cut."""

import math
import shutil
import sys
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.sweeping.halving import measured
from flows.sweeping.planning import dry_run_of
from flows.sweeping.request import SweepRequest
from flows.sweeping.search import Drawn, Search, Space, points
from flows.sweeping.steps import PLAIN, Stage, run_cohorts, run_sweep
from flows.sweeping.tpe import FIRST, stages, suggested
from koco_stream import WrongInput
from koco_stream.runs.run import Run
from koco_stream.streams.stream import Stream
from tests.helpers.sweeps import checked, tables, written

pytest.importorskip("optuna", reason="needs optuna: pip install 'koco-stream[search]'")
SWEEP = """
name = "try"
learner_seeds = 2
[search]
method = "tpe"
samples = 16
batch = 8
[[dataset]]
name = "sparse"
multiclass = "one-vs-rest"
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OjaSON"
sketch_size = { integer = [3, 6] }
sketch_start = { choice = ["random", "gradients"] }
alpha = { log_uniform = [1e-2, 1e2] }
[[learner]]
name = "OGD"
clip = [1, 2]
step_size = { uniform = [0.1, 1.0] }
[[learner]]
name = "AdaGrad"
step_size = [0.1, 1]
"""
DRAWS = {
    "step_size": Drawn("log_uniform", 1e-3, 1e3),
    "clip": Drawn("uniform", 0.5, 2.0),
    "loss": Drawn("choice", choices=("squared", "logistic")),
    "fit_intercept": Drawn("choice", choices=(False, True)),
}
OGD = Space("OGD", "OGD", {}, DRAWS, range(2))
OJA = Space(
    "OjaSON",
    "OjaSON",
    {"alpha": 1.0},
    {
        "sketch_size": Drawn("integer", 0, 2),
        "sketch_rate": Drawn("log_uniform", 0.5, 4.0),
        "sketch_start": Drawn("choice", choices=("random", "gradients")),
    },
    range(2),
)
STREAMS = [
    Stream("a", "hash a", "shuffled", 0),
    Stream("a", "hash a", "shuffled", 1),
    Stream("b", "hash b"),
]


def first_of(search, spaces=(OGD, OJA)):
    """The runs that are known at the beginning."""
    return [
        Run(stream, *configuration)
        for stream in STREAMS
        for space in spaces
        for point in points(search, space.name, space.draws, search.known)
        for configuration in space.configurations(point)
    ]


def loss(run):
    """Some error of a run; it differs from stream to stream."""
    params, shift = run.params, 1.0 if run.stream.dataset == "a" else -1.0
    if run.learner == "OjaSON":
        return float(params["sketch_size"] != 1) + abs(math.log(params.get("sketch_rate", 1.0)))
    wrong = 0.5 * (params["loss"] != "squared") + 0.2 * params["fit_intercept"]
    return wrong + abs(math.log10(params["step_size"]) - shift) + params["clip"] / 10


def staged(search, done, spaces=(OGD, OJA)):
    """The stages of a search, until one has runs that are not in `done`, their values by run_id."""
    for stage in stages(first_of(search, spaces), spaces, search, lambda ids: done):
        yield stage
        if any(run.run_id not in done for run in stage):
            return


def compute(search, done, spaces=(OGD, OJA)):
    """Run a search to its end; the identities of its runs by stage."""
    found = []
    while True:
        *before, last = staged(search, done, spaces)
        assert [[run.run_id for run in stage] for stage in before] == found[: len(before)]
        if all(run.run_id in done for run in last):
            return [*found[: len(before)], [run.run_id for run in last]]
        found = [*found[: len(before)], [run.run_id for run in last]]
        done.update((run.run_id, loss(run)) for run in last)


@settings(max_examples=8)
@given(st.integers(0, 2**63 - 1), st.integers(1, 9), st.integers(1, 20), st.data())
def test_trials__are_the_same_wherever_it_was_cut(seed, batch, samples, data):
    search = Search(method="tpe", samples=samples, seed=seed, batch=batch)
    values = {}
    whole = compute(search, values)
    # what is left of the store is any part of it: also some runs of later batches
    kept = data.draw(st.sets(st.sampled_from(sorted(values))))
    again = {run_id: values[run_id] for run_id in kept}
    assert compute(search, again) == whole
    assert again == values
    assert sum(map(len, whole)) == len(set().union(*whole))


@settings(max_examples=8)
@given(st.integers(0, 99), st.integers(1, 6), st.integers(1, 14), st.integers(1, 14))
def test_more_samples__keep_the_first(seed, batch, samples, more):
    search = Search(method="tpe", samples=samples, seed=seed, batch=batch)
    few, many = {}, {}
    compute(search, few)
    compute(search.model_copy(update={"samples": samples + more}), many)
    assert few.items() <= many.items()


def test_other_learners_and_streams__change_no_trial():
    search = Search(method="tpe", samples=20, batch=5)
    alone, both = {}, {}
    compute(search, alone, (OGD,))
    compute(search, both)
    assert alone.items() <= both.items()


def test_trial_whose_run_is_not_ok__is_worse_than_all_others(capfd):
    """With steps above 1 all runs diverge, so the search leaves them."""
    search = Search(method="tpe", samples=40)
    space = Space("OGD", "OGD", {}, {"step_size": DRAWS["step_size"]}, range(1))
    done, steps = {}, []
    for stage in stages(first_of(search, (space,)), (space,), search, lambda ids: done):
        steps.append([run.params["step_size"] for run in stage])
        good = [run for run in stage if run.params["step_size"] < 1.0]
        done.update((run.run_id, 1e9) for run in good)
    assert 0.3 < np.mean(np.array(steps[0]) > 1.0) < 0.7
    assert np.mean(np.concatenate(steps[2:]) > 1.0) < 0.25
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sketch_size", [0, 1])
def test_parameter_without_effect__is_no_part_of_a_trial(sketch_size):
    """What comes next does not depend on its value."""

    def suggestions(rate):
        trials = [
            ({"sketch_size": sketch_size, "sketch_rate": rate, "sketch_start": "random"}, 0.5),
            ({"sketch_size": 2, "sketch_rate": 1.0, "sketch_start": "gradients"}, 0.7),
        ]
        return suggested(OJA, trials, 0, 6)

    assert (suggestions(0.5) == suggestions(3.5)) == (sketch_size == 0)


def test_suggested__leaves_optuna_as_it_was(capfd):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    try:
        [point] = suggested(OGD, [], 1, 1)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.set_verbosity(optuna.logging.INFO)
    assert point.keys() == DRAWS.keys()
    assert type(point["fit_intercept"]) is bool
    assert float(f"{point['step_size']:.6g}") == point["step_size"]
    assert capfd.readouterr() == ("", "")


class CutError(Exception):
    """The sweep is ended here."""


def test_sweep_cut_in_each_batch__goes_on_to_the_same_tables(tmp_path, small_store, koco):
    other = shutil.copytree(small_store, tmp_path / "other")
    spec = written(tmp_path, SWEEP)
    koco("sweep", spec, "--store", other, status=0)
    wanted, cuts, computed = tables(other), 0, []

    def cut(sweep, stage, engine, tally):
        """One of the batch's cohorts is run, then it ends."""
        nonlocal cuts
        first = Stage(stage.missing, stage.cohorts[:1])
        computed.extend(run.run_id for run in first.cohorts[0].runs)
        run_cohorts(sweep, first, engine, tally)
        cuts += 1
        raise CutError

    while True:
        try:
            run_sweep(checked(spec, small_store), {**PLAIN, "run": cut})
        except CutError:
            continue
        break
    assert tables(small_store) == wanted
    assert sorted(computed) == sorted(row["run_id"] for row in wanted[0])  # each of them once
    assert cuts >= 2 * 3  # two batches, three streams

    spec.write_text(SWEEP.replace("samples = 16", "samples = 20"))
    planned = dry_run_of(SweepRequest(str(spec), str(small_store)))
    assert planned["in the store"] == len(wanted[0])
    assert planned["to compute"] > 0
    assert planned["search"].startswith("tpe: about")


def test_value__is_the_error_rate_where_there_are_classes(tmp_path, small_store, koco):
    text = SWEEP.replace("samples = 16", "samples = 1")
    koco("sweep", written(tmp_path, text), "--store", small_store, status=0)
    rows = tables(small_store)[0]
    ids = [row["run_id"] for row in rows]
    assert measured(str(small_store), ids, errors=True) == {
        row["run_id"]: row["error_rate" if row["dataset"] == "sparse" else "mean_loss"]
        for row in rows
        if row["status"] == "ok"
    }


def test_start__is_that_of_sobol(tmp_path, small_store):
    spec = written(tmp_path, SWEEP.replace("batch = 8", "batch = 3"))
    tpe = checked(spec, small_store)
    text = SWEEP.replace("batch = 8", "").replace('"tpe"', '"sobol"').replace("= 16", "= 9")
    even = checked(written(tmp_path, text), small_store)
    search, spaces = tpe.sweep.search, tpe.sweep.spaces
    begun = islice(stages(tpe.runs, spaces, search, lambda ids: {}), 3)
    assert FIRST == 8  # the third batch begins with trial 6
    assert {run.run_id for stage in begun for run in stage} == {run.run_id for run in even.runs}


WRONG = [
    (
        "learner_seeds = 2",
        "halving = { first = 50 }",
        r"line 5, search\.method: tpe learns from whole runs, and halving ends .*leave halving out",
    ),
    ("batch = 8", "batch = 0", r"line 7, search\.batch: .*greater than 0"),
    (
        "clip = [1, 2]",
        'loss = { choice = ["squared", "logistic"] }',
        r"'real' is a regression set|needs labels -1 and \+1",
    ),
    (
        'name = "AdaGrad"\nstep_size = [0.1, 1]',
        'name = "ONS"\nloss = { choice = ["squared", "hinge"] }',
        r"learner 3, name: .*no curvature",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_wrong_search__is_refused_with_its_place(old, new, message, tmp_path, small_store):
    assert old in SWEEP
    with pytest.raises(WrongInput, match=message):
        checked(written(tmp_path, SWEEP.replace(old, new)), small_store)


def test_search_without_optuna__names_the_extra(tmp_path, small_store, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)  # as if it were not installed
    with pytest.raises(WrongInput, match=r"line 5.*pip install 'koco-stream\[search\]'; or take"):
        checked(written(tmp_path, SWEEP), small_store)
