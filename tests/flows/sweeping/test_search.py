"""Search: what is drawn is in its range, extends, and hangs on nothing but its own table, or for
TPE on the values so far. Successive halving: what goes on follows from recorded losses only, and
what comes to the end is a run like any other. The race: what leaves is behind with the confidence
that is asked for, over all comparisons.
"""

import json
import math
import shutil
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import optuna
import pytest
from hypothesis import given, settings, strategies as st

import flows.sweeping.planning
from flows.sweeping.file import read_sweep
from flows.sweeping.halving import WAGERS, Halving, Race, evidence, measured, stages
from flows.sweeping.launch import run_sweep, write_report
from flows.sweeping.search import FIRST, Drawn, Search, Space, batches, drawn, sobol
from flows.tables.sweep_runs import read_decisions
from koco_stream.engine.checkpoint import checkpoints_folder
from koco_stream.io.files import canonical_json
from koco_stream.learners.foreign.learner import foreign_learner
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Run
from koco_stream.streams.stream import Stream
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import checked, tables, written

METHODS = ("random", "sobol")
SWEEP = """
name = "try"
learner_seeds = 2
[search]
method = "sobol"
samples = 16
[[dataset]]
name = "sparse"
positive_class = [1, 2]
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "OjaSON"
sketch_size = { integer = [0, 3] }
sketch_start = { choice = ["random", "gradients"] }
alpha = { log_uniform = [1e-2, 1e2] }
[[learner]]
name = "AdaGrad"
clip = [1, 2]
step_size = { uniform = [0.1, 1.0] }
[[learner]]
name = "OGD"
"""


# drawn parameters by name: ranges and choices of any size
WHOLE, MORE, RATIO = st.integers(-1000, 1000), st.integers(1, 1000), st.floats(1.001, 1e6)


def points(draws, method, seed=0, count=8, name="OGD"):
    return Space(name, "OGD", {}, draws, [0]).points(
        Search(method=method, samples=1, seed=seed), count
    )


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.one_of(
            st.builds(lambda size: Drawn("choice", choices=tuple(range(size))), st.integers(1, 5)),
            st.builds(lambda low, more: Drawn("integer", low, low + more), WHOLE, MORE),
            st.builds(lambda low, more: Drawn("uniform", low / 7, low / 7 + more), WHOLE, RATIO),
            st.builds(
                lambda low, r: Drawn("log_uniform", low, low * r), st.floats(1e-9, 1e6), RATIO
            ),
        ),
        min_size=1,
    ),
    st.sampled_from(METHODS),
    st.integers(0, 2**63 - 2),
    st.integers(1, 40),
)
def test_draws__are_in_their_ranges_and_extend_and_hang_on_the_seed_and_the_name(
    draws, method, seed, count
):
    draws = {**draws, "z": Drawn("uniform", 0.0, 1.0)}
    found = points(draws, method, seed, count)
    assert len(found) == count
    for point in found:
        assert point.keys() == draws.keys()
        for name, one in draws.items():
            low, high = (min(one.choices), max(one.choices)) if one.choices else (one.low, one.high)
            assert low <= point[name] <= high
            assert isinstance(point[name], float) == (one.kind in ("uniform", "log_uniform"))
    assert points(dict(reversed(draws.items())), method, seed, 2 * count)[:count] == found
    assert found != points(draws, method, seed + 1, count)
    assert found != points(draws, method, seed, count, "AdaGrad")


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.floats(0, 1))
def test_uniform__of_the_largest_range_does_not_overflow(a, b, u):
    low, high = sorted((a, b))
    assert low <= Drawn("uniform", low, high).value(u) <= high


@given(st.integers(0, 2**128 - 1), st.integers(1, 8), st.integers(0, 7))
def test_sobol__hits_each_interval_of_a_power_of_two_once(key, d, k):
    rows = sobol(key, d, 2**k)
    assert rows.shape == (2**k, d)
    for column in rows.T:
        assert sorted(np.floor(column * 2**k).astype(int)) == list(range(2**k))


