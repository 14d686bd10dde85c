"""A stream: a dataset read in one order, and its identity."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from koco_stream.io.files import canonical_json, content_hash
from koco_stream.streams.manifest import Manifest


@dataclass(frozen=True)
class Stream:
    """A dataset read in one order. `order` is "as-stored", or by `order_seed` "shuffled" or
    "shuffled-in-windows", which depends on `window_rows` and on the dataset's `sharding` too. With
    `positive_class`, labels become +1 for it and −1 for all others while reading. `max_rows` reads
    only the first rows of the stream.
    """

    dataset: str
    dataset_hash: str
    order: str = "as-stored"
    order_seed: int | None = None
    positive_class: float | None = None
    max_rows: int | None = None
    window_rows: int | None = None
    sharding: str | None = None

    def reduced(self, n_rows: int, classes: Sequence[float]) -> "Stream":
        """The stream without what changes nothing on a dataset of `n_rows` rows and these classes:
        a limit or a window beyond its rows, the positive class 1 of labels -1 and +1.
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

    @cached_property
    def identity_text(self) -> str:
        """`identity` as canonical JSON."""
        return canonical_json(self.identity())

    @property
    def group(self) -> tuple[Any, ...]:
        """What the streams of one dataset have in common that differ in their `order_seed` only."""
        return (
            self.dataset_hash,
            self.order,
            self.positive_class,
            self.max_rows,
            self.window_rows,
            self.sharding,
        )

    def identity(self) -> dict[str, Any]:
        """All that decides which rows come in which order (the name does not). What only windows
        have is not in that of other orders.
        """
        windows = (
            {}
            if self.window_rows is None
            else {"window_rows": self.window_rows, "sharding": self.sharding}
        )
        return {
            "dataset_hash": self.dataset_hash,
            "order": self.order,
            "order_seed": self.order_seed,
            "positive_class": self.positive_class,
            "max_rows": self.max_rows,
            **windows,
        }


def sharding_of(manifest: Manifest) -> str:
    """What a shuffle in windows depends on besides the rows: the hash of the shards' numbers of
    rows.
    """
    return content_hash([shard.n_rows for shard in manifest.shards])
