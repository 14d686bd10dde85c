"""Points that leave take out what they have: the dictionary is that of the points still there."""

from collections import Counter
from itertools import product

import numpy as np

from koco_stream.kernels.dictionary import add_point, grown, lacks_lines, leave, no_points
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.instructions.point_panels import room_for


@jit
def lacks(points, s):
    return lacks_lines(points, s)


@jit
def put(points, p, idx, val, t):
    if p < points.n[()]:
        leave(points, p)
    add_point(points, p, idx, val, 1.0 + t, t)


def test_points__are_those_put_last_whatever_left():
    seen = Counter()
    for seed, (budget, d, longest) in enumerate(product((1, 3, 17), (1, 30, 400), (3, 40))):
        draw = np.random.default_rng(seed)
        points, rows = no_points(d, room_for(budget)), []
        least = points.rows.indices.size
        for t in range(60):
            size = draw.integers(0, min(longest, d) + 1)
            idx = np.sort(draw.choice(d, size, replace=False)).astype(np.int32)
            val = draw.standard_normal(size)
            if lacks(points, size):
                before = points.features.shape
                points = grown(points, size, more_points=False)
                seen["grown"] += points.features.shape != before
                assert not lacks(points, size)
                assert points.rows.indices.size >= least  # else its state could not be loaded
            free = int(points.n_free)
            p = len(rows) if len(rows) < budget else int(draw.integers(budget))
            put(points, p, idx, val, t)
            seen["a free line is used"] += int(points.n_free) < free
            seen["a line becomes free"] += int(points.n_free) > free
            rows[p : p + 1] = [(idx, val, t)]
            check(points, rows, d)
    assert len(seen) == 3
    assert min(seen.values()) >= 5, seen


def check(points, rows, d):
    """The dictionary against the rows that are in it."""
    dense = np.zeros((room_for(len(rows)), d))
    for p, (idx, val, _) in enumerate(rows):
        dense[p, idx] = val
    table = points.features.swapaxes(1, 2).reshape(-1, points.features.shape[1])
    assert (table[:, points.line_of][: len(dense)] == dense).all()
    assert (points.line_of > 0).tolist() == dense.any(0).tolist()
    assert np.flatnonzero(table.any(0)).size == dense.any(0).sum()
    assert int(points.used) - 1 - int(points.n_free) == dense.any(0).sum()
    assert points.rounds[: len(rows)].tolist() == [t for _, _, t in rows]
    stored = zip(points.rows.begin, points.rows.end, rows, strict=False)
    for begin, end, (idx, val, _) in stored:
        assert points.rows.indices[begin:end].tolist() == idx.tolist()
        assert points.rows.values[begin:end].tolist() == val.tolist()
    assert points.rows.norms[: len(rows)].tolist() == [1.0 + t for _, _, t in rows]
