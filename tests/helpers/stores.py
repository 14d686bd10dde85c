"""Stores that tests of several rooms prepare."""

import numpy as np

from storage.preparing.prepare import prepare_file
from storage.store import open_store


def wide_store(folder, rows):
    """A store with one regression set of thirty features."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((rows, 30))
    np.savetxt(folder / "real.csv", np.c_[X, X.sum(1)], delimiter=",", fmt="%.4f")
    open_store(folder / "store")
    prepare_file(folder / "store", "real", folder / "real.csv")
    return folder / "store"
