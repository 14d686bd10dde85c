"""koco-stream: second-order online learners on sparse and dense streams, with one numerical answer
for every run.

>>> from koco_stream import OjaSON
>>> model = OjaSON(sketch_size=2, alpha=1.0)
>>> model.progressive([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]).tolist()
[0.0, 0.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from koco_stream.batch import Batch
    from koco_stream.classifier import Classifier
    from koco_stream.errors import WrongInput
    from koco_stream.learners.models import (
        BKONS,
        CONKONS,
        FDSON,
        FOGD,
        KONS,
        KORS,
        NOGD,
        NORMA,
        OGD,
        ONS,
        PROSNKONS,
        RPSON,
        AdaGrad,
        DualSGD,
        OjaSON,
        SketchedKONS,
    )
    from koco_stream.learners.saved import load_model as load

__version__ = "0.1.0"
__all__ = [
    "BKONS",
    "CONKONS",
    "FDSON",
    "FOGD",
    "KONS",
    "KORS",
    "NOGD",
    "NORMA",
    "OGD",
    "ONS",
    "PROSNKONS",
    "RPSON",
    "AdaGrad",
    "Batch",
    "Classifier",
    "DualSGD",
    "OjaSON",
    "SketchedKONS",
    "WrongInput",
    "__version__",
    "load",
]

_WHERE = {
    "Batch": ("koco_stream.batch", "Batch"),
    "Classifier": ("koco_stream.classifier", "Classifier"),
    "load": ("koco_stream.learners.saved", "load_model"),
    "WrongInput": ("koco_stream.errors", "WrongInput"),
}


def __getattr__(name: str) -> Any:
    # Names are loaded when first used: the command line answers `--help` without waiting for the
    # compiler.
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'koco_stream' has no attribute {name!r}")
    module, attribute = _WHERE.get(name, ("koco_stream.learners.models", name))
    return getattr(importlib.import_module(module), attribute)
