"""The sweep file: what it expands to, and what is refused, with remedies. Sweeps without one: the
usual one on a dataset, those of Python, and what is said of a learner that takes too long.
"""

import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import rankdata

import flows
from flows.report.document import page_of
from flows.report.papers.benchmark import stored_table
from flows.sweeping.file import read_sweep, sweep_called, sweep_of
from flows.sweeping.planning import LONG, dry_run_of, longest_learner
from flows.sweeping.request import SweepRequest, packaged
from flows.sweeping.usual import SECONDS, WHY, grids_for, seconds_of, usual_sweep
from koco_stream import WrongInput
from koco_stream.engine.timing import remember
from koco_stream.learners import LEARNERS
from koco_stream.runs.cost_model import Costs, DataSize, Timing, pass_bytes, timing_key
from koco_stream.runs.planner import Plan
from koco_stream.runs.run import Run
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.stream import Stream, sharding_of
from storage.preparing.prepare import prepare_file
from tests.helpers.project import SWEEPS, environment
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import checked, written

GOOD = """
name = "try"
learner_seeds = 2
[[dataset]]
name = "sparse"
positive_class = [1, 2]
order = "shuffled"
order_seeds = 3
[[learner]]
name = "OjaSON"
sketch_size = [0, 2]
sketch_rate = [1, 16]
sketch_start = "random"
alpha = { powers_of_two = [-1, 1] }
[[learner]]
name = "AdaGrad"
step_size = 0.5
"""


def test_expansion__counts_each_run_once(tmp_path, small_store):
    sweep = checked(written(tmp_path, GOOD), small_store)
    ids = {run.run_id for run in sweep.runs}
    # 6 streams; without a sketch neither its rate nor the seed matters; AdaGrad has no seed.
    assert (
        len(ids) == len(sweep.runs) == len(sweep.next_to_compute()) == 6 * (3 * 1 + 3 * 2 * 2 + 1)
    )
    assert {run.params.get("alpha") for run in sweep.runs} == {0.5, 1.0, 2.0, None}


