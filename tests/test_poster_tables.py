"""The sections on the PROS-N-KONS tables and on the adversary of one point: what they compute from small sweeps."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from flows.adversary import claims_of, exponent, kons_adversary, lines_of
from flows.poster_tables import ROUNDS, TABLES, Published, Reading, fits_of, groups_of, misfit, poster_tables, readings_of, verdict
from flows.sweep import sweep_flow
from flows.sweep_file import read_sweep
from flows.tables import runs_of
from koco_stream import PROSNKONS
from koco_stream.batch import Batch
from storage.prepare import prepare_file
from storage.results import read_curves

SWEEPS = Path(__file__).parents[1] / "flows" / "sweeps"
POSTER = sorted(path.name for path in SWEEPS.glob("poster-*.toml"))
STATED = {
    "alpha": 1.0,
    "ridge": 1.0,
    "beta": 1.0,
    "epsilon": 0.5,
    "kernel": "gaussian",
    "curvature_schedule": "constant",
    "loss": "squared",
}


def run(dataset, learner, loss, size, seed=0, status="ok", **params):
    return {
        "run_id": f"{dataset}{learner}{params}{seed}",
        "dataset": dataset,
        "dataset_hash": "",
        "order": "shuffled",
        "order_seed": seed,
        "learner": learner,
        "learner_seed": 0,
        "params": json.dumps({**(STATED if "KONS" in learner else {}), **params}),
        "status": status,
        "rounds": ROUNDS["cpusmall"],
        "mean_loss": loss,
        "error_rate": None,
        "dictionary_size": size,
        "seconds": 0.01,
    }


def reading(curvature=0.25, **more):
    return {"clip": 1.0, "curvature": curvature, "bandwidth": 8.0, "estimate": "poster", **more}


@pytest.mark.parametrize("name", [*POSTER, "adversary.toml"])
def test_sweep_files__parse_and_plan(name):
    sweep = read_sweep(SWEEPS / name)
    assert name == f"{sweep.name}.toml"
    assert sweep.figures == ("kons-adversary" if name == "adversary.toml" else "poster-tables",)
    assert len(sweep.configurations) > 10


def test_published__has_table_1_and_table_2_without_the_sets_that_are_not_here():
    assert len(POSTER) == 4
    assert sum(map(len, TABLES.values())) == 4 * 6 + 2 * 7 + 2 * 4
    assert TABLES["cpusmall", 1.0]["CONKONS"] == Published(0.02269, 0.00164, 20, 7.40)
    assert 1e6 * 5.16 / ROUNDS["parkinsons"] == pytest.approx(878, abs=1)


def test_verdict__is_by_the_two_standard_deviations_together():
    row = Published(1.0, 0.3)
    assert [verdict(row, mean, 0.4) for mean in (0.0, 0.1, 1.9, 2.1)] == ["agrees", "agrees", "agrees", "worse"]
    assert verdict(row, -0.1, 0.4) == "better"


def test_readings__one_for_all_rows_is_found_and_a_configuration_with_a_bad_run_is_left_out():
    rows = []
    for learner, published in (("PROSNKONS", 0.02494), ("CONKONS", 0.02269)):
        for seed, off in enumerate((0.999, 1.001)):
            rows.append(run("cpusmall", learner, published * off, 20, seed, **reading()))
            rows.append(run("cpusmall", learner, published * off * 1.5, 40, seed, **reading(1.0)))
            rows.append(run("cpusmall", learner, published, 20, seed, "diverged" if seed else "ok", **reading(2.0)))
    rows.append(run("cpusmall", "PROSNKONS", 0.001, 20, **reading(0.25, beta=9.0)))  # not as the paper states: no reading
    groups = groups_of(pa.Table.from_pylist(rows))
    assert len(groups["cpusmall", "CONKONS"]) == 2
    ours = groups["cpusmall", "CONKONS"][0]
    assert (ours.n_runs, ours.size) == (2, 20)
    assert ours.mean == pytest.approx(0.02269)
    assert ours.std == pytest.approx(0.002 * 0.02269 / math.sqrt(2))
    found = readings_of(groups)
    fits, compared = fits_of(found)
    assert len(compared) == 2
    assert [score for score, _ in fits] == [pytest.approx(0.0, abs=1e-9), pytest.approx(2 * (math.log(1.5) ** 2 + math.log(2.0) ** 2))]
    assert fits[0][1] == Reading(1.0, 0.25, "constant", 8.0, "poster", "shuffled")
    assert misfit(Published(0.1, 0.0), ours) == pytest.approx(math.log(0.2269) ** 2)


def test_readings__parkinsons_target_is_chosen_with_the_rest():
    rows = [run("parkinsons", "PROSNKONS", 0.045, 18, **reading()), run("parkinsons-motor", "PROSNKONS", 0.058, 18, **reading())]
    rows.append(run("cpusmall", "PROSNKONS", 0.025, 20, **reading()))
    fits, compared = fits_of(readings_of(groups_of(pa.Table.from_pylist(rows))))
    assert [best.target for _, best in fits] == ["motor_UPDRS", "total_UPDRS"]
    assert len(compared) == 2


def test_section__has_ours_beside_the_published_row_and_batch(tmp_path, monkeypatch):
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "cache"))
    store, draw = tmp_path / "store", np.random.default_rng(0)
    X = draw.random((120, 3))
    y = X @ [0.5, 0.2, 0.1]
    np.savetxt(tmp_path / "a.csv", np.column_stack([X, y]), delimiter=",")
    prepare_file(store, "cpusmall", [tmp_path / "a.csv"], header=False)
    tables = "".join(f'[[learner]]\nname = "{name}"\nbandwidth = 2.0\n' for name in ("PROSNKONS", "FOGD"))
    text = (
        f'name = "tiny"\n[[dataset]]\nname = "cpusmall"\norder = "shuffled"\norder_seeds = 2\n{tables}[report]\nfigure = "poster-tables"\n'
    )
    (tmp_path / "tiny.toml").write_text(text)
    sweep_flow(str(tmp_path / "tiny.toml"), str(store), 0)
    figure = poster_tables(store, runs_of(store, "tiny"))
    assert [row[0] for row in figure.rows] == ["PROS-N-KONS on cpusmall (120 rows)", "BATCH on cpusmall", "FOGD on cpusmall (120 rows)"]
    assert "not the same experiment" in figure.note
    order = np.random.default_rng([0, 0x0D]).permutation(120)
    best = Batch(PROSNKONS(bandwidth=2.0), 1.0).fit(X[order], y[order])
    assert figure.rows[1][2] == f"{best.mean_loss_:.5f}"
    page = (store / "reports" / "tiny.html").read_text()
    assert "The one reading that fits best, of 1: C = 1" in page
    assert "<details open>" in page
    assert poster_tables(store, runs_of(store, "tiny").slice(0, 0)).rows == []


def test_exponent__of_a_power_and_of_a_logarithm():
    t = [1, 10, 100, 1000]
    assert exponent(t, [float(n) ** 1.5 for n in t]) == pytest.approx(1.5)
    assert exponent(t, [math.log(n) + 1e-9 for n in t]) == pytest.approx(math.log10(1.5))
    assert math.isnan(exponent(t, [0.0] * 4))


def test_adversary__a_full_dictionary_is_linear_and_a_small_one_pays(tmp_path, monkeypatch):
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "cache"))
    tables = '[[learner]]\nname = "SketchedKONS"\nkernel = "linear"\nsampling_floor = [0.0, 1.0]\n[[learner]]\nname = "ONS"\n'
    text = f'name = "tiny"\nlearner_seeds = 2\n[[dataset]]\nname = "adversary"\nn_rows = 200\n{tables}[report]\nfigure = "kons-adversary"\n'
    (tmp_path / "tiny.toml").write_text(text)
    sweep_flow(str(tmp_path / "tiny.toml"), str(tmp_path / "store"), 0)
    runs = runs_of(tmp_path / "store", "tiny")
    lines = lines_of(runs, read_curves(tmp_path / "store"))
    assert list(lines) == ["ONS", "Sketched-KONS floor 0", "Sketched-KONS floor 1"]
    newton, small, full = lines.values()
    assert newton.size is None
    assert list(small.regret) == [0, 1]
    assert full.regret[0] == pytest.approx(next(iter(newton.regret.values())))  # a floor of 1 keeps all: the exact step
    assert full.size_exponent() == pytest.approx(1.0)
    assert small.final(small.size) < 20
    assert small.final(small.regret) > 3 * full.final(full.regret)
    assert [claim[3] for claim in claims_of(lines)][1:] == [True, True]
    figure = kons_adversary(tmp_path / "store", runs)
    assert figure.svg.count("<svg") == 2
    assert len(figure.rows) == 3
    assert kons_adversary(tmp_path / "store", runs.slice(0, 0)).rows == []