def test_draws__are_these():
    """They are identities of stored runs, so they must not change."""
    draws = {"b": Drawn("log_uniform", 1e-3, 1e3), "a": Drawn("integer", 0, 9)}
    assert {method: points(draws, method, count=3) for method in METHODS} == {
        "random": [{"a": 2, "b": 0.829993}, {"a": 0, "b": 0.0302698}, {"a": 7, "b": 0.349}],
        "sobol": [{"a": 7, "b": 0.0250515}, {"a": 2, "b": 38.0725}, {"a": 4, "b": 0.137151}],
    }


def test_search__is_the_same_on_all_streams_and_for_all_values_of_a_grid(tmp_path, small_store):
    found = {}
    for run in checked(written(tmp_path, SWEEP), small_store).runs:
        found.setdefault(run.stream, set()).add((run.learner, canonical_json(run.params)))
    first, *others = found.values()
    assert others == [first] * 3
    adagrad = [json.loads(params) for learner, params in first if learner == "AdaGrad"]
    steps = [{p["step_size"] for p in adagrad if p["clip"] == clip} for clip in (1, 2)]
    assert steps[0] == steps[1]
    assert len(steps[0]) == 16
    assert sum(learner == "OGD" for learner, _ in first) == 1  # nothing of it is drawn
    # another learner changes no draw
    alone = read_sweep(written(tmp_path, SWEEP.partition('[[learner]]\nname = "AdaGrad"')[0]))
    assert (
        read_sweep(written(tmp_path, SWEEP)).configurations[: len(alone.configurations)]
        == alone.configurations
    )


