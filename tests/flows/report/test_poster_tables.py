"""The sections on the PROS-N-KONS tables and on the adversary of one point: what they compute from
small sweeps.
"""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from flows.report.document import write_report
from flows.report.papers.kons_adversary import Growth, Line, claims_of, kons_adversary, lines_of
from flows.report.papers.poster_published import ROUNDS, TABLES, Published
from flows.report.papers.poster_readings import (
    Reading,
    fits_of,
    groups_of,
    misfit,
    readings_of,
    under,
)
from flows.report.papers.poster_rows import verdict
from flows.report.papers.poster_tables import poster_tables
from koco_stream import PROSNKONS
from koco_stream.batch import Batch
from tests.helpers.swept import prepared, swept

STATED = {
    "alpha": 1.0,
    "ridge": 1.0,
    "beta": 1.0,
    "epsilon": 0.5,
    "kernel": "gaussian",
    "curvature_schedule": "constant",
    "loss": "squared",
}
TABLES_SWEEP = """
[[dataset]]
name = "cpusmall"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "PROSNKONS"
bandwidth = 2.0
[report]
figure = "poster-tables"
"""
ADVERSARY = """
learner_seeds = 2
[[dataset]]
name = "adversary"
n_rows = [100, 200]  # only the longest runs count, as with a halving
clip = 2.0
[[learner]]
name = "PROSNKONS"
kernel = "linear"
clip = 2.0
[[learner]]
name = "OGD"
clip = 2.0
step_size = [0.125, 0.03125]
"""


