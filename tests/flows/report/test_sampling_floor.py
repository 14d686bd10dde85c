"""The figure of Sketched-KONS's floor: its claims, its regret, and its sweep file."""

import numpy as np
import pytest

from flows.report.papers.sampling_floor import Point, claims_of, sampling_floor
from koco_stream import KONS
from storage.preparing.prepare import prepare_file
from tests.helpers.swept import swept


def verdicts(*points):
    return [claim.holds for claim in claims_of("x", list(points))]


def point(floor, regrets, size):
    return Point(floor, regrets, 100, size, 1.0)


def test_claims__are_about_every_floor_between_none_and_all():
    sampled, exact = point(0.0, [9.0], 10), point(1.0, [10.0], 100)
    assert verdicts(sampled, point(0.1, [90.0, 110.0], 19), point(0.5, [20.0], 71), exact) == [
        True,
        True,
        None,
    ]
    assert verdicts(sampled, point(0.1, [90.0, 111.0], 21), point(0.5, [10.0], 50), exact) == [
        False,
        False,
        None,
    ]
    assert verdicts(point(0.5, [10.0], 70), exact) == [True, True, None]
    # nothing is known of KORS's points
    assert verdicts(point(0.5, [10.0], 71), exact) == [True, False, None]
    assert verdicts(sampled, exact) == verdicts(point(0.5, [1.0], 1)) == []


def test_figure__has_the_regret_against_the_best_function_and_a_verdict(tmp_path):
    store, draw = tmp_path / "store", np.random.default_rng(0)
    X = draw.random((150, 3))
    y = np.sin(4 * X[:, 0]) * X[:, 1]
    np.savetxt(tmp_path / "a.csv", np.column_stack([X, y]), delimiter=",")
    prepare_file(store, "wave", [tmp_path / "a.csv"], header=False)
    learners = (
        '[[learner]]\nname = "SketchedKONS"\nsampling_floor = [0.0, 0.5]\nbandwidth ='
        ' 0.5\n[[learner]]\nname = "KONS"\nbandwidth = 0.5\n'
    )
    runs = swept(
        tmp_path, f'learner_seeds = 2\n[[dataset]]\nname = "wave"\nmax_rows = 120\n{learners}'
    )
    figure = sampling_floor(store, runs)
    assert [row[:2] for row in figure.rows] == [["wave", 0.0], ["wave", 0.5], ["wave", 1.0]]
    X, y = X[:120], y[:120]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * 0.5**2))
    best = K @ np.linalg.solve(K + np.eye(120), y)
    assert np.abs(best).max() < 1  # so nothing is shrunk
    losses = ((KONS(bandwidth=0.5).progressive(X, y) - y) ** 2).sum()
    assert figure.rows[-1][2] == pytest.approx(losses - ((best - y) ** 2).sum(), rel=1e-6)
    assert figure.rows[-1][5] == 120
    assert (len(figure.claims), len(figure.drawings)) == (3, 2)
    assert "of 2 claims hold." in figure.note
    assert sampling_floor(store, runs.slice(0, 0)).claims == []
