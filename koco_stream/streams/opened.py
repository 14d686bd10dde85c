"""A stream in Python: the rows that runs see, in the order in which they see them."""

from collections.abc import Iterator
from typing import Any

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath, store_path
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import BLOCK_ROWS, Block, StreamReader
from koco_stream.streams.stream import (
    AS_STORED,
    IN_WINDOWS,
    SHUFFLED,
    WINDOW_ROWS,
    Stream,
    sharding_of,
)
from koco_stream.types import Array

ORDERS = (AS_STORED, SHUFFLED, IN_WINDOWS)


class OpenedStream:
    """The rows of a stream, as `koco_stream.stream` gives them.

    Each iteration gives pairs (X, y) from the first row on: X (n, d) is a NumPy array if the
    dataset is dense and a SciPy CSR array if it is sparse, and y is (n,).

    Attributes
    ----------
    n_rows, n_features : int
        The rows of the stream, and the features of the dataset.
    classes : tuple of float
        The dataset's classes; empty for real labels.
    """

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self.n_rows = reader.n_rows
        self.n_features = reader.manifest.n_features
        self.classes = tuple(reader.manifest.classes)

    def __len__(self) -> int:
        return self.n_rows

    def __iter__(self) -> Iterator[tuple[Any, Array]]:
        return self.blocks()

    def blocks(self, block_rows: int = BLOCK_ROWS) -> Iterator[tuple[Any, Array]]:
        """The rows in order as pairs (X, y) of at most `block_rows` rows."""
        return (_as_given(block) for block in self._reader.blocks(block_rows, zeros=True))

    def whole(self) -> tuple[Any, Array]:
        """All rows (n, d) and labels (n,), if they fit into memory."""
        return _as_given(self._reader.whole(zeros=True))


def stream(
    store: AnyPath,
    dataset: str,
    order: str = AS_STORED,
    order_seed: int | None = None,
    *,
    positive_class: float | str | None = None,
    max_rows: int | None = None,
    window_rows: int | None = None,
) -> OpenedStream:
    """Open a stream of a prepared dataset: the rows that runs of a sweep see, in their order.

    With the columns of a run in the table `runs`, you can repeat it by hand or with another
    library.

    Parameters
    ----------
    store : str or Path
        A folder, or an `s3://` or `gs://` address.
    dataset : str
        The dataset's name in the store (`koco list datasets`).
    order : {"as-stored", "shuffled", "shuffled-in-windows"}
        The order of the rows.
    order_seed : int, optional
        The seed of a shuffled order, by default 0.
    positive_class : float or str, optional
        The class, by number or name, that is read as +1, and all others as −1.
    max_rows : int, optional
        The rows after which the stream ends.
    window_rows : int, optional
        Rows of a window of "shuffled-in-windows", by default 65,536.

    Returns
    -------
    OpenedStream
        Gives blocks (X, y) when it is iterated, or all rows by `whole()`.

    Raises
    ------
    WrongInput
        The dataset is not prepared or is damaged, or there is no such order or class.

    Examples
    --------
    >>> import koco_stream
    >>> rows = koco_stream.stream("store", "churn", "shuffled", 3)     # doctest: +SKIP
    >>> model = koco_stream.OjaSON()
    >>> for X, y in rows:                                              # doctest: +SKIP
    ...     predictions = model.progressive(X, y)
    """
    if order not in ORDERS:
        raise WrongInput(f"there is no order {order!r}{nearest(order, list(ORDERS))}")
    manifest = load_manifest(store_path(store), dataset)
    windows = order == IN_WINDOWS
    return OpenedStream(
        StreamReader(
            store_path(store),
            Stream(
                dataset,
                manifest.dataset_hash,
                order,
                None if order == AS_STORED else order_seed or 0,
                None if positive_class is None else manifest.class_of(positive_class),
                max_rows,
                (window_rows or WINDOW_ROWS) if windows else None,
                sharding_of(manifest) if windows else None,
            ),
        )
    )


def _as_given(block: Block) -> tuple[Any, Array]:
    rows = block.rows
    if rows.index_stride == 0:
        return rows.values.reshape(rows.n_rows, rows.n_features), block.labels
    return rows.to_scipy(), block.labels
