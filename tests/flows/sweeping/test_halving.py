"""Successive halving: what goes on follows from recorded losses only, and what comes to the end is
a run like any other.
"""

import json
import math
import shutil
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from flows.sweeping.halving import Halving, stages
from flows.sweeping.launch import write_report
from flows.tables.sweep_runs import read_decisions
from koco_stream.engine.checkpoint import checkpoints_folder
from koco_stream.io.files import canonical_json
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Run
from koco_stream.streams.stream import Stream
from tests.helpers.sweeps import checked, tables

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
    pages = []

    def written(store, name):
        pages.append(write_report(store, name))
        return pages[-1]

    monkeypatch.setattr("flows.sweeping.launch.write_report", written)
    monkeypatch.setattr("flows.sweeping.launch.AGAIN", 0.0)  # a minute between pages
    plain = shutil.copytree(small_store, tmp_path / "plain")
    spec, other = tmp_path / "try.toml", tmp_path / "plain.toml"
    spec.write_text(SWEEP)
    other.write_text("\n".join(line for line in SWEEP.splitlines() if "halving" not in line))
    done = koco("sweep", spec, "--store", small_store, "--json", status=0)
    assert len(pages) == 5  # after each of four stages, and at the end
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
    assert "Successive halving" in Path(summary["report"]).read_text()
    # the same name, no halving any more
    koco("sweep", other, "--store", small_store, status=0)
    assert not read_decisions(small_store, "try").num_rows
    assert "Successive halving" not in Path(summary["report"]).read_text()
