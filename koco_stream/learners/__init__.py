"""All learners: the registry of the library's by name, and those of users by their references."""

from functools import cache
from pathlib import Path

from koco_stream.errors import WrongInput, nearest
from koco_stream.foreign_host.target import kind_of
from koco_stream.learners.base import Learner
from koco_stream.learners.constant import Constant
from koco_stream.learners.foreign.learner import ForeignLearner, foreign_learner
from koco_stream.learners.growth import Growth, Sampling
from koco_stream.learners.kernel.b_kons import BKONS
from koco_stream.learners.kernel.con_kons import CONKONS
from koco_stream.learners.kernel.dual_sgd import DualSGD
from koco_stream.learners.kernel.fogd import FOGD
from koco_stream.learners.kernel.kawv import KAWV
from koco_stream.learners.kernel.kons import KONS
from koco_stream.learners.kernel.kors import KORS
from koco_stream.learners.kernel.nogd import NOGD
from koco_stream.learners.kernel.nons_ald import NONSALD
from koco_stream.learners.kernel.norma import NORMA
from koco_stream.learners.kernel.pkawv import PKAWV
from koco_stream.learners.kernel.pros_n_kons import PROSNKONS
from koco_stream.learners.kernel.sketched_kons import SketchedKONS
from koco_stream.learners.linear.ada_fd import AdaFD
from koco_stream.learners.linear.adagrad import AdaGrad
from koco_stream.learners.linear.fd_son import FDSON
from koco_stream.learners.linear.ftrl_proximal import FTRLProximal
from koco_stream.learners.linear.nag import NAG
from koco_stream.learners.linear.ogd import OGD
from koco_stream.learners.linear.oja_son import OjaSON
from koco_stream.learners.linear.ons import ONS
from koco_stream.learners.linear.rfd_son import RFDSON
from koco_stream.learners.linear.rp_son import RPSON
from koco_stream.learners.linear.s_adagrad import SAdaGrad
from koco_stream.learners.references import (
    Reference,
    class_of,
    foreign_target,
    reference_to,
    shown_name,
)
from koco_stream.learners.saved import read_model, revived
from koco_stream.learners.scan import Algorithm
from koco_stream.learners.spec import Cost, Public, StreamSize

__all__ = [
    "BKONS",
    "CONKONS",
    "FDSON",
    "FOGD",
    "KAWV",
    "KONS",
    "KORS",
    "LEARNERS",
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
    "Algorithm",
    "AnyLearner",
    "Constant",
    "Cost",
    "DualSGD",
    "FTRLProximal",
    "Growth",
    "Learner",
    "OjaSON",
    "Public",
    "Reference",
    "SAdaGrad",
    "Sampling",
    "SketchedKONS",
    "StreamSize",
    "learner_called",
    "learner_named",
    "load",
    "shown_name",
]

LEARNERS: dict[str, type[Learner]] = {
    learner.__name__: learner
    for learner in (
        *(OGD, AdaGrad, NAG, FTRLProximal, OjaSON, ONS, RPSON, FDSON, RFDSON),
        *(SAdaGrad, AdaFD),
        *(KORS, PROSNKONS, CONKONS, BKONS, KONS, SketchedKONS, NORMA, FOGD, NOGD, DualSGD),
        *(KAWV, PKAWV, NONSALD),
        Constant,
    )
}


AnyLearner = type[Algorithm] | type[ForeignLearner]


def learner_named(name: str) -> AnyLearner:
    """The class of the learner that a run calls `name`: one of the library's, or a reference.

    An unknown name raises `WrongInput`, which suggests the nearest name.
    """
    if "@" in name:  # a reference
        return _referred(name)
    if name not in LEARNERS:
        raise WrongInput(f"no learner is called {name!r}{nearest(name, list(LEARNERS))}")
    return LEARNERS[name]


def learner_called(name: str, folder: Path) -> str:
    """What runs call the learner that a sweep file in `folder` calls `name`.

    The code of a file is read and copied to the cache folder. Raises `WrongInput` if there is no
    such learner.
    """
    return name if name in LEARNERS else str(reference_to(name, folder, list(LEARNERS)))


@cache
def _referred(text: str) -> AnyLearner:
    found: AnyLearner = class_of(text)
    if not issubclass(found, Learner):
        found = foreign_learner(*foreign_target(text))
        kind_of(found.target)  # which refuses a class that cannot be called row by row
    return found


def load(path: str | Path) -> Learner:
    """Load a learner saved with `Learner.save`.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Learner
        An instance of the library's class of that learner, even if a subclass was saved.

    Raises
    ------
    WrongInput
        The file is truncated, altered, or of another format or kind.
    """

    header, arrays = read_model(Path(path))
    if header["learner"] == "Classifier":
        raise WrongInput(f"{path} holds a classifier; use koco_stream.Classifier.load")
    otherwise = "which this version does not have; upgrade koco-stream"
    return revived(Path(path), header, arrays, LEARNERS, otherwise)
