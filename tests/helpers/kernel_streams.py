"""Rows, labels and kernels for the kernel learners, and the slopes of losses."""

import numpy as np

from tests.oracles.kernel import squared_slope

slopes = {
    "squared": squared_slope,
    "logistic": lambda y_hat, y: -y / (1.0 + np.exp(y * y_hat)),
    "squared_hinge": lambda y_hat, y: -2.0 * y * max(0.0, 1.0 - y * y_hat),
}


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


def named(kernel, bandwidth):
    """(our arguments, the reference's) of a kernel."""
    ours = {"kernel": kernel} if bandwidth is None else {"kernel": kernel, "bandwidth": bandwidth}
    return ours, {
        "kernel": "quadratic" if kernel == "polynomial" else kernel,
        "bandwidth": bandwidth,
    }
