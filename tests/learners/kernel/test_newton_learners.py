"""KORS, KONS and their kin: where one of them equals another, and what each carries and returns."""

import numpy as np
import pytest

from koco_stream import BKONS, CONKONS, KONS, NORMA, PROSNKONS, Batch, SketchedKONS
from koco_stream.learners import learner_named
from koco_stream.learners.shared_kernel_scan import SharedKernelScan
from koco_stream.streams.rows import as_rows

# Labels of ±1 beyond a small clip are among the cases.
pytestmark = pytest.mark.filterwarnings("ignore:a label")


def stream(seed, n=250, d=4, repeats=0.2, density=1.0):
    """Rows in [0, 1], some of them exact repeats of earlier ones, and labels in [−1, 1]."""
    draw = np.random.default_rng(seed)
    X = draw.random((n, d)) * (draw.random((n, d)) < density)
    again = draw.random(n) < repeats
    for t in np.flatnonzero(again)[1:]:
        X[t] = X[draw.integers(t)]
    return X, np.clip(
        np.sin(4 * X @ draw.standard_normal(d)) + 0.1 * draw.standard_normal(n), -1, 1
    )


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_b_kons__is_pros_n_kons_to_the_bit_until_its_dictionary_is_full(loss):
    X, y = stream(7, n=600)
    y = y if loss == "squared" else np.where(y >= 0, 1.0, -1.0)
    whole = PROSNKONS(bandwidth=0.5, loss=loss, seed=3)
    table = whole.record(X, y)
    limit = len(whole.dictionary_) // 2
    full = np.flatnonzero(table.column("dictionary_size").to_numpy() >= limit)[0]
    limited = BKONS(bandwidth=0.5, loss=loss, seed=3, max_dictionary=limit)
    assert (
        limited.progressive(X, y)[: full + 1].tobytes()
        == table.column("prediction").to_numpy()[: full + 1].tobytes()
    )
    assert len(limited.dictionary_) == limit
    unlimited = BKONS(bandwidth=0.5, loss=loss, seed=3, max_dictionary=10_000).progressive(X, y)
    assert unlimited.tobytes() == table.column("prediction").to_numpy().tobytes()


def test_growth__changes_no_number():
    # A dictionary that outgrows its room twice, in one call and in many.
    X, y = stream(5, n=900, d=6, repeats=0.0)
    arguments = {"bandwidth": 0.3, "ridge": 0.05, "beta": 2.0}
    whole, model = PROSNKONS(**arguments).progressive(X, y), PROSNKONS(**arguments)
    assert (
        np.concatenate(
            [model.progressive(X[t : t + 7], y[t : t + 7]) for t in range(0, 900, 7)]
        ).tobytes()
        == whole.tobytes()
    )
    assert len(model.dictionary_) > 112


def test_batch__is_the_best_in_the_span_of_the_final_dictionary():
    X, y = stream(9, n=300)
    model = CONKONS(bandwidth=0.7).partial_fit(X, y)
    batch = Batch(model, alpha=0.5).fit(X, y)
    K, points = (
        np.exp(-((A[:, None] - X[model.dictionary_][None]) ** 2).sum(-1) / (2 * 0.7**2))
        for A in (X, X[model.dictionary_])
    )
    coefficients = np.linalg.lstsq(K.T @ K + 0.5 * points, K.T @ y, rcond=None)[0]
    np.testing.assert_allclose(batch.predict(X), np.clip(K @ coefficients, -1, 1), atol=1e-5)
    assert batch.mean_loss_ < np.mean((CONKONS(bandwidth=0.7).progressive(X, y) - y) ** 2)


def test_cohort__shares_kernel_values_and_gives_the_bits_of_runs_alone():
    X, y = stream(11, n=700, d=5)
    rows, labels = as_rows(X), np.ascontiguousarray(y)
    configurations = [
        ("SketchedKONS", {"alpha": a, "sampling_floor": f}, s)
        for a in (0.1, 1.0)
        for f in (0.0, 0.3)
        for s in (0, 1)
    ]
    configurations += [("KONS", {"alpha": 1.0}, 0), ("NORMA", {"budget": 50, "step_size": 0.1}, 0)]
    params, states = [], []
    for name, given_, seed in configurations:
        learner = learner_named(name)
        params.append(learner.to_params(learner.complete({**given_, "bandwidth": 0.7})))
        states.append(learner.init(params[-1], 5, seed))
    learners = [learner_named(name) for name, _, _ in configurations]
    shared = np.empty((len(configurations), len(y)))
    for first, end in ((0, 100), (100, 103), (103, 700)):
        part = np.empty((len(configurations), end - first))
        scan = SharedKernelScan(learners, params, states, as_rows(X[first:end]))
        scan.advance(labels[first:end], part)
        states = scan.states
        shared[:, first:end] = part
    assert rows.n_rows == 700
    for i, (name, given_, seed) in enumerate(configurations):
        alone = {"SketchedKONS": SketchedKONS, "KONS": KONS, "NORMA": NORMA}[name](
            **given_, bandwidth=0.7, seed=seed
        )
        assert alone.progressive(X, y).tobytes() == shared[i].tobytes(), name