TPE = """
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
ALONE = TPE.replace("batch = 8", "batch = 1")
OJA = "line 16, learner 1, sketch_size: "
ALPHA = "line 18, learner 1, alpha: "


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("samples = 16", "samples = 0", r"line 6, search\.samples: .*greater than 0, not 0"),
        ("samples = 16", "", r"search\.samples: this key is missing"),
        (
            '"sobol"',
            '"sobel"',
            r"line 5, search\.method: .*'random', 'sobol' or 'tpe', not 'sobel'",
        ),
        ("samples = 16", "sampels = 16", r"search\.sampels: unknown key; did you mean 'samples'"),
        ("samples = 16", "samples = 16\nseed = -1", r"line 7, search\.seed"),
        (
            '[search]\nmethod = "sobol"\nsamples = 16\n',
            "",
            r"line 13, learner 1, sketch_size: .*add a table \[search\] with method",
        ),
        ("samples = 16", "samples = 900000", r"21,600,008 runs, .*fewer values, samples or seeds"),
        (
            "{ integer = [0, 3] }",
            "{ uniform = [0, 3] }",
            OJA + r".*whole number; give { integer = ",
        ),
        (
            "{ integer = [0, 3] }",
            "{ integer = [0, 3.0] }",
            OJA + r".*whole numbers with a < b, not",
        ),
        ("{ integer = [0, 3] }", "{ integer = [3, 3] }", OJA + r".*a < b, not \[3, 3\]"),
        ("{ integer = [0, 3] }", "{ integer = [3] }", OJA + r".*\[a, b\]"),
        ("{ integer = [0, 3] }", "{ integer = 3 }", OJA + r".*\[a, b\]"),
        ("{ integer = [0, 3] }", "{ integer = [-1, 3] }", OJA + r".*at least 0"),
        ("{ integer = [0, 3] }", "{ integr = [0, 3] }", OJA + r".*{ integer = \[a, b\] }"),
        ("{ log_uniform = [1e-2, 1e2] }", "{ log_uniform = [0, 3] }", ALPHA + r".*0 < a < b, not"),
        (
            "{ log_uniform = [1e-2, 1e2] }",
            "{ uniform = [0, 3] }",
            ALPHA + r".*greater than 0, not 0",
        ),
        (
            "{ log_uniform = [1e-2, 1e2] }",
            "{ uniform = [1, inf] }",
            ALPHA + r".*a < b, not \[1, inf",
        ),
        ("{ log_uniform = [1e-2, 1e2] }", "{ uniform = [nan, 2] }", ALPHA + r".*a < b, not \[nan"),
        (
            "{ log_uniform = [1e-2, 1e2] }",
            "{ uniform = [true, 2] }",
            ALPHA + r".*a < b, not \[True",
        ),
        ("{ log_uniform = [1e-2, 1e2] }", "{ uniform = ['1', 2] }", ALPHA + r".*a < b, not \['1'"),
        (
            "{ log_uniform = [1e-2, 1e2] }",
            "{ choice = [1, 0] }",
            ALPHA + r".*greater than 0, not 0",
        ),
        ("{ log_uniform = [1e-2, 1e2] }", "{ choice = [] }", ALPHA + r".*at least one value"),
        ("{ log_uniform = [1e-2, 1e2] }", "{ choice = 3 }", ALPHA + r".*at least one value, not 3"),
        ("{ choice = [", "{ uniform = [", r"line 17, .*\[a, b\], numbers with a < b, not"),
        ('"random", "gradients"', '"randm"', r"line 17, .*did you mean 'random'"),
        ("sketch_start", "sketch_begin", r"line 17, .*did you mean"),
        (
            "positive_class = [1, 2]",
            "positive_class = { choice = [1, 2] }",
            r"line 9, dataset 1, positive_class",
        ),
        (
            'name = "real"',
            'name = "ill-conditioned"\ncondition_number = { uniform = [1, 9] }',
            r"line 12, dataset 2, condition_number: give a list.*"
            "a parameter of a learner, but not of a mixture's member, may be drawn",
        ),
        (
            'name = "OGD"',
            'name = "OGD"\n[[learner]]\nname = "ONS"\nloss = { choice = ["squared", "hinge"] }',
            r"learner 4, .*no curvature",
        ),
        (
            SWEEP,
            'name = "a"\nsearch = { method = "random", samples = 3 }\n[[dataset]]\nname = "real"\n'
            '[[learner]]\nname = "OGD"\nclip = [1, 2]\n',
            r"line 2, search: no parameter is drawn; give one a range",
        ),
        (
            'learner_seeds = 2\n[search]\nmethod = "sobol"',
            'halving = { first = 50 }\n[search]\nmethod = "tpe"',
            r"line 5, search\.method: tpe learns from whole runs, and halving ends .*"
            "leave halving out",
        ),
        (
            'learner_seeds = 2\n[search]\nmethod = "sobol"',
            'race = { first = 50 }\n[search]\nmethod = "tpe"',
            r"line 5, search\.method: tpe learns .* and race ends .*leave race out",
        ),
        (
            SWEEP,
            'name = "a"\nrace = { first = 40 }\n[[dataset]]\nname = "real"\n[[learner]]\n'
            'name = "OGD"\nclip = 1e300\nstep_size = [1, 2]\n',
            r"a race compares losses that have a bound, and those of OGD on real have none",
        ),
        ("samples = 16", "samples = 16\nbatch = 0", r"line 7, search\.batch: .*greater than 0"),
        # a choice is refused before it is drawn
        (
            SWEEP,
            ALONE.replace("clip = [1, 2]", 'loss = { choice = ["squared", "logistic"] }'),
            r"needs labels -1 and \+1",
        ),
        (
            SWEEP,
            ALONE.replace(
                'name = "AdaGrad"\nstep_size = [0.1, 1]',
                'name = "ONS"\nloss = { choice = ["squared", "hinge"] }',
            ),
            r"learner 3, name: .*no curvature",
        ),
    ],
)
def test_wrong_search__is_refused_with_its_place(old, new, message, tmp_path, small_store):
    assert old in SWEEP
    refusal(message, checked, written(tmp_path, SWEEP.replace(old, new)), small_store)


def test_search_without_optuna__names_the_extra(tmp_path, small_store, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)  # as if it were not installed
    refusal(
        r"line 5.*pip install 'koco-stream\[search\]'; or take",
        checked,
        written(tmp_path, SWEEP.replace("sobol", "tpe")),
        small_store,
    )


def test_foreign_learner__takes_any_kind():
    parameter = foreign_learner("vw").parameter("options")
    assert drawn(parameter, {"choice": ["--adaptive", ""]}).choices == ("--adaptive", "")
    assert drawn(parameter, {"integer": [1, 3]}) == Drawn("integer", 1, 3)


DRAWS = {
    "step_size": Drawn("log_uniform", 1e-3, 1e3),
    "clip": Drawn("uniform", 0.5, 2.0),
    "loss": Drawn("choice", choices=("squared", "logistic")),
    "fit_intercept": Drawn("choice", choices=(False, True)),
}
OGD = Space("OGD", "OGD", {}, DRAWS, range(2))
OF_OJA = Space(
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


def compute(search, spaces=(OGD, OF_OJA), done=(), loss=loss):
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


RACED = """
name = "try"
race = { first = 100 }
[[dataset]]
name = "sparse"
positive_class = 1
order = "shuffled"
order_seeds = 2
[[learner]]
name = "FTRLProximal"
step_size = [0.1, 1]
l1 = [0, 1e6]
"""


@pytest.mark.parametrize("text", [TPE, RACED])
def test_sweep_cut_in_each_batch__goes_on_in_other_blocks_to_the_same_tables(
    text, tmp_path, small_store, koco, monkeypatch
):
    other = shutil.copytree(small_store, tmp_path / "other")
    spec = written(tmp_path, text)
    koco("sweep", spec, "--store", other, status=0)
    wanted, computed, cuts = tables(other), [], 0
    run_cohorts = flows.sweeping.planning.run_cohorts

    def cut(sweep, cohorts, *more):
        """One of the batch's cohorts is run, then it ends."""
        computed.extend(run.run_id for run in cohorts[0].runs)
        run_cohorts(sweep, cohorts[:1], *more)
        raise KeyboardInterrupt

    monkeypatch.setattr("flows.sweeping.planning.run_cohorts", cut)
    monkeypatch.setattr("koco_stream.engine.cohort.fitting_rows", lambda *_: 7)
    while checked(spec, small_store).next_to_compute():
        with pytest.raises(KeyboardInterrupt):
            run_sweep(checked(spec, small_store))
        cuts += 1
    assert tables(small_store) == wanted
    assert sorted(computed) == sorted(row["run_id"] for row in wanted[0])  # each of them once
    assert cuts >= 2 * 3  # two batches, three streams; or three rungs, two streams
    run_sweep(checked(spec, small_store))  # writes what has been decided
    decisions = read_decisions(small_store, "try").to_pylist()
    assert decisions == read_decisions(other, "try").to_pylist()
    assert any(not row["goes_on"] for row in decisions) == (text == RACED)
    ids = [row["run_id"] for row in wanted[0]]
    assert measured(str(small_store), ids, errors=True) == {
        row["run_id"]: row["error_rate" if row["dataset"] == "sparse" else "mean_loss"]
        for row in wanted[0]
        if row["status"] == "ok"
    }


