"""The streams: 20news (or a stand-in), and a dense one."""

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
from sklearn.preprocessing import normalize

from koco_stream.streams import stream as streams
from koco_stream.streams.inputs import as_rows
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.rows import Rows
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_file

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


def news_file() -> Path | None:
    """The file of 20news, or None without the data."""
    path = Path(os.environ.get("KOCO_DATA", "")) / "20news" / "20news_bow_counts.svm.xz"
    return path if path.is_file() else None


def prepared_news(store: Path) -> Manifest:
    """20news as it comes, in the store; without `KOCO_DATA` a stand-in, called so: generated rows
    of about 94 words, of Zipf frequencies.
    """
    path = news_file()
    if path is not None:
        return prepare_file(store, "20news", path)
    return prepare_synthetic(store, "sparse-text", {"n_rows": 18_846, "data_seed": 20})


def matrix_of(store: Path, manifest: Manifest) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """The rows of a sparse dataset as a CSR matrix (n, d) with numbers of 32 bits for features, as
    scikit-learn wants it, and the labels (n,).
    """
    rows, labels = StreamReader(store, streams.Stream(manifest.name, manifest.dataset_hash)).whole()
    X = (rows.values.astype(np.float64), rows.indices, rows.indptr.astype(np.int32))
    return scipy.sparse.csr_array(X, shape=(labels.size, rows.n_features)), labels


def news() -> Stream:
    """20news, rec.autos against the rest, unit rows, shuffled by a fixed seed; or the stand-in."""
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as store:
        manifest = prepared_news(Path(store))
        X, labels = matrix_of(Path(store), manifest)
    y = np.where(labels == (AUTOS if manifest.name == "20news" else 1.0), 1.0, -1.0)
    order = np.random.default_rng(20).permutation(y.size)
    return stream(manifest.name, normalize(X)[order], y[order])


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
