"""Vowpal Wabbit row by row against its own program, which reads the same rows as text."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from koco_stream.learners.foreign.learner import foreign_learner
from koco_stream.losses import LOSSES, loss_value
from tests.helpers.foreign import own_program, scores
from tests.helpers.linear_streams import stream
from tests.helpers.refusal import refusal

vw = pytest.importorskip("vowpalwabbit", reason="needs Vowpal Wabbit: koco-stream[vw]")
VW = foreign_learner("vw")

SPARSE, REAL = stream(1, n=400, d=30)
SIGNS = np.where(REAL >= 0.0, 1.0, -1.0)
# Vowpal Wabbit's own reader of numbers rounds fractions in its own way, but not whole numbers. The
# range of real labels grows.
WHOLE, WHOLE_LABELS = np.round(3 * SPARSE), np.round(9 * REAL * np.linspace(0.5, 3.0, 400))
OJA = "--OjaNewton --sketch_size 10"


def wide(X):
    """The rows with feature numbers that go beyond Vowpal Wabbit's 2^18 weights."""
    X = csr_matrix(X)
    return csr_matrix((X.data, X.indices * 9973 + 1, X.indptr), shape=(X.shape[0], 300_000))


def mean_loss(options, predictions, labels):
    loss = LOSSES[VW.measured_loss(VW.complete({"options": options}))]
    return np.mean([loss_value(loss, *pair) for pair in zip(predictions, labels, strict=True)])


@pytest.mark.parametrize(
    ("X", "labels"), [(wide(WHOLE), SIGNS), (WHOLE + 9, WHOLE_LABELS)], ids=["sparse", "dense"]
)
@pytest.mark.parametrize(
    "options",
    ["", "--adaptive", "--sgd -l 1e-3 --noconstant", "-q ::", OJA, f"{OJA} --epoch_size 7"],
)
def test_predictions__are_those_that_its_own_program_writes(options, X, labels, tmp_path):
    own, predictions = own_program(options, X, labels, tmp_path)
    found = scores("vw", {"options": options}, X, labels, cuts=(1, 2, 50, 50, 73))
    np.testing.assert_allclose(found, predictions, atol=1e-5, rtol=1e-5)
    # The loss that OjaNewton reports is that of another prediction, which is held within a range
    # of labels that includes the row's own.
    if labels is SIGNS or "Oja" not in options:
        assert mean_loss(options, found, labels) == pytest.approx(own, abs=1e-6, rel=1e-6)


def test_seed__is_given_to_vowpal_wabbit():
    found = {seed: scores("vw", {"options": OJA}, SPARSE, SIGNS, seed=seed) for seed in (3, 4)}
    given = scores("vw", {"options": f"{OJA} --random_seed 3"}, SPARSE, SIGNS, seed=4)
    assert (found[3] == given).all()
    assert (found[3] != found[4]).any()


@pytest.mark.parametrize(
    ("options", "loss", "draws"),
    [
        ("", "squared", False),
        ("--loss_function logistic --adaptive", "logistic", False),
        ("--adaptive -l 0.5 -b18 --loss_function=hinge", "hinge", False),
        ("--loss_function quantile --min_prediction -1", "squared", False),
        (OJA, "squared", True),
        (f"{OJA} --random_seed 3", "squared", False),
        ("--nn 5", "squared", True),
        ("--an_option_of_tomorrow", "squared", True),
    ],
)
def test_loss_and_draws__are_those_of_the_options(options, loss, draws):
    public = VW.complete({"options": options})
    assert (VW.measured_loss(public), VW.stochastic(public)) == (loss, draws)
    assert VW.classifies(public) == (loss in ("logistic", "hinge"))


def test_options__that_vowpal_wabbit_refuses_are_named_by_it():
    refusal(
        r"before its first round: .*unrecognised option '--no'",
        scores,
        "vw",
        {"options": "--no"},
        SPARSE,
        SIGNS,
        by=RuntimeError,
    )
    refusal(
        "labels of the type MULTICLASS and predicts MULTICLASS",
        scores,
        "vw",
        {"options": "--oaa 3"},
        SPARSE,
        SIGNS,
        by=RuntimeError,
    )
