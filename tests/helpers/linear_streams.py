"""Rows and labels for the linear learners."""

import numpy as np
import scipy.sparse

from koco_stream import RPSON


def stream(seed, n=300, d=20, density=0.3, noise=0.1):
    """Rows of unit mean square with some empty ones, labels in [−1, 1]."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d)) * (draw.random((n, d)) < density)
    X[draw.random(n) < 0.05] = 0.0
    X /= np.sqrt((X**2).sum(1).mean())
    return X, np.clip(X @ draw.standard_normal(d) + noise * draw.standard_normal(n), -1, 1)


def projections(m, seed, n):
    """The random vectors r_t (n, m) of an RPSON: its sketch after n rows e_t, for which ĝ_t is
    −e_t.
    """
    probe = RPSON(m, 1.0, curvature=0.25, seed=seed)
    return -probe.partial_fit(scipy.sparse.eye_array(n, format="csr"), np.ones(n)).sketch_.T
