"""The totals and the curve of a run: block by block the same as one round after the other."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings, strategies as st

from koco_stream.losses import LOSSES, loss_value
from koco_stream.metrics.tally import losses_and_classes, tally
from koco_stream.runs.schemas import curve_points


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 300),
    st.sampled_from(sorted(LOSSES)),
    st.integers(0, 2**32 - 1),
    st.sets(st.integers(1, 299)),
    st.sampled_from([1, 3]),
)
def test_totals__of_blocks_are_those_of_single_rounds_to_the_bit(n, loss, seed, cuts, classes):
    """Of one class, or of all against the rest."""
    rng = np.random.default_rng(seed)
    predictions = rng.normal(size=(classes, n)) * rng.integers(0, 2, (classes, n))
    numbers = rng.integers(0, max(classes, 2), n)
    of_class = [1] if classes == 1 else range(classes)
    labels = np.array([np.where(numbers == k, 1.0, -1.0) for k in of_class])
    points = curve_points(n)
    totals, curve, at = np.zeros(3), np.zeros((points.size, 3)), 0
    for a, b in pairwise([0, *sorted(cut for cut in cuts if cut < n), n]):
        block = predictions[:, a:b].copy(), labels[:, a:b].copy(), b - a
        found = losses_and_classes(LOSSES[loss], *block)
        at = tally(*found, numbers[a:b], totals, points, at, curve)
    cumulative, mistakes, lines = 0.0, 0, []
    for t in range(n):
        of_round = 0.0  # not by sum(), which since Python 3.12 does not round each addition
        for prediction, label in zip(predictions[:, t], labels[:, t], strict=True):
            of_round += loss_value(LOSSES[loss], prediction, label)
        cumulative += of_round / classes
        predicted = predictions[:, t].argmax() if classes > 1 else predictions[0, t] >= 0
        mistakes += int(predicted != numbers[t])
        if t + 1 in points:
            lines.append([t + 1, cumulative, mistakes])
    assert totals.tolist() == [n, cumulative, mistakes]
    assert curve.tolist() == lines
    assert at == points.size


@given(st.integers(0, 10**7))
def test_curves__have_points_at_the_first_round_half_and_the_end(n):
    points = curve_points(n)
    assert (np.diff(points) > 0).all()
    assert {1.0, float(n // 2), float(n)} - {0.0} <= set(points.tolist()) or n == 0
    assert points.size <= 2 + 8 * np.log10(max(n, 1)) + 1
