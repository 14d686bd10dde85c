"""Successive halving: what goes on follows from recorded losses alone, and what comes to the end is
a run like any other.
"""

import json
import math
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.results.decisions import read_decisions
from flows.sweep.file import read_sweep
from flows.sweep.halving import Halving, stages
from koco_stream import WrongInput
from koco_stream.io.files import canonical_json
from koco_stream.runs.run import Run
from koco_stream.streams.stream import Stream
from storage.results import read_curves, read_runs
from tests.helpers.sweeps import MEASURED

SWEEP = """
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


def literal(runs, n_rows, factor, first, losses):
    """The same decisions in the plainest words: by stage, the set of (run_id, rounds)."""
    alive, rounds, found = list(runs), first, []
    length = {
        run.run_id: min(n_rows[run.stream.dataset_hash], run.stream.max_rows or 1 << 60)
        for run in runs
    }
    while alive:
        found.append({(run.run_id, min(rounds, length[run.run_id])) for run in alive})
        groups = defaultdict(lambda: defaultdict(list))
        for run in alive:
            if rounds < length[run.run_id]:
                groups[run.stream.group, run.learner][canonical_json(run.params)].append(run)
        alive = []
        for configurations in groups.values():
            mean = {
                c: sum(losses(run, rounds) for run in runs) / len(runs)
                for c, runs in configurations.items()
            }
            going = sorted(configurations, key=lambda c: (mean[c], c))[
                : -(-len(configurations) // factor)
            ]
            alive += [run for c in going for run in configurations[c]]
        rounds *= factor
    return found


@st.composite
def sweeps(draw):
    n_rows = {f"hash {k}": draw(st.integers(1, 3000)) for k in range(2)}
    runs = []
    for identity in n_rows:
        limit = draw(st.none() | st.integers(1, n_rows[identity]))
        for learner in draw(st.lists(st.sampled_from(["OGD", "AdaGrad"]), min_size=1, unique=True)):
            for step in range(draw(st.integers(1, 12))):
                for seed in range(
                    draw(st.integers(1, 3))
                    if step == 0
                    else len({r.stream.order_seed for r in runs if r.learner == learner})
                ):
                    stream = Stream(identity, identity, "shuffled", seed, max_rows=limit)
                    runs.append(Run.of(stream, learner, {"step_size": 1.0 + step}, 0))
    return runs, n_rows


def cut_at(run, rounds, n_rows):
    whole = min(n_rows[run.stream.dataset_hash], run.stream.max_rows or 1 << 60)
    stream = run.stream if rounds >= whole else replace(run.stream, max_rows=rounds)
    return Run(stream, run.learner, run.params, run.learner_seed)


@settings(max_examples=60, deadline=None)
@given(sweeps(), st.integers(2, 5), st.integers(1, 4000), st.data())
def test_decisions__are_those_of_the_literal_rule(sweep, factor, first, data):
    runs, n_rows = sweep
    table = {}

    def loss(run_id):
        if run_id not in table:
            # many are equal; infinite: it is not ok
            table[run_id] = data.draw(st.sampled_from([0.25, 0.5, 0.75, 1.0, math.inf]))
        return table[run_id]

    def losses(ids):
        return {run_id: loss(run_id) for run_id in ids if math.isfinite(loss(run_id))}

    decisions, again = [], []
    found = list(stages(runs, n_rows, Halving(factor=factor, first=first), losses, decisions))
    wanted = literal(
        runs, n_rows, factor, first, lambda run, rounds: loss(cut_at(run, rounds, n_rows).run_id)
    )
    by_id = {run.run_id: run for run in runs}
    assert [{run.run_id for run in stage} for stage in found] == [
        {cut_at(by_id[i], t, n_rows).run_id for i, t in s} for s in wanted
    ]
    assert [
        list(stage)
        for stage in stages(runs, n_rows, Halving(factor=factor, first=first), losses, again)
    ] == found
    assert again == decisions
    # none is asked for twice
    assert sum(map(len, found)) == len({run.run_id for stage in found for run in stage})
    groups = defaultdict(list)
    for row in decisions:
        groups[row["dataset"], row["learner"], row["rung"]].append(row)
    for rows in groups.values():
        assert [row["place"] for row in rows] == list(range(1, len(rows) + 1))
        assert [row["goes_on"] for row in rows] == [
            k < -(-len(rows) // factor) for k in range(len(rows))
        ]
        means = [math.inf if row["mean_loss"] is None else row["mean_loss"] for row in rows]
        assert means == sorted(means)  # whoever is not ok comes last


def test_no_halving__is_one_stage():
    runs = [Run.of(Stream("a", "h"), "OGD", {"step_size": 1.0}, 0)]
    assert list(stages(runs, {"h": 9}, None, lambda ids: {}, [])) == [runs]


def numbers(store):
    curves = defaultdict(list)
    for row in read_curves(store).to_pylist():
        curves[row["run_id"]].append(row)
    return {
        row["run_id"]: (row, curves[row["run_id"]])
        for row in read_runs(store).drop_columns(MEASURED).to_pylist()
    }


def test_sweep_with_halving__ends_with_whole_runs_and_decides_the_same_again(
    koco, small_store, tmp_path
):
    plain = tmp_path / "plain"
    shutil.copytree(small_store, plain)
    spec, other = tmp_path / "try.toml", tmp_path / "plain.toml"
    spec.write_text(SWEEP)
    other.write_text("\n".join(line for line in SWEEP.splitlines() if "halving" not in line))
    done = koco("sweep", spec, "--store", small_store, "--json")
    assert done.exit_code == 0, done.stderr
    assert koco("sweep", other, "--store", plain).exit_code == 0
    halved, whole = numbers(small_store), numbers(plain)
    last = [run_id for run_id in halved if run_id in whole]
    assert all(halved[run_id] == whole[run_id] for run_id in last)
    ends = defaultdict(set)
    for run_id in last:
        row = halved[run_id][0]
        assert row["max_rows"] is None
        ends[row["dataset"], row["positive_class"]].add(row["step_size"])
    short = next(name for name, _ in ends if name.startswith("ill"))
    assert {name: len(steps) for name, steps in ends.items()} == {
        ("sparse", 1): 1,
        ("sparse", 2): 1,
        ("real", None): 1,
        (short, None): 10,
    }
    summary = json.loads(done.stdout)
    assert summary["runs"] == summary["computed"] == len(halved)

    file = Path(small_store) / "results" / "halving" / "try.parquet"
    decisions = read_decisions(small_store, "try").to_pylist()
    assert decisions
    for row in decisions:
        dataset = [
            r
            for r, _ in halved.values()
            if (r["dataset"], r["positive_class"]) == (row["dataset"], row["positive_class"])
        ]
        mine = [
            r
            for r in dataset
            if r["params"] == row["params"] and (r["max_rows"] or 0) == row["rounds"]
        ]
        assert len(mine) == row["n_runs"] == (2 if row["dataset"] == "sparse" else 1)
        if row["mean_loss"] is None:
            assert any(r["status"] != "ok" for r in mine)
        else:
            assert row["mean_loss"] == pytest.approx(sum(r["mean_loss"] for r in mine) / len(mine))
    assert {(row["rung"], row["rounds"]) for row in decisions} == {(1, 40), (2, 120), (3, 360)}

    before = file.read_bytes()
    again = koco("sweep", spec, "--store", small_store, "--json")
    assert json.loads(again.stdout)["computed"] == 0
    assert file.read_bytes() == before
    status = json.loads(koco("status", "--store", small_store, "--json").stdout)
    assert [(row["state"], row["done"], row["runs"]) for row in status] == [
        ("done", len(halved), len(halved))
    ]

    page = Path(summary["report"]).read_text()
    section = (
        page.replace("<wbr>", "")
        .split('<h2 id="halving">Successive halving</h2>')[1]
        .split("</table>")[0]
    )
    assert section.count("<tr>") == 1 + 3 * 3  # three streams have rungs, three each
    assert "step_size=" in section
    # the same name, no halving any more
    assert koco("sweep", other, "--store", small_store).exit_code == 0
    assert not file.exists()
    assert "Successive halving" not in Path(summary["report"]).read_text()


WRONG = [
    (
        "{ factor = 3, first = 40 }",
        "{ factor = 3, frist = 40 }",
        r"try\.toml, line 3, halving\.frist: unknown key; did you mean 'first'",
    ),
    (
        "{ factor = 3, first = 40 }",
        "{ factor = 3, first = 40, last = 9 }",
        r"try\.toml, line 3, halving\.last: unknown key; .*factor, first",
    ),
    (
        "{ factor = 3, first = 40 }",
        "{ factor = 1, first = 40 }",
        r"try\.toml, line 3, halving\.factor: .*greater than or equal to 2, not 1",
    ),
    (
        "{ factor = 3, first = 40 }",
        "{ factor = 3 }",
        r"try\.toml, line 3, halving\.first: this key is missing",
    ),
    (
        "{ factor = 3, first = 40 }",
        "{ first = 0 }",
        r"try\.toml, line 3, halving\.first: .*greater than 0, not 0",
    ),
    (
        "{ factor = 3, first = 40 }",
        "{ first = 1.5 }",
        r"try\.toml, line 3, halving\.first: .*integer.*, not 1.5",
    ),
    ("{ factor = 3, first = 40 }", "3", r"try\.toml, line 3, halving: "),
    (
        "halving = { factor = 3, first = 40 }",
        "[halving]\nfactor = 1\nfirst = 40",
        r"try\.toml, line 4, halving\.factor",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_wrong_halving__is_refused_with_its_place(old, new, message, tmp_path):
    (tmp_path / "try.toml").write_text(SWEEP.replace(old, new))
    with pytest.raises(WrongInput, match=message):
        read_sweep(tmp_path / "try.toml")
