"""The streams: 20news (or a stand-in), a dense one, and the ill-conditioned one."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from koco_stream.streams.rows import Rows, as_rows
from storage.generated.tables import ill_conditioned
from storage.sources.reading import read_sources

AUTOS = 8  # rec.autos


class Stream(NamedTuple):
    """Rows X (n, d), a CSR or dense matrix of float64, with labels y (n,) of −1 and +1; `rows` is X
    in the scan's form.
    """

    name: str
    X: object
    y: np.ndarray
    rows: Rows

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.y.size)

    @property
    def d(self) -> int:
        """The number of features."""
        return self.rows.n_features


def stream(name, X, y):
    return Stream(name, X, y, as_rows(X))


def first(whole: Stream, n: int) -> Stream:
    """The first n rows."""
    return stream(whole.name, whole.X[:n], whole.y[:n]) if n < whole.n else whole


def unit_rows(X):
    norms = np.sqrt(np.asarray(X.multiply(X).sum(1)).ravel())
    norms[norms == 0] = 1.0
    X = scipy.sparse.diags_array(1 / norms) @ X
    X.sum_duplicates()
    X = X.tocsr()
    return scipy.sparse.csr_array(
        (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape
    )  # as scikit-learn wants


def news() -> Stream:
    """20news, rec.autos against the rest, unit rows, shuffled by a fixed seed; without `KOCO_DATA`
    a stand-in, called so.
    """
    folder = os.environ.get("KOCO_DATA")
    path = Path(folder) / "20news" / "20news_bow_counts.svm.xz" if folder else None
    if path is None or not path.is_file():
        return news_stand_in()
    table = read_sources([path])
    X = scipy.sparse.csr_array(
        (table.values.astype(np.float64), table.indices, table.indptr),
        shape=(table.labels.size, table.n_features),
    )
    order = np.random.default_rng(20).permutation(table.labels.size)
    return stream("20news", unit_rows(X)[order], np.where(table.labels == AUTOS, 1.0, -1.0)[order])


def news_stand_in(n: int = 18_846, d: int = 101_631) -> Stream:
    """Rows like 20news: about 94 words each, of Zipf frequencies; 5 % of the labels are +1."""
    draw = np.random.default_rng(20)
    lengths = np.clip(draw.lognormal(4.45, 0.75, n), 5, 3000).astype(np.int64)
    frequency = np.cumsum(1.0 / (np.arange(d) + 3.0))
    words = draw.permutation(d)[
        np.searchsorted(frequency, draw.random(lengths.sum()) * frequency[-1])
    ]
    X = scipy.sparse.csr_array(
        (np.ones(words.size), words, np.concatenate([[0], np.cumsum(lengths)])), shape=(n, d)
    )
    X.sum_duplicates()
    X = unit_rows(X)
    score = X @ draw.standard_normal(d) + 0.1 * draw.standard_normal(n)
    y = np.where(score > np.quantile(score, 0.95), 1.0, -1.0)
    return stream("20news STAND-IN (synthetic: KOCO_DATA is not set or lacks 20news)", X, y)


def dense(n: int = 50_000, d: int = 90) -> Stream:
    """Dense rows of unit mean square, condition number 30, labels by a linear rule with noise."""
    draw = np.random.default_rng(90)
    basis, _ = np.linalg.qr(draw.standard_normal((d, d)))
    Z = draw.standard_normal((n, d))
    X = np.ascontiguousarray((Z * np.sqrt(np.geomspace(1.0, 1 / 30, d))) @ basis.T)
    X /= np.sqrt((X**2).sum(1).mean())
    score = Z @ draw.standard_normal(d) / np.sqrt(d)
    return stream(
        f"dense (d = {d})", X, np.where(score + 0.3 * draw.standard_normal(n) >= 0, 1.0, -1.0)
    )


def steep(n: int = 10_000) -> Stream:
    """The ill-conditioned set with condition number 100, scaled to a mean square norm of 1."""
    table = ill_conditioned(100.0, n_rows=n)
    X = table.values.reshape(-1, table.n_features)
    return stream("ill-conditioned (kappa = 100)", X / np.sqrt((X**2).sum() / len(X)), table.labels)
