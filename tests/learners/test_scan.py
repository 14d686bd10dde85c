"""The totals and the curve of a run: block by block the same as one round after the other."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream.losses import LOSSES, loss_value
from koco_stream.metrics.tally import losses_and_classes, tally
from koco_stream.runs.schemas import curve_points


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 300),
    st.sampled_from(sorted(LOSSES)),
    st.integers(0, 2**32 - 1),
    st.sets(st.integers(1, 299)),
)
def test_totals__of_blocks_are_those_of_single_rounds_to_the_bit(n, loss, seed, cuts):
    rng = np.random.default_rng(seed)
    predictions, labels = rng.normal(size=n) * rng.integers(0, 2, n), rng.choice([-1.0, 1.0], n)
    points = curve_points(n)
    totals, curve, at = np.zeros(3), np.zeros((points.size, 3)), 0
    for a, b in pairwise([0, *sorted(cut for cut in cuts if cut < n), n]):
        block = predictions[None, a:b], labels[None, a:b], b - a
        found = losses_and_classes(LOSSES[loss], *block)
        at = tally(*found, (labels[a:b] > 0).astype(int), totals, points, at, curve)
    cumulative, mistakes, lines = 0.0, 0, []
    for t in range(n):
        cumulative += loss_value(LOSSES[loss], predictions[t], labels[t])
        mistakes += (1.0 if predictions[t] >= 0 else -1.0) != labels[t]
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
