"""The nouns of a sweep: a stream, a run, a cohort; and their identities, which are hashes of their
content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from koco_stream.io.files import canonical_json, content_hash, text_hash
from koco_stream.learners import Public, learner_named
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

    def reduced(self, n_rows: int, classes: Sequence[float]) -> Stream:
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


@dataclass(frozen=True)
class Run:
    """One configuration (learner, parameters, learner_seed) on one stream.

    `params` are complete, but for those that cannot matter and those that were added after runs
    were made and are at their default: these are no part of the identity, nor is the seed of a
    learner that draws nothing.
    """

    stream: Stream
    learner: str
    params: Public
    learner_seed: int | None

    @staticmethod
    def of(stream: Stream, learner: str, given: dict[str, Any], learner_seed: int) -> Run:
        """The run of parameters that are checked, completed and reduced to what matters."""
        return Run(stream, *configuration_of(learner, given, learner_seed))

    @cached_property
    def run_id(self) -> str:
        """Hash of everything that can change the run's numbers (32 hexadecimal digits): the content
        hash of its stream's identity, its learner, that one's numbers_version, its params and its
        learner_seed. The text is put together here, since the stream's part is the same for many
        runs.
        """
        seed = "null" if self.learner_seed is None else self.learner_seed
        version = learner_named(self.learner).numbers_version
        return text_hash(
            f'{{"learner":"{self.learner}","learner_seed":{seed},"numbers_version":{version},'
            f'"params":{canonical_json(self.params)},"stream":{self.stream.identity_text}}}'
        )


def configuration_of(
    learner: str, given: dict[str, Any], learner_seed: int
) -> tuple[str, dict[str, Any], int | None]:
    """Learner, parameters and learner_seed, reduced to what matters. Raises `WrongInput` as
    `Learner.complete` does.
    """
    declared = learner_named(learner)
    public = declared.complete(given)
    return learner, declared.identifying(public), learner_seed if declared.draws(public) else None


@dataclass(frozen=True)
class Cohort:
    """Runs that share a pass over `stream`. `seconds` is what the planner expects it to take. After
    each `checkpoint_rounds` rounds their states are saved; 0 for never.
    """

    stream: Stream
    runs: tuple[Run, ...]
    seconds: float
    checkpoint_rounds: int = 0

    @cached_property
    def cohort_id(self) -> str:
        """Hash of its runs' identities."""
        return content_hash([run.run_id for run in self.runs])


def without_repeats(runs: Sequence[Run]) -> list[Run]:
    """The runs in their order, each identity once."""
    return list({run.run_id: run for run in reversed(runs)}.values())[::-1]
