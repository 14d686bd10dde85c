"""koco-stream: second-order online learners on sparse and dense streams, with reproducible results.

>>> from koco_stream import OjaSON
>>> model = OjaSON(sketch_size=2, alpha=1.0)
>>> model.progressive([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]).tolist()
[0.0, 0.0]
"""

import importlib
from typing import TYPE_CHECKING, Any

from koco_stream.version import __version__ as __version__

if TYPE_CHECKING:
    from koco_stream.batch import Batch as Batch
    from koco_stream.classifier import Classifier as Classifier
    from koco_stream.errors import WrongInput as WrongInput
    from koco_stream.learners import Learner as Learner, Mixture as Mixture, load as load
    from koco_stream.learners.registry import *  # noqa: F403
    from koco_stream.streams.opened import stream as stream

# Where other names than those of learners are.
_MODULES = {
    "Batch": "batch",
    "Classifier": "classifier",
    "Learner": "learners",
    "Mixture": "learners",
    "WrongInput": "errors",
    "load": "learners",
    "stream": "streams.opened",
}


def __dir__() -> list[str]:
    return sorted(
        [*_MODULES, "__version__", *importlib.import_module("koco_stream.learners").LEARNERS]
    )


def __getattr__(name: str) -> Any:
    # Names are loaded when first used: the command line answers `--help` without waiting for the
    # compiler. A learner of the registry has its name here.
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise AttributeError(f"module 'koco_stream' has no attribute {name!r}")
    module = _MODULES.get(name, "learners.registry")
    return getattr(importlib.import_module(f"koco_stream.{module}"), name)
