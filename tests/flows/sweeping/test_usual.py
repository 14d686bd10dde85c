"""The usual sweep on a dataset: learners that the benchmark says to try, as a file to be kept; a
learner that takes more time than all others together is told of, with remedies that help.
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
from koco_stream.engine.timing import remember
from koco_stream.learners import LEARNERS
from koco_stream.runs.cost_model import Costs, Timing, timing_key
from koco_stream.runs.planner import Plan
from koco_stream.runs.run import Run
from koco_stream.streams.manifest import load_manifest
from storage.preparing.prepare import prepare_file
from tests.helpers.project import environment
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import checked, written

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
            score = float(f"{np.mean(row['scores']):.11e}")
            blocks.setdefault(row["title"], {})[row["learner"]] = score
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
        (20_000, 60_000, {"classes": range(20), "s": 100}, "OjaSON", True),
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
    assert names == ["AdaGrad", "NAG", "SAdaGrad", fourth, "Constant"]
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
    assert len({*result.runs["learner"].to_pylist()}) == 5
    assert {*result.runs["status"].to_pylist()} == {"ok"}
    done = koco("sweep", "real", "--store", small_store, status=0)
    assert "nothing to compute" in done.stderr
    finding, report = done.stdout.splitlines()
    assert finding == page_of(small_store, "real", whole=False).finding
    assert report == f"report: {result.report}"
    best = result.best().to_pylist()[0]
    assert finding.startswith(best["learner"]) or best["learner"] in finding
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
        seconds = 1.0 if run.learner == "KONS" else 1e-3
        remember(timing_key(run), Timing(1000, seconds, 1.5))
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


def test_max_dictionary__is_named_for_learners_that_have_it(tmp_path):
    sweep = checked(written(tmp_path, SWEEP), tmp_path / "store")
    for learner, has in (("BKONS", True), ("KONS", False)):
        planned = Plan((), {}, Costs({}), {learner: 6000.0, "OGD": 1.0})
        (said,) = longest_learner(planned, sweep)
        assert ("max_dictionary in its table" in said) is has


def test_remedy_of_a_sweep_without_a_file__makes_its_file(small_store, tmp_path, koco):
    sweep = checked("real", small_store)
    (said,) = longest_learner(Plan((), {}, Costs({}), {"KAWV": 6000.0, "OGD": 1.0}), sweep)
    command, name = re.search("`koco (.*) > (.*)`", said).groups()
    assert f"top of {name}, made by" in said
    text = koco(*shlex.split(command), status=0).stdout
    kept = checked(written(tmp_path, f"time_limit = 5\n{text}", name), small_store)
    assert kept.sweep.time_limit == 5.0
    assert [run.run_id for run in kept.runs] == [run.run_id for run in sweep.runs]


def test_seconds__are_not_told(tmp_path):
    sweep = checked(written(tmp_path, SWEEP), tmp_path / "store")
    for seconds, told in ((LONG - 1, 0), (LONG + 1, 1)):
        planned = Plan((), {}, Costs({}), {"KONS": seconds, "OGD": 1.0})
        assert len(longest_learner(planned, sweep)) == told


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
    done = koco("sweep", tmp_path / "small.toml", "--store", small_store, status=0)
    assert "nothing to compute" in done.stderr
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
