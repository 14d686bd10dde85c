"""All learners by name: the library's, and those of users by their references."""

from functools import cache
from pathlib import Path

from koco_stream.errors import WrongInput, nearest
from koco_stream.foreign_host.adapters import adapter_of
from koco_stream.learners import registry
from koco_stream.learners.base import Learner
from koco_stream.learners.foreign.learner import ForeignLearner, foreign_learner
from koco_stream.learners.references import class_of, foreign_target, reference_to
from koco_stream.learners.scan import Algorithm

# `Mixture`, which is made of others, is added by the package.
LEARNERS: dict[str, type[Learner]] = {
    name: found for name, found in vars(registry).items() if isinstance(found, type)
}
AnyLearner = type[Algorithm] | type[ForeignLearner]


@cache
def learner_named(name: str) -> AnyLearner:
    """The class of the learner that a run calls `name`: one of the library's, or a reference.

    An unknown name raises `WrongInput`, which suggests the nearest name.
    """
    if name in LEARNERS:
        return LEARNERS[name]
    if "@" not in name:
        raise WrongInput(f"no learner is called {name!r}{nearest(name, list(LEARNERS))}")
    found: AnyLearner = class_of(name)
    if not issubclass(found, Learner):
        found = foreign_learner(*foreign_target(name))
        adapter_of(found.target, {})  # which refuses a class that cannot be called row by row
    return found


def learner_called(name: str, folder: Path) -> str:
    """What runs call the learner that a sweep file in `folder` calls `name`.

    The code of a file is read and copied to the cache folder. Raises `WrongInput` if there is no
    such learner.
    """
    return name if name in LEARNERS else str(reference_to(name, folder, list(LEARNERS)))
