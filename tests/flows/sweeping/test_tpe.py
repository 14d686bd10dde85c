"""The search that learns from results: its trials follow from the store, however it was cut."""

import math
import shutil

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flows.sweeping.planning
from flows.sweeping.halving import measured
from flows.sweeping.launch import run_sweep
from flows.sweeping.search import FIRST, Drawn, Search, Space, batches
from koco_stream import WrongInput
from koco_stream.runs.run import Run
from koco_stream.streams.stream import Stream
from tests.helpers.sweeps import checked, tables, written

SWEEP = """
name = "try"
learner_seeds = 2
[search]
method = "tpe"
samples = 12
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
    {"alpha": [1.0, 2.0]},
    {"sketch_size": Drawn("integer", 0, 2), "sketch_rate": Drawn("log_uniform", 0.5, 4.0)},
    range(2),
)
STREAMS = [
    Stream("a", "hash a", "shuffled", 0),
    Stream("a", "hash a", "shuffled", 1),
    Stream("b", "hash b"),
]


def loss(run):
    """Some error of a run; it differs from stream to stream."""
    params, shift = run.params, 1.0 if run.stream.dataset == "a" else -1.0
    if run.learner != "OGD":
        return params.get("sketch_size", 0) % 2 + math.log(params.get("sketch_rate", 1.0))
    wrong = 0.5 * (params["loss"] != "squared") + 0.2 * params["fit_intercept"]
    return wrong + abs(math.log10(params["step_size"]) - shift) + params["clip"] / 10


def compute(search, spaces=(OGD, OJA), done=(), loss=loss):
    """The runs of a search by batch, and their values by run_id, of which some were `done`."""
    first = [Run(stream, "AdaGrad", {}, None) for stream in STREAMS]
    values, found = dict(done), []
    for runs in batches(first, spaces, search, lambda ids: values):
        found.append(runs)
        values.update((run.run_id, loss(run)) for run in runs if run.run_id not in values)
    return found, values


@settings(max_examples=8)
@given(st.integers(0, 2**63 - 1), st.integers(1, 9), st.integers(1, 14), st.data())
def test_trials__follow_from_the_seed_and_the_values_so_far(seed, batch, samples, data):
    search = Search(method="tpe", samples=samples, seed=seed, batch=batch)
    whole, values = compute(search)
    assert sum(map(len, whole)) == len(values)
    # what is left of the store is any part of it: also some runs of later batches
    kept = data.draw(st.sets(st.sampled_from(sorted(values))))
    assert compute(search, done={run_id: values[run_id] for run_id in kept}) == (whole, values)
    # neither other learners nor more samples change them
    assert compute(search, (OGD,))[1].items() <= values.items()
    more = search.model_copy(update={"samples": samples + data.draw(st.integers(1, 5))})
    assert values.items() <= compute(more)[1].items()


@pytest.mark.parametrize("batch", [3, 8])
def test_start__is_that_of_sobol(batch):
    whole, _ = compute(Search(method="tpe", samples=9, batch=batch), (OGD,))
    begun = [run for runs in whole[: -(-FIRST // batch)] for run in runs if run.learner == "OGD"]
    draws = OGD.points(Search(method="sobol", samples=9), -(-FIRST // batch) * batch)
    assert {run.params["step_size"] for run in begun} == {draw["step_size"] for draw in draws}


def test_trial_whose_run_is_not_ok__is_worse_than_all_others(capfd):
    """With steps above 1 all runs diverge, so the search leaves them. Nothing is said."""
    space = Space("OGD", "OGD", {}, {"step_size": DRAWS["step_size"]}, range(1))

    def diverging(run):
        return math.inf if run.params.get("step_size", 0.0) > 1.0 else 1e9

    whole, _ = compute(Search(method="tpe", samples=40), (space,), loss=diverging)
    steps = [np.array([run.params.get("step_size", 0.0) for run in runs]) for runs in whole]
    assert 0.3 < np.mean(steps[0] > 1.0) < 0.7
    assert np.mean(np.concatenate(steps[2:]) > 1.0) < 0.25
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


def test_sweep_cut_in_each_batch__goes_on_to_the_same_tables(
    tmp_path, small_store, koco, monkeypatch
):
    other = shutil.copytree(small_store, tmp_path / "other")
    spec = written(tmp_path, SWEEP)
    koco("sweep", spec, "--store", other, status=0)
    wanted, computed, cuts = tables(other), [], 0
    run_cohorts = flows.sweeping.planning.run_cohorts

    def cut(sweep, cohorts, *more):
        """One of the batch's cohorts is run, then it ends."""
        computed.extend(run.run_id for run in cohorts[0].runs)
        run_cohorts(sweep, cohorts[:1], *more)
        raise KeyboardInterrupt

    monkeypatch.setattr("flows.sweeping.planning.run_cohorts", cut)
    while checked(spec, small_store).next_to_compute():
        with pytest.raises(KeyboardInterrupt):
            run_sweep(checked(spec, small_store))
        cuts += 1
    assert tables(small_store) == wanted
    assert sorted(computed) == sorted(row["run_id"] for row in wanted[0])  # each of them once
    assert cuts >= 2 * 3  # two batches, three streams
    ids = [row["run_id"] for row in wanted[0]]
    assert measured(str(small_store), ids, errors=True) == {
        row["run_id"]: row["error_rate" if row["dataset"] == "sparse" else "mean_loss"]
        for row in wanted[0]
        if row["status"] == "ok"
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "clip = [1, 2]",
            'loss = { choice = ["squared", "logistic"] }',
            r"needs labels -1 and \+1",
        ),
        (
            'name = "AdaGrad"\nstep_size = [0.1, 1]',
            'name = "ONS"\nloss = { choice = ["squared", "hinge"] }',
            r"learner 3, name: .*no curvature",
        ),
    ],
)
def test_choice_that_is_wrong__is_refused_before_it_is_drawn(
    old, new, message, tmp_path, small_store
):
    text = SWEEP.replace("batch = 8", "batch = 1").replace(old, new)
    with pytest.raises(WrongInput, match=message):
        checked(written(tmp_path, text), small_store)