def run(dataset, learner, loss, size, seed=0, status="ok", **params):
    return {
        "run_id": f"{dataset}{learner}{params}{seed}",
        "dataset": dataset,
        "dataset_hash": "",
        "order": "shuffled",
        "order_seed": seed,
        "window_rows": None,
        "sharding": None,
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


def test_published__has_table_1_and_table_2_without_the_sets_that_are_not_here():
    assert sum(map(len, TABLES.values())) == 4 * 6 + 2 * 7 + 2 * 4
    assert TABLES["cpusmall", 1.0]["CONKONS"] == Published(0.02269, 0.00164, 20, 7.40)
    assert 1e6 * 5.16 / ROUNDS["parkinsons"] == pytest.approx(878, abs=1)


@pytest.mark.parametrize(
    ("mean", "said"),
    [(-0.1, "better"), (0.0, "agrees"), (0.1, "agrees"), (1.9, "agrees"), (2.1, "worse")],
)
def test_verdict__is_by_the_two_standard_deviations_together(mean, said):
    assert verdict(Published(1.0, 0.3), mean, 0.4) == said


def test_readings__one_for_all_rows_is_found_and_a_configuration_with_a_bad_run_is_left_out():
    rows = []
    for learner, published in (("PROSNKONS", 0.02494), ("CONKONS", 0.02269)):
        for seed, factor in enumerate((0.999, 1.001)):
            status = "diverged" if seed else "ok"
            rows += [
                run("cpusmall", learner, published * factor, 20, seed, **reading()),
                run("cpusmall", learner, published * factor * 1.5, 40, seed, **reading(1.0)),
                run("cpusmall", learner, published, 20, seed, status, **reading(2.0)),
            ]
    # not as the paper states: no reading
    rows.append(run("cpusmall", "PROSNKONS", 0.001, 20, **reading(0.25, beta=9.0)))
    groups = groups_of(pa.Table.from_pylist(rows))
    assert len(groups["cpusmall", "CONKONS"]) == 2
    ours = groups["cpusmall", "CONKONS"][0]
    spread = 0.002 * 0.02269 / math.sqrt(2)
    assert (ours.n_runs, ours.size, ours.mean, ours.std) == pytest.approx((2, 20, 0.02269, spread))
    fits, compared = fits_of(readings_of(groups))
    assert len(compared) == 2
    assert [score for score, _ in fits] == [
        pytest.approx(0.0, abs=1e-9),
        pytest.approx(2 * (math.log(1.5) ** 2 + math.log(2.0) ** 2)),
    ]
    assert fits[0][1] == Reading(1.0, 0.25, "constant", 8.0, "poster", "shuffled", carry="both")
    assert misfit(Published(0.1, 0.0), ours) == pytest.approx(math.log(0.2269) ** 2)


def test_readings__parkinsons_target_is_chosen_with_the_rest():
    rows = [
        run("parkinsons", "PROSNKONS", 0.045, 18, **reading()),
        run("parkinsons-motor", "PROSNKONS", 0.058, 18, **reading()),
        run("cpusmall", "PROSNKONS", 0.025, 20, **reading()),
    ]
    fits, compared = fits_of(readings_of(groups_of(pa.Table.from_pylist(rows))))
    assert [best.target for _, best in fits] == ["motor_UPDRS", "total_UPDRS"]
    assert len(compared) == 2


def test_readings__what_con_kons_carries_is_chosen_with_the_rest_and_matters_to_its_rows_alone():
    rows = [
        run("cadata", "PROSNKONS", 0.031, 20, **reading()),
        run("cadata", "BKONS", 0.031, 19, **reading()),
        # carry is not among the params of a run at its default
        run("cadata", "CONKONS", 0.0258, 19, **reading()),
        run("cadata", "CONKONS", 0.0284, 19, **reading(carry="weights")),
    ]
    found = readings_of(groups_of(pa.Table.from_pylist(rows)))
    fits, compared = fits_of(found)
    assert [best.carry for _, best in fits] == ["weights", "both"]
    assert len(compared) == 3
    means = {key[2]: [under(by, best).mean for _, best in fits] for key, by in found.items()}
    assert means == {
        "PROSNKONS": [0.031, 0.031],
        "BKONS": [0.031, 0.031],
        "CONKONS": [0.0284, 0.0258],
    }
    assert "ω only" in str(fits[0][1])


def test_section__has_ours_beside_the_published_row_and_batch(tmp_path):
    X = np.random.default_rng(0).random((120, 3))
    y = X @ [0.5, 0.2, 0.1]
    store = prepared(tmp_path, "cpusmall", X, y)
    runs = swept(tmp_path, TABLES_SWEEP)
    figure = poster_tables(store, runs)
    assert [row[0] for row in figure.rows] == [
        "PROS-N-KONS on cpusmall (120 rows)",
        "BATCH on cpusmall",
    ]
    assert "not the same experiment" in figure.note
    order = np.random.default_rng([0, 0x0D]).permutation(120)
    best = Batch(PROSNKONS(bandwidth=2.0), 1.0).fit(X[order], y[order])
    assert figure.rows[1][2] == f"{best.mean_loss_:.5f}"
    page = write_report(store, "tiny").read_text()
    assert "The one reading that fits best, of 1: C = 1" in page
    assert "<details open>" in page
    assert poster_tables(store, runs.slice(0, 0)).rows == []


def growth(rounds, values):
    return Growth(rounds, {0: np.array(values), 1: np.array(values)})


@pytest.mark.parametrize(
    ("regret", "exponent"),
    [
        (lambda t: t**1.5, 1.5),
        (lambda t: math.log(t) + 1e-9, math.log10(1.5)),
        (lambda t: 0.0, math.nan),
    ],
    ids=["power", "logarithm", "zero"],
)
def test_exponent__of_a_power_and_of_a_logarithm(regret, exponent):
    t = [1, 10, 100, 1000]
    assert growth(t, [regret(float(n)) for n in t]).exponent == pytest.approx(exponent, nan_ok=True)


def test_adversary__claims_are_about_what_grows_how():
    t = [2, 20, 200, 2000]
    linear, logarithmic = growth(t, [0.25 * n for n in t]), growth(t, [math.log(n) for n in t])
    lines = {
        "small": Line("SketchedKONS", linear, logarithmic),
        "full": Line("SketchedKONS", logarithmic, growth(t, [float(n) for n in t])),
        # what the section says cannot be
        "both": Line("SketchedKONS", logarithmic, logarithmic),
        "FD-SON m = 1": Line("FDSON", logarithmic, None),
        "ONS": Line("ONS", linear, None),
        "OGD": Line("OGD", linear, None),
    }
    assert [claim.holds for claim in claims_of(lines)] == [True, True, False, True, False]


def test_adversary__section_reads_the_curves(tmp_path):
    runs = swept(tmp_path, ADVERSARY)
    lines = lines_of(tmp_path / "store", runs)
    assert list(lines) == ["OGD step 0.0312", "OGD step 0.125", "PROS-N-KONS"]
    slow, fast, newton = lines.values()
    assert slow.size is None
    assert (newton.regret.rounds[-1], list(newton.regret.by_seed)) == (200, [0, 1])
    model = PROSNKONS(kernel="linear", clip=2.0, seed=1)
    X, y = np.ones((200, 1)), np.tile([-2.0, 2.0], 100)
    loss = ((model.progressive(X, y) - y) ** 2).sum()
    assert newton.regret.by_seed[1][-1] == pytest.approx(loss - 200 * 4.0)
    assert newton.size.by_seed[1][-1] == model.dictionary_.size
    assert fast.regret.exponent == pytest.approx(1.0, abs=0.1)
    figure = kons_adversary(tmp_path / "store", runs)
    assert (len(figure.drawings), len(figure.rows)) == (2, 3)
    assert kons_adversary(tmp_path / "store", runs.slice(0, 0)).rows == []