HALVED = """
name = "try"
halving = { factor = 3, first = 40 }
[[dataset]]
name = "sparse"
positive_class = [1, 2]
order = "shuffled"
order_seeds = 2
[[dataset]]
name = "real"
[[dataset]]
name = "ill-conditioned"
n_rows = 30
[[learner]]
name = "OGD"
step_size = { powers_of_two = [-6, 2] }
[[learner]]
name = "OGD"
clip = 1e300
step_size = 1e9
"""


def id_at(run, rounds, sizes):
    """The identity of the run that ends after so many rounds."""
    cut = rounds < sizes[run.stream.dataset_hash].rounds(run.stream)
    return replace(run, stream=replace(run.stream, max_rows=rounds) if cut else run.stream).run_id


def literal(runs, sizes, factor, first, loss):
    """The same decisions in the plainest words: by stage, the identities of the runs."""
    alive, rounds, found = list(runs), first, []
    while alive:
        found.append({id_at(run, rounds, sizes) for run in alive})
        groups = defaultdict(lambda: defaultdict(list))
        for run in alive:
            if id_at(run, rounds, sizes) != run.run_id:
                groups[run.stream.group, run.learner][canonical_json(run.params)].append(run)
        alive = []
        for configurations in groups.values():
            mean = {
                c: sum(loss[id_at(run, rounds, sizes)] for run in runs) / len(runs)
                for c, runs in configurations.items()
            }
            ranked = sorted(configurations, key=lambda c: (mean[c], c))
            going = ranked[: -(-len(configurations) // factor)]
            alive += [run for c in going for run in configurations[c]]
        rounds *= factor
    return found


@st.composite
def sweeps(draw):
    """Runs on two datasets, each configuration of a learner on the same streams, and the sizes."""
    sizes = {f"hash {k}": DataSize(draw(st.integers(1, 3000)), 1, 1) for k in range(2)}
    runs = []
    for identity, size in sizes.items():
        limit = draw(st.none() | st.integers(1, size.n_rows))
        for learner in draw(st.lists(st.sampled_from(["OGD", "AdaGrad"]), min_size=1, unique=True)):
            steps, seeds = draw(st.integers(1, 12)), draw(st.integers(1, 3))
            for step, seed in product(range(steps), range(seeds)):
                stream = Stream(identity, identity, "shuffled", seed, max_rows=limit)
                runs.append(Run.of(stream, learner, {"step_size": 1.0 + step}, 0))
    return runs, sizes


@settings(max_examples=60, deadline=None)
@given(sweeps(), st.integers(2, 5), st.integers(1, 4000), st.data())
def test_decisions__are_those_of_the_literal_rule(sweep, factor, first, data):
    runs, sizes = sweep
    # many are equal; infinite: it is not ok
    loss = defaultdict(lambda: data.draw(st.sampled_from([1.0, 2.0, 3.0, 7.0, math.inf])))

    def losses(ids):
        return {run_id: loss[run_id] for run_id in ids if math.isfinite(loss[run_id])}

    decisions = []
    found = list(stages(runs, sizes, Halving(factor=factor, first=first), losses, decisions))
    ids = [{run.run_id for run in stage} for stage in found]
    assert ids == literal(runs, sizes, factor, first, loss)
    # none is asked for twice
    assert sum(map(len, found)) == len(set.union(*ids))
    groups = defaultdict(list)
    for row in decisions:
        groups[row["dataset"], row["learner"], row["rung"]].append(row)
    for rows in groups.values():
        assert [(row["rank"], row["goes_on"]) for row in rows] == [
            (rank, rank <= -(-len(rows) // factor)) for rank in range(1, len(rows) + 1)
        ]
        means = [math.inf if row["mean_loss"] is None else row["mean_loss"] for row in rows]
        assert means == sorted(means)  # whoever is not ok comes last


def test_sweep_with_halving__ends_with_whole_runs_and_decides_the_same_again(
    koco, small_store, tmp_path, monkeypatch
):
    pages = mock.Mock(wraps=write_report)
    monkeypatch.setattr("flows.sweeping.launch.write_report", pages)
    monkeypatch.setattr("flows.sweeping.launch.AGAIN", 0.0)  # a minute between pages
    plain = shutil.copytree(small_store, tmp_path / "plain")
    spec, other = tmp_path / "try.toml", tmp_path / "plain.toml"
    spec.write_text(HALVED)
    other.write_text("\n".join(line for line in HALVED.splitlines() if "halving" not in line))
    done = koco("sweep", spec, "--store", small_store, "--json", status=0)
    assert pages.call_count == 5  # after each of four stages, and at the end
    koco("sweep", other, "--store", plain, status=0)
    (halved, halved_points), (whole, whole_points) = tables(small_store), tables(plain)
    last = {row["run_id"] for row in halved} & {row["run_id"] for row in whole}
    assert [row for row in (*halved, *halved_points) if row["run_id"] in last] == [
        row for row in (*whole, *whole_points) if row["run_id"] in last
    ]
    ends = {
        (row["dataset"].partition(",")[0], row["positive_class"], row["max_rows"], row["params"])
        for row in halved
        if row["run_id"] in last
    }
    assert Counter(end[:3] for end in ends) == {
        ("sparse", 1, None): 1,
        ("sparse", 2, None): 1,
        ("real", None, None): 1,
        ("ill-conditioned", None, None): 10,
    }
    summary = json.loads(done.stdout)
    assert summary["runs"] == summary["computed"] == len(halved)
    # every round is done once: longer runs go on from the states of shorter ones
    names = ("dataset", "positive_class", "order_seed", "params", "learner_seed")
    by_rounds = sorted(halved, key=lambda row: row["rounds"])
    longest = {tuple(row[name] for name in names): row["rounds"] for row in by_rounds}
    assert summary["rounds"] == sum(longest.values())
    assert checkpoints_folder(small_store).names() == []

    decisions = read_decisions(small_store, "try").to_pylist()
    assert {(row["rung"], row["rounds"]) for row in decisions} == {(1, 40), (2, 120), (3, 360)}
    assert not checked(spec, small_store).next_to_compute()
    assert "Halving and races" in Path(summary["report"]).read_text()
    # the same name, no halving any more
    koco("sweep", other, "--store", small_store, status=0)
    assert not read_decisions(small_store, "try").num_rows
    assert "Halving and races" not in Path(summary["report"]).read_text()


@given(st.data())
def test_evidence__is_at_most_what_wagers_on_each_round_win(data):
    """Nobody can expect to win by wagers on losses that are not larger than the leader's."""
    loss = st.sampled_from([0.0, 1.0]) | st.floats(0.0, 1.0)
    rounds = data.draw(st.lists(st.tuples(loss, loss), max_size=60))
    losses, least = np.array(rounds).reshape(-1, 2).T
    won = np.log1p(WAGERS[:, None] * (losses - least)).sum(axis=1)
    most = np.logaddexp.reduce(won) - math.log(WAGERS.size)
    assert evidence(losses.sum(), least.sum()) <= most + 1e-9


@pytest.mark.parametrize("swing", [0.0, 0.5])
def test_race__drops_one_that_is_not_behind_in_at_most_one_of_twenty(swing):
    """Fourteen learners, whose chances of an error are equal, or change places every 800 rounds."""
    draw = np.random.default_rng(0)
    sign = np.where(np.arange(6400)[:, None] // 800 % 2, 1, -1) * np.array([1, -1] * 7)
    chances = 0.05 * (1.0 + swing * sign)
    expected = chances.cumsum(axis=0)
    wrong = 0
    for _ in range(400):
        sums = (draw.random(chances.shape) < chances).cumsum(axis=0)
        going = list(range(14))
        for rounds in 100 * 2 ** np.arange(7):
            ranked = sorted(going, key=sums[rounds - 1].__getitem__)
            n = Race(first=100).n_going(sums[rounds - 1, ranked] / rounds, rounds, 14 * 13)
            least = expected[rounds - 1, ranked[0]]
            wrong += (expected[rounds - 1, ranked[n:]] <= least + 1e-9).sum()
            going = ranked[:n]
    assert wrong <= 0.05 * 400


@pytest.mark.parametrize(
    ("losses", "rungs"),
    [
        # 960 errors of eight orders are enough; 480 are not, but would be for one stream; of losses
        # at the clip, which are up to 4, it takes four times as many
        ((0.1, 0.2), {"sparse": 3, "real": 5}),
        ((0.1, math.inf), {"sparse": 1, "real": 1}),  # it is not ok
        ((0.3, 0.3), {}),
        ((math.inf, math.inf), {}),
    ],
)
def test_race__counts_rounds_of_all_orders_in_shares_of_the_largest_loss(
    losses, rungs, tmp_path, small_store, monkeypatch
):
    text = """
    name = "try"
    race = { first = 30 }
    dataset = [
        { name = "sparse", positive_class = 1, order = "shuffled", order_seeds = 8 },
        { name = "real", order = "shuffled", order_seeds = 8 },
    ]
    learner = [{ name = "OGD", step_size = [1, 2] }]
    """
    sweep = checked(written(tmp_path, text), small_store)
    found = {
        id_at(run, 30 * 2**k, sweep.sizes): losses[run.params["step_size"] == 2.0]
        for run, k in product(sweep.runs, range(5))
    }
    monkeypatch.setattr("flows.sweeping.halving.measured", lambda *_, errors: found)
    decisions = []
    assert list(sweep.stages(decisions))
    assert {row["dataset"]: row["rung"] for row in decisions if not row["goes_on"]} == rungs
