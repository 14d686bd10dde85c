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
    from koco_stream.learners import load
    from koco_stream.learners.base import Learner
    from koco_stream.learners.kernel.b_kons import BKONS
    from koco_stream.learners.kernel.con_kons import CONKONS
    from koco_stream.learners.kernel.dual_sgd import DualSGD
    from koco_stream.learners.kernel.fogd import FOGD
    from koco_stream.learners.kernel.kons import KONS
    from koco_stream.learners.kernel.kors import KORS
    from koco_stream.learners.kernel.nogd import NOGD
    from koco_stream.learners.kernel.norma import NORMA
    from koco_stream.learners.kernel.pros_n_kons import PROSNKONS
    from koco_stream.learners.kernel.sketched_kons import SketchedKONS
    from koco_stream.learners.linear.adagrad import AdaGrad
    from koco_stream.learners.linear.fd_son import FDSON
    from koco_stream.learners.linear.ogd import OGD
    from koco_stream.learners.linear.oja_son import OjaSON
    from koco_stream.learners.linear.ons import ONS
    from koco_stream.learners.linear.rp_son import RPSON

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
    "Learner",
    "OjaSON",
    "SketchedKONS",
    "WrongInput",
    "__version__",
    "load",
]

_WHERE = {
    "Batch": ("koco_stream.batch", "Batch"),
    "Classifier": ("koco_stream.classifier", "Classifier"),
    "WrongInput": ("koco_stream.errors", "WrongInput"),
}


def __getattr__(name: str) -> Any:
    # Names are loaded when first used: the command line answers `--help` without waiting for the
    # compiler.
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'koco_stream' has no attribute {name!r}")
    module, attribute = _WHERE.get(name, ("koco_stream.learners", name))
    return getattr(importlib.import_module(module), attribute)
