import numpy as np
import pytest

from storage.preparing.prepare import prepare_file

CLASSES = (2.0, 3.0, 7.0, 11.0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with a set of four classes, one of real labels and one of two classes."""
    folder, draw = tmp_path_factory.mktemp("classes"), np.random.default_rng(5)
    X = np.round(draw.standard_normal((300, 6)) * (draw.random((300, 6)) < 0.7), 3)
    y = draw.choice(CLASSES, 300, p=[0.4, 0.3, 0.2, 0.1])
    for name, labels in (("four", y), ("real", X.sum(1)), ("two", np.sign(X.sum(1) + 1e-9))):
        rows = np.c_[X[:, :5], 0.3 * X[:, 5] + 0.1 * y, labels]
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",", fmt="%.4f")
        task = "regression" if name == "real" else "classification"
        prepare_file(folder / "store", name, folder / f"{name}.csv", task=task)
    return folder / "store"
