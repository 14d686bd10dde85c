"""koco-stream: second-order online learners on sparse and dense streams, with reproducible results.

>>> from koco_stream import OjaSON
>>> model = OjaSON(sketch_size=2, alpha=1.0)
>>> model.progressive([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]).tolist()
[0.0, 0.0]
"""

from typing import TYPE_CHECKING, Any

from koco_stream.version import __version__

if TYPE_CHECKING:
    from koco_stream.batch import Batch
    from koco_stream.classifier import Classifier
    from koco_stream.errors import WrongInput
    from koco_stream.learners import (
        BKONS,
        CONKONS,
        FDSON,
        FOGD,
        KAWV,
        KONS,
        KORS,
        NAG,
        NOGD,
        NONSALD,
        NORMA,
        OGD,
        ONS,
        PKAWV,
        PROSNKONS,
        RFDSON,
        RPSON,
        AdaFD,
        AdaGrad,
        Constant,
        DualSGD,
        FTRLProximal,
        Learner,
        OjaSON,
        SAdaGrad,
        SketchedKONS,
        load,
    )
    from koco_stream.streams.opened import stream

__all__ = [
    "BKONS",
    "CONKONS",
    "FDSON",
    "FOGD",
    "KAWV",
    "KONS",
    "KORS",
    "NAG",
    "NOGD",
    "NONSALD",
    "NORMA",
    "OGD",
    "ONS",
    "PKAWV",
    "PROSNKONS",
    "RFDSON",
    "RPSON",
    "AdaFD",
    "AdaGrad",
    "Batch",
    "Classifier",
    "Constant",
    "DualSGD",
    "FTRLProximal",
    "Learner",
    "OjaSON",
    "SAdaGrad",
    "SketchedKONS",
    "WrongInput",
    "__version__",
    "load",
    "stream",
]

_MODULES = {
    "Batch": "batch",
    "Classifier": "classifier",
    "WrongInput": "errors",
    "stream": "streams.opened",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # Names are loaded when first used: the command line answers `--help` without waiting for the
    # compiler. A learner of the registry has its name here.
    import importlib

    if not name.startswith("_"):
        module = importlib.import_module(f"koco_stream.{_MODULES.get(name, 'learners')}")
        if name in _MODULES or name in ("Learner", "load") or name in module.LEARNERS:
            return getattr(module, name)
    raise AttributeError(f"module 'koco_stream' has no attribute {name!r}")
