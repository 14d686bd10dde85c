"""A stream: a dataset read in one order, and its identity."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from koco_stream.io.files import canonical_json, content_hash
from koco_stream.streams.manifest import Manifest


@dataclass(frozen=True)
class Stream:
    """A dataset read in one order.

    Parameters
    ----------
    dataset, dataset_hash : str
        The dataset's name and the hash of its content.
    order : str
        "as-stored", "shuffled" or "shuffled-in-windows".
    order_seed : int, optional
        Seed of a shuffled order.
    positive_class : float, optional
        If given, this label is read as +1 and all others as −1.
    multiclass : str, optional
        If given, it is "one-vs-rest": a run learns every class against the rest.
    max_rows : int, optional
        If given, the stream ends after this many rows.
    window_rows, sharding : int and str, optional
        Rows of a window, and `sharding_of` the dataset; for "shuffled-in-windows" only.
    """

    dataset: str
    dataset_hash: str
    order: str = "as-stored"
    order_seed: int | None = None
    positive_class: float | None = None
    max_rows: int | None = None
    window_rows: int | None = None
    sharding: str | None = None
    multiclass: str | None = None

    def reduced(self, n_rows: int, classes: Sequence[float]) -> "Stream":
        """The same stream without settings that have no effect on a dataset of `n_rows` rows.

        These are a limit or window beyond its rows, and positive class 1 for classes −1 and +1.
        """
        limit = self.max_rows if self.max_rows is not None and self.max_rows < n_rows else None
        as_read = self.positive_class == 1.0 and bool(classes) and set(classes) <= {-1.0, 1.0}
        window = None if self.window_rows is None else min(self.window_rows, n_rows)
        return replace(
            self,
            max_rows=limit,
            window_rows=window,
            positive_class=None if as_read else self.positive_class,
        )

    def n_states(self, n_classes: int) -> int:
        """How many states a learner has on the stream of a dataset with so many classes."""
        return 1 if self.multiclass is None else n_classes

    @cached_property
    def identity_text(self) -> str:
        """The stream's identity as canonical JSON."""
        return canonical_json(self.identity())

    @property
    def group(self) -> tuple[Any, ...]:
        """A key that is equal for streams that differ in their `order_seed` only."""
        return tuple(value for name, value in self.identity().items() if name != "order_seed")

    def identity(self) -> dict[str, Any]:
        """Everything that determines the stream's rows and their order: not the dataset's name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "dataset"}


def sharding_of(manifest: Manifest) -> str:
    """A hash of the shards' row counts, on which the order "shuffled-in-windows" depends."""
    return content_hash([shard.n_rows for shard in manifest.shards])
