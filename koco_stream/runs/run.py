"""Runs and cohorts, and their identities, which are hashes of their content."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from koco_stream.io.files import canonical_json, content_hash, text_hash
from koco_stream.learners import Public, learner_named
from koco_stream.streams.stream import Stream


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
    def of(stream: Stream, learner: str, given: dict[str, Any], learner_seed: int) -> "Run":
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
    chosen = learner_named(learner)
    public = chosen.complete(given)
    return learner, chosen.identifying(public), learner_seed if chosen.stochastic(public) else None


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