def test_identity__does_not_depend_on_how_a_number_is_written(tmp_path, small_store):
    text = 'name = "a"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "ONS"\n'
    ids = []
    # the defaults are alpha 1, σ = 1/8 for clip 1
    for more in (
        "",
        "alpha = 1",
        "curvature = 0.125",
        "alpha = 1.0",
        "alpha = { powers_of_two = [0, 0] }",
        "alpha = { powers_of_ten = [0, 0] }",
    ):
        ids.append(
            [run.run_id for run in checked(written(tmp_path, text + more), small_store).runs]
        )
    assert ids == [ids[0]] * 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'name = "try"',
            "naem = 'try'",
            r"try\.toml, line 2, naem: unknown key; did you mean 'name'|name: this key is missing",
        ),
        ('name = "try"', "", r"try\.toml, name: this key is missing"),  # not at a dataset's name
        (
            'name = "try"',
            'name = "../try"',
            r"line 2, name: a name has up to 200 letters, .* not '\.\./try'",
        ),
        ("[[dataset]]", "[dataset]", r"line 4, dataset: .* begins with \[\[dataset\]\] on its own"),
        (
            'name = "try"',
            'name = "try"\nreport = "a"',
            "line 3, report: this is one table, with the keys",
        ),
        (
            'name = "sparse"',
            'name = ["sparse"]',
            r"line 5, dataset 1, name: .*; write \[\[dataset\]\] for",
        ),
        ('name = "try"', 'name = ["try"]', "line 2, name: give one text .*, not a list$"),
        ('name = "try"', "name = 3", "line 2, name: give one text in quotation marks, not 3$"),
        (
            'name = "try"',
            'name = "try"\nwindow = "9"',
            "line 3, window: give a whole number, not '9'$",
        ),
        ('name = "try"', 'name = "try"\nmetrics = "a"', "line 3, metrics: give a list, not 'a'$"),
        (
            'name = "try"',
            "name = try",
            r"try\.toml, line 2: 'name = try' .*text stands in quotation",
        ),
        ('name = "try"', f'name = "{"a" * 201}"', "line 2, name: a name has up to 200"),
        ("step_size = 0.5", 'sketch_size = "big"', r"line 17, learner 2, sketch_size"),
        (
            "sketch_size = [0, 2]",
            "sketch_sise = [0, 2]",
            r"line 11, learner 1, sketch_sise: OjaSON has no parameter .*"
            "did you mean 'sketch_size'",
        ),
        (
            'name = "OjaSON"',
            'name = "OjaSun"',
            r"line 10, learner 1, name: .*did you mean 'OjaSON'",
        ),
        (
            "step_size = 0.5",
            "step_size = -0.5",
            r"line 17, learner 2, step_size: .*greater than 0, not -0.5",
        ),
        (
            "step_size = 0.5",
            'step_size = "0.5"',
            r"line 17, learner 2, step_size: .*must be a finite number, not '0.5'",
        ),
        ("step_size = 0.5", "step_size = []", r"line 17, learner 2, step_size: the grid is empty"),
        ("step_size = 0.5", "step_size = inf", r"line 17, learner 2, step_size: .*finite"),
        ("step_size = 0.5", "loss = 'hing'", r"line 17, learner 2, loss: .*one of squared"),
        (
            "{ powers_of_two = [-1, 1] }",
            "{ powers_of_two = [1, -1] }",
            r"line 14, learner 1, alpha: .*in order from -300 to 300, not",
        ),
        (
            "{ powers_of_two = [-1, 1] }",
            "{ powers = [1, -1] }",
            r"line 14, learner 1, alpha: give a list",
        ),
        (
            "step_size = 0.5",
            '[[learner]]\nname = "Mixture"\n[[learner.member]]\nname = "OGD"\n'
            '[[learner.member]]\nname = "OGD"\nstep_size = [1.0, -1.0]',
            r"line 23, learner 3, member 2, step_size: .*greater than 0, not -1.0",
        ),
        (
            "step_size = 0.5",
            '[[learner]]\nname = "Mixture"\n[[ learner . member ]]  # drawn\nname = "OGD"\n'
            "step_size = { uniform = [1, 2] }",
            r"line 21, learner 3, member 1, step_size: .*not of a mixture's member",
        ),
        (
            "step_size = 0.5",
            '[[learner]]\nname = "Mixture"\nmember = 3',
            r"line 19, learner 3, member 1: a member is a table",
        ),
        (
            "step_size = 0.5",
            '[[learner.member]]\nname = "OGD"',
            r"line 17, learner 2, member: only a Mixture has members",
        ),
        (
            'name = "sparse"',
            'name = "sparce"',
            r"'sparce' is not prepared .*did you mean 'sparse'.*koco prepare sparce --from",
        ),
        ('order = "shuffled"', 'order = "random"', r"line 7, dataset 1, order: .*as-stored"),
        ('order = "shuffled"\n', "", r"dataset 1, order_seeds: only a shuffled order"),
        (
            "order_seeds = 3",
            "window_rows = 100",
            r'line 8, dataset 1, window_rows: .*add order = "shuffled-in-windows"',
        ),
        (
            'order = "shuffled"\norder_seeds = 3',
            "window_rows = 100",
            r"dataset 1, window_rows: .*only one order has windows",
        ),
        (
            'order = "shuffled"',
            'order = "shuffled-in-windows"\nwindow_rows = 0',
            r"line 8, dataset 1, window_rows: .*greater than 0",
        ),
        (
            'order = "shuffled"',
            'order = "shuffled-in-windows"\nwindow_row = 9',
            r"line 8, dataset 1, window_row: .*did you mean 'window_rows'",
        ),
        (
            "positive_class = [1, 2]",
            "positiv_class = 1",
            r"line 6, dataset 1, positiv_class: unknown key; did you mean 'positive_class'",
        ),
        (
            "positive_class = [1, 2]",
            "positive_class = 9",
            r"line 4, dataset 1: .*no label 9; its labels are 1, 2, 3",
        ),
        (
            "positive_class = [1, 2]\n",
            "",
            r"labels 1, 2, 3, not -1 and \+1; add positive_class = 3",
        ),
        ("positive_class = [1, 2]", "positive_class = []", r"line 6, dataset 1, positive_class: "),
        (
            "positive_class = [1, 2]",
            "positive_class = nan",
            r"line 6, dataset 1, positive_class: .*finite",
        ),
        (
            "positive_class = [1, 2]",
            f"positive_class = {'9' * 400}",
            r"line 6, dataset 1, positive_class: .*number",
        ),
        ("step_size = 0.5", f"step_size = {'9' * 400}", r"line 17, learner 2, step_size: .*finite"),
        (
            "learner_seeds = 2",
            f"learner_seeds = [{2**63}]",
            "line 3, learner_seeds: .*less than 9223",
        ),
        ("step_size = 0.5", f"step_size = {'9' * 5000}", r"try\.toml"),
        ("step_size = 0.5", f"step_size = 0x{'f' * 5000}", r"try\.toml is not TOML .*4300 digits"),
        *(
            (
                old,
                f"{old}\n{key}",
                f"dataset|learner 2, {key[:7]}.* is for all runs; .* first table",
            )
            for old in ("order_seeds = 3", "step_size = 0.5")
            for key in ("halving = { eta = 2 }", "learner_seeds = 3", "metrics = ['auc']")
        ),
        ("step_size = 0.5", "step_size = .5", "line 17: 'step_size = .5' .* written as 0.5"),
        ("step_size = 0.5", "fit_intercept = True", "line 17: .*true and false in small letters"),
        ("step_size = 0.5", "loss = 1\nloss = 2", "line 18: 'loss = 2' .* a key once$"),
        ("step_size = 0.5", "steps = [1,\n2", r"try\.toml is not TOML in UTF-8 .*end of document"),
        (GOOD, 'name = "a"\ndataset = []', r"line 2, dataset: .* begins with \[\[dataset\]\]"),
        (
            GOOD,
            'name = "a"\ndataset = ["a"]',
            r"line 2, dataset 1: .* begins with \[\[dataset\]\] on",
        ),
        ("[[learner]]", "[[lerner]]", "line 9, lerner: unknown key; did you mean 'learner'"),
        (
            "step_size = 0.5",
            "metrics = ['auc']",
            "line 17, .*: metrics is for all runs; .* first table",
        ),
        (
            "step_size = 0.5",
            "order = 'shuffled'",
            r"line 17, .*: order is of a dataset; give it in a",
        ),
        ("order_seeds = 3", "window = 9", r"line 8, dataset 1, window: .* above the first table"),
        ("AdaGrad", "a.linear.SGD", r"did you mean 'a\.linear:SGD'\? \(a learner in a file"),
        ("AdaGrad", "sgd.py", r"did you mean 'sgd\.py:Class'"),
        ("AdaGrad", "./a:SGD", r"no learner is called '\./a:SGD'; there are"),
        (
            '"sparse"',
            '"./a.csv"',
            "line 5, dataset 1, name: .* koco prepare NAME --from FILE gives it",
        ),
        (
            "order_seeds = 3",
            "order_seeds = []",
            "line 8, .*: give at least one value, not an empty",
        ),
        ("order_seeds = 3", "order_seeds = -1", "line 8, .*: it must be greater than 0, not -1"),
        ("learner_seeds = 2", "time_limit = 00:00:00", "line 3, time_limit: .* not 00:00:00"),
        (
            "learner_seeds = 2",
            "learner_seeds = 1000000000",
            r"runs, but a sweep has at most 10,000,000",
        ),
        (
            "order_seeds = 3",
            "order_seeds = 1000000000",
            r"runs, but a sweep has at most 10,000,000",
        ),
        (
            'name = "sparse"\npositive_class',
            'name = "ill-conditioned"\nn_rows = 1e21\npositive_class',
            r"dataset 1, name: .*n_rows",
        ),
        (
            'name = "sparse"\npositive_class',
            'name = "ill-conditioned"\ndata_seed = inf\npositive_class',
            r"dataset 1, name: .*data_seed",
        ),
        (
            'name = "sparse"\npositive_class = [1, 2]',
            'name = "real"\npositive_class = 1',
            r"dataset 'real' has real targets, not classes",
        ),
        ("learner_seeds = 2", "learner_seeds = 0", r"line 3, learner_seeds"),
        ("learner_seeds = 2", "learner_seeds = ", r"line 3"),
        ("learner_seeds = 2", "time_limit = 0", r"line 3, time_limit: .*greater than 0, not 0"),
        ("learner_seeds = 2", "time_limit = inf", r"line 3, time_limit: .*finite number, not inf"),
        ("learner_seeds = 2", "time_limit = true", r"line 3, time_limit: .*not True"),
        ("learner_seeds = 2", 'time_limit = "0:00:00"', r"line 3, time_limit: .*greater than 0"),
        ("learner_seeds = 2", 'time_limit = "4 h"', r'line 3, time_limit: .*"HH:MM:SS".*\'4 h\''),
        ("learner_seeds = 2", "time_limit = [1]", r'line 3, time_limit: .*"HH:MM:SS"'),
        ("step_size = 0.5", "time_limit = 5", r"line \d+, learner 2, time_limit: .*first table"),
        (
            "learner_seeds = 2",
            "halving = { factor = 3, frist = 40 }",
            r"try\.toml, line 3, halving\.frist: unknown key; did you mean 'first'",
        ),
        (
            "learner_seeds = 2",
            "halving = { factor = 3, first = 40, last = 9 }",
            r"line 3, halving\.last: unknown key; .*factor, first",
        ),
        (
            "learner_seeds = 2",
            "halving = { factor = 1, first = 40 }",
            r"line 3, halving\.factor: .*greater than or equal to 2, not 1",
        ),
        ("learner_seeds = 2", "halving = { factor = 3 }", r"halving\.first: this key is missing"),
        (
            "learner_seeds = 2",
            "halving = { first = 0 }",
            r"halving\.first: .*greater than 0, not 0",
        ),
        (
            "learner_seeds = 2",
            "halving = { first = 1.5 }",
            r"halving\.first: give a whole number, not 1.5",
        ),
        ("learner_seeds = 2", "halving = 3", r"try\.toml, line 3, halving: "),
        (
            "learner_seeds = 2",
            "halving = { first = 40 }\nrace = { first = 40 }",
            r"line 4, race: halving says too what goes on; leave one of them out",
        ),
        (
            "learner_seeds = 2",
            "race = { first = 40, confidence = 95 }",
            r"line 3, race\.confidence: .*less than 1, not 95",
        ),
        ("learner_seeds = 2", "race = { confidence = 0.9 }", r"race\.first: this key is missing"),
        ("learner_seeds = 2", "[halving]\nfactor = 1\nfirst = 40", r"line 4, halving\.factor"),
        (
            "step_size = 0.5",
            'step_size = 0.5\n[report]\nfigure = ["son-figure-9"]',
            r"line 19.*figure",
        ),
        (
            GOOD,
            'name = "a"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "OGD"\nloss = "logistic"',
            "has real targets",
        ),
        (
            '[[learner]]\nname = "AdaGrad"\nstep_size = 0.5',
            "[[learner]]\nstep_size = 0.5",
            r"learner 2, name: this key is missing",
        ),
        (
            "step_size = 0.5",
            'loss = "hinge"\n[[learner]]\nname = "OjaSON"\nloss = "hinge"',
            r"learner 3, name: .*no curvature",
        ),
    ],
)
def test_wrong_sweep__is_refused_with_its_place(old, new, message, tmp_path, small_store):
    assert old in GOOD
    refusal(message, checked, written(tmp_path, GOOD.replace(old, new)), small_store)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("90", 90), ("1.5", 1.5), ('"1:30:00"', 5400), ("00:01:30", 90), ('"100:00:00"', 360_000)],
)
def test_time_limit__is_seconds_or_a_time(given, seconds, tmp_path):
    assert read_sweep(written(tmp_path, f"time_limit = {given}\n{GOOD}")).time_limit == seconds


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p.write_bytes(b"\x7fELF\xdd"), "is not TOML in UTF-8 .* position 4"),
        (Path.mkdir, "directory"),
    ],
)
def test_file_that_is_no_text__is_refused(make, message, tmp_path):
    make(tmp_path / "s.toml")
    refusal(rf"s\.toml.*{message}", read_sweep, tmp_path / "s.toml")


