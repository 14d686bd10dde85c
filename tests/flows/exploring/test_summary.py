"""The first screen of the explorer: it has the numbers of the reports, and says no more than they
allow.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from flows.comparing.comparison import compare
from flows.exploring import summary
from flows.exploring.answers import Explorer
from flows.exploring.best import BestOnStream
from flows.exploring.chosen import Chosen
from flows.exploring.summary import TEXTS, dataset_rows, sweep_rows
from koco_stream.streams.manifest import Manifest
from tests.flows.report.test_report import put
from tests.flows.report.test_report_design import run


def stream(scores, learners=("AdaGrad", "OGD"), dataset="set", part="s", seconds=2.0):
    scores = np.array(scores, float)
    k = len(learners)
    return BestOnStream(
        part,
        dataset,
        "0" * 64,
        dataset,
        "shuffled",
        100,
        True,
        list(learners),
        scores,
        [5.0] * k,
        [seconds] * k,
    )


def manifest(n_features, n_values):
    whole = dict.fromkeys(Manifest.__dataclass_fields__)
    return Manifest(**{**whole, "n_rows": 100, "n_features": n_features, "n_values": n_values})


def on_dataset(scores, **given):
    [row] = dataset_rows([stream(scores, **given)], lambda *_: None)
    return row


def orders(difference, n):
    return [[0.1 + 0.01 * k, 0.1 + 0.01 * k + difference + 0.001 * k] for k in range(n)]


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        (orders(0.05, 1), "Too few orders to tell: 1."),
        (orders(0.0512, 3), "Worse by 0.051 to 0.053 in 3 of 3 orders, too few to be sure."),
        (orders(0.05, 6), "Real: worse by 0.051 to 0.054."),
        ([[0.1, 0.1]] * 6, "Equal."),
        ([[0.1, 0.21], [0.2, 0.13]], "Not told apart: worse by −0.07 to 0.11."),
    ],
)
def test_difference_on_a_dataset__is_real_only_if_chance_would_seldom_make_it(scores, verdict):
    row = on_dataset(scores)
    assert row["verdict"] == verdict
    assert (row["best"]["learner"], row["second"]["learner"]) == ("AdaGrad", "OGD")
    assert row["best"]["cost"] == "5 µs a round; 2 s"


def test_learner_that_failed_or_is_alone__is_no_runner_up_that_was_beaten():
    failed = on_dataset([[0.1, np.inf]] * 6)
    assert failed["second"] == {"learner": "OGD", "measure": "failed or diverged"}
    assert failed["verdict"] == ""
    alone = on_dataset([[0.1, 0.05]], learners=("AdaGrad", "Constant"))
    assert (alone["best"]["learner"], alone["second"]) == ("AdaGrad", None)
    assert on_dataset([[np.inf, np.inf]])["best"] is None


def test_datasets__begin_with_sparse_texts_which_are_named_so():
    shapes = {"dense": manifest(8, 800), "text": manifest(40_000, 5_000), "gone": None}
    streams = [stream(orders(0.1, 2), dataset=name) for name in shapes]
    rows = dataset_rows(streams, lambda name, _: shapes[name])
    assert [row["title"] for row in rows] == ["text", "dense", "gone"]
    assert [row["group"] == TEXTS for row in rows] == [True, False, False]
    assert rows[0]["about"] == "0.12 % of 40,000 features not 0; 100 rounds, shuffled"
    few = dataset_rows(streams[:1], lambda name, _: shapes[name])
    assert few[0]["group"] == ""


def test_sweep__is_tested_with_enough_datasets_alone():
    streams = [stream(orders(0.1, 3), dataset=f"set{k}") for k in range(8)]
    [row] = sweep_rows(streams, {"s": 1234.5})
    assert row["verdict"] == "Real: AdaGrad is better than OGD."
    assert row["about"] == "8 datasets, 2 learners; all runs 1,234 s"
    [few] = sweep_rows(streams[:3], {})
    assert few["verdict"] == "No test: 3 datasets, and one needs 5."
    [alone] = sweep_rows([stream([[0.1]], learners=("OGD",))], {})
    assert (alone["best"], alone["verdict"]) == (None, "Only one learner.")


def test_dataset_without_a_learner__is_left_out_of_its_sweep_and_counted():
    streams = [stream(orders(0.1, 3), dataset=f"set{k}") for k in range(3)]
    streams.append(stream([[0.1]], learners=("OGD",), dataset="other"))
    [row] = sweep_rows(streams, {})
    assert row["about"] == "3 datasets, 2 learners; 1 left out"


def results():
    """Three learners on six datasets in two orders, with grids, a failure and a rung."""
    rng = np.random.default_rng(5)
    rows = []
    for d in range(6):
        for j, learner in enumerate(("AdaGrad", "OGD", "ONS")):
            for step in (0.1, 0.2):
                for seed in (0, 1):
                    error = 0.1 + 0.05 * j + 0.1 * rng.random()
                    params = json.dumps({"step_size": step})
                    one = run(len(rows), f"set{d}", learner, 2 * error, error, seed, params=params)
                    rows.append(one)
    rows[7] |= {"status": "diverged", "mean_loss": float("inf"), "error_rate": None}
    return rows


def test_summary__has_the_learners_and_ranks_of_the_comparison(tmp_path):
    rows = results()
    put(tmp_path, "s", [row["run_id"] for row in rows], rows)
    found = compare(tmp_path, ["s"])
    explorer = Explorer(tmp_path)
    [row] = explorer.summary(Chosen())["sweeps"]
    assert row["title"] == "s"
    assert [row["best"]["learner"], row["second"]["learner"]] == found.learners[:2]
    measures = [row["best"]["measure"], row["second"]["measure"]]
    assert measures == [f"mean rank {rank:.3g}" for rank in list(found.ranks.values())[:2]]
    best = {
        one["block"].split(",")[0]: one["learner"]
        for one in found.blocks.to_pylist()
        if one["rank"] == 1
    }
    datasets = explorer.summary(Chosen())["datasets"]
    assert {one["title"]: one["best"]["learner"] for one in datasets} == best


def test_summary__is_that_of_the_runs_that_filters_leave(tmp_path):
    rows = results()
    put(tmp_path, "s", [row["run_id"] for row in rows], rows)
    explorer = Explorer(tmp_path)
    some = explorer.summary(Chosen(((), ("set1",), ("OGD", "ONS"), ())))
    assert [one["title"] for one in some["datasets"]] == ["set1"]
    assert {some["datasets"][0][name]["learner"] for name in ("best", "second")} == {"OGD", "ONS"}
    assert some["sweeps"][0]["about"].startswith("1 dataset, 2 learners")
    nothing = explorer.summary(Chosen(where="mean_loss<0"))
    assert (nothing["sweeps"], nothing["datasets"]) == ([], [])


def test_runs_that_diverged__are_not_the_best_of_the_table(tmp_path):
    rows = results()
    rows[0] |= {"status": "diverged", "mean_loss": 0.0, "error_rate": 0.0}
    put(tmp_path, "s", [row["run_id"] for row in rows], rows)
    found = Explorer(tmp_path).runs(Chosen(), ["status", "error_rate"], "error_rate", limit=99)[
        "rows"
    ]
    assert [status for _, status, _ in found[-2:]] == ["diverged"] * 2
    errors = [error for *_, error in found[:-2]]
    assert errors == sorted(errors)


def test_long_lists__are_cut(monkeypatch):
    monkeypatch.setattr(summary, "MOST_SWEEPS", 2)
    streams = [replace(stream(orders(0.1, 3)), part=f"s{k}") for k in range(4)]
    assert [row["title"] for row in sweep_rows(streams, {})] == ["s0", "s1"]


def test_no_runs__have_no_summary(tmp_path):
    put(tmp_path, "s", [], [])
    found = Explorer(tmp_path).summary(Chosen())
    assert (found["sweeps"], found["datasets"], found["seconds"]) == ([], [], None)
