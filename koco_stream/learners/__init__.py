"""The registry: every learner there is, with its parameters. Literal lists; nothing is discovered.
"""

from __future__ import annotations

from koco_stream.errors import WrongInput, nearest
from koco_stream.learners.declared import Learner, Public, StreamSize
from koco_stream.learners.kernel_family import KERNEL
from koco_stream.learners.linear_family import LINEAR

__all__ = ["LEARNERS", "Learner", "Public", "StreamSize", "learner_named"]

LEARNERS: dict[str, Learner] = {**LINEAR, **KERNEL}


def learner_named(name: str) -> Learner:
    """The learner called `name`. Raises `WrongInput` with the nearest name if there is none."""
    if name not in LEARNERS:
        raise WrongInput(f"no learner is called {name!r}{nearest(name, list(LEARNERS))}")
    return LEARNERS[name]