@pytest.mark.parametrize("path", sorted(SWEEPS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_sweep__is_read(path):
    sweep = read_sweep(path)
    assert sweep.configurations
    assert all(f'"{figure}"' in sweep.text for figure in sweep.figures)


def test_streams__that_read_the_same_are_one(tmp_path, small_store):
    prepare_file(small_store, "two", written(tmp_path, "1 1:1\n-1 2:1\n", "two.svm"))

    def runs_of(keys, name="two"):
        text = f'name = "a"\n[[dataset]]\nname = "{name}"\n{keys}\n[[learner]]\nname = "OGD"'
        return [run.run_id for run in checked(written(tmp_path, text), small_store).runs]

    for name in ("two", "ill-conditioned"):
        assert (
            runs_of("", name)
            == runs_of("positive_class = 1", name)
            == runs_of("max_rows = 10000", name)
        )
    assert runs_of("max_rows = 2") == runs_of("")
    assert runs_of("max_rows = 1") != runs_of("") != runs_of("positive_class = -1")


def test_windows__are_part_of_the_streams_of_their_order_alone(tmp_path, small_store):
    def streams_of(keys):
        text = (
            'name = "a"\n[[dataset]]\nname = "sparse"\npositive_class ='
            f' 1\n{keys}\n[[learner]]\nname = "OGD"'
        )
        return [run.stream for run in checked(written(tmp_path, text), small_store).runs]

    sharding = sharding_of(load_manifest(small_store, "sparse"))
    two = streams_of('order = "shuffled-in-windows"\norder_seeds = 2\nwindow_rows = 100')
    assert [(s.order, s.order_seed, s.window_rows, s.sharding) for s in two] == [
        ("shuffled-in-windows", k, 100, sharding) for k in (0, 1)
    ]
    unsaid = streams_of('order = "shuffled-in-windows"')
    assert [s.window_rows for s in unsaid] == [700]  # of 65,536: the dataset has no more
    others = streams_of("") + streams_of('order = "shuffled"')
    assert [(s.window_rows, s.sharding) for s in others] == [(None, None)] * 2


def test_full_shuffle__beyond_the_cache_s_limit_is_refused_before_anything_starts(
    tmp_path, small_store, monkeypatch
):
    monkeypatch.setenv("KOCO_CACHE_BYTES", "10000")
    refusal("shuffled-in-windows", checked, written(tmp_path, GOOD), small_store)
    checked(written(tmp_path, GOOD.replace('"shuffled"', '"shuffled-in-windows"')), small_store)


def test_memory__of_the_order_and_the_rows_follows_the_order():
    size = DataSize(1_000_000, 1000, 50_000_000, 48 << 20)
    streams = (
        Stream("a", ""),
        Stream("a", "", "shuffled", 0),
        Stream("a", "", "shuffled-in-windows", 0, window_rows=65536, sharding=""),
    )
    stored, shuffled, windows = (pass_bytes(stream, size) for stream in streams)
    assert [stored["order"], shuffled["order"], windows["order"]] == [0, 8_000_000, 8 * 65536]
    assert stored["block"] < shuffled["block"] == windows["block"]
    for term in (stored, shuffled, windows):
        assert term["comparator"] < 1 << 20  # nothing in it grows with the rows
        assert term["copy of a shard"] == 4 * 48 << 20


ROWS = {
    "bits": "0,1\n1,2\n",
    "large": "12345671,1\n12345672,2\n",
    "threes": "1,1\n2,2\n3,1\n",
    "names": "red,1\nit's,2\nblue,1\n",
    "alone": "3,1\n3,2\n",
    "real": "1.5,1\n2.5,2\n",
}
KEY = r'(\w+) = ("[^"]*"|[-\d.]+)'


def follow(store, folder, keys):
    """Follow each remedy of each message, to its end; how many there were.

    `keys` are those of the dataset, and the learner's loss.
    """
    text = 'name = "s"\n[[dataset]]\n{}[[learner]]\nname = "OGD"\n{}'
    lines = {key: f"{key} = {value}\n" for key, value in keys.items()}
    of_learner = lines.pop("loss", "")
    try:
        checked(written(folder, text.format("".join(lines.values()), of_learner)), store)
        return 0
    except WrongInput as error:
        said = str(error)
    more = [{**keys, key: value} for key, value in re.findall(f"(?:add|or|take) {KEY}", said)]
    left = re.findall(r"leave out (\w+)", said)
    more += [{key: value for key, value in keys.items() if key != one} for one in left]
    assert more, f"nothing to follow: {said}"
    assert keys not in more, f"no end: {said}"
    return sum(1 + follow(store, folder, one) for one in more)


@pytest.mark.parametrize(
    ("given", "remedies"),
    [
        ({"name": '"bits"'}, 1),
        ({"name": '"large"'}, 1),
        ({"name": '"threes"'}, 2),
        ({"name": '"names"'}, 2),
        ({"name": '"alone"'}, 1),
        ({"name": '"bits"', "multiclass": '"one-vs-rest"'}, 2),
        ({"name": '"names"', "multiclass": '"one-vs-rest"', "positive_class": '"blue"'}, 2),
        ({"name": '"real"', "positive_class": "1"}, 1),
        ({"name": '"real"', "multiclass": '"one-vs-rest"', "loss": '"hinge"'}, 2),
        ({"name": '"real"', "loss": '"logistic"'}, 1),
        ({"name": '"threes"', "positive_class": "1", "order_seeds": "3"}, 1),
        ({"name": '"threes"', "positive_class": "1", "window_rows": "3"}, 1),
    ],
)
def test_remedy__that_is_done_leads_to_a_sweep_that_is_accepted(given, remedies, tmp_path):
    name = given["name"].strip('"')
    prepare_file(
        tmp_path / "store",
        name,
        written(tmp_path, ROWS[name], "rows.csv"),
        target="1",
        header=False,
    )
    assert follow(tmp_path / "store", tmp_path, given) == remedies


FACTS = {"label_min": -1.0, "label_max": 1.0, "mean_square_norm": 4.0}


@pytest.mark.parametrize(
    ("learner", "part", "among"),
    [
        ("AdaGrad", "benchmark-whole", {"AdaGrad", "FTRLProximal", "NAG", "OGD"}),
        ("NAG", "benchmark-raw", {*LEARNERS}),
        ("SAdaGrad", "benchmark-whole", {*LEARNERS}),
        ("KAWV", "benchmark", {*LEARNERS}),
        (
            "ONS",
            "benchmark-whole",
            {"ONS", *{one.__name__ for one in LEARNERS.values() if ".kernel." in one.__module__}},
        ),
        ("OjaSON", "benchmark-text", {*LEARNERS}),
    ],
)
def test_learner__is_the_best_of_those_that_it_is_said_to_be_the_best_of(learner, part, among):
    """The benchmark's numbers may change, and another learner be the one to try."""
    blocks = {}
    for row in stored_table().to_pylist():
        if row["part"] == part:
            blocks.setdefault(row["title"], {})[row["learner"]] = float(
                f"{np.mean(row['scores']):.11e}"
            )
    names = [*next(iter(blocks.values()))]
    ranks = np.mean([rankdata([one[name] for name in names]) for one in blocks.values()], axis=0)
    found = dict(zip(names, ranks, strict=True))
    assert min(among & found.keys(), key=found.__getitem__) == learner
    assert f"{found[learner]:.1f} of {len(names)}" in WHY[learner]


def manifest_of(store, n, d, classes=(-1.0, 1.0), s=None, **facts):
    """The manifest of a dataset of such a size; without classes its labels are real."""
    return replace(
        load_manifest(store, "real"),
        name="mine,scale=none",
        n_rows=n,
        n_features=d,
        n_values=int(n * (s or d)),
        task="classification" if classes else "regression",
        classes=[*classes],
        statistics={**FACTS, **facts},
    )


@pytest.mark.parametrize(
    ("n", "d", "more", "fourth", "is_whole"),
    [
        (100, 3, {}, "KAWV", True),
        (150, 4, {"classes": (1.0, 2.0, 3.0)}, "KAWV", True),
        (3_000, 1_000, {"classes": (0.0, 2.0)}, "KAWV", True),
        (3_000, 20, {"classes": range(50)}, "ONS", True),
        (50_000, 50, {}, "ONS", True),
        (50_000, 50, {"classes": (), "label_max": 3e4}, "ONS", True),
        (5_000_000, 50, {"classes": ()}, "ONS", False),
        (50_000, 1_000, {"classes": range(10)}, "OjaSON", False),
        (20_000, 60_000, {"classes": range(20), "s": 60}, "OjaSON", True),
        (20_000, 10**6, {"s": 10}, "OjaSON", True),
        (500, 10**5, {"mean_square_norm": 0.0}, "OjaSON", True),
        (20_000, 10**6, {}, "OjaSON", False),
    ],
)
def test_sweep__fits_its_dataset_and_takes_two_minutes(small_store, n, d, more, fourth, is_whole):
    manifest = manifest_of(small_store, n, d, **more)
    content = tomllib.loads(usual_sweep(manifest))
    [dataset] = content["dataset"]
    names = [table["name"] for table in content["learner"]]
    assert names == ["AdaGrad", "NAG", "SAdaGrad", fourth, "Mixture", "Constant"]
    assert dataset["name"] == manifest.name
    assert content["name"] == "mine-scale-none"
    sweep = sweep_of(content)  # which checks each value
    [use] = sweep.datasets
    for stream in use.streams(manifest):
        for one in sweep.configurations:
            Run(stream, *one).check_labels(manifest.classes, manifest.task)
    clips = {table["clip"] for table in content["learner"]}
    assert clips == {1.0 if manifest.classes else more.get("label_max", 1.0)}
    assert ("max_rows" not in dataset) == is_whole
    rounds = dataset.get("max_rows", n)
    grids = grids_for(manifest)
    seconds = sum(seconds_of(grids, manifest, name, rounds) for name in names)
    assert seconds <= 1.01 * SECONDS or rounds == 100
    assert is_whole or rounds == 100 or seconds >= 0.5 * SECONDS


@pytest.mark.parametrize("name", ["b", ">50K, it's", "Grüner Veltliner"])
def test_class_that_is_named__is_learnt_against_the_rest(small_store, name):
    three = manifest_of(small_store, 150, 4, (1.0, 2.0, 3.0))
    text = usual_sweep(replace(three, class_names=["a", name, "z"]), name)
    content = tomllib.loads(text)
    assert content["dataset"][0]["positive_class"] == name
    assert "multiclass" not in content["dataset"][0]
    assert sweep_of(content).name.startswith("mine-scale-none-")
    [command] = re.findall("`koco sweep (.*)`", text)
    assert shlex.split(command) == [three.name, "--positive", name]
    refusal("no label 'y'", usual_sweep, three, "y")


def test_class__is_of_a_dataset_and_not_of_a_file(small_store, koco, tmp_path):
    found = koco("sweep", "ill-conditioned", "--positive", "b", "--store", small_store, status=2)
    assert 'add positive_class = "b" below a dataset\'s name' in " ".join(found.stderr.split())


@pytest.mark.parametrize("unit", [1e-3, 1e4])
def test_grid__follows_the_units_of_labels_and_features(small_store, unit):
    """So that the same rows in other units have runs that say the same."""
    labels = {"label_min": -unit, "label_max": unit, "mean_square_norm": 4.0 * unit**2}
    one, other = (
        grids_for(manifest_of(small_store, 100, 3, (), **facts)) for facts in (FACTS, labels)
    )
    powers = {"step_size": 0, "bandwidth": 1, "alpha": 2, "curvature": -2, "clip": 1}
    for name, grid in one.items():
        for key, value in grid.items():
            if key in powers and (name, key) != ("KAWV", "alpha"):
                power = 1 if (name, key) == ("NAG", "step_size") else powers[key]
                found = np.multiply(value, unit**power)
                assert other[name][key] == pytest.approx(found, rel=1e-9), (name, key)


def test_dry_run__prints_a_file_with_the_same_runs(small_store, tmp_path, koco):
    for name in ("real", "sparse"):
        done = koco("sweep", name, "--dry-run", "--store", small_store, status=0)
        assert "to compute: " in done.stderr
        kept = written(tmp_path, done.stdout, "kept.toml")
        ids, others = ({run.run_id for run in checked(s, small_store).runs} for s in (kept, name))
        assert ids == others
        assert done.stdout == checked(name, small_store).sweep.text


def test_rows_without_a_suffix__are_no_sweep_file(small_store, inside, koco):
    for name in ("real", "real.csv", "other"):
        written(inside, "1,2\n2,3\n", name)
    koco("sweep", "real", "--dry-run", "--store", small_store, status=0)
    for name in ("real.csv", "other"):
        done = koco("sweep", name, "--store", small_store, status=2)
        assert "koco prepare NAME --from FILE" in " ".join(done.stderr.split())


def test_sweep__without_a_file_says_what_it_found(small_store, koco):
    result = flows.sweep("real", small_store, workers=0)
    assert len({*result.runs["learner"].to_pylist()}) == 6
    assert {*result.runs["status"].to_pylist()} == {"ok"}
    done = koco("sweep", "real", "--store", small_store, status=0)
    assert "nothing to compute" in done.stderr
    finding, report = done.stdout.splitlines()
    assert finding == page_of(small_store, "real", whole=False).finding
    assert report == f"report: {result.report}"
    assert result.best().to_pylist()[0]["learner"] in finding
    result.report.path.with_suffix(".md").unlink()
    assert koco("sweep", "real", "--store", small_store, status=0).stdout == done.stdout


SWEEP = """
name = "long"
[[dataset]]
name = "sea"
n_rows = 8000
[[learner]]
name = "AdaGrad"
[[learner]]
name = "KONS"
alpha = { powers_of_two = [-50, 49] }
"""


def warnings(folder, text):
    """What a dry run says of learners, which were timed before."""
    for run in checked(written(folder, text), folder / "store").runs:
        remember(timing_key(run), Timing(1000, 1.0 if run.learner == "KONS" else 1e-3, 1.5))
    return dry_run_of(SweepRequest(str(written(folder, text)), str(folder / "store"))).get(
        "warnings", []
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "long"', 'name = "long"\ntime_limit = 5'),
        ("n_rows = 8000", "n_rows = 8000\nmax_rows = 500"),
        ('[[learner]]\nname = "AdaGrad"\n', ""),  # there are no others
    ],
)
def test_remedy__that_is_followed_ends_it(old, new, tmp_path):
    (said,) = warnings(tmp_path, SWEEP)
    assert said.startswith("KONS is expected to take ")
    assert said.endswith(
        "give time_limit at the top of the sweep file, or max_rows in the table of its dataset"
    )
    assert warnings(tmp_path, SWEEP.replace(old, new)) == []


@pytest.mark.parametrize(
    ("learner", "largest"), [("OjaSON", 0.009), ("FDSON", 0.011), ("ONS", 0.009)]
)
def test_rows_long_beside_each_alpha__are_said_of_a_dataset_and_learner(
    learner, largest, small_store, tmp_path
):
    square = load_manifest(small_store, "real").statistics["mean_square_norm"]
    alphas = [1e-4 * square, largest * square]
    text = (
        f'name = "a"\n[[dataset]]\nname = "real"\n[[learner]]\nname = "{learner}"\nalpha = {alphas}'
    )
    request = SweepRequest(str(written(tmp_path, text)), str(small_store))
    said = dry_run_of(request).get("warnings", [])
    norm = f"a mean square norm of {square:.3g}, more than 100 times each alpha of OjaSON"
    assert [norm in one for one in said] == [True] * (learner == "OjaSON")


@pytest.mark.parametrize(
    ("learner", "seconds", "named"),
    [
        ("BKONS", 6000.0, [True]),
        ("KONS", 6000.0, [False]),
        ("KONS", LONG + 1, [False]),
        ("KONS", LONG - 1, []),  # seconds are not told
    ],
)
def test_max_dictionary__is_named_for_long_learners_that_have_it(learner, seconds, named, tmp_path):
    sweep = checked(written(tmp_path, SWEEP), tmp_path / "store")
    found = longest_learner(Plan((), {}, Costs({}), {learner: seconds, "OGD": 1.0}), sweep)
    assert ["max_dictionary in its table" in said for said in found] == named


def test_remedy_of_a_sweep_without_a_file__makes_its_file(small_store, tmp_path, koco):
    sweep = checked("real", small_store)
    (said,) = longest_learner(Plan((), {}, Costs({}), {"KAWV": 6000.0, "OGD": 1.0}), sweep)
    command, name = re.search("`koco (.*) > (.*)`", said).groups()
    assert f"top of {name}, made by" in said
    text = koco(*shlex.split(command), status=0).stdout
    kept = checked(written(tmp_path, f"time_limit = 5\n{text}", name), small_store)
    assert kept.sweep.time_limit == 5.0
    assert [run.run_id for run in kept.runs] == [run.run_id for run in sweep.runs]


SPEC = {
    "name": "small",
    "dataset": [{"name": "real", "order": "shuffled", "order_seeds": range(2)}],
    "learner": [{"name": "OGD", "step_size": np.array([0.5, 0.25])}],
}
TOML = """
name = "small"
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = [0, 1]
[[learner]]
name = "OGD"
step_size = [0.5, 0.25]
"""


def test_dictionary__gives_the_runs_of_the_file_and_a_result_that_shows_them(
    small_store, tmp_path, koco
):
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    threads = set(threading.enumerate())
    result = flows.sweep(SPEC, small_store, workers=0)
    assert {n: signal.getsignal(n) for n in before} == before
    assert {t for t in threading.enumerate() if not t.daemon} <= threads
    (tmp_path / "small.toml").write_text(TOML)
    assert (
        "nothing to compute"
        in koco("sweep", tmp_path / "small.toml", "--store", small_store, status=0).stderr
    )
    planned = koco("sweep", tmp_path / "small.toml", "--store", small_store, "--dry-run", status=0)
    assert not re.search(r": *$", planned.stdout, re.MULTILINE)
    assert len(result.to_pandas()) == result.runs.num_rows == 4
    assert set(result.curves["run_id"].to_pylist()) == set(result.runs["run_id"].to_pylist())
    assert result.report.is_file()
    again = flows.results(small_store, "small")
    assert re.search(r"4 of 4 runs(.|\n)*step_size=", str(again))
    assert max(map(len, str(again).splitlines()[1:])) <= 100
    assert "auc" not in str(again)
    shown = again._repr_html_()
    assert re.search(r"<style>(.|\n)*<svg(.|\n)*OGD", shown)
    assert page_of(small_store, "small", whole=False).finding in shown
    refusal("did you mean 'small'", flows.results, small_store, "smal")


def test_wrong_dictionary__names_the_key(small_store):
    for change, message in (
        ({"learner": [{"name": "OGD", "step_sise": 0.5}]}, "learner 1, step_sise.*'step_size'"),
        ({"learners": []}, "learners"),
        ({"dataset": [{"name": object()}]}, "use only numbers, texts and lists"),
    ):
        refusal(
            f"given as a dictionary.*{message}",
            flows.sweep,
            {**SPEC, **change},
            small_store,
            workers=0,
        )


def test_name__is_that_of_a_file_or_a_packaged_sweep_or_a_dataset_in_this_order(
    small_store, inside, koco
):
    prepare_file(small_store, "halving", inside / "real.csv", target="y")
    for name, file in packaged().items():
        assert sweep_called(name, small_store) == read_sweep(file)
        assert read_sweep(file).name == name
        assert name in koco("sweep", "--list", status=0).stdout
    assert sweep_called("real", small_store).name == "real"
    (inside / "small.toml").write_text(TOML)
    for name in ("reals", "search", "real.x"):
        (inside / name).write_text(TOML)
        assert sweep_called(name, small_store).name == "small"
    for wrong, near in (
        ("smal.toml", "small.toml"),
        ("ill-conditoned", "ill-conditioned"),
        ("spars", "sparse"),
    ):
        refusal(f"Did you mean '{near}'", flows.sweep, wrong, small_store, workers=0)


X, y = [[1, 2], [3, 4], [5, 7]], [0.5, 1.5, 2.5]


@pytest.mark.parametrize("data", [X, y, np.zeros(3), pd.Series(y), csr_array(X), 7])
def test_data_without_columns__are_refused_with_what_makes_some(data, tmp_path, capsys):
    refused = refusal(
        f"{type(data).__name__} is no data frame", flows.prepare, "mine", data, tmp_path / "store"
    )
    [remedy] = re.findall(r"labels y, (.*) makes one", refused)
    frame = eval(remedy, {"pandas": pd, "X": csr_array(X) if "spmatrix" in remedy else X, "y": y})
    found = flows.prepare("mine", frame, tmp_path / "store")
    assert (found.n_rows, found.n_features, found.task) == (3, 2, "regression")
    assert "reading" not in capsys.readouterr().err


@pytest.mark.long
def test_script_without_a_main_guard__is_refused_before_workers_start(tmp_path):
    script = written(
        tmp_path,
        textwrap.dedent(
            """
            import flows

            def main():
                flows.sweep({"name": "small"}, "store", workers=1)

            main()
            """
        ),
        "mine.py",
    )

    def said(*how, **given):
        return subprocess.run(
            [sys.executable, *how],
            env=environment(),
            capture_output=True,
            text=True,
            cwd=tmp_path,
            **given,
        ).stderr

    assert "mine.py, line 7: workers import this script again" in said(script)
    text = script.read_text()
    assert "<stdin>, line 7: workers import this script again, so put it in a file" in said(
        "-", input=text
    )
    assert not (tmp_path / "store").exists()
    script.write_text(text.replace("\nmain()", '\nif __name__ == "__main__":\n    main()'))
    assert "given as a dictionary, dataset" in said(script)  # what is wrong with the sweep
