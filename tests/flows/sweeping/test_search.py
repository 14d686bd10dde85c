"""Search: what is drawn is in its range, extends, and hangs on nothing but its own table."""

import json
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.sweeping.file import read_sweep
from flows.sweeping.search import Drawn, Search, Space, drawn, sobol
from koco_stream import WrongInput
from koco_stream.io.files import canonical_json
from koco_stream.learners.foreign.learner import foreign_learner
from tests.helpers.sweeps import checked, written

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
SPACES = st.dictionaries(
    st.sampled_from("abcdef"),
    st.one_of(
        st.builds(lambda size: Drawn("choice", choices=tuple(range(size))), st.integers(1, 5)),
        st.builds(lambda low, more: Drawn("integer", low, low + more), WHOLE, MORE),
        st.builds(lambda low, more: Drawn("uniform", low / 7, low / 7 + more), WHOLE, RATIO),
        st.builds(lambda low, r: Drawn("log_uniform", low, low * r), st.floats(1e-9, 1e6), RATIO),
    ),
    min_size=1,
)


def points(draws, method, seed=0, count=8, name="OGD"):
    return Space(name, "OGD", {}, draws, [0]).points(
        Search(method=method, samples=1, seed=seed), count
    )


@given(SPACES, st.sampled_from(METHODS), st.integers(0, 2**63 - 2), st.integers(1, 40))
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
    turned = dict(reversed(draws.items()))
    assert points(turned, method, seed, 2 * count)[:count] == found
    assert found != points(draws, method, seed + 1, count)
    assert found != points(draws, method, seed, count, "AdaGrad")


@given(st.floats(1e-12, 1e12), st.floats(1.001, 1e12), st.floats(0, 1, exclude_max=True))
def test_log_uniform__is_a_power_of_the_ratio_of_its_ends(low, ratio, u):
    exact = low * math.exp(u * math.log(ratio))
    assert Drawn("log_uniform", low, low * ratio).value(u) == pytest.approx(exact, rel=1e-5)


@given(st.integers(-50, 50), st.integers(1, 60), st.integers(0, 2**20 - 1))
def test_integer__divides_the_range_evenly(low, more, k):
    found = Drawn("integer", low, low + more).value(k / 2**20)
    assert found - low == math.floor(Fraction(k, 2**20) * (more + 1))


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
    both = read_sweep(written(tmp_path, SWEEP))
    assert both.configurations[: len(alone.configurations)] == alone.configurations


OJA = "line 16, learner 1, sketch_size: "
ALPHA = "line 18, learner 1, alpha: "
WRONG = [
    ("samples = 16", "samples = 0", r"line 6, search\.samples: .*greater than 0, not 0"),
    ("samples = 16", "", r"search\.samples: this key is missing"),
    ('"sobol"', '"sobel"', r"line 5, search\.method: .*'random', 'sobol' or 'tpe', not 'sobel'"),
    ("samples = 16", "sampels = 16", r"search\.sampels: unknown key; did you mean 'samples'"),
    ("samples = 16", "samples = 16\nseed = -1", r"line 7, search\.seed"),
    (
        '[search]\nmethod = "sobol"\nsamples = 16\n',
        "",
        r"line 13, learner 1, sketch_size: .*add a table \[search\] with method",
    ),
    ("samples = 16", "samples = 900000", r"21,600,008 runs, .*fewer values, samples or seeds"),
    ("{ integer = [0, 3] }", "{ uniform = [0, 3] }", OJA + r".*whole number; give { integer = "),
    ("{ integer = [0, 3] }", "{ integer = [0, 3.0] }", OJA + r".*whole numbers with a < b, not"),
    ("{ integer = [0, 3] }", "{ integer = [3, 3] }", OJA + r".*a < b, not \[3, 3\]"),
    ("{ integer = [0, 3] }", "{ integer = [3] }", OJA + r".*\[a, b\]"),
    ("{ integer = [0, 3] }", "{ integer = 3 }", OJA + r".*\[a, b\]"),
    ("{ integer = [0, 3] }", "{ integer = [-1, 3] }", OJA + r".*at least 0"),
    ("{ integer = [0, 3] }", "{ integr = [0, 3] }", OJA + r".*{ integer = \[a, b\] }"),
    ("{ log_uniform = [1e-2, 1e2] }", "{ log_uniform = [0, 3] }", ALPHA + r".*0 < a < b, not"),
    ("{ log_uniform = [1e-2, 1e2] }", "{ uniform = [0, 3] }", ALPHA + r".*greater than 0, not 0"),
    ("{ log_uniform = [1e-2, 1e2] }", "{ uniform = [1, inf] }", ALPHA + r".*a < b, not \[1, inf"),
    ("{ log_uniform = [1e-2, 1e2] }", "{ uniform = [nan, 2] }", ALPHA + r".*a < b, not \[nan"),
    ("{ log_uniform = [1e-2, 1e2] }", "{ uniform = [true, 2] }", ALPHA + r".*a < b, not \[True"),
    ("{ log_uniform = [1e-2, 1e2] }", "{ uniform = ['1', 2] }", ALPHA + r".*a < b, not \['1'"),
    ("{ log_uniform = [1e-2, 1e2] }", "{ choice = [1, 0] }", ALPHA + r".*greater than 0, not 0"),
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
        r"line 12, dataset 2, condition_number: give a list.*a parameter of a learner may be drawn",
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
        r"line 5, search\.method: tpe learns from whole runs, and halving ends .*leave halving out",
    ),
    ("samples = 16", "samples = 16\nbatch = 0", r"line 7, search\.batch: .*greater than 0"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_wrong_search__is_refused_with_its_place(old, new, message, tmp_path, small_store):
    assert old in SWEEP
    with pytest.raises(WrongInput, match=message):
        checked(written(tmp_path, SWEEP.replace(old, new)), small_store)


def test_search_without_optuna__names_the_extra(tmp_path, small_store, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)  # as if it were not installed
    with pytest.raises(WrongInput, match=r"line 5.*pip install 'koco-stream\[search\]'; or take"):
        checked(written(tmp_path, SWEEP.replace("sobol", "tpe")), small_store)


def test_foreign_learner__takes_any_kind():
    parameter = foreign_learner("vw").parameter("options")
    assert drawn(parameter, {"choice": ["--adaptive", ""]}).choices == ("--adaptive", "")
    assert drawn(parameter, {"integer": [1, 3]}) == Drawn("integer", 1, 3)
