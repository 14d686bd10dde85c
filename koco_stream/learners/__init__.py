"""All learners: the library's by name, and those of users by their references."""

from pathlib import Path

from koco_stream.errors import WrongInput
from koco_stream.learners.base import Learner as Learner
from koco_stream.learners.mixture import Mixture as Mixture
from koco_stream.learners.named import (
    LEARNERS as LEARNERS,
    AnyLearner as AnyLearner,
    learner_called as learner_called,
    learner_named as learner_named,
)
from koco_stream.learners.references import Reference as Reference, shown_name as shown_name
from koco_stream.learners.registry import *  # noqa: F403
from koco_stream.learners.saved import read_model, revived
from koco_stream.learners.scan import Algorithm as Algorithm
from koco_stream.learners.spec import Public as Public, Shared as Shared, StreamSize as StreamSize

LEARNERS[Mixture.__name__] = Mixture


def load(path: str | Path) -> Learner:
    """Load a learner that `Learner.save` wrote, as the library's class, even if of a subclass.
    Raises `WrongInput` if the file is truncated, altered, or of another format or kind.
    """
    header, arrays = read_model(Path(path))
    if header["learner"] == "Classifier":
        raise WrongInput(f"{path} holds a classifier; use koco_stream.Classifier.load")
    otherwise = "which this version does not have; upgrade koco-stream"
    return revived(Path(path), header, arrays, LEARNERS, otherwise)
